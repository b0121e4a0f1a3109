"""Check of the configuration: all mistakes of all files, the meaning of each job, and missing needs on the machine."""

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from orchestrator import compose
from orchestrator.app.settings import Settings
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.names import KEY_FILE, show_name
from orchestrator.engines.contract.engine import SystemCheckResult
from orchestrator.views.check import CheckedJob, ConfigCheck

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.errors import ConfigMistake
    from orchestrator.domain.job import Job


def check_config(settings: Settings, now: datetime, *, system: bool) -> ConfigCheck:
    """Return the meaning of each job. `system`: check programs, sources and targets too.

    Raises: DeclarationError with the mistakes of all files.
    """
    from orchestrator.app.local_clock import local_calendar
    from orchestrator.app.schedule_report import next_runs

    known = _everything(settings)
    coming = {job.name: next_runs(job, now) for job in known.jobs}
    show = local_calendar().show if any(coming.values()) else None
    jobs = tuple(
        CheckedJob(
            job=job,
            next=coming[job.name],
            shown=tuple(map(show, coming[job.name])) if show else (),
            advice=(
                *_permit_advice(settings, job),
                *(_advice(settings, job) if system and not job.target.rotates else ()),
            ),
        )
        for job in known.jobs
    )
    return ConfigCheck(
        config=settings.where.config, jobs=jobs, machine=_machine_advice(settings, known) if system else None
    )


def _everything(settings: Settings) -> "Configuration":
    """Load the jobs, and check poolferry.toml too. Raises: DeclarationError with the mistakes of all files."""
    from orchestrator.config.gates import gate_mistakes
    from orchestrator.domain.errors import ConfigMistake, DeclarationError

    mistakes: list[ConfigMistake] = []
    known = None
    try:
        known = settings.configuration()
    except DeclarationError as error:
        mistakes += error.mistakes
    try:
        compose.read_machine_config(settings.where, [job.name for job in known.jobs] if known else None)
    except DeclarationError as error:
        mistakes += error.mistakes
    mistakes += gate_mistakes(settings.where.config)
    if known is not None:
        mistakes += _unusable_programs(settings, known)
    if known is None or mistakes:
        raise DeclarationError(tuple(mistakes))
    return known


def _unusable_programs(settings: Settings, known: "Configuration") -> Iterator["ConfigMistake"]:
    """Yield a mistake for each hook and check-command of a job that cannot be run."""
    from orchestrator.config.locate import locate_keys
    from orchestrator.domain.errors import ConfigMistake
    from orchestrator.runner.hooks import explain_unusable, find_program

    folders = compose.hook_folders(settings.where)
    for job in known.jobs:
        hooks = [(("hooks", event), argv[0], folders) for event, commands in job.hooks.calls for argv in commands]
        checks = [(("drill", "check-command"), job.drill.check_command[0], ())] if job.drill.check_command else []
        for key, program, searched in (*hooks, *checks):
            what, expected = explain_unusable(find_program(program, searched))
            if what:
                with open(job.file, encoding="utf-8", newline="\n") as file:
                    line = locate_keys(file.read()).of(key)
                yield ConfigMistake(
                    file=show_name(job.file),
                    line=line,
                    key=".".join(key),
                    what=show_name(what),
                    expected=show_name(expected),
                )


def _permit_advice(settings: Settings, job: "Job") -> Iterator[SystemCheckResult]:
    """Yield why no run of a job can be lent its permits: each goes on without, so nothing is hindered."""
    if not job.permit:
        return
    from orchestrator.fleet.connection import INSTALL, has_library
    from orchestrator.fleet.credentials import read_identity

    why = ""
    try:
        if not has_library():
            why = f"psycopg is not installed: {INSTALL}"
        elif compose.read_machine_config(settings.where).fleet.centre is None or not read_identity(
            settings.where.state
        ):
            why = "this host has joined no centre; `poolferry fleet invite` there prints how to join"
    except OrchestratorError as error:
        why = f"{error.why}; {error.hint}"
    if why:
        subject = f"permits {', '.join(job.permit.limits)}"
        text = f"its runs go on without a permit: {why}"
        yield SystemCheckResult(good=False, subject=subject, text=text, hinders=False)


