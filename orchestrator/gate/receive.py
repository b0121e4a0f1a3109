"""The requests of a key which only adds to copies here: to look, to receive, and to throw away what its own cut receive left.

A copy is received as our own side receives it, and as harmlessly, whatever was asked for: never mounted, read-only, without
mountpoint and shares, never with -F. Nothing is destroyed, rolled back, renamed or set.
"""

import re
from collections.abc import Sequence

from orchestrator.domain.answers import split_lines
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.gate import APPEND_ONLY, GATE_ROOT_ABSENT, GateRefusal
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.model import FLAGS, RECEIVE_MARK, DatasetType, ReceiveEncryption
from orchestrator.engines.zfs.verify.read_copy import listing_command, read_command
from orchestrator.gate import dataset_questions as questions
from orchestrator.gate.dataset_names import dataset_below, snapshot_below
from orchestrator.gate.dataset_questions import HERE, Values
from orchestrator.gate.request import GateRequest, UnknownQuestion
from orchestrator.gate.stream_head import StreamHead

# What our own side sets on a copy, and the only values that it sets.
_SETTABLE = {
    "readonly": "on", "canmount": "noauto", "quota": "none", "refquota": "none", "reservation": "none",
    "refreservation": "none", "encryption": "off", FLAGS: "-|[wLceb]{1,5}",
}  # fmt: skip
_PROPERTY = re.compile(r"[a-z0-9:._@-]{1,255}")
_MOST_OPTIONS = 200
# Set with each stream, so that none brings others; taken from none.
_ALWAYS = {"readonly": "on", "reservation": "none", "refreservation": "none"}
_ASIDE = ("mountpoint", "sharenfs", "sharesmb", "quota", "refquota", "dedup")
_OF_FILESYSTEMS = frozenset(("mountpoint", "sharenfs", "sharesmb", "quota", "refquota", "canmount"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reception:
    """A receive that was asked for. `buffer`: memory and patience of the buffer, where one was asked for."""

    dataset: str
    given: tuple[tuple[str, str], ...]
    aside: tuple[str, ...]
    origin: str | None
    buffer: Values

    @property
    def patience(self) -> float | None:
        """Return how many seconds of silence end it; None: any."""
        return float(self.buffer[1]) if self.buffer else None

    @property
    def memory(self) -> int:
        """Return how many bytes may wait for it, where it is buffered."""
        return int(self.buffer[0].removesuffix("k")) << 10 if self.buffer else 1 << 20

    def command(self, head: StreamHead) -> Command:
        """Return the command that receives this stream. Raises: GateRefusal."""
        if head.clone and self.origin is None:
            raise GateRefusal("a clone without the snapshot that it starts from")
        volume = head.kind is DatasetType.VOLUME
        given = {**dict(self.given), **_ALWAYS, "canmount": "noauto"}
        aside = dict.fromkeys((*_ASIDE, *self.aside))
        words = ["receive", "-s", "-u", "-x", RECEIVE_MARK]
        for name, value in given.items():
            if not (volume and name in _OF_FILESYSTEMS):
                words += ["-o", f"{name}={value}"]
        if self.origin is not None:
            words += ["-o", f"origin={self.origin}"]
        for name in aside:
            if name not in given and not (volume and name in _OF_FILESYSTEMS):
                words += ["-x", name]
        words.append(self.dataset)
        return commands.zfs_command(*words, effect=Effect.WRITES, where=HERE)


def admit_receiving(request: GateRequest, root: str) -> Command | Reception:
    """Return what answers the request of a key that adds to copies below the root. Raises: GateRefusal."""
    try:
        match request.name, request.values:
            case "receive.sh", values:
                return _reception(questions.memory_and_patience(values), values[2:], root)
            case "zfs.sh", ("receive", *_) as words:
                return _reception((), words, root)
    except UnknownQuestion:
        raise GateRefusal(f"it was asked for `{request}`, which no version of ours asks for") from None
    return questions.answer_from(_ANSWERS, request, root)


def used_command(root: str) -> Command:
    """Build the command that prints how many bytes are used below the root."""
    return commands.zfs_command("get", "-Hp", "-o", "value", "used", root, effect=Effect.READS, where=HERE)


def newest_name(dataset: str, head: StreamHead) -> str | None:
    """Return the whole name of the snapshot that a stream ends with; None where it names none."""
    name = f"{dataset}@{head.newest.decode('utf-8', 'replace')}"
    try:
        return snapshot_below(name, dataset)
    except GateRefusal:
        return None


def marks_command(names: Sequence[str]) -> Command:
    """Build the command that prints guid and createtxg of snapshots."""
    words = ("get", "-Hp", "-o", "name,property,value", "guid,createtxg", *names)
    return commands.zfs_command(*words, effect=Effect.READS, where=HERE)


def parse_marks(printed: str) -> dict[str, str]:
    """Return the marks by which arrivals of snapshots are recorded, by their names; those of which all was printed."""
    told: dict[str, dict[str, str]] = {}
    for line in split_lines(printed):
        name, _, rest = line.partition("\t")
        wanted, _, value = rest.partition("\t")
        told.setdefault(name, {})[wanted] = value
    return {
        name: f"{each['guid']}.{each['createtxg']}"
        for name, each in told.items()
        if all(each.get(wanted, "").isdigit() for wanted in ("guid", "createtxg"))
    }


def _reception(buffer: Values, words: Values, root: str) -> Reception:
    if "-F" in words[:6]:
        raise GateRefusal(f"{APPEND_ONLY}`receive -F` could destroy what is there")
    match words:
        case ("receive", "-s", "-u", "-x", mark, *options, dataset) if mark == RECEIVE_MARK:
            pass
        case _:
            raise UnknownQuestion
    given, aside, origin = dict[str, str](), list[str](), None
    if len(options) % 2 or len(options) > _MOST_OPTIONS:
        raise UnknownQuestion
    for flag, word in zip(options[::2], options[1::2], strict=True):
        name, equals, value = word.partition("=")
        if flag == "-x" and _PROPERTY.fullmatch(word):
            aside.append(word)
        elif flag == "-o" and name == "origin" and origin is None:
            origin = snapshot_below(value, root, itself=False)
        elif flag == "-o" and equals and name not in given and re.fullmatch(_SETTABLE.get(name, "(?!)"), value):
            given[name] = value
        else:
            raise GateRefusal(f"a receive with `{flag} {word[:100]}`, which no copy of ours has")
    return Reception(
        dataset=dataset_below(dataset, root),
        given=tuple(given.items()),
        aside=tuple(aside),
        origin=origin,
        buffer=buffer,
    )


def _survey(values: Values, root: str) -> Command:
    return questions.survey(values, root, target=True)


def _space(values: Values, root: str) -> Command:
    match values:
        case (_, near, copy):
            at = Location(path=dataset_below(copy, root, itself=True))
            return questions.same(values, commands.space_command(at, dataset_below(near, root, itself=True)))
    raise UnknownQuestion


def _receivers(values: Values, root: str) -> Command:
    """Return the look at who receives below the root, and not at who receives elsewhere."""
    if values:
        raise UnknownQuestion
    return commands.receiving_command(None, root)


def _abort(values: Values, root: str) -> Command:
    match values:
        case (dataset,):
            return commands.abort_command(dataset_below(dataset, root), HERE)
    raise UnknownQuestion


def _end(values: Values, root: str) -> Command:
    match values:
        case (process, dataset, "sudo" | "plain") if re.fullmatch("[1-9][0-9]{0,8}", process):
            return commands.end_receive_command(dataset_below(dataset, root), int(process), HERE)
    raise UnknownQuestion


def _read(words: Values, root: str) -> Command:
    """Return the reading of a copy where it lies: none of it leaves this machine."""
    match words:
        case ("send", "-w", snapshot):
            snapshot_below(snapshot, root)
        case ("send", "-w", "-I", base, snapshot):
            snapshot_below(base, root)
            snapshot_below(snapshot, root)
        case _:
            raise UnknownQuestion
    return read_command(words, HERE)


def _zfs(words: Values, root: str) -> Command:
    match words:
        case ("version",):
            return commands.zfs_command("version", effect=Effect.READS, where=HERE)
        case ("create", *_, dataset):
            if dataset == root:  # which is asked for only where a look did not find it
                raise GateRefusal(f"{root}{GATE_ROOT_ABSENT}")
            for encryption in (None, ReceiveEncryption.OFF):
                built = commands.placeholder_command(dataset, HERE, encryption=encryption)
                if built.argv[1:] == words:
                    dataset_below(dataset, root)
                    return built
            raise UnknownQuestion
        case ("list", *_, dataset):
            built = listing_command(Location(path=dataset_below(dataset, root, itself=True)), HERE)
            if built.argv[1:] != words:
                raise UnknownQuestion
            return built
        case ("destroy" | "rollback" | "rename" | "set" | "inherit" as verb, *_):
            raise GateRefusal(f"{APPEND_ONLY}`zfs {verb}` could change or remove a copy")
    raise UnknownQuestion


_ANSWERS: dict[str, questions.Answer] = {
    "survey.sh": _survey,
    "confirm.sh": questions.names_of("confirm.sh"),
    "newest.sh": questions.names_of("newest.sh"),
    "points.sh": questions.points,
    "find-datasets.sh": questions.find_moved,
    "rights.sh": questions.rights,
    "space.sh": _space,
    "receivers.sh": _receivers,
    "end-receive.sh": _end,
    "abort-receive.sh": _abort,
    "read-copy.sh": _read,
    "zfs.sh": _zfs,
}
