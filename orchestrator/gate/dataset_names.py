"""The words of a request that name datasets and snapshots: each is below the gate's dataset, or the request is refused.

Why so strict: as root, zfs does with any name what it is told. Source: openzfs, module/zcommon/zfs_namecheck.c.
"""

import re

from orchestrator.domain.gate import GateRefusal
from orchestrator.engines.zfs.plan.hold_names import LONGEST_NAME, parse_cursor_bookmark, parse_hold_bookmark
from orchestrator.engines.zfs.survey.resume_token import parse_token, token_names
from orchestrator.gate.request import UnknownQuestion

_NAME = r"[A-Za-z0-9_.: -]+"
_DATASET = re.compile(rf"{_NAME}(/{_NAME})*")
_MARK = re.compile(rf"[@#]{_NAME}")
_TOKEN = re.compile(r"1-[0-9a-f]{1,16}-[0-9a-f]{1,16}-[0-9a-f]{16,4096}")
# Which an ordinary cut receive leaves; others would ask for other data than one snapshot's.
_OF_TOKENS = frozenset(
    "fromguid object offset bytes toguid toname largeblockok embedok compressok rawok".split()
)  # fmt: skip
_SEND_FLAGS = re.compile(r"-P(?!.*(\w).*\1)[wLcepb]*")


def dataset_below(name: str, root: str, *, itself: bool = False) -> str:
    """Return the dataset's name, which is below the root, or the root where `itself` may be named. Raises: GateRefusal."""
    parts = name.split("/")
    if _DATASET.fullmatch(name) is None or {".", ".."} & set(parts) or len(name) > LONGEST_NAME:
        raise GateRefusal(f"{name[:LONGEST_NAME]!r} is no name of a dataset")
    if name != root and not name.startswith(f"{root}/"):
        raise GateRefusal(f"{name} is not below {root}")
    if name == root and not itself:
        raise GateRefusal(f"{name} is the gate's own dataset, where only what is below it may be changed")
    return name


def snapshot_below(name: str, root: str, *, itself: bool = True, bookmark: bool = False) -> str:
    """Return a snapshot's whole name; with `bookmark`, a bookmark's too. Raises: GateRefusal, UnknownQuestion."""
    at = min((place for sign in "@#" if (place := name.find(sign)) >= 0), default=-1)
    if at < 0:
        raise UnknownQuestion
    dataset, mark = name[:at], name[at:]
    if _MARK.fullmatch(mark) is None or len(name) > LONGEST_NAME:
        raise GateRefusal(f"{name[:LONGEST_NAME]!r} is no name of a snapshot")
    if mark[0] == "#" and not bookmark:
        raise UnknownQuestion
    dataset_below(dataset, root, itself=itself)
    return name


def either_below(name: str, root: str) -> str:
    """Return the whole name of a dataset or a snapshot. Raises: GateRefusal, UnknownQuestion."""
    return snapshot_below(name, root) if "@" in name or "#" in name else dataset_below(name, root, itself=True)


def own_bookmark(name: str) -> str:
    """Return the name of a bookmark, without dataset, that is one of poolferry's. Raises: GateRefusal."""
    if parse_cursor_bookmark(name) is None and parse_hold_bookmark(name) is None:
        raise GateRefusal(f"#{name[:LONGEST_NAME]} is no bookmark of poolferry's")
    return name


def send_words(words: tuple[str, ...], root: str) -> tuple[str, ...]:
    """Return the words of a send of one snapshot below the root. Raises: GateRefusal, UnknownQuestion."""
    match words:
        case ("send", "-P", "-t", token):
            token_guid(token, root)
            return words
        case ("send", flags, snapshot):
            pass
        case ("send", flags, "-i" | "-I" as mode, base, snapshot):
            snapshot_below(base, root, bookmark=mode == "-i")
        case _:
            raise UnknownQuestion
    if _SEND_FLAGS.fullmatch(flags) is None:
        raise UnknownQuestion
    snapshot_below(snapshot, root)
    return words


def token_guid(token: str, root: str) -> int:
    """Return the guid of the snapshot that a resume token is about, below the root. Raises: GateRefusal.

    zfs looks for that guid in the whole pool, so whoever sends makes sure that a snapshot below the root has it.
    """
    found = parse_token(token) if _TOKEN.fullmatch(token) else None
    if found is None or not _has_single_names(token):
        raise GateRefusal("a resume token that cannot be read, or that asks for more than the rest of one snapshot")
    snapshot_below(found.to_name, root)
    return found.to_guid


def _has_single_names(token: str) -> bool:
    """Return whether a token holds only what an ordinary one does, and each of it once."""
    try:
        names = token_names(token)
    except ValueError:
        return False
    return len(set(names)) == len(names) and _OF_TOKENS.issuperset(names)
