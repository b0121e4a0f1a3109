"""The requests of a key that only adds restore points below one folder: to look, to fill the work tree, to make a point of it.

What the key's rsync writes, it writes into the work tree alone, and no file there is one of a point's: unchanged files get their
names in the new point by the gate itself, at the end, and then no rsync may come near them any more. So whatever a source sends that
was taken over, no older point changes: not a byte, not a mode.
"""

import re
from collections.abc import Callable, Mapping

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.gate import ADDING, APPEND_ONLY, GateRefusal
from orchestrator.domain.names import JOB_NAME, POINT_NAME
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.rsync import script_commands
from orchestrator.engines.rsync.abilities import ABILITIES
from orchestrator.engines.rsync.model import LINK_UNCHANGED, MANIFEST, OURS, PARTIAL, WORK
from orchestrator.gate.read_only import folder_below, read_question
from orchestrator.gate.request import GateRequest, UnknownQuestion

Values = tuple[str, ...]
SHARED, ALONE = "shared", "alone"
LINKED = "linked"  # a file in our folder: the note that the work tree shares files with a point
POINTS = "points"

# As rsync's client makes them (options.c, server_options). Missing is all that writes into a file that is there or reads elsewhere
# (--inplace, -k, -K, --backup-dir, --temp-dir, --link-dest, -s, --write-devices), or that no copy to points has.
_LETTERS = re.compile(r"-[vnlWHogDtpAXrRxScId]+e[.0-9]*[A-Za-z]*")
_OPTIONS = re.compile(
    r"--(numeric-ids|stats|append|delete|delete-before|delete-excluded|force|existing|ignore-missing-args|log-format=%i"
    r"|(timeout|bwlimit)=[0-9]{1,9}|(new|old)-compress|(checksum|compress)-choice=[a-z0-9]{1,20}|compress-level=[0-9]{1,2})|-@-?[0-9]{1,9}"
)
_NUMBER = re.compile("[0-9]{1,19}")
_NOTE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
# Of our own folder, what other requests make there.
_NO_NOTES = frozenset(
    ("lock", "target.json", "work", "abilities", "trash", "cannot-be-closed", "unwritten", ADDING, LINKED)
)
_MOST_PATIENCE = 3600
_MOST_NAMES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class PointAddition:
    """A request that writes. `area`: the folder below the gate's own in which it may, and nowhere else; empty: that itself.

    `lock`: how it is kept apart from others of the key, of which it waits `patience` seconds for the end. `prepares`: it begins a run.
    `streams`: it is a copy, which no work tree takes that shares files with a point; `parts` ends that. `fills`: it may take much space.
    `links`: the point of which the gate links what is unchanged, in place of a command. `makes`: the point that it makes. `stores`: its input
    is a small file.
    """

    area: str
    lock: str
    patience: int = 60
    command: Command | None = None
    streams: bool = False
    fills: bool = False
    prepares: bool = False
    parts: bool = False
    links: str = ""
    makes: str = ""
    stores: bool = False


def admit_adding(request: GateRequest, root: str) -> Command | PointAddition:
    """Return what answers the request of a key that adds points below the root: a command only reads. Raises: GateRefusal."""
    try:
        if answer := _WRITES.get(request.name):
            return answer(request.values, root)
        if look := _LOOKS.get(request.name):
            return look(request.values, root)
        if request.name == "rsync" and request.values[:1] == ("--server",) and "--sender" not in request.values[1:3]:
            return _receive(request.values, root)
        if request.name in ("remove.sh", "mend-point.sh", "end-mirror.sh", "resume-mirror.sh", "separate-files.sh"):
            raise GateRefusal(f"{APPEND_ONLY}`{request.name}` could change or remove a point")
        return read_question(request, (root,))
    except UnknownQuestion:
        raise GateRefusal(f"it was asked for `{request}`, which is no question that this version knows") from None


