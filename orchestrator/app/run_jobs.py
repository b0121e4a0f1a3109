"""Runs of jobs, one after the other, each with its disk visit, its restore test, and its notices."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.session import Desk, opened, visits_of
from orchestrator.app.settings import Frame
from orchestrator.app.subscriber import unheard
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.run import Outcome, RunReport

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from orchestrator.app.disk_visits import Visits
    from orchestrator.config.models import Configuration
    from orchestrator.domain.drill_result import DrillEnd
    from orchestrator.domain.errors import NotNow
    from orchestrator.domain.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """A run as it ended, and the restore tests after it. `heals`: which jobs have what a pool lost, one line each."""

    report: RunReport
    drills: "tuple[DrillEnd, ...]"
    heals: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsEnd:
    """All runs that were begun. `not_begun`: jobs that were asked for, and did not come to their turn."""

    runs: tuple[RunEnd, ...]
    not_begun: tuple[str, ...]


def run_jobs(
    frame: Frame,
    names: Sequence[str],
    *,
    why: str,
    allowed: frozenset[str] = frozenset(),
    owed: bool = False,
    hears: Callable[[RunEnd], None] = unheard,
) -> RunsEnd:
    """Runs the jobs of these names. `owed`: only those that owe a run, of these or of all; each with its own reason.

    `hears`: is told of each run once it has ended, and the restore test after it.
    """
    from orchestrator.app.run_observers import Around

    known = frame.configuration()
    declared = tuple(known.job(name) for name in dict.fromkeys(names))
    around, ends = Around(frame.where, known.jobs, frame.say), list[RunEnd]()
    with (
        opened(frame) as desk,
        visits_of(frame, desk, known, read_again=True) as visits,
        _asked(frame, desk, known, declared, why=None if owed else why) as asked,
    ):
        for one, reason in asked:
            begun = around.begins(one)
            ends.append(_run(desk, visits, known, one, reason, allowed))
            for report in (ends[-1].report, *(drill.report for drill in ends[-1].drills)):
                frame.subscriber.ended(report)
            hears(ends[-1])
            around.ended(one, ends[-1].report, begun)
            if desk.stopped:
                break
    not_begun = () if owed else tuple(one.name for one in declared[len(ends) :])
    return RunsEnd(runs=tuple(ends), not_begun=not_begun)


def _asked(
    frame: Frame, desk: "Desk", known: "Configuration", declared: "Sequence[Job]", *, why: str | None
) -> "AbstractContextManager[Iterable[tuple[Job, str]]]":
    """Return the jobs to run, each with its reason. `why` None: those with a due run, of these jobs or of all."""
    from contextlib import nullcontext

    if why is not None:
        return nullcontext([(one, why) for one in declared])
    from orchestrator.app.run_due import owed_runs

    parallel, names = compose.machine(frame.where).clock.parallel, [one.name for one in declared]
    return owed_runs(frame.where, known.jobs, names, desk.history, parallel=parallel)


def _run(
    desk: "Desk", visits: "Visits | None", known: "Configuration", job: "Job", why: str, allowed: frozenset[str]
) -> RunEnd:
    """Run the job, and the restore test that is due after it, while the disk is here."""
    from orchestrator.runner.run import run_job

    drills: list[DrillEnd] = []

    def do(placed: "Job", absent: "NotNow | None") -> "RunReport":
        report = desk.do(placed, run_job, why=why, allowed=allowed, absent=absent)
        if placed.drill.asked and report.outcome.well and not desk.stopped:
            from orchestrator.runner.drill.drill import drill_when_due

            drills.extend(filter(None, [desk.do(placed, drill_when_due)]))
        return report

    report, heals = visits.run(job, do) if visits else do(job, None), tuple[str, ...]()
    if not job.copies and report.outcome is Outcome.FAILED:
        from orchestrator.planners.repair_sources import heal_pool

        heals = tuple(heal_pool(report.evidence, known.jobs, job.source))
    return RunEnd(report=report, drills=tuple(drills), heals=heals)
