"""`poolferry daemon`: starts runs at their scheduled times."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "daemon",
    cls=CliCommand,
    examples=(
        ("daemon", "run jobs at their times, in the foreground"),
        ("daemon --verbose", "and show each command line"),
    ),
    section="set-up",
    short_help="The clock: run jobs at their time.",
)
@pass_terminal
def daemon(terminal: Terminal) -> int:
    """Run jobs at their time, one into each place, until SIGTERM; SIGHUP reloads the configuration."""
    from orchestrator.daemon.loop import Daemon

    return Daemon(terminal.where, terminal.say).live()


COMMAND = daemon