def _root(path: str, root: str) -> Location:
    if path != root:
        raise GateRefusal(f"{path[:200]!r} is not {root}")
    return Location(path=root)


def _work(path: str, root: str) -> Location:
    if path != f"{root}/{WORK}":
        raise GateRefusal(f"{path[:200]!r} is not the work tree in {root}")
    return Location(path=path)


def point_name(text: str) -> str:
    """Return the name of a point. Raises: UnknownQuestion."""
    if POINT_NAME.fullmatch(text) is None:
        raise UnknownQuestion
    return text


def _below(path: str) -> bytes:
    """Return a path in the work tree. Raises: GateRefusal."""
    if path.startswith("/") or ".." in path.split("/") or "\0" in path:
        raise GateRefusal(f"{path[:200]!r} leads out of the work tree")
    return path.encode("utf-8", "surrogateescape")


def _look_at_target(values: Values, root: str) -> Command:
    match values:
        case (path,):
            return script_commands.survey_target_command(_root(path, root))
    raise UnknownQuestion


def _half_copied(values: Values, root: str) -> Command:
    match values:
        case (path, "own" | "" as own):
            return script_commands.partial_files_command(_work(path, root), own=bool(own))
    raise UnknownQuestion


def _see_point(values: Values, root: str) -> Command:
    match values:
        case (path, name):
            return script_commands.confirm_point_command(_root(path, root), point_name(name))
    raise UnknownQuestion


def _look_at_path(values: Values, root: str) -> Command:
    match values:
        case (path, name):
            return script_commands.restore_source_command(folder_below(path, (root,)), _below(name))
    raise UnknownQuestion


def _look_in_point(values: Values, root: str) -> Command:
    match values:
        case (path, *names) if len(names) <= _MOST_NAMES:
            return script_commands.survey_point_command(folder_below(path, (root,)), tuple(map(_below, names)))
    raise UnknownQuestion


def _show(values: Values, root: str) -> Command:
    match values:
        case ("--", path):
            return script_commands.show_file_command(folder_below(path, (root,)))
    raise UnknownQuestion


def _sums(values: Values, root: str) -> Command:
    match values:
        case (path,):
            return script_commands.sums_command(folder_below(path, (root,)))
    raise UnknownQuestion


def _find(values: Values, root: str) -> Command:
    match values:
        case (path, "-mindepth", "1", "-maxdepth", "1", "-printf", "/%P\\0") if path.endswith("/."):
            tree = folder_below(path.removesuffix("/."), (root,))
            return Command(argv=("find", f"{tree.path}/.", *values[1:]), effect=Effect.READS)
    return read_question(GateRequest(name="find", values=values), (root,))


def _try(values: Values, root: str) -> PointAddition:
    match values:
        case (path, *abilities) if set(abilities) <= set(ABILITIES):
            command = script_commands.try_abilities_command(_root(path, root), tuple(abilities))
            return PointAddition(area=OURS, lock=ALONE, command=command)
    raise UnknownQuestion


def _prepare(values: Values, root: str) -> PointAddition:
    match values:
        case (path, job, patience, "work") if JOB_NAME.fullmatch(job) and _NUMBER.fullmatch(patience):
            command = script_commands.prepare_command(_root(path, root), job, ("work",), patience=0)
            waits = min(int(patience), _MOST_PATIENCE)
            return PointAddition(area=OURS, lock=ALONE, command=command, fills=True, prepares=True, patience=waits)
    raise UnknownQuestion


def _unshare(values: Values, root: str) -> PointAddition:
    match values:
        case (path,):
            command = script_commands.unshare_command(_work(path, root))
            return PointAddition(area=WORK, lock=ALONE, command=command, fills=True, parts=True)
    raise UnknownQuestion


