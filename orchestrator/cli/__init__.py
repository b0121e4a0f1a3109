"""The command line for people and scripts. A command lies in the file of its name, a group in a folder of its own.

`terminal` holds everything else: reading arguments, and output.
"""

import sys
from collections.abc import Callable

from orchestrator.cli.terminal import screen
from orchestrator.cli.terminal.errors import INTERRUPTED, report_errors
from orchestrator.cli.terminal.plain_lines import parse_plain_line
from orchestrator.cli.terminal.screen import Terminal


def main(arguments: list[str] | None = None) -> int:
    """Run one command line; return its exit code. This function raises nothing."""
    given = sys.argv[1:] if arguments is None else arguments
    screen.set_up_output()
    plain = parse_plain_line(given)
    terminal = plain[0] if plain else Terminal(json="--json" in given)
    with report_errors(terminal) as end:
        code = _plain_code(plain[1]) if plain else None
        if code is None:
            from orchestrator.cli.terminal.root import call

            code = call(given, terminal)
        end.code = code
    with report_errors(terminal) as flushed:
        screen.flush_output()
    return INTERRUPTED if terminal.interrupted and end.code else end.code or flushed.code


def _plain_code(command: Callable[[], int]) -> int | None:
    """Return the exit code of a plain line's command. None: only the command saw that the line is wrong, and nothing was done."""
    try:
        return command()
    except Exception as error:
        from orchestrator.app.settings import WrongRequest

        if not isinstance(error, WrongRequest):
            raise
        return None  # the library says it with the usage
