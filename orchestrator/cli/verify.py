"""`poolferry verify`: read copies again and compare them."""

from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import POINT, CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal, exit_code


@click.command(
    "verify",
    cls=CliCommand,
    examples=(
        ("verify photos", "read the newest point again and compare it with its manifest"),
        ("verify photos --point 2026-11 --source", "an older point, and the source beside it"),
    ),
    section="restore",
    short_help="Read copies again and compare.",
)
@click.argument("job", nargs=-1, shell_complete=complete_job_name)
@POINT
@click.option("--source", is_flag=True, help="read the source too: distinguishes damage there from changes")
@click.option("--content", is_flag=True, help="of datasets too, read every file on both sides, not only guids")
@pass_terminal
def verify(terminal: Terminal, job: Sequence[str], point: str | None, *, source: bool, content: bool) -> int:
    """Read copies again and compare every file with the manifest; of all jobs without a name.

    Datasets are compared with their source: by the guids of all snapshots, and with --content file by file.
    """
    from orchestrator.app.copy_checks import verify_jobs
    from orchestrator.views.copies import repair_source_lines, repair_source_values, verification_value

    found = verify_jobs(
        terminal,
        job,
        point=point,
        source=source,
        content=content,
        hears=lambda hints: terminal.show(repair_source_lines(hints)),
    )
    values = [{**verification_value(each.verified), "heal": repair_source_values(each.hints)} for each in found.ends]
    terminal.answer_json(lambda: values[0] if len(found.jobs) == 1 else {"verified": values})
    return exit_code(each.verified.report.outcome for each in found.ends)


COMMAND = verify
