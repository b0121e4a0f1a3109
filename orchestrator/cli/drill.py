"""drill: bring a sample back into scratch, and see that it is as promised."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from orchestrator.app.session import drill_value, opened, visits_of, worst
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, complete_job, pass_frame
from orchestrator.cli.restore import heal, show_report
from orchestrator.views import output as door

if TYPE_CHECKING:
    from orchestrator.domain.errors import NotNow
    from orchestrator.domain.job import Job
    from orchestrator.domain.run import RunReport
    from orchestrator.runner.drill.drill import DrillEnd


@click.command(cls=Command, short_help="Restore a sample into scratch, and compare.")
@click.argument("job", nargs=-1, required=True, shell_complete=complete_job)
@click.option("--whole", is_flag=True, help="all of the newest point, no sample")
@click.option(
    "--prove", is_flag=True, help="damage what came back on purpose: it must be found; copies are not touched"
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="the same files as the drill with this seed")
@pass_frame
def drill(frame: Frame, job: Sequence[str], *, whole: bool, prove: bool, seed: int | None) -> int:
    """Restore a sample of a job's newest point into scratch, compare it with what was promised, and remove it again.

    A drill that fails ends with 1, and status is failing until one ends well. --prove shows that a drill can fail.
    """
    from orchestrator.app.run_observers import Around
    from orchestrator.domain.run import EXIT
    from orchestrator.runner.drill.drill import drill_job
    from orchestrator.runner.drill.evidence import DrillWish

    known = frame.configuration()
    jobs = tuple(known.job(name) for name in dict.fromkeys(job))
    if alone := [each.name for each in jobs if not each.copies]:
        raise click.UsageError(f"{', '.join(alone)}: copies nothing, so there is nothing to drill")
    wish = DrillWish(whole=whole, proves=prove, seed=seed)
    around, ended = Around(frame.where, known.jobs, door.say), list["DrillEnd"]()
    cured, at = list[list[dict[str, Any]]](), list["Job"]()
    with opened(frame) as desk, visits_of(frame, desk, known) as visits:

        def do(placed: "Job", absent: "NotNow | None") -> "RunReport":
            if absent is not None:
                raise absent
            at.append(placed)
            ended.append(desk.do(placed, drill_job, wish))
            return ended[-1].report

        for one in jobs:
            report = visits.run(one, do) if visits else do(one, None)
            tell_drill(frame, report)
            heal(frame, at[-1], ended[-1].drilled.point, ended[-1].findings, cured)
            around.changed()
            if desk.stopped:
                break
    if frame.json:
        values = [{**drill_value(each), "heal": found} for each, found in zip(ended, cured, strict=True)]
        door.answer_value(values[0] if len(jobs) == 1 else {"drills": values})
    return worst([EXIT[each.report.outcome] for each in ended])


def tell_drill(frame: Frame, report: "RunReport") -> None:
    """How a drill ended, for people."""
    from orchestrator.views.progress import report_lines

    show_report(frame, report, report_lines(report))


COMMANDS: tuple[click.Command, ...] = (drill,)
