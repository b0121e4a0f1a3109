"""`poolferry check`: the configuration, and what the machine lacks for it."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "check",
    cls=CliCommand,
    examples=(
        ("check", "every mistake of the configuration, with file and line"),
        ("check --system", "look at programs, keys, sources and targets too"),
    ),
    section="set-up",
    short_help="Check the configuration.",
)
@click.option("--system", is_flag=True, help="look at programs, sources and targets too")
@pass_terminal
def check(terminal: Terminal, *, system: bool) -> int:
    """Check the configuration: all mistakes of all files at once, or what each job means."""
    from orchestrator.app.config_check import check_config
    from orchestrator.views.check import check_lines, check_value

    found = check_config(terminal, compose.now(), system=system)
    terminal.answer(check_value(found), lambda: list(check_lines(found)))
    return 0 if found.well else 1


COMMAND = check
