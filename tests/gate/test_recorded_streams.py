"""Streams as OpenZFS 2.1 and 2.3 really made them: each record is seen, none twice, whatever the flags of the send; and nothing hides between two.

Made of small datasets with large blocks, embedded ones, holes, long attributes and many names; of an encrypted one; and of a volume.
"""

import gzip
import random
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.domain.gate import GateRefusal
from orchestrator.gate import stream_records
from orchestrator.gate.stream_head import RECORD, StreamHead, missing_bytes, parse_head
from orchestrator.gate.stream_records import RecordWatch
from tests.gate.streams import begin

RECORDED = Path(__file__).parent / "recorded"
KINDS = "begin object freeobjects write free end spill embedded range".split()
# As `zstream dump` counts them, less those in the head: the flags of the send, then the records by kind.
STREAMS = {
    "whole-2.3": ("-pLce", "0 26 1 10 33 2 4 18"),
    "many-2.3": ("-pLce -I", "1 36 3 4 47 3 7 2"),
    "one-2.3": ("-pe -i", "0 26 2 12 32 2 4 2"),
    "raw-2.3": ("-pw", "0 9 2 10 14 2 1 0"),
    "raw-many-2.3": ("-pwLec -I", "0 10 2 2 15 2 1 0"),
    "volume-2.3": ("-pLce", "0 2 1 13 3 2 0 1"),
    "many-2.1": ("-pLce -I", "1 36 3 4 47 3 7 2"),
    "raw-many-2.1": ("-pwLec -I", "0 10 2 2 15 2 1 0"),
    "volume-2.1": ("-pLce", "0 2 1 25 3 2 0 1"),
}
_NUMBERS = dict(zip((0, 1, 2, 3, 4, 5, 7, 8, 9), KINDS, strict=True))


def recorded(name: str) -> tuple[StreamHead, bytes]:
    """The head of a recorded stream, and what follows it."""
    whole = gzip.decompress((RECORDED / f"{name}.zfs.gz").read_bytes())
    end = 0
    while more := missing_bytes(whole[:end]):
        end += more
    return parse_head(whole[:end]), whole[end:]


def begun(head: StreamHead) -> RecordWatch:
    assert head.of_several is not None
    return RecordWatch(head.of_several, skip=head.skip)


def boundaries(name: str) -> tuple[StreamHead, bytes, list[tuple[int, int]]]:
    """A stream, and where each record behind its head begins, with its kind: by the watch itself, fed byte by byte at each head."""
    head, rest = recorded(name)
    watch, at, found = begun(head), 0, list[tuple[int, int]]()
    while at < len(rest):
        if not watch._skip:
            found.append((at, int.from_bytes(rest[at : at + 4], "little")))
        size = watch._skip or RECORD
        watch.follow(rest[at : at + size])
        at += size
    assert (at, watch._skip) == (len(rest), 0)
    return head, rest, found


@pytest.mark.parametrize("name", STREAMS)
def test_each_record_of_a_real_stream_is_seen(name: str) -> None:
    _, _, found = boundaries(name)
    flags, counts = STREAMS[name]
    seen = Counter(_NUMBERS[kind] for _, kind in found)
    assert [seen[kind] for kind in KINDS[:-1]] == list(map(int, counts.split())), flags
    assert bool(seen["range"]) == ("w" in flags)


@pytest.mark.parametrize("name", STREAMS)
def test_a_real_stream_passes_in_any_pieces(name: str) -> None:
    head, rest = recorded(name)
    for seed in range(5):
        chance, watch, at = random.Random(seed), begun(head), 0
        while at < len(rest):
            size = chance.choice((1, 311, 313, 5000, 1 << 20))
            watch.follow(rest[at : at + size])
            at += size
        assert watch._skip == 0


@pytest.mark.parametrize("name", STREAMS)
def test_nothing_hides_behind_any_record_of_a_real_stream(name: str) -> None:
    head, rest, found = boundaries(name)
    for at, _ in found[1:]:
        with pytest.raises(GateRefusal):
            begun(head).follow(rest[:at] + begin(name="tank/other@a") + rest[at:])


def test_no_damaged_size_of_a_real_stream_makes_it_fail() -> None:
    chance = random.Random(5)
    for name in STREAMS:
        head, rest, found = boundaries(name)
        for _ in range(200):
            at, _ = chance.choice(found)
            damaged = bytearray(rest[:200_000])
            place = at + chance.randrange(RECORD)
            damaged[place : place + 4] = chance.choice((b"\0" * 4, b"\xff" * 4, chance.randbytes(4)))
            watch = begun(head)
            try:
                watch.follow(bytes(damaged))
            except GateRefusal:
                continue
            assert 0 <= watch._skip <= stream_records._LONGEST + RECORD