def _take_up(values: Values, root: str) -> PointAddition:
    match values:
        case (path, folder, name, orphan, length, *own) if own in ([], ["own"]):
            if "/" in name + orphan or not (length == "" or _NUMBER.fullmatch(length)):
                raise UnknownQuestion
            command = script_commands.take_up_command(
                _work(path, root), _joined(folder, name), orphan=_below(orphan), own=bool(own),
                length=int(length) if length else None,
            )  # fmt: skip
            return _in_work(command)
    raise UnknownQuestion


def _finish(values: Values, root: str) -> PointAddition:
    match values:
        case (path, folder, name, size, "holes" | "" as holes) if _NUMBER.fullmatch(size) and "/" not in name:
            whole = _joined(folder, name)
            return _in_work(script_commands.finish_command(_work(path, root), whole, int(size), holes=bool(holes)))
    raise UnknownQuestion


def _discard(values: Values, root: str) -> PointAddition:
    match values:
        case (path, *parts) if parts and not len(parts) % 2 and len(parts) <= _MOST_NAMES:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            return _in_work(script_commands.discard_command(_work(path, root), tuple(_joined(*each) for each in pairs)))
    raise UnknownQuestion


def _joined(folder: str, name: str) -> bytes:
    if not name or name == "." or "/" in name:
        raise UnknownQuestion
    return _below(f"{folder}/{name}" if folder else name)


def _in_work(command: Command) -> PointAddition:
    return PointAddition(area=WORK, lock=SHARED, command=command)


def _sweep(values: Values, root: str) -> PointAddition:
    match values:
        case (path, ""):
            return _in_work(script_commands.sweep_command(_work(path, root)))
    raise UnknownQuestion


def _list_others(values: Values, root: str) -> Command:
    match values:
        case (path, *folders) if 0 < len(folders) <= _MOST_NAMES:
            return script_commands.others_command(folder_below(path, (root,)), tuple(map(_plain, folders)))
    raise UnknownQuestion


def _discard_others(values: Values, root: str) -> PointAddition:
    match values:
        case (path, *folders) if 0 < len(folders) <= _MOST_NAMES:
            return _in_work(script_commands.discard_others_command(_work(path, root), tuple(map(_plain, folders))))
    raise UnknownQuestion


def _plain(folder: str) -> str:
    return _below(folder).decode("utf-8", "surrogateescape")


def _open_top(values: Values, root: str) -> PointAddition:
    match values:
        case (path,):
            return _in_work(script_commands.open_top_command(_work(path, root)))
    raise UnknownQuestion


def _dig_holes(values: Values, root: str) -> PointAddition:
    match values:
        case (point, path):
            return _in_work(script_commands.dig_holes_command(_point(point, root), _work(path, root)))
    raise UnknownQuestion


def _point(path: str, root: str) -> Location:
    name = point_name(path.rpartition("/")[2])
    if path != f"{root}/{POINTS}/{name}":
        raise GateRefusal(f"{path[:200]!r} is no point in {root}")
    return Location(path=path)


def _link(values: Values, root: str) -> PointAddition:
    match values:
        case (path, name):
            _root(path, root)
            return PointAddition(area=WORK, lock=ALONE, links=point_name(name))
    raise UnknownQuestion


def _store(values: Values, root: str) -> PointAddition:
    match values:
        case (path, *size) if size == [] or (len(size) == 1 and _NUMBER.fullmatch(size[0])):
            file, area = _note(path, root)
            command = script_commands.store_command(file, int(size[0]) if size else None)
            return PointAddition(area=area, lock=SHARED, command=command, fills=True, stores=True)
    raise UnknownQuestion


def _forget(values: Values, root: str) -> PointAddition:
    match values:
        case (path,):
            file, area = _note(path, root)
            return PointAddition(area=area, lock=SHARED, command=script_commands.discard_note_command(file))
    raise UnknownQuestion


