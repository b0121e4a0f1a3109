"""The questions that a key may ask which only reads below one folder: those of a run that copies from here, and no others.

Each answer is the command that our own side builds for that question, with the gate's own script. A program that is no script
of ours is admitted when it is, word for word, a command that we build; the far half of rsync, whose words rsync itself makes,
by a list of its options.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product, takewhile

from orchestrator.domain.gate import LINKS, Gate, GateRefusal
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.rsync import commands, script_commands
from orchestrator.engines.rsync.model import PARTIAL
from orchestrator.gate.request import GateRequest, UnknownQuestion
from orchestrator.verify.pipelines import listing_command, settle_pipeline
from orchestrator.verify.source import attributes_command, source_command

_Values = tuple[str, ...]
Folders = tuple[str, ...]

# As rsync's client makes them (options.c, server_options): single letters, then -e with what it can. Missing here is all that
# reads elsewhere (-L, -k), takes further words from the input (-s), or changes something (--remove-source-files).
_LETTERS = re.compile(r"-[vnlHogDtpAXrRxScIWzd]+e[.0-9]*[A-Za-z]*")
_OPTIONS = re.compile(
    r"--(numeric-ids|files-from=-|from0|append|inplace|ignore-missing-args|stats|delete|log-format=%i"
    r"|(timeout|bwlimit)=[0-9]{1,9}|(new|old)-compress|(checksum|compress)-choice=[a-z0-9]{1,20}|compress-level=[0-9]{1,2})|-@-?[0-9]{1,9}"
)


def admit_reading(request: GateRequest, gate: Gate) -> Command:
    """Return the command that answers the request. Raises: GateRefusal."""
    try:
        return read_question(request, gate.reads)
    except UnknownQuestion:
        raise GateRefusal(f"it was asked for `{request}`, which is no question that this version knows") from None


def read_question(request: GateRequest, folders: Folders) -> Command:
    """Return the command that answers a question about what is in the folders. Raises: GateRefusal, UnknownQuestion."""
    answer = _ANSWERS.get(request.name)
    if answer is None:
        raise GateRefusal(f"it was asked for `{request}`")
    return answer(request.values, folders)


_TOP = "/."  # begins each path of several folders, whose root is "/"


def folder_below(path: str, folders: Folders) -> Location:
    """Return the folder that a request names. Raises: GateRefusal when it is not in one of the gate's folders."""
    parts = path.rstrip("/").split("/")
    if {".", ".."} & set(parts) or "" in parts[1:]:
        raise GateRefusal(f"{path!r} is no plain path")
    if not any(parts[: folder.count("/") + 1] == folder.split("/") for folder in folders):
        raise GateRefusal(f"{path!r} is not in {' or '.join(folders)}")
    return Location(path="/".join(parts))


def _tree(path: str, folders: Folders, parts: Sequence[str] = ()) -> SourceTree:
    """Return the source that a request names: a folder, or several below "/". Raises: GateRefusal · UnknownQuestion."""
    if not parts:
        return SourceTree(root=folder_below(path, folders))
    if path != "/":
        raise UnknownQuestion
    return SourceTree(
        root=Location(path="/"), parts=tuple(folder_below(f"/{part}", folders).path[1:] for part in parts)
    )


def _tools(values: _Values, _: Folders) -> Command:
    match values:
        case ():
            return script_commands.survey_tools_command(None)
    raise UnknownQuestion


def _links(values: _Values, _: Folders) -> Command:
    match values:
        case ():
            return script_commands.survey_links_command(None)
    raise UnknownQuestion


def _look(values: _Values, folder: Folders) -> Command:
    match values:
        case (path, "quick" | "whole" as how):
            return script_commands.survey_source_command(_tree(path, folder), whole=how == "whole")
        case (path, "parts", *more):
            parts = [each.removeprefix("/") for each in (path, *more)]
            return script_commands.survey_source_command(_tree("/", folder, parts))
    raise UnknownQuestion


def _unheld(values: _Values, folder: Folders) -> Command:
    match values:
        case (path, "one-filesystem" | "" as alone, "points" | "" as points, *parts):
            tree = _tree(path, folder, parts)
            return script_commands.find_unheld_command(tree, one_filesystem=bool(alone), points=bool(points))
    raise UnknownQuestion


def _sizes(values: _Values, folder: Folders) -> Command:
    match values:
        case (path, _, *_) if all(name.startswith("./") and ".." not in name.split("/") for name in values[1:]):
            names = tuple(os.fsencode(name.removeprefix("./")) for name in values[1:])
            if path == "/":
                for name in names:
                    folder_below(f"/{os.fsdecode(name)}", folder)
                return script_commands.sizes_command(Location(path="/"), names)
            return script_commands.sizes_command(folder_below(path, folder), names)
    raise UnknownQuestion


