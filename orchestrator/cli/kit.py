"""`poolferry kit`: the recovery kit for a lost pool."""

import click

from orchestrator.cli.terminal.options import CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "kit",
    cls=CliCommand,
    examples=(
        ("kit photos", "the newest recovery kit of the job"),
        ("kit photos --to /root/kit", "write its files into a folder"),
    ),
    section="restore",
    short_help="What to do when the source is lost.",
)
@click.argument("job", shell_complete=complete_job_name)
@click.option("--to", metavar="FOLDER", type=click.Path(file_okay=False), help="write the kit's files there")
@pass_terminal
def kit(terminal: Terminal, job: str, to: str | None) -> int:
    """The recovery kit of a job's source: its pool's layout, properties, snapshots, and the page that says what to do.

    Runs renew it once a day and carry it beside the copy, into the dataset poolferry-kit.
    """
    import json

    from orchestrator.app.past import find_recovery_kit, write_recovery_kit
    from orchestrator.views.format import format_iso

    found = find_recovery_kit(terminal, job)
    written = write_recovery_kit(found, to) if to is not None else ()
    value = {
        "job": found.job,
        "made": format_iso(found.made_at),
        "files": list(written),
        "kit": json.loads(found.kit.content),
    }
    terminal.answer({**value, "recovery": found.kit.recovery}, written or found.kit.recovery.splitlines())
    return 0


COMMAND = kit
