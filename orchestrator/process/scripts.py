"""The one loader of the scripts that lie in `scripts/` folders of the package, and the one place that makes them commands.

A script is sent as it is, with its own name as `$0`, so that a plan can show `publish.sh /backup/photos …`.
"""

import functools
import os
import shlex

from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@functools.cache
def script(space: str, name: str) -> str:
    """Return the text of `orchestrator/<room>/scripts/<name>`. Raises: OSError."""
    with open(f"{_PACKAGE}/{space}/scripts/{name}", encoding="utf-8") as file:
        return file.read()


def script_command(
    space: str,
    name: str,
    *values: str,
    effect: Effect,
    host: Host | None,
    before: str = "",
    with_functions: str = "",
) -> Command:
    """Build the command that runs a script with these values as its arguments.

    `before`: text that it needs in front. `with_functions`: the script that holds functions which this one calls.
    """
    functions = script(space, with_functions) if with_functions else ""
    text = before + functions + script(space, name)
    return Command(argv=("sh", "-c", text, name, *values), effect=effect, host=host)


def printing_function(function: str, space: str, name: str) -> str:
    """Return a shell function that prints a script in another language, for the `before` of one that needs it.

    Why: as an argument its text would stand in the plan's line.
    """
    return f"{function}() {{\nprintf %s {shlex.quote(script(space, name))}\n}}\n"
