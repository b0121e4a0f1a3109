"""Whatever others answer, it is understood, or one error tells who said what."""

from datetime import UTC, datetime

import pytest

from orchestrator.domain.answers import (
    check_count,
    instant_at,
    open_sealed,
    parse_count,
    parse_guid,
    parse_instant,
    parse_json,
    seal_text,
    too_much,
    understand,
    unreadable,
)
from orchestrator.domain.errors import Evidence, UnreadableAnswer
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect

HERE = Command(argv=("look",), effect=Effect.READS)
FAR = Command(argv=("look",), effect=Effect.READS, host=Host(name="nas"))


def test_a_sealed_text_is_opened_only_as_it_was_written() -> None:
    sealed = seal_text("one\ntwo \udcff")
    assert open_sealed(sealed) == "one\ntwo \udcff"
    for bad in (sealed + " ", sealed[1:], "", "no digest"):
        with pytest.raises(ValueError, match="not as it was written"):
            open_sealed(bad)
    assert instant_at(0) == datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("told", ["0", "9223372036854775808", "18446744073709551615", b"18446744073709551615"])
def test_a_guid_has_all_of_64_bits(told: str | bytes) -> None:
    assert parse_guid(told) == int(told)


@pytest.mark.parametrize("told", ["", "-1", " 1", "1_0", "\u0661", "18446744073709551616", "9" * 400, b"+1"])
def test_what_no_guid_is_is_refused(told: str | bytes) -> None:
    with pytest.raises(ValueError, match="no guid: "):
        parse_guid(told)


def test_an_answer_is_parsed_or_its_beginning_is_shown_with_its_host() -> None:
    assert understand("find", HERE, b"7", parse_count) == 7
    with pytest.raises(UnreadableAnswer, match=r'what find on nas answered cannot be read: .*; it begins with "seven"'):
        understand("find", FAR, b"seven", parse_count)


def test_an_answer_of_more_parts_than_fit_in_memory_is_refused_before_it_is_split() -> None:
    with pytest.raises(UnreadableAnswer, match="more than 4000000 parts"):
        understand("find", HERE, b"\n" * 5_000_000, lambda said: said.split(b"\n"))
    assert understand("find", HERE, b"x" * 5_000_000, len) == 5_000_000


def test_silence_and_what_is_too_long_to_show_are_named() -> None:
    assert "; it said nothing" in unreadable("find", HERE, b"", ValueError("no line")).why
    assert unreadable("find", HERE, None, KeyError("x")).why == "what find answered cannot be read: KeyError: 'x'"
    evidence = Evidence(lines=("look",), exits=(None,), last_output=("",), host="nas")
    assert too_much("find", evidence).why == "find on nas said more than an answer may hold, so it was ended"
    assert too_much("find", evidence, "look there").hint == "look there"


def test_json_of_others_has_limits() -> None:
    assert parse_json(b'{"a": 1}') == {"a": 1}
    with pytest.raises(ValueError, match="more JSON"):
        parse_json(b" " * (16 << 20) + b"1")
    with pytest.raises(ValueError, match="nested too deep"):
        parse_json(b"[" * 200_000)


def test_numbers_and_instants_are_of_this_world() -> None:
    assert (parse_count("12"), check_count(-5)) == (12, -5)
    for text in ("9" * 21, "9" * 20):
        with pytest.raises(ValueError, match="not a number of this world"):
            parse_count(text)
    assert parse_instant("2026-11-25T09:00:00+01:00") == datetime(2026, 11, 25, 8, tzinfo=UTC)
    assert parse_instant("9999-12-31T00:00:00+00:00") == datetime(9000, 1, 1, tzinfo=UTC)
    with pytest.raises(ValueError, match="without a time zone"):
        parse_instant("2026-11-25T09:00:00")
