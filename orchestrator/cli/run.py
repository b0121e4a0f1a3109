"""plan and run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from orchestrator import compose
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, complete_job, pass_frame

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.job import Job
    from orchestrator.process.stop import Stop
    from orchestrator.runner.dry_run import Planned

allow_option = click.option(
    "--allow", multiple=True, metavar="GUARD", help="let this guard pass once; a refusal names it (repeatable)"
)

aside_option = click.option(
    "--aside", is_flag=True, help="datasets of the target that do not fit get another name, and are sent anew"
)


def _allowed(frame: Frame, names: Sequence[str], allow: Sequence[str], *, aside: bool) -> frozenset[str]:
    """What may pass once. Raises: UsageError for what stops none of the jobs."""
    asked = frozenset((*allow, "aside") if aside else allow)
    if not asked:
        return asked
    from orchestrator.engines.registry import engine
    from orchestrator.planners.guard import GUARDS

    known = frame.configuration()
    engines = [engine(job.engine) for job in map(known.job, names)] or [engine(job.engine) for job in known.jobs]
    there = {guard for each in engines for guard in (*each.guards, *(() if "guard" in each.without else GUARDS))}
    if unknown := sorted(asked - there):
        guards = f"expected one of {', '.join(sorted(there))}" if there else "nothing guards it"
        raise click.UsageError(f"no guard {unknown[0]!r} for {' and '.join(names) or 'any job'}: {guards}")
    return asked


@click.command(cls=Command, short_help="Look and decide; change nothing.")
@click.argument("job", shell_complete=complete_job)
@allow_option
@aside_option
@pass_frame
def plan(frame: Frame, job: str, allow: Sequence[str], aside: bool) -> int:
    """Look and decide: every command, why, and what would be destroyed. Changes nothing."""
    from orchestrator.app.session import heard_by
    from orchestrator.domain.plan import Refusal
    from orchestrator.domain.run import EXIT
    from orchestrator.runner.run_recorder import brief_commands, decision_value, step_commands
    from orchestrator.views.progress import decision_lines

    known = frame.configuration()
    declared = known.job(job)
    allowed = _allowed(frame, (job,), allow, aside=aside)
    if declared.target.rotates:
        return _plan_without_a_disk(frame, known, declared)
    stop = compose.stop_for(None)
    with heard_by(stop):
        planned = _look(frame, declared, stop, allowed)
    decision, keeping = planned.decision, [(each.point.name, each.reason) for each in planned.going]
    refused = isinstance(decision, Refusal)
    steps = () if isinstance(decision, Refusal) else [step for stage in decision.stages for step in stage]
    lines = decision_lines(
        job, decision, [(step_commands if frame.verbose else brief_commands)(step) for step in steps]
    )
    if not refused:
        lines += [f"  then [keep] removes {name}: {reason}" for name, reason in keeping]
    value = {"job": job, **decision_value(decision), "removes": [{"point": n, "reason": r} for n, r in keeping]}
    frame.answer(value, lines)
    return EXIT[decision.outcome] if isinstance(decision, Refusal) else 0


def _plan_without_a_disk(frame: Frame, known: "Configuration", job: "Job") -> int:
    """Which disk a job would go to, and what each would get. Why no more: to look at a disk it must be mounted."""
    from orchestrator.app.disk_visits import set_standing
    from orchestrator.app.next_copy import forecast_of
    from orchestrator.domain.plan import Refusal
    from orchestrator.domain.run import EXIT, Outcome
    from orchestrator.runner.run_recorder import decision_value
    from orchestrator.views.progress import decision_lines

    rotation = known.rotation(job.target.name)
    with frame.views() as views:
        stands = set_standing(rotation, known.jobs, views, now=compose.now())
        told = {disk.name: forecast_of(disk, (job,), views, frame.log) for disk in rotation.disks}
    why = f"it is decided on the disk of the set {rotation.name} that is plugged in when the job runs"
    refusal = Refusal(why=why, evidence=(), cure=stands.request, outcome=Outcome.WAITING)
    lines = [*decision_lines(job.name, refusal, []), *(f"  on disk {name}: {text}" for name, text in told.items())]
    value = {"job": job.name, **decision_value(refusal), "removes": []}
    frame.answer({**value, "forecast": [{"disk": name, "forecast": text} for name, text in told.items()]}, lines)
    return EXIT[refusal.outcome]


def _look(frame: Frame, job: "Job", stop: "Stop", allowed: frozenset[str]) -> "Planned":
    """The decision, and what [keep] would remove then. It makes no history where there is none."""
    from orchestrator.engines.registry import engine
    from orchestrator.runner.dry_run import Known, plan_job

    with frame.views() as views:
        sound = tuple(point.name for point in views.points(job.name) if point.sound)
        known = Known(facts=views.memory(job.name), sound=sound)
    where = frame.where.state
    with compose.reader(job, stop, frame.log) as reader:
        return plan_job(
            job, engine(job.engine), reader, known, state=where, now=compose.now(), allowed=allowed,
            snapshotter=compose.snapshotter(job),
        )  # fmt: skip


@click.command(cls=Command)
@click.argument("job", nargs=-1, shell_complete=complete_job)
@allow_option
@aside_option
@click.option(
    "--owed", is_flag=True, help="only what is owed now by the jobs' own schedules; for a timer, without the daemon"
)
@click.option("--why", default=None, hidden=True, metavar="TEXT", help="what the run is recorded to be for")
@pass_frame
def run(frame: Frame, job: Sequence[str], allow: Sequence[str], aside: bool, owed: bool, why: str | None) -> int:
    """Run jobs, one after the other: copy, prove, record."""
    if not job and not owed:
        raise click.UsageError("Missing argument 'JOB...'.")
    from orchestrator.app.run_jobs import run_jobs

    return run_jobs(frame, job, why=why, allowed=_allowed(frame, job, allow, aside=aside), owed=owed)


COMMANDS: tuple[click.Command, ...] = (plan, run)