def _list_source(values: _Values, folder: Folders) -> Command:
    match values:
        case (path, "one-filesystem" | "" as alone, "attributes" | "" as attributes, _, *parts):
            tree = _tree(path, folder, [part.removeprefix("./") for part in parts])
            built = source_command(tree, one_filesystem=bool(alone), attributes=bool(attributes))
            if built.argv[-len(values) :] == values:
                return built
    raise UnknownQuestion


def _attributes(values: _Values, folder: Folders) -> Command:
    match values:
        case (path, "all" | "" as whole):
            return attributes_command(folder_below(path, folder), whole=bool(whole))
    raise UnknownQuestion


def _find(values: _Values, folder: Folders) -> Command:
    match values:
        case (path, _, *_) if path.startswith(f"{_TOP}/"):
            parts = [each.removeprefix(f"{_TOP}/") for each in takewhile(lambda each: each.startswith("/"), values)]
            return _same(values, _listings(_tree("/", folder, parts)))
        case (path, _, *_):
            tree = _tree(path.removesuffix("/.").removesuffix("/"), folder)
            return _same(values, (*_listings(tree), *_whole_listings(tree.root)))
    raise UnknownQuestion


def _same(values: _Values, known: Iterable[Command]) -> Command:
    """Return the command of ours that has just these arguments. Raises: UnknownQuestion."""
    for built in known:
        if built.argv[1:] == values:
            return built
    raise UnknownQuestion


def _listings(tree: SourceTree) -> Iterator[Command]:
    for alone in (False, True):
        yield script_commands.list_names_command(tree, one_filesystem=alone)
        yield script_commands.list_sizes_command(tree, one_filesystem=alone)
        yield script_commands.list_large_command(tree, one_filesystem=alone)


def _whole_listings(tree: Location) -> Iterator[Command]:
    partial = (os.fsencode(PARTIAL),)
    for alone in (False, True):
        for names, root_only, exclude in product((False, True), (False, True), ((), partial)):
            yield listing_command(tree, exclude=exclude, one_filesystem=alone, names=names, root_only=root_only)


def _sync(values: _Values, folder: Folders) -> Command:
    match values:
        case ("-f", path):
            return settle_pipeline(folder_below(path, folder)).stages[0]
    raise UnknownQuestion


def _rsync(values: _Values, folder: Folders) -> Command:
    match values:
        case ("--server", "--sender", letters, *options, ".", path) if _LETTERS.fullmatch(letters):
            if unknown := [option for option in options if not _OPTIONS.fullmatch(option)]:
                raise GateRefusal(f"rsync's option {unknown[0]!r} is none that copies from here need")
            if path == "/" and "--files-from=-" in options:
                raise GateRefusal(
                    "of several folders rsync may not be sent lists of names: write parallel = 1 in that job"
                )
            end = "/" * path.endswith("/")
            words = ("--server", "--sender", letters, *options, ".", folder_below(path, folder).path + end)
            return Command(argv=("rsync", *words), effect=Effect.READS)
        case ("--server", "--sender", letters, *words) if _LETTERS.fullmatch(letters) and "." in words:
            return _rsync_of_several(letters, words, folder)
    return _same(values, (commands.rsync_version_command(None),))


def _rsync_of_several(letters: str, words: list[str], folders: Folders) -> Command:
    """Return rsync's far half for several folders, each by its whole path below "/". Raises: GateRefusal · UnknownQuestion.

    Why no list of names: it comes on the input, where no gate sees it, and could name anything below "/".
    """
    at = words.index(".")
    options, paths = words[:at], words[at + 1 :]
    if unknown := [option for option in options if not _OPTIONS.fullmatch(option) or option.startswith("--files-from")]:
        raise GateRefusal(f"rsync's option {unknown[0]!r} is none that copies of several folders need")
    if "R" not in letters.partition("e.")[0] or not all(path.startswith(f"{_TOP}/") for path in paths):
        raise UnknownQuestion
    named = [f"{_TOP}{folder_below(path.removeprefix(_TOP), folders).path}" for path in paths]
    return Command(argv=("rsync", "--server", "--sender", letters, *options, ".", *named), effect=Effect.READS)


_ANSWERS: Mapping[str, Callable[[_Values, Folders], Command]] = {
    "look-at-tools.sh": _tools,
    LINKS: _links,
    "look-at-source.sh": _look,
    "find-unheld.sh": _unheld,
    "sizes.sh": _sizes,
    "list-source.sh": _list_source,
    "list-attributes.sh": _attributes,
    "find": _find,
    "sync": _sync,
    "rsync": _rsync,
}
