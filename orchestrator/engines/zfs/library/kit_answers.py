"""A program of its own that answers for a recovery kit: `zfs` would be started once for each dataset, or read each snapshot whole."""

import os
import sys
from collections.abc import Iterator, Sequence

from orchestrator.engines.zfs.library.bindings import Unreadable, ZfsLibrary


def program() -> None:
    """Answer for the datasets and snapshots whose names come on stdin, one a line. With all is well 0; else 1: the script asks zfs.

    Lines "received" with each property that any of the datasets received; "granted" with each on which rights were delegated; "held"
    with each hold of a snapshot as `zfs holds -Hp` lists it.
    """
    names = [os.fsdecode(line) for line in sys.stdin.buffer.read().split(b"\n") if line]
    try:
        answer = dict.fromkeys(_answers(ZfsLibrary(), names))
    except (OSError, AttributeError, Unreadable):
        sys.exit(1)
    sys.stdout.buffer.write(os.fsencode("".join(f"{line}\n" for line in answer)))


def _answers(library: ZfsLibrary, names: Sequence[str]) -> Iterator[str]:
    datasets = [name for name in names if "@" not in name]
    for name in datasets:
        received, _ = library.received_properties(name)
        yield from (f"received\t{one}" for one in sorted(received))
    yield from sorted({f"granted\t{one}" for name in datasets for one in library.grants(name)})
    for name in names:
        if "@" in name:
            yield from (f"held\t{name}\t{tag}\t{time}" for tag, time in library.holds(name).items() if _is_plain(tag))


def _is_plain(tag: str) -> bool:
    """Return whether a tag has one line and one column: no command could make another one again as it is."""
    return "\n" not in tag and "\t" not in tag
