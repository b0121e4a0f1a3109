"""`poolferry verify`: read copies again and compare them."""

import sys
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
        (
            "verify --due",
            "what read-all-within in [verify] asks for, for cron or a timer: the daemon does it by itself",
        ),
    ),
    section="restore",
    short_help="Read copies again and compare.",
)
@click.argument("job", nargs=-1, shell_complete=complete_job_name)
@POINT
@click.option("--source", is_flag=True, help="read the source too: distinguishes damage there from changes")
@click.option("--content", is_flag=True, help="of datasets too, read every file on both sides, not only guids")
@click.option(
    "--due",
    is_flag=True,
    help="read again what read-all-within in [verify] asks for by now; of a job that is named at once",
)
@pass_terminal
def verify(terminal: Terminal, job: Sequence[str], point: str | None, *, source: bool, content: bool, due: bool) -> int:
    """Read copies again and compare every file with the manifest; of all jobs without a name.

    Datasets are compared with their source: by the guids of all snapshots, and with --content file by file.
    """
    if due:
        if point or source or content:
            raise click.UsageError("--due reads what was not read for longest: no --point, --source or --content")
        return _read_due(terminal, job)
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


def _read_due(terminal: Terminal, job: Sequence[str]) -> int:
    from orchestrator.app.copy_checks import read_promised
    from orchestrator.domain.run_values import report_value

    reports = read_promised(terminal, job)
    if not reports:
        why = (
            "nothing is read now: each job with read-all-within has its turn once a day, within its window, and disks are read by their "
            f"visits; `{terminal.repeat('promises')}` tells what is due"
        )
        # Cron would send such a line each hour.
        terminal.answer({"read": [], "why": why}, [why] if sys.stdout.isatty() and not terminal.quiet else [])
        return 0
    terminal.answer_json(lambda: {"read": [report_value(each) for each in reports]})
    return exit_code(each.outcome for each in reports)


COMMAND = verify
