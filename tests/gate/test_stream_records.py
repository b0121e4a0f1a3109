"""The records behind a stream's head: those of one dataset pass, however they are cut into pieces; others, and what is none, do not."""

import random
import struct
from collections.abc import Iterator

import pytest

from orchestrator.domain.gate import GateRefusal
from orchestrator.gate.stream_head import missing_bytes, parse_head
from orchestrator.gate.stream_records import RecordWatch
from tests.gate.streams import RECORDS, begin, compound, record

OTHERS = (
    begin(name="tank/p/child@b"), begin(name="tank@b"), begin(name="tank/q@b"), begin(name="tank/p2@b"), begin(name="tank/p@b", flags=1),
    begin(name="tank/p@b", header=2), begin(name="tank/p@b", magic=1), record(6), record(11), record(0xFFFFFFFF),
    record(3, _32=("Q", 1 << 32)), record(3, _32=("Q", 2**64 - 1)), record(7, _40=("Q", 1 << 40)), record(1, b"r" * 320, _36=("I", 320)),
    struct.pack("<I", 0).ljust(312, b"\1"), begin(name="x" * 256),
)  # fmt: skip


def pieces(whole: bytes, chance: random.Random) -> Iterator[bytes]:
    """The stream as it may be read: in pieces of any size."""
    at = 0
    while at < len(whole):
        size = chance.choice((1, 7, 311, 312, 313, 5000))
        yield whole[at : at + size]
        at += size


def watched(whole: bytes, chance: random.Random, *, skip: int = 0) -> None:
    """Let a stream be followed."""
    watch = RecordWatch(b"tank/p", skip=skip)
    for piece in pieces(whole, chance):
        watch.follow(piece)


def test_records_of_one_dataset_pass_in_any_pieces() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        watched(b"".join(chance.choices(RECORDS, k=12)), chance)


@pytest.mark.parametrize("other", OTHERS)
def test_another_is_refused_wherever_it_comes(other: bytes) -> None:
    for seed in range(20):
        chance = random.Random(seed)
        before = b"".join(chance.choices(RECORDS, k=seed))
        with pytest.raises(GateRefusal):
            watched(before + other + RECORDS[0], chance)
        watched(before + other[:311], chance)  # nothing is judged before it is whole


def test_it_begins_behind_what_the_head_was_read_of() -> None:
    head = compound(inner=begin(payload=24))
    assert not missing_bytes(head)
    parsed = parse_head(head)
    assert (parsed.of_several, parsed.skip) == (b"tank/p", 24)
    watched(b"k" * 24 + begin(name="tank/p@b"), random.Random(1), skip=parsed.skip)
    assert parse_head(begin()).of_several is None


def test_no_bytes_make_it_fail() -> None:
    chance = random.Random(4)
    for _ in range(2_000):
        made = b"".join(chance.choices((*RECORDS, *OTHERS), k=3))
        at = chance.randrange(len(made))
        try:
            watched(made[:at] + chance.randbytes(8) + made[at + 8 :], chance)
        except GateRefusal:
            continue
