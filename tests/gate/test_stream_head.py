"""The head of a zfs stream: one dataset passes, of each kind; a tree of them, and what is no stream, does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.gate import GateRefusal
from orchestrator.engines.zfs.model import DatasetType
from orchestrator.gate.stream_head import StreamHead, missing_bytes, parse_head
from tests.engines.zfs.survey.token_maker import packed, xdr
from tests.gate.streams import SINGLE, begin, compound, end


@pytest.mark.parametrize(("kind", "found"), [(2, DatasetType.FILESYSTEM), (3, DatasetType.VOLUME)])
@pytest.mark.parametrize("flags", [0, 1, 4, 5])
def test_a_stream_of_one_dataset(kind: int, found: DatasetType, flags: int) -> None:
    for whole in (begin(kind=kind, flags=flags), compound(inner=begin(kind=kind, flags=flags))):
        needed = 0
        while more := missing_bytes(whole[:needed]):
            needed += more
        assert needed == len(whole)
        several = None if whole == begin(kind=kind, flags=flags) else b"tank/p"
        assert parse_head(whole[:needed]) == StreamHead(
            kind=found, clone=bool(flags & 1), newest=b"a", of_several=several
        )


@pytest.mark.parametrize(
    "whole",
    [
        begin(magic=1), begin(kind=1), begin(kind=9), begin(header=0), begin(header=3), begin(header=2, payload=1 << 30), b"\1" * 312, b"\0" * 312,
        compound(xdr({"tosnap": "a"})), compound(packed({"not_recursive": True})), begin(kind=0),
        compound(b"\1\1\0\0" + b"\xff" * 40), compound(b""), compound(inner=begin(name="tank/p/child@a")), compound(inner=begin(header=2)),
        compound(inner=end()), begin(header=2, payload=len(SINGLE)) + SINGLE + begin() + begin(),
    ],
)  # fmt: skip
def test_another_is_refused(whole: bytes) -> None:
    with pytest.raises(GateRefusal):
        head_of(whole)


def head_of(whole: bytes) -> StreamHead:
    assert not missing_bytes(whole)
    return parse_head(whole)


def test_a_flag_within_another_list_or_twice_is_none() -> None:
    flag = SINGLE[12:-8][-36:]
    for listed in (SINGLE[:-8] + flag + SINGLE[-8:], xdr({"x": "not_recursive"})):
        with pytest.raises(GateRefusal):
            parse_head(compound(listed))


@pytest.mark.parametrize(("parent", "passes"), [(0, True), (1, False), (2**63, False)])
def test_a_list_with_a_parent_is_refused(parent: int, passes: bool) -> None:
    """By its guid zfs would look for a parent that is not there."""
    listed = xdr({"tosnap": "a", "not_recursive": True, "parentfromsnap": parent})
    if passes:
        assert parse_head(compound(listed)).kind is DatasetType.FILESYSTEM
    else:
        with pytest.raises(GateRefusal, match="with a parent"):
            parse_head(compound(listed))


def test_the_newest_of_several_snapshots_is_named_before_them() -> None:
    several = begin(header=2, kind=0, payload=len(SINGLE), name="tank/p@z z") + SINGLE + end() + begin(name="tank/p@b")
    assert parse_head(several).newest == b"z z"


@given(st.binary(min_size=312, max_size=2000))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    for whole in (data, begin(header=2, payload=len(data)) + data + end() + begin()):
        try:
            if not missing_bytes(whole):
                parse_head(whole)
        except GateRefusal:
            continue
