"""try: scratch copies of a restore point."""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from orchestrator import compose
from orchestrator.app.session import opened
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, complete_job, pass_frame
from orchestrator.cli.restore import POINT, show_report
from orchestrator.views import output as door

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.domain.scratch import Scratch
    from orchestrator.domain.units import Seconds


@click.command("try", cls=Command, short_help="Scratch copies of a restore point.")
@click.argument("job", shell_complete=complete_job)
@POINT
@click.option("--at", metavar="TIME", help='the newest point not later, such as "2024-11-03 02:31"')
@click.option("--path", metavar="DATASET", default="", help="only this dataset below the source's root")
@click.option("--for", "keep", metavar="TIME", help='drop it after so long, such as "2d"')
@click.option("--list", "listed", is_flag=True, help="show the scratch copies beside the job's copy")
@click.option("--drop", metavar="NAME", help="drop this one")
@pass_frame
def try_(frame: Frame, /, job: str, keep: str | None, drop: str | None, *, listed: bool, **asked: Any) -> int:
    """Clone a point of datasets, and mount it in a folder of its own: to look, to test, to write into; the copy is not touched.

    Those whose time is over go with the next call for the job.
    """
    from orchestrator.domain.run import EXIT
    from orchestrator.runner import scratch_clones as trying
    from orchestrator.runner.run_recorder import report_value
    from orchestrator.views.progress import report_lines

    declared, wanted = frame.configuration().job(job), _wanted(keep=keep, **asked)
    if listed:
        found = _there(frame, declared)
        lines = [_line(each) for each in found] or ["there are no scratch copies"]
        frame.answer({"job": job, "scratch": [_value(each) for each in found]}, lines)
        return 0
    with opened(frame) as desk:
        report = desk.do(declared, trying.drop, drop)
        if drop is None:
            report = desk.do(declared, trying.run_try, wanted)
    show_report(frame, report, report_lines(report))
    if frame.json:
        value = {**report_value(report), "scratch": [_value(each) for each in _there(frame, declared)]}
        door.answer_value(value)
    return EXIT[report.outcome]


def _wanted(*, point: str | None, at: str | None, path: str, keep: str | None) -> Any:
    from orchestrator.domain.units import parse_duration
    from orchestrator.runner.scratch_clones import Trial
    from orchestrator.views.format import parse_instant

    if point and at:
        raise click.UsageError("tell either --point or --at")
    try:
        span: Seconds | None = parse_duration(keep) if keep else None
        instant: datetime | None = parse_instant(at) if at else None
    except ValueError as error:
        raise click.UsageError(f"expected {error}") from None
    return Trial(below=path.strip("/"), point=point, at=instant, keep=span)


def _there(frame: Frame, job: "Job") -> "tuple[Scratch, ...]":
    from orchestrator.engines.registry import engine
    from orchestrator.runner.scratch_clones import Scratcher

    found: object = engine(job.engine)
    if not isinstance(found, Scratcher):
        return ()
    with compose.reader(job, compose.stop_for(None), frame.log) as reader:
        return found.survey_scratch(job, reader)


def _line(each: "Scratch") -> str:
    from orchestrator.domain.units import show_size

    until = f", until {each.until:%Y-%m-%d %H:%M} UTC" if each.until else ""
    place = each.mountpoint if each.mountpoint.startswith("/") else str(each.at)
    return f"{each.name}: {each.job} as of {each.of}, at {place}, {show_size(each.used)} written{until}"


def _value(each: "Scratch") -> dict[str, Any]:
    from orchestrator.views.format import iso

    return {
        "name": each.name, "dataset": str(each.at), "job": each.job, "point": each.of, "until": iso(each.until),
        "used_bytes": each.used, "mountpoint": each.mountpoint,
    }  # fmt: skip


COMMANDS: tuple[click.Command, ...] = (try_,)
