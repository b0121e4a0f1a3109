"""Runs of jobs, one after the other, and what belongs to each: the visit of its disk, its drill, its notices."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orchestrator import compose
from orchestrator.app.session import Desk, drill_value, opened, tell, visits_of, worst
from orchestrator.app.settings import Frame
from orchestrator.views import output as door

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from orchestrator.app.disk_visits import Visits
    from orchestrator.config.models import Configuration
    from orchestrator.domain.errors import NotNow
    from orchestrator.domain.job import Job
    from orchestrator.domain.run import RunReport
    from orchestrator.runner.drill.drill import DrillEnd


def run_jobs(
    frame: Frame, names: Sequence[str], *, why: str | None, allowed: frozenset[str] = frozenset(), owed: bool = False
) -> int:
    """Runs the jobs of these names: the exit code. `owed`: only those that owe a run, of these or of all."""
    from orchestrator.app.run_observers import Around
    from orchestrator.domain.run import EXIT, Outcome
    from orchestrator.runner.run_recorder import report_value

    known = frame.configuration()
    declared = tuple(known.job(name) for name in dict.fromkeys(names))
    around = Around(frame.where, known.jobs, door.say)
    reports, values, codes = list["RunReport"](), list[dict[str, Any]](), list[int]()
    with (
        opened(frame) as desk,
        visits_of(frame, desk, known, read_again=True) as visits,
        _asked(frame, desk, known, declared, why=None if owed else why or _asked_by()) as asked,
    ):
        for one, reason in asked:
            begun = around.begins(one)
            drills: list[DrillEnd] = []
            reports.append(_run(desk, visits, one, reason, allowed, drills))
            for each in (reports[-1], *(end.report for end in drills)):
                if not frame.json and not (frame.quiet and EXIT[each.outcome] in (0, 75)):
                    tell(each)
            if not one.copies and not frame.json and reports[-1].outcome is Outcome.FAILED:
                _heal_pool(known, one, reports[-1])
            codes += [EXIT[end.report.outcome] for end in drills]
            values.append(_with_drill(report_value(reports[-1]), drills))
            around.ended(one, reports[-1], begun)
            if desk.stopped:
                break
    not_begun = [] if owed else [one.name for one in declared[len(reports) :]]
    if not_begun:
        door.say(f"not begun: {', '.join(not_begun)}")
    if frame.json:
        door.answer_value(_value(values, several=owed or len(declared) > 1))
    return worst([*codes, *(EXIT[report.outcome] for report in reports)])


def _asked(
    frame: Frame, desk: "Desk", known: "Configuration", declared: "Sequence[Job]", *, why: str | None
) -> "AbstractContextManager[Iterable[tuple[Job, str]]]":
    """The jobs to run, each with why. `why` None: those that owe a run, of these jobs or of all."""
    from contextlib import nullcontext

    if why is not None:
        return nullcontext([(one, why) for one in declared])
    from orchestrator.app.run_due import owed_runs

    parallel, names = compose.machine(frame.where).clock.parallel, [one.name for one in declared]
    return owed_runs(frame.where, known.jobs, names, desk.history, parallel=parallel)


def _run(
    desk: "Desk", visits: "Visits | None", job: "Job", why: str, allowed: frozenset[str], drills: "list[DrillEnd]"
) -> "RunReport":
    """One run, and the drill that is due after it, while the disk is here."""
    from orchestrator.runner.run import run_job

    def do(placed: "Job", absent: "NotNow | None") -> "RunReport":
        report = desk.do(placed, run_job, why=why, allowed=allowed, absent=absent)
        if placed.drill.asked and report.outcome.well and not desk.stopped:
            from orchestrator.runner.drill.drill import drill_when_due

            drills.extend(filter(None, [desk.do(placed, drill_when_due)]))
        return report

    return visits.run(job, do) if visits else do(job, None)


def _with_drill(value: dict[str, Any], drills: "list[DrillEnd]") -> dict[str, Any]:
    """A run's value with that of the drill after it, where there was one."""
    if not drills:
        return value
    return {**value, "drill": drill_value(drills[-1])}


def _heal_pool(known: "Configuration", job: "Job", report: "RunReport") -> None:
    """Which jobs have what a pool lost."""
    from orchestrator.planners.repair_sources import heal_pool

    door.answer([f"  to heal {line}" for line in heal_pool(report.evidence, known.jobs, job.source)])


def _value(reports: list[dict[str, Any]], *, several: bool) -> dict[str, Any]:
    return {"runs": reports} if several else reports[0]


def _asked_by() -> str:
    """Why a run began, for history."""
    return "by hand" if sys.stdin is not None and sys.stdin.isatty() else "by a command"
