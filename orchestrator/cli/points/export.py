"""`poolferry points export`: a point's digests as a file."""

import click

from orchestrator.cli.terminal.options import POINT, CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal, exit_code


@click.command(
    "export",
    cls=CliCommand,
    examples=(
        ("points export photos --to /root/SHA256SUMS", "digests of the newest point, for sha256sum -c"),
        ("points export photos --point 2026-11-03 --to /root/sums", "of an older one"),
    ),
)
@click.argument("job", shell_complete=complete_job_name)
@POINT
@click.option("--to", required=True, metavar="FILE", help="the file to write")
@pass_terminal
def export(terminal: Terminal, job: str, point: str | None, to: str) -> int:
    """Write a point's digests to a file for `sha256sum -c`."""
    from orchestrator.app.copy_checks import export_point
    from orchestrator.domain.run_values import report_value

    end = export_point(terminal, job, point=point, to=to)
    terminal.answer_json(lambda: {**report_value(end.report), "file": end.file, "lines": end.lines})
    return exit_code([end.report.outcome])


COMMAND = export