def _advice(settings: Settings, job: "Job") -> tuple[SystemCheckResult, ...]:
    from orchestrator.engines.registry import load_engine

    with compose.make_reader(job, compose.make_stop_request(None), settings.log) as reader:
        advice = load_engine(job.engine).advise(job, reader)
    moved = _moved_source(settings, job, advice)
    if source := moved or _lost_source(settings, job):
        others = (each for each in advice if each.subject != source[0].subject or not (moved or each.good))
        advice = (*others, *source)
    subject = f"target {job.target.location}"
    if not job.copies or any(each.subject == subject and not each.good and each.hinders for each in advice):
        return _with_moved_copy(settings, job, subject, advice)
    lost = _lost_copies(settings, job, subject)
    return (*(each for each in advice if not (lost and each.good and each.subject == subject)), *lost)


def _with_moved_copy(
    settings: Settings, job: "Job", subject: str, advice: tuple[SystemCheckResult, ...]
) -> tuple[SystemCheckResult, ...]:
    """Return the lines, with a better one for a target that is not there where its copy is known by its identity elsewhere."""
    from orchestrator.engines.contract.copies import CopyFinder
    from orchestrator.engines.contract.engine import implements
    from orchestrator.engines.registry import load_engine

    engine = load_engine(job.engine)
    if not job.copies or not implements(engine, CopyFinder) or (remembered := _remembered(settings, job)) is None:
        return advice
    try:
        with compose.make_reader(job, compose.make_stop_request(None), settings.log) as reader:
            found = engine.explain_moved_copy(job, remembered, reader)
    except OrchestratorError:
        return advice
    if found is None:
        return advice
    told = SystemCheckResult(good=False, subject=subject, text=f"{found.why}: {found.hint}")
    return (*(each for each in advice if each.subject != subject), told)


def _remembered(settings: Settings, job: "Job") -> Mapping[str, str] | None:
    """Return the small facts that history holds of a job; None while it cannot be read, or is being written: check leaves it as it is."""
    from orchestrator.domain.errors import HistoryError
    from orchestrator.history.database import is_write_open

    if is_write_open(settings.where.history):
        return None
    try:
        with settings.views() as views:
            return views.memory(job.name)
    except HistoryError:
        return None


def _moved_source(
    settings: Settings, job: "Job", advice: tuple[SystemCheckResult, ...]
) -> tuple[SystemCheckResult, ...]:
    """Return a line for a source that is not there, and lies under another name by what history remembers of it, or may lie under one."""
    from orchestrator.domain.errors import SourceRenamed
    from orchestrator.domain.plan import Refusal
    from orchestrator.domain.source_state import SourceState
    from orchestrator.engines.contract.engine import RunRequest
    from orchestrator.engines.registry import load_engine

    engine, named = load_engine(job.engine), str(job.source)
    subject = next((each.subject for each in advice if not each.good and each.subject.partition(" ")[2] == named), None)
    if subject is None or (remembered := _remembered(settings, job)) is None:
        return ()
    try:
        request = RunRequest(now=compose.now(), notes="", remembered=remembered)
        with compose.make_reader(job, compose.make_stop_request(None), settings.log) as reader:
            decision = engine.plan(job, engine.survey(job, request, reader), request)
    except SourceRenamed as error:
        return (SystemCheckResult(good=False, subject=subject, text=f"{error.why}: {error.hint}"),)
    except OrchestratorError:
        return ()
    # What the look for another name left open, as behind a gate, is evidence of a source that is gone.
    gone = isinstance(decision, Refusal) and decision.source is SourceState.GONE and bool(decision.evidence)
    if not isinstance(decision, Refusal) or not (gone or decision.source is SourceState.RENAMED):
        return ()
    seen = f" ({'; '.join(decision.evidence)})" if gone else ""
    return (SystemCheckResult(good=False, subject=subject, text=f"{decision.why}{seen}: {decision.hint}"),)


