"""Resume tokens as OpenZFS 2.1 and 2.3 made them, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engines.zfs.model import ResumeToken, SendFlags
from orchestrator.engines.zfs.survey.resume_token import parse_token, unpack
from tests.engines.zfs.sides import FIRST, LATER
from tests.engines.zfs.survey.token_maker import PAIRS, packed, token, xdr

NO_FLAGS = SendFlags(large=False, compressed=False, embedded=False)


def test_a_first_send_that_was_cut() -> None:
    assert parse_token(FIRST) == ResumeToken(
        text=FIRST, to_guid=5502601365937541536, to_name="tank/p@a", from_guid=None, object=2, offset=4980736,
        bytes=5126536, flags=NO_FLAGS,
    )  # fmt: skip


def test_an_incremental_one_with_its_flags() -> None:
    """Against what `zfs send -nvP -t` told of it: fromguid 0x242ff20a074795c0, object 3, offset 0xbc0000, bytes 0xbe7db0."""
    told = parse_token(LATER)
    assert told is not None
    assert (told.from_guid, told.to_guid, told.to_name) == (0x242FF20A074795C0, 0xC849937581AA027C, "tank/p@b")
    assert (told.object, told.offset, told.bytes) == (3, 0xBC0000, 0xBE7DB0)
    assert told.flags == SendFlags(large=False)


@given(PAIRS, st.sampled_from(["<", ">", "xdr"]))
def test_every_token_is_read_in_each_encoding(pairs: dict[str, int | str | bool], order: str) -> None:
    plain = xdr(pairs) if order == "xdr" else packed(pairs, order)
    assert unpack(plain) == pairs
    told = parse_token(token(plain))
    assert told is not None
    assert (told.to_guid, told.to_name, told.from_guid) == (pairs["toguid"], pairs["toname"], pairs.get("fromguid"))
    assert (told.object, told.offset, told.bytes) == (pairs["object"], pairs["offset"], pairs.get("bytes", 0))
    assert told.flags == SendFlags(
        raw="rawok" in pairs,
        large="largeblockok" in pairs,
        compressed="compressok" in pairs,
        embedded="embedok" in pairs,
    )


WHOLE: dict[str, int | str | bool] = {"object": 1, "offset": 2, "toguid": 3, "toname": "t@a", "redact_snaps": 4}


def test_values_of_other_kinds_are_passed_over() -> None:
    plain = packed(WHOLE, kinds={"redact_snaps": 23})
    assert unpack(plain) == {name: value for name, value in WHOLE.items() if name != "redact_snaps"}
    assert parse_token(token(plain)) is not None


@pytest.mark.parametrize(
    "text",
    [
        "", "-", "1-2-3", "1-2-3-zz", "x-2-3-00", FIRST[:-1], FIRST.replace("87e3e8e3f", "87e3e8e3e"),
        FIRST.replace("-b8-", "-b9-"), "2" + FIRST[1:], token(packed(WHOLE), version=2), token(packed(WHOLE), length=1),
        token(packed(WHOLE), sum_off=1), token(packed({"object": 1, "offset": 2, "toguid": 3})), token(b"\0\1\0\0"),
        token(b"\7\1\0\0" + b"\0" * 20), token(b""), token(packed(WHOLE)[:40]),
        token(packed(WHOLE | {"toguid": "no number"})),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_none(text: str) -> None:
    assert parse_token(text) is None


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    assert parse_token(token(data)) is None or len(data) > 40


@given(st.text(max_size=60))
def test_no_text_makes_it_fail(text: str) -> None:
    assert parse_token(text) is None
