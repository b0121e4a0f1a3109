"""`poolferry notices test`: a test message through one channel."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "test",
    cls=CliCommand,
    examples=(
        ("notices test mail", "send a message through one channel"),
        ("notices test mail --json", "the same, for a program"),
    ),
)
@click.argument("name")
@pass_terminal
def test(terminal: Terminal, name: str) -> int:
    """Send a test through the channel NAME, and say whether it was taken."""
    from orchestrator.app.notices import test_channel

    error = test_channel(terminal, name)
    told = f"{name}: not delivered: {error}" if error else f"{name}: taken; look whether it arrives"
    terminal.answer({"channel": name, "delivered": not error, "error": error}, [told])
    return 1 if error else 0


COMMAND = test
