"""`poolferry try`: scratch copies of a restore point."""

import click

from orchestrator.cli.terminal.options import (
    AT,
    POINT,
    CliCommand,
    complete_job_name,
    pass_terminal,
    read_instant,
    read_span,
)
from orchestrator.cli.terminal.screen import Terminal, exit_code


@click.command(
    "try",
    cls=CliCommand,
    examples=(
        ("try photos --path home --for 2d", "a writable scratch clone of the copy, for two days"),
        ("try photos --list", "the scratch clones of the job"),
    ),
    section="restore",
    short_help="Scratch copies of a restore point.",
)
@click.argument("job", shell_complete=complete_job_name)
@POINT
@AT
@click.option("--path", metavar="DATASET", default="", help="only this dataset below the source's root")
@click.option("--for", "keep", metavar="TIME", help='drop it after so long, such as "2d"')
@click.option("--list", "listed", is_flag=True, help="show the scratch copies beside the job's copy")
@click.option("--drop", metavar="NAME", help="drop this one")
@pass_terminal
def try_(
    terminal: Terminal, job: str, point: str | None, at: str | None, path: str, keep: str | None, drop: str | None, *,
    listed: bool,
) -> int:  # fmt: skip
    """Clone a point of datasets, and mount it in a folder of its own: to look, to test, to write into; the copy is not touched.

    Those whose time is over go with the next call for the job.
    """
    from orchestrator.app.scratch import drop_scratch, list_scratch, try_point
    from orchestrator.domain.run_values import report_value
    from orchestrator.views.restore import scratch_lines, scratch_values

    instant, span = read_instant(at), read_span(keep)
    if listed:
        found = list_scratch(terminal, job)
        terminal.answer({"job": job, "scratch": scratch_values(found)}, scratch_lines(found))
        return 0
    report = (
        drop_scratch(terminal, job, drop)
        if drop is not None
        else try_point(terminal, job, point=point, at=instant, path=path, keep=span)
    )
    terminal.answer_json(lambda: {**report_value(report), "scratch": scratch_values(list_scratch(terminal, job))})
    return exit_code([report.outcome])


COMMAND = try_
