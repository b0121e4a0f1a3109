"""Packed lists of strangers: names as zfs reads them, or an error; never two readings of one list."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engines.zfs.survey.packed_list import pair_names
from orchestrator.engines.zfs.survey.resume_token import unpack
from tests.engines.zfs.survey.token_maker import PAIRS, packed, xdr


@given(PAIRS, st.sampled_from(["<", ">", "xdr"]))
def test_the_names_of_all_pairs(pairs: dict[str, int | str | bool], order: str) -> None:
    plain = xdr(pairs) if order == "xdr" else packed(pairs, order)
    assert pair_names(plain) == tuple(pairs)


def xdr_pair(name: bytes, kind: int, count: int, value: bytes) -> bytes:
    rest = len(name).to_bytes(4, "big") + name.ljust((len(name) + 3) // 4 * 4, b"\0")
    rest += kind.to_bytes(4, "big") + count.to_bytes(4, "big") + value
    return (len(rest) + 8).to_bytes(4, "big") + b"\0\0\0\1" + rest


HEAD, END = b"\1\1\0\0" + b"\0" * 8, b"\0" * 8
LIST = b"\0" * 8 + xdr_pair(b"inner", 8, 1, b"\0" * 8) + END


def test_values_of_each_kind_and_lists_in_lists() -> None:
    pairs = [
        xdr_pair(b"number", 8, 1, b"\0" * 8), xdr_pair(b"flag", 1, 0, b""), xdr_pair(b"word", 9, 1, b"\0\0\0\1x\0\0\0"),
        xdr_pair(b"bytes", 10, 5, b"12345\0\0\0"), xdr_pair(b"small", 26, 2, b"\0\0\0\2" + b"\0" * 8),
        xdr_pair(b"large", 16, 2, b"\0\0\0\2" + b"\0" * 16), xdr_pair(b"words", 17, 2, b"\0\0\0\1x\0\0\0\0\0\0\0"),
        xdr_pair(b"list", 19, 1, LIST), xdr_pair(b"lists", 20, 2, LIST * 2),
    ]  # fmt: skip
    assert pair_names(HEAD + b"".join(pairs) + END) == (
        "number", "flag", "word", "bytes", "small", "large", "words", "list", "lists",
    )  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\7\1\0\0" + END * 2, HEAD, HEAD + b"\0\0\0\x10", HEAD + xdr_pair(b"a", 99, 1, b"\0" * 4) + END, HEAD + xdr_pair(b"a", 8, 1, b"\0" * 4) + END,
        HEAD + xdr_pair(b"a", 8, 1, b"\0" * 12) + END, HEAD + xdr_pair(b"a\0b", 1, 0, b"") + END, HEAD + xdr_pair(b"a", 16, 2, b"\0\0\0\1" + b"\0" * 8) + END,
        HEAD + xdr_pair(b"a", 20, 1 << 30, LIST) + END, HEAD + xdr_pair(b"a", 17, -1 & 0xFFFFFFFF, b"") + END, packed({"a": 1})[:-12],
        b"\0\1\0\0" + b"\0" * 8 + b"\x08\0\0\0" + b"\0" * 40,
    ],
)  # fmt: skip
def test_another_list_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        pair_names(data)


def test_lists_too_deep_are_refused() -> None:
    inner = END
    for _ in range(60):
        inner = xdr_pair(b"a", 19, 1, b"\0" * 8 + inner) + END
    with pytest.raises(ValueError, match="too deep"):
        pair_names(HEAD + inner)


@given(st.binary(max_size=400))
def test_no_bytes_make_it_fail_or_be_read_in_two_ways(data: bytes) -> None:
    for whole in (data, b"\0\1\0\0" + data, b"\1\1\0\0" + data):
        try:
            names = pair_names(whole)
        except ValueError:
            continue
        assert set(unpack(whole)) <= set(names)
