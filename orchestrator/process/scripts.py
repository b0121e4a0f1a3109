"""The only loader of the scripts in the package's `scripts/` folders; it builds the commands that run them.

A script is sent unchanged, with its own name as `$0`, so that a plan can show `publish.sh /backup/photos …`.
"""

import functools
import os
import shlex

from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# For scripts that mount: what they mount is gone with them. slave: what is unmounted elsewhere meanwhile must not stay busy here.
MOUNT_NAMESPACE = ("unshare", "--mount", "--propagation", "slave")


@functools.cache
def script(space: str, name: str) -> str:
    """Return the text of `orchestrator/<room>/scripts/<name>`. Raises: OSError."""
    with open(f"{_PACKAGE}/{space}/scripts/{name}", encoding="utf-8", newline="\n") as file:
        return file.read()


def own_process_function() -> str:
    """Return the shell function that tells whether a process is root's or our user's, as the `before` of a script that needs it."""
    return script("process", "own-process.sh")


def script_command(
    space: str,
    name: str,
    *values: str,
    effect: Effect,
    host: Host | None,
    before: str = "",
    with_functions: str = "",
    prefix: tuple[str, ...] = (),
) -> Command:
    """Build the command that runs a script with these values as its arguments.

    `before`: text that must come before it. `with_functions`: the script whose functions this one calls. `prefix`: words
    of the programs that start the shell.
    """
    functions = script(space, with_functions) if with_functions else ""
    text = before + functions + script(space, name)
    return Command(argv=(*prefix, "sh", "-c", text, name, *values), effect=effect, host=host)


def let_go_of_disks() -> str:
    """Return the text by which a script with mounts of its own lets go of the disks that its arguments do not name, as its `before`."""
    return f'{script("process", "let-go-of-disks.sh")}let_go_of_disks "$@"\n'


def end_whole_function() -> str:
    """Return the shell function by which a script ends where a program that lists something was ended in the middle, as its `before`."""
    return script("process", "end-whole.sh")


def printing_function(function: str, text: str) -> str:
    """Return a shell function that prints a text, such as a script in another language, as the `before` of a script that needs it.

    Why: as an argument it would appear in the plan's line, and its line ends would not pass every login shell.
    """
    return f"{function}() {{\nprintf %s {shlex.quote(text)}\n}}\n"