def _note(path: str, root: str) -> tuple[Location, str]:
    """Return a small file of the sender's, and the folder in which it lies: its notes, and what it noted beside a point."""
    folder, _, name = path.rpartition("/")
    ours = folder == f"{root}/{OURS}" and _NOTE.fullmatch(name) and name not in _NO_NOTES
    beside = folder == f"{root}/{POINTS}" and name.endswith(".damaged") and POINT_NAME.fullmatch(name[:-8])
    if not (ours or beside):
        raise GateRefusal(f"{APPEND_ONLY}{path[:200]!r} is no note of a run in {root}")
    return Location(path=path), OURS if ours else POINTS


def _publish(values: Values, root: str) -> PointAddition:
    match values:
        case (path, name, manifest) if manifest == MANIFEST:
            made = point_name(name)
            command = script_commands.publish_command(_root(path, root), made, MANIFEST)
            return PointAddition(area="", lock=ALONE, command=command, makes=made)
    raise UnknownQuestion


def _latest(values: Values, root: str) -> PointAddition:
    match values:
        case (path, name):
            command = script_commands.name_latest_command(_root(path, root), point_name(name))
            return PointAddition(area="", lock=ALONE, command=command)
    raise UnknownQuestion


def _receive(values: Values, root: str) -> Command | PointAddition:
    """Return the far half of a copy: into the work tree, or a dry run against a point, which only reads."""
    match values:
        case ("--server", letters, *options, ".", path) if _LETTERS.fullmatch(letters):
            pass
        case _:
            raise UnknownQuestion
    place, end = folder_below(path, (root,)), "/" * path.endswith("/")
    dry = "n" in letters.partition("e")[0]
    if not dry and place.path != f"{root}/{WORK}" and not place.path.startswith(f"{root}/{WORK}/"):
        raise GateRefusal(f"{APPEND_ONLY}a copy into {place.path[:200]!r}, which is not the work tree in {root}")
    words = _receiver_words(options, root)
    below = place.path.removeprefix(f"{root}/{WORK}").lstrip("/")
    if dry:
        return Command(argv=("rsync", "--server", letters, *words, ".", place.path + end), effect=Effect.READS)
    into = (f"./{below}" if below else ".") + end
    command = Command(argv=("rsync", "--server", letters, *words, ".", into), effect=Effect.WRITES)
    return PointAddition(area=WORK, lock=SHARED, command=command, streams=True, fills=True)


def _receiver_words(options: list[str], root: str) -> list[str]:
    """Return a receiver's options, made anew. Raises: GateRefusal for one that no copy to points has."""
    words: list[str] = []
    given = iter(options)
    for option in given:
        if option == "--partial-dir" and next(given, "") == PARTIAL:
            words += ["--partial-dir", PARTIAL]
        elif option == "--copy-dest":
            words += ["--copy-dest", f"../../{POINTS}/{_point(next(given, ''), root).path.rpartition('/')[2]}"]
        elif _OPTIONS.fullmatch(option):
            words.append(option)
        else:
            raise GateRefusal(f"rsync's option {option[:100]!r} is none that a copy to points needs")
    return words


_LOOKS: Mapping[str, Callable[[Values, str], Command]] = {
    "look-at-target.sh": _look_at_target,
    "half-copied.sh": _half_copied,
    "list-others.sh": _list_others,
    "see-point.sh": _see_point,
    "look-at-path.sh": _look_at_path,
    "look-in-point.sh": _look_in_point,
    "sums.sh": _sums,
    "cat": _show,
    "find": _find,
}
_WRITES: Mapping[str, Callable[[Values, str], PointAddition]] = {
    "try-abilities.sh": _try,
    "prepare.sh": _prepare,
    "unshare-tree.sh": _unshare,
    "take-up.sh": _take_up,
    "finish.sh": _finish,
    "discard.sh": _discard,
    "sweep.sh": _sweep,
    "discard-others.sh": _discard_others,
    "open-top.sh": _open_top,
    "dig-holes.sh": _dig_holes,
    LINK_UNCHANGED: _link,
    "store.sh": _store,
    "discard-note.sh": _forget,
    "publish.sh": _publish,
    "name-latest.sh": _latest,
}
