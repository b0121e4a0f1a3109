"""`poolferry notices send`: check now, and retry undelivered messages."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "send",
    cls=CliCommand,
    examples=(
        ("notices send", "send what changed since the last look, for cron"),
        ("notices send --quiet", "say only what is wrong"),
    ),
)
@pass_terminal
def send(terminal: Terminal) -> int:
    """Look at all jobs now, send notices of what changed, and try again what is not delivered yet.

    For machines without the daemon: called by cron each quarter of an hour, it also notices what does not run at all.
    """
    from orchestrator.app.notices import send_notices
    from orchestrator.views.notices import notice_value

    found = send_notices(terminal)
    waits = f"{len(found.queued)} wait to be delivered" if found.queued else "all delivered"
    value = {"queued": [notice_value(each) for each in found.queued], "errors": list(found.errors)}
    terminal.answer(value, [] if terminal.quiet and not found.queued else [waits])
    return 1 if found.errors else 0


COMMAND = send
