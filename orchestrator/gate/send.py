"""The requests of a key which only copies datasets from here: to look, to send, and to mark what a later send starts from.

It writes bookmarks and holds, as a source must keep what the next increment starts from, and only such as bear poolferry's names.
"""

from collections.abc import Iterator

from orchestrator.domain.gate import GateRefusal
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.plan.hold_names import parse_cursor_bookmark, parse_hold_bookmark, parse_hold_tag
from orchestrator.gate import dataset_questions as questions
from orchestrator.gate.dataset_names import (
    dataset_below,
    own_bookmark,
    send_words,
    snapshot_below,
    token_guid,
)
from orchestrator.gate.dataset_questions import HERE, Values
from orchestrator.gate.request import GateRequest, UnknownQuestion


def admit_sending(request: GateRequest, root: str, pools: tuple[str, ...] = ()) -> Command:
    """Return the command that answers the request of a key that copies from below the root. Raises: GateRefusal.

    `pools`: those whose marks the key may write; none: any of poolferry's.
    """
    answer = questions.answer_from(_ANSWERS, request, root)
    for mark in _marks_of(request) if pools else ():
        found = parse_cursor_bookmark(mark) or parse_hold_bookmark(mark) or parse_hold_tag(mark)
        if found is None or f"{found.pool:016x}" not in pools:
            raise GateRefusal(f"{mark} is for copies on another pool than `pools` names")
    return answer


def _marks_of(request: GateRequest) -> tuple[str, ...]:
    """Return the names of bookmarks and holds in an admitted request."""
    values = request.values
    match request.name:
        case "bookmarks.sh":
            return values[3::3]
        case "bookmarks-one-by-one.sh":
            return values[2::3]
        case "destroy-bookmarks.sh":
            return tuple(name.partition("#")[2] for name in values)
        case "hold.sh" | "release.sh":
            return values[:1]
    return ()


def _survey(values: Values, root: str) -> Command:
    return questions.survey(values, root, target=False)


def _zfs(words: Values, root: str) -> Command:
    match words:
        case ("version",):
            return commands.zfs_command("version", effect=Effect.READS, where=HERE)
        case ("get", *_):
            return questions.compression(words, root)
        case ("send", *_):
            return _sender((), words, root)
    raise GateRefusal(f"this key only copies from here, and was asked for `zfs {' '.join(words[:3])[:60]}`")


def _send(values: Values, root: str) -> Command:
    return _sender(questions.memory_and_patience(values), values[2:], root)


def _sender(buffer: Values, words: Values, root: str) -> Command:
    """Return the send; the rest of a cut one makes sure first that its snapshot is below the root."""
    given = send_words(words, root)
    before = f"guid={token_guid(given[-1], root)} below={_quoted(root)}\n{_GUID_BELOW}" if given[2] == "-t" else ""
    name = "send.sh" if buffer else "zfs.sh"
    return commands.script_command(name, *buffer, *given, effect=Effect.READS, where=HERE, before=before)


def _sizes(values: Values, root: str) -> Command:
    if not values or len(values) % 4:
        raise UnknownQuestion
    for at in range(0, len(values), 4):
        flags, mode, base, snapshot = values[at : at + 4]
        words = (flags, *((mode, base) if mode else ()), *(() if mode == "-t" else (snapshot,)))
        if (not mode and base) or (mode == "-t" and snapshot):
            raise UnknownQuestion
        send_words(("send", *words), root)
    return commands.script_command("send-sizes.sh", *values, effect=Effect.READS, where=HERE)


def _marks(values: Values, root: str) -> Iterator[str]:
    """Yield datasets, snapshots and bookmarks, three words each. Raises: GateRefusal, UnknownQuestion."""
    if not values or len(values) % 3:
        raise UnknownQuestion
    for at in range(0, len(values), 3):
        dataset, snapshot, bookmark = values[at : at + 3]
        if not snapshot.startswith("@"):
            raise UnknownQuestion
        snapshot_below(f"{dataset}{snapshot}", root)
        yield from (dataset, snapshot, own_bookmark(bookmark))


def _bookmarks(values: Values, root: str) -> Command:
    pool = root.partition("/")[0]
    if values[:1] != (pool,):
        raise UnknownQuestion
    return commands.channel_bookmarks_command(pool, tuple(_marks(values[1:], root)), HERE)


def _bookmarks_one_by_one(values: Values, root: str) -> Command:
    marks = tuple(_marks(values, root))
    return commands.script_command("bookmarks-one-by-one.sh", *marks, effect=Effect.WRITES, where=HERE)


def _destroy_bookmarks(values: Values, root: str) -> Command:
    if not values:
        raise UnknownQuestion
    for name in values:
        dataset, mark, bookmark = name.partition("#")
        if not mark:
            raise GateRefusal(f"only bookmarks of poolferry's may go from here, and {name[:100]!r} is none")
        dataset_below(dataset, root, itself=True)
        own_bookmark(bookmark)
    return commands.script_command("destroy-bookmarks.sh", *values, effect=Effect.WRITES, where=HERE)


def _holds(script: str) -> questions.Answer:
    """Return the answer that holds snapshots, or releases them, by a tag of poolferry's."""

    def answer(values: Values, root: str) -> Command:
        if len(values) < 2:
            raise UnknownQuestion
        if parse_hold_tag(values[0]) is None:
            raise GateRefusal(f"{values[0][:100]!r} is no hold of poolferry's")
        names = tuple(snapshot_below(name, root) for name in values[1:])
        return commands.script_command(
            script, values[0], *names, effect=Effect.WRITES, where=HERE, with_functions="in-eight.sh"
        )

    return answer


def _properties(values: Values, root: str) -> Command:
    from orchestrator.engines.zfs.restore.survey import properties_command

    match values:
        case (name,):
            return properties_command(Location(path=dataset_below(name, root, itself=True)))
    raise UnknownQuestion


def _kit(values: Values, root: str) -> Command:
    from orchestrator.engines.zfs.recovery.kit import kit_command

    match values:
        case (_, name, *_):
            return questions.same(values, kit_command(Location(path=dataset_below(name, root, itself=True))))
    raise UnknownQuestion


# Before the rest of a cut send: a token names its snapshot by a guid, which zfs looks for in the whole pool.
_GUID_BELOW = """zfs list -Hp -r -t snapshot -o guid "$below" | grep -qxF "$guid" || {
  echo "no snapshot below $below is the one that the token was about: it no longer exists" >&2
  exit 1
}
"""


def _quoted(root: str) -> str:
    """Return a dataset's name, of letters, digits, /_.:- and blanks, in quotes for sh."""
    return f"'{root}'"


_ANSWERS: dict[str, questions.Answer] = {
    "survey.sh": _survey,
    "confirm.sh": questions.names_of("confirm.sh"),
    "newest.sh": questions.names_of("newest.sh"),
    "points.sh": questions.points,
    "find-datasets.sh": questions.find_moved,
    "rights.sh": questions.rights,
    "look-for-kit.sh": _kit,
    "list-properties.sh": _properties,
    "zfs.sh": _zfs,
    "send.sh": _send,
    "send-sizes.sh": _sizes,
    "bookmarks.sh": _bookmarks,
    "bookmarks-one-by-one.sh": _bookmarks_one_by_one,
    "destroy-bookmarks.sh": _destroy_bookmarks,
    "hold.sh": _holds("hold.sh"),
    "release.sh": _holds("release.sh"),
}
