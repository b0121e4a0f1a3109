"""Commands that ask OpenZFS's own library by a program of ours, on this machine alone."""

import shlex
from collections.abc import Iterable, Iterator

from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.zfs.commands.commands import batch_arguments, never_received
from orchestrator.engines.zfs.survey.plain_copies import PlainCandidate
from orchestrator.process.own_program import own_environment, own_program

_ROOM = "orchestrator.engines.zfs.library"


def library_function() -> str:
    """Return the shell function `ask_library`, which answers for the names on its input, or fails: see `library/kit_answers.py`."""
    words = shlex.join(own_program(f"{_ROOM}.kit_answers"))
    setting = " ".join(f"{name}={shlex.quote(value)}" for name, value in own_environment())
    return f"ask_library() {{\n{setting} {words} 2> /dev/null\n}}\n"


def plain_copies_commands(
    candidates: Iterable[PlainCandidate], protect: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Yield the sources of some candidates, and the command that prints the numbers of those whose copies need no properties.

    `protect`: the job's own properties that no copy takes.
    """
    groups = ((one.source, one.copy, *one.snapshots, "") for one in candidates)
    for batch in batch_arguments(groups):
        starts = (0, *(place + 1 for place, word in enumerate(batch[:-1]) if not word))
        argv = own_program(f"{_ROOM}.plain_copies", ",".join((*never_received(), *protect)), *batch)
        command = Command(argv=argv, effect=Effect.READS, environment=own_environment())
        yield tuple(batch[place] for place in starts), command