def _lost_source(settings: Settings, job: "Job") -> tuple[SystemCheckResult, ...]:
    """Return a line for a source that history knows to be lost, or not to be restored as a whole.

    Why by history: a pool that was made anew is there, and looks like any other.
    """
    from orchestrator.domain.source_identity import SOURCE_STATE
    from orchestrator.domain.source_state import SourceState, parse_source_state

    known = parse_source_state((_remembered(settings, job) or {}).get(SOURCE_STATE, ""))
    if known is None or known.state is SourceState.RESTORED:
        return ()
    text = f"{known.state.value} (since {known.since:%Y-%m-%d %H:%M} UTC): {known.why}: {known.hint}"
    return (SystemCheckResult(good=False, subject=f"source {job.source}", text=text),)


def _lost_copies(settings: Settings, job: "Job", subject: str) -> tuple[SystemCheckResult, ...]:
    """Return a line for a place that held copies of the job and shows none: its disk may not be mounted, or they have another name.

    Why no other failure: the engine's own lines have it.
    """
    from orchestrator.app.visible_points import find_visible_points
    from orchestrator.domain.errors import TargetUnable

    try:
        find_visible_points(settings, job)
    except TargetUnable as error:
        why = error.why if error.why.endswith("?") else f"{error.why}:"
        return (SystemCheckResult(good=False, subject=subject, text=f"{why} {error.hint}"),)
    except OrchestratorError:
        pass
    return ()


def _state_advice(settings: Settings) -> tuple[SystemCheckResult, ...]:
    """Return a line for a state directory in which no run could be recorded; none before the first run."""
    from orchestrator.app.spare_state import why_unusable

    where = settings.where
    if not os.path.exists(where.history):
        return ()
    why = why_unusable(settings, look=True)
    return (
        (SystemCheckResult(good=False, subject=f"state {where.state}", text=f"no run can be recorded: {why}"),)
        if why
        else ()
    )


def _key_advice(settings: Settings, known: "Configuration") -> tuple[SystemCheckResult, ...]:
    """Return a line for this host's key where it is gone, or cannot be used; none where the history cannot be read now."""
    if bad := _unusable_key(settings.where.state):
        return bad
    from orchestrator.app.lost_key import find_lost_key
    from orchestrator.domain.errors import HistoryError
    from orchestrator.history.database import is_write_open

    if is_write_open(settings.where.history):
        return ()  # as of a lost source
    try:
        with settings.views() as views:
            lost = find_lost_key(settings.where.state, known.jobs, views)
    except HistoryError:
        return ()
    if lost is None:
        return ()
    text = f"{lost.sentence}: {lost.hint}"
    return (SystemCheckResult(good=False, subject=f"key {lost.path}", text=text, hinders=False),)


def _unusable_key(state: str) -> tuple[SystemCheckResult, ...]:
    """Return a line for a key that each run would refuse; none where this user may not read it."""
    from orchestrator.history.authentication_key import read_key

    path = os.path.join(state, KEY_FILE)
    if os.path.lexists(path) and not os.access(path, os.R_OK):
        return ()
    try:
        read_key(state)
    except OrchestratorError as error:
        return (SystemCheckResult(good=False, subject=f"key {path}", text=f"{error.why}: {error.hint}"),)
    return ()


def _machine_advice(settings: Settings, known: "Configuration") -> tuple[SystemCheckResult, ...]:
    """Return the advice about the machine itself: the channels' secrets, and the units that start scheduled runs."""
    from orchestrator.app.notify_check import check_channels
    from orchestrator.app.notify_queue import make_sender_context
    from orchestrator.app.systemd_state import (
        Installation,
        check_units,
        program_here,
        read_installed_rule,
        survey_units,
    )
    from orchestrator.process.executor import Reader

    where = settings.where
    units = survey_units(Reader(log=settings.log))
    texts = [text for unit in units.values() for text in (unit.text, *unit.more)]
    channels = check_channels(compose.read_machine_config(where).notice, make_sender_context(where), texts)
    state = (*_state_advice(settings), *_key_advice(settings, known))
    if not units:
        return (*state, *channels)
    here = Installation(
        shipped=compose.shipped_units(), program=program_here(), config=where.config, state=where.state,
        scheduled=any(job.schedule or job.after for job in known.jobs), disks=bool(known.sets),
    )  # fmt: skip
    return (*state, *channels, *check_units(units, here, read_installed_rule()))


def read_schemas() -> Mapping[str, Any]:
    """Return the JSON Schema of each kind of file."""
    from orchestrator.config.schema import make_schemas

    return make_schemas(compose.EngineSections())
