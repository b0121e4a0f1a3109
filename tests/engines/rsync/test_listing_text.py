"""A listing that is compared with a record's frames as it comes, in pieces of any size, and taken apart where it differs."""

import random
from collections.abc import Iterator

import pytest

from orchestrator.engines.rsync.listing_text import ListingText
from orchestrator.engines.rsync.look_record import PackedEntries, pack_entries

ENTRIES = [b"%d//f\t%d" % (number, number * 7) for number in range(1000)]


def pieces(entries: list[bytes], size: int, *, end: bytes = b"\0") -> Iterator[bytes]:
    text = b"\0".join(entries) + end
    return (text[at : at + size] for at in range(0, len(text), size))


def frames(entries: list[bytes], count: int) -> list[PackedEntries]:
    return [pack_entries(entries[at : at + count]) for at in range(0, len(entries), count)]


@pytest.mark.parametrize("size", [1, 7, 100, 10_000, 1_000_000])
def test_what_is_as_recorded_passes(size: int) -> None:
    listed = ListingText(pieces(ENTRIES, size))
    assert all(map(listed.passes, frames(ENTRIES, 64)))
    assert listed.take(5) == []


@pytest.mark.parametrize("seed", range(50))
def test_what_differs_is_taken_and_nothing_is_lost(seed: int) -> None:
    chance = random.Random(seed)
    now = [entry for entry in ENTRIES if chance.random() > 0.01]
    for place in chance.sample(range(len(now)), 5):
        now[place] = chance.choice([b"other//f", now[place][:-1] + b"x", b"", now[place] + b"~"])
    listed = ListingText(pieces(now, chance.choice([1, 13, 64, 4096, 100_000])))
    found, at = list[bytes](), 0
    for frame in frames(ENTRIES, chance.choice([1, 10, 64, 999])):
        same = now[at : at + frame.count] == frame.entries()
        if listed.passes(frame):
            assert same
            found += frame.entries()
        else:
            assert not same
            found += listed.take(frame.count)
        at = len(found)
    while more := listed.take(17):
        found += more
    assert found == now


def test_an_entry_that_only_begins_as_recorded_does_not_pass() -> None:
    (frame,) = frames([b"a", b"b"], 2)
    for entries in ([b"a", b"bc"], [b"a"], [b"a", b""], [b"ab"], []):
        listed = ListingText(pieces(entries, 3))
        assert not listed.passes(frame), entries
        assert listed.take(9) == (entries or [b""])


def test_an_entry_without_its_end_does_not_pass_but_is_taken() -> None:
    (frame,) = frames([b"a", b"b"], 2)
    listed = ListingText(pieces([b"a", b"b"], 2, end=b""))
    assert not listed.passes(frame)
    assert listed.take(2) == [b"a", b"b"]
    assert listed.take(2) == []
