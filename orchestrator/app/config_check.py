"""The configuration looked at: all mistakes of all files, what each job means, and what of the machine is not as it needs."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from orchestrator import compose
from orchestrator.app.settings import Frame
from orchestrator.engines.contract import Advice
from orchestrator.views.check import CheckedJob, ConfigCheck

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.job import Job


def check_config(frame: Frame, now: datetime, *, system: bool) -> ConfigCheck:
    """Return what each job means. `system`: look at programs, sources and targets too.

    Raises: DeclarationError with the mistakes of all files.
    """
    from orchestrator.app.local_clock import calendar
    from orchestrator.app.schedule_report import next_runs

    known = _everything(frame)
    coming = {job.name: next_runs(job, now) for job in known.jobs}
    show = calendar().show if any(coming.values()) else None
    jobs = tuple(
        CheckedJob(
            job=job,
            next=coming[job.name],
            shown=tuple(map(show, coming[job.name])) if show else (),
            advice=_advice(frame, job) if system and not job.target.rotates else (),
        )
        for job in known.jobs
    )
    return ConfigCheck(config=frame.where.config, jobs=jobs, machine=_machine_advice(frame, known) if system else None)


def _everything(frame: Frame) -> "Configuration":
    """Load the jobs, and check poolferry.toml too. Raises: DeclarationError with the mistakes of all files."""
    from orchestrator.domain.errors import DeclarationError, Mistake

    mistakes: list[Mistake] = []
    known = None
    try:
        known = frame.configuration()
    except DeclarationError as error:
        mistakes += error.mistakes
    try:
        compose.machine(frame.where, [job.name for job in known.jobs] if known else None)
    except DeclarationError as error:
        mistakes += error.mistakes
    if known is None or mistakes:
        raise DeclarationError(tuple(mistakes))
    return known


def _advice(frame: Frame, job: "Job") -> tuple[Advice, ...]:
    from orchestrator.engines.registry import engine

    with compose.reader(job, compose.stop_for(None), frame.log) as reader:
        return engine(job.engine).advise(job, reader)


def _machine_advice(frame: Frame, known: "Configuration") -> tuple[Advice, ...]:
    """Return the advice about the machine itself: the channels' secrets, and the units that start scheduled runs."""
    from orchestrator.app.notify_check import channel_advice
    from orchestrator.app.notify_queue import means_of
    from orchestrator.app.systemd_state import Here, program_here, rule_installed, unit_advice, units_known
    from orchestrator.process.executor import Reader

    where = frame.where
    units = units_known(Reader(log=frame.log))
    texts = [text for unit in units.values() for text in (unit.text, *unit.more)]
    channels = channel_advice(compose.machine(where).notice, means_of(where), texts)
    if not units:
        return channels
    here = Here(
        shipped=compose.shipped_units(), program=program_here(), config=where.config, state=where.state,
        scheduled=any(job.schedule or job.after for job in known.jobs), disks=bool(known.sets),
    )  # fmt: skip
    return (*channels, *unit_advice(units, here, rule_installed()))


def read_schemas() -> Mapping[str, Any]:
    """Return the JSON Schema of each kind of file."""
    from orchestrator.config.schema import schemas

    return schemas(compose.EngineSections())
