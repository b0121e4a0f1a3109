"""The checks of `check --system` for snapshots by sanoid: program, dataset, other programs with the same task."""

from collections.abc import Callable

from orchestrator.domain.answers import understand
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Command
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.engine import SystemCheckResult
from orchestrator.engines.sanoid import commands, parse
from orchestrator.engines.sanoid.options import snapshots_of
from orchestrator.engines.sanoid.survey import command_runner, survey
from orchestrator.process.executor import Reader

_TIMER = "sanoid.timer"


def check_system(job: Job, reader: Reader) -> tuple[SystemCheckResult, ...]:
    """Return one line for each thing that taking snapshots needs."""
    run = command_runner(reader)
    where = f"on {job.source.host}" if job.source.host else "here"
    looks = (
        (f"sanoid {where}", lambda subject: _program(subject, job, run)),
        (f"source {job.source}", lambda subject: _source(subject, job, reader)),
        (f"{_TIMER} {where}", lambda subject: _timer(subject, job, run)),
    )
    found = [_tried(subject, look) for subject, look in looks]
    return tuple(advice for advice in found if advice is not None)


def _tried(subject: str, look: Callable[[str], SystemCheckResult | None]) -> SystemCheckResult | None:
    try:
        return look(subject)
    except OrchestratorError as error:
        return SystemCheckResult(good=False, subject=subject, text=f"{error.why}: {error.hint}")


def _program(subject: str, job: Job, run: Callable[[Command], bytes]) -> SystemCheckResult:
    command = commands.version_command(job.source.host)
    version = understand(
        "sanoid", command, run(command), lambda text: parse.parse_version(text.decode(errors="replace"))
    )
    if version is None:
        return SystemCheckResult(good=False, subject=subject, text="does not print its version; is it sanoid?")
    return SystemCheckResult(good=True, subject=subject, text=f"version {'.'.join(map(str, version))}")


def _source(subject: str, job: Job, reader: Reader) -> SystemCheckResult:
    world = survey(job, reader)
    return SystemCheckResult(
        good=True,
        subject=subject,
        text=f"is there; sanoid has taken {show_count(len(world.snapshots), 'snapshot')} of it",
    )


def _timer(subject: str, job: Job, run: Callable[[Command], bytes]) -> SystemCheckResult | None:
    """Check for a sanoid timer with rules of its own: on the same dataset, both would take and prune snapshots."""
    snapshots = snapshots_of(job)
    if snapshots is None:
        return None
    if run(commands.other_timer_command(_TIMER, job.source.host)).strip() != b"both":
        return None
    text = (
        "runs too, with rules of its own: name each dataset either in /etc/sanoid/sanoid.conf or in a job's [snapshots]"
    )
    return SystemCheckResult(good=False, subject=subject, text=text, hinders=False)
