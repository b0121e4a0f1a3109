"""The only loader of the scripts in the package's `scripts/` folders; it builds the commands that run them.

A script is sent unchanged, with its own name as `$0`, so that a plan can show `publish.sh /backup/photos …`.
"""

import functools
import os

from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


@functools.cache
def script(space: str, name: str) -> str:
    """Return the text of `orchestrator/<room>/scripts/<name>`. Raises: OSError."""
    with open(f"{_PACKAGE}/{space}/scripts/{name}", encoding="utf-8") as file:
        return file.read()


def script_command(space: str, name: str, *values: str, effect: Effect, host: Host | None, before: str = "") -> Command:
    """Build the command that runs a script with these values as its arguments. `before`: text that must come before it."""
    return Command(argv=("sh", "-c", before + script(space, name), name, *values), effect=effect, host=host)
