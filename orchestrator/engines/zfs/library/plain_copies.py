"""A program of its own that tells to which copies a stream without properties brings all that one with properties would."""

import sys
from collections.abc import Iterator, Sequence

from orchestrator.engines.zfs.library.bindings import Unreadable, ZfsLibrary

# Of a copy that was told to leave these out some zfs keeps what was received, and some does not: neither is ever in force there.
SPACE = frozenset(("quota", "refquota", "reservation", "refreservation"))


def program() -> None:
    """Print the number of each pair where it is so, then "=end".

    Arguments: the properties that no copy takes as received ones, with commas; then of each pair the source's dataset, the copy,
    and the snapshots that are to be sent, each pair ended by an empty word.
    """
    protected, *words = sys.argv[1:]
    never = frozenset(protected.split(","))
    try:
        library = ZfsLibrary()
        plain = [number for number, pair in enumerate(_pairs(words)) if _is_plain(library, never, *pair)]
    except (OSError, AttributeError, TypeError, Unreadable):  # other libraries, no zfs, or no pairs
        sys.exit(1)
    sys.stdout.write("".join(f"{line}\n" for line in (*plain, "=end")))


def _pairs(words: Sequence[str]) -> Iterator[list[str]]:
    pair: list[str] = []
    for word in words:
        if word:
            pair.append(word)
        else:
            yield pair
            pair = []


def _is_plain(library: ZfsLibrary, protected: frozenset[str], source: str, copy: str, *snapshots: str) -> bool:
    """Return whether neither a snapshot has properties of its own, nor the dataset one that its copy did not receive, nor the copy one too many.

    Nor may one be in force at the copy that each receive puts out of force.
    """
    try:
        sent = library.own_properties(source)
        if any(library.own_properties(snapshot) for snapshot in snapshots):
            return False
        received, in_force = library.received_properties(copy)
    except Unreadable:
        return False
    kept = {name: value for name, value in sent.items() if name not in SPACE}
    return received in (sent, kept) and not in_force & protected
