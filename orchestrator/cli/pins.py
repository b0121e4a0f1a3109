"""pins: what keeps snapshots on the pools for copies to come, and letting go of what nobody wants."""

from typing import TYPE_CHECKING

import click

from orchestrator import compose
from orchestrator.app.session import opened, worst
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, complete_job, pass_frame
from orchestrator.cli.restore import show_report

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.domain.plan import Step
    from orchestrator.domain.run import RunReport
    from orchestrator.engines.contract import Pins

    Planned = tuple[tuple[Job, tuple[Step, ...]], ...]


@click.command(cls=Command, short_help="Holds and bookmarks of ours, and who wants them.")
@click.option("--job", metavar="JOB", shell_complete=complete_job, help="only the pools of this job")
@click.option("--let-go", is_flag=True, help="release and drop those that nobody wants any more")
@pass_frame
def pins(frame: Frame, job: str | None, *, let_go: bool) -> int:
    """Every hold and bookmark of ours: for which pool, why, what room it takes, and whether a job still wants it.

    Without --let-go it shows what that would do, and does nothing.
    """
    from orchestrator.domain.run import EXIT
    from orchestrator.engines.contract import Pinner
    from orchestrator.engines.registry import engine
    from orchestrator.views.holds import pins_lines, pins_value

    known = frame.configuration()
    asked = known.jobs if job is None else (known.job(job),)
    jobs = tuple(one for one in known.jobs if isinstance(engine(one.engine), Pinner))
    if job is not None and asked[0] not in jobs:
        raise click.UsageError(f"job {job} copies no datasets, so it pins nothing")
    found, planned = _look(frame, jobs, tuple(one for one in asked if one in jobs))
    reports = _let_go(frame, planned) if let_go else []
    steps = [step for _, own in planned for step in own]
    lines = pins_lines(found, steps, let_go=let_go, now=compose.now(), again=frame.repeat("pins --let-go"))
    frame.answer(pins_value(found, steps, reports), lines)
    return worst([EXIT[report.outcome] for report in reports])


def _look(frame: Frame, jobs: "tuple[Job, ...]", asked: "tuple[Job, ...]") -> "tuple[Pins, Planned]":
    """All pins on the pools of the jobs asked for, and how those that nobody wants would be let go."""
    from contextlib import ExitStack

    from orchestrator.app.session import heard_by
    from orchestrator.engines.contract import Pinner, Pins
    from orchestrator.engines.registry import engine

    pinner: object = engine(asked[0].engine) if asked else None
    if not isinstance(pinner, Pinner):
        return Pins(pins=()), ()
    stop = compose.stop_for(None)
    with heard_by(stop), ExitStack() as open_ends:
        seen = pinner.survey_pins(asked, lambda one: open_ends.enter_context(compose.reader(one, stop, frame.log)))
    found = pinner.judge_pins(jobs, seen, compose.now())
    return found, pinner.plan_letting_go(seen, found)


def _let_go(frame: Frame, planned: "Planned") -> "list[RunReport]":
    from orchestrator.runner.release_holds import let_go
    from orchestrator.views.progress import report_lines

    reports: list[RunReport] = []
    with opened(frame) as desk:
        for job, steps in planned:
            reports.append(desk.do(job, let_go, steps))
            show_report(frame, reports[-1], report_lines(reports[-1]))
            if desk.stopped:
                break
    return reports


COMMANDS: tuple[click.Command, ...] = (pins,)
