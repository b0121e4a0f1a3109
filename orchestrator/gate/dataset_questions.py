"""The questions that a key may ask about datasets below the gate's own: those of a run that sends from there, or receives there.

Each answer is the command that our own side builds for that question, with the gate's own script.
"""

import re
from collections.abc import Callable, Mapping

from orchestrator.domain.gate import GateRefusal
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.gate.dataset_names import dataset_below, either_below
from orchestrator.gate.request import GateRequest, UnknownQuestion

HERE = CommandHost()
_MOST_NAMES = 5000
_GUID, _GUID_OR_ANY = re.compile("[1-9][0-9]{0,19}"), re.compile("[0-9]{1,20}")
Values = tuple[str, ...]
Answer = Callable[[Values, str], Command]


def answer_from(answers: Mapping[str, Answer], request: GateRequest, root: str) -> Command:
    """Return the command that answers the request. Raises: GateRefusal."""
    answer = answers.get(request.name)
    if answer is None:
        raise GateRefusal(f"it was asked for `{request}`")
    try:
        return answer(request.values, root)
    except UnknownQuestion:
        raise GateRefusal(f"it was asked for `{request}`, which is no question that this version knows") from None


def same(values: Values, built: Command) -> Command:
    """Return the command when it has just these arguments, behind its script. Raises: UnknownQuestion."""
    if built.argv[4:] != values:
        raise UnknownQuestion
    return built


def survey(values: Values, root: str, *, target: bool) -> Command:
    """Return the look at a side; `target`: at the side that receives."""
    match values:
        case ("sudo" | "plain", _, name, deep, _, properties, columns, kinds, "yes" | "no" as above, *_):
            built = commands.survey_command(
                Location(path=dataset_below(name, root, itself=True)), target=target, recursive=deep == "-r", sudo=False,
                above=above == "yes", created=columns.endswith(",creation"),
                newest=target and kinds == "newest" and properties.startswith("prevsnap,"), marks_apart=":" not in properties,
            )  # fmt: skip
            return same(("plain", *values[1:]), built)
    raise UnknownQuestion


def names_of(script: str) -> Answer:
    """Return the answer of a script whose arguments are all names of datasets and snapshots."""

    def answer(values: Values, root: str) -> Command:
        if not values or len(values) > _MOST_NAMES:
            raise UnknownQuestion
        names = (either_below(name, root) for name in values)
        return commands.script_command(script, *names, effect=Effect.READS, where=HERE)

    return answer


def points(values: Values, root: str) -> Command:
    """Return the listing of a dataset's snapshots."""
    match values:
        case (name,):
            return commands.points_command(Location(path=dataset_below(name, root, itself=True)))
    raise UnknownQuestion


def find_moved(values: Values, root: str) -> Command:
    """Return the look for a dataset by its guid, below the root alone: of what lies elsewhere not even that it is there is told."""
    match values:
        case (guid, pool_guid, former) if _GUID.fullmatch(guid) and _GUID_OR_ANY.fullmatch(pool_guid):
            dataset_below(former, root, itself=True)
            return commands.find_below_command(int(guid), int(pool_guid), former, root)
    raise UnknownQuestion


def rights(values: Values, root: str) -> Command:
    """Return the look at what our user may do with a dataset."""
    match values:
        case (_, name):
            return same(values, commands.rights_command(Location(path=dataset_below(name, root, itself=True))))
    raise UnknownQuestion


def compression(words: Values, root: str) -> Command:
    """Return the look at which datasets compress; there are words. Raises: GateRefusal, UnknownQuestion."""
    built = commands.compression_command(Location(path=dataset_below(words[-1], root, itself=True)))
    if built.argv[1:] != words:
        raise UnknownQuestion
    return built


def memory_and_patience(values: Values) -> tuple[str, str]:
    """Return the buffer's memory and its seconds of patience, as asked for but within bounds. Raises: UnknownQuestion."""
    match values:
        case (memory, patience, *_) if memory.endswith("k"):
            kilobytes, seconds = memory.removesuffix("k"), patience
            if all(text.isascii() and text.isdigit() and len(text) < 10 for text in (kilobytes, seconds)):
                return f"{min(int(kilobytes), _MOST_MEMORY)}k", str(min(max(int(seconds), 30), _MOST_PATIENCE))
    raise UnknownQuestion


_MOST_MEMORY, _MOST_PATIENCE = 64 << 10, 86400  # kilobytes, as much as a job has by itself; seconds
