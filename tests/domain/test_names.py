"""Names of others as they are shown: nothing in them is obeyed by a terminal, and nothing is lost."""

import sys
import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.errors import ConfigMistake
from orchestrator.domain.names import (
    check_zfs_names,
    is_set_aside,
    make_printable,
    parse_name,
    printable_word,
    set_aside_name,
    show_name,
)

OBEYED = ("Cc", "Cf", "Zl", "Zp", "Cs")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("invoice\u202efdp.exe", "invoice\\u202efdp.exe"),
        ("a\u2066b\u2069", "a\\u2066b\\u2069"),
        ("\u200e\u200f\ufeff\u200b", "\\u200e\\u200f\\ufeff\\u200b"),
        ("\U000e0041", "\\U000e0041"),
        ("日本\u3000語 😀", "日本\u3000語 😀"),
    ],
)
def test_controls_of_direction_are_written_out(name: str, shown: str) -> None:
    assert show_name(name) == shown
    assert parse_name(shown) == name.encode()


def test_every_control_and_format_character_is_written_out() -> None:
    every = (chr(code) for code in range(sys.maxunicode + 1))
    obeyed = [one for one in every if unicodedata.category(one) in OBEYED and not "\ud800" <= one < "\udc80"]
    obeyed = [one for one in obeyed if one < "\udd00" or one > "\udfff"]
    assert [one for one in obeyed if not show_name(one).isprintable()] == []
    assert [one for one in obeyed if not printable_word(one).isprintable()] == []
    assert [one for one in obeyed if one not in "\t\n" and not make_printable(one).isprintable()] == []


@given(st.binary())
def test_a_shown_name_is_read_back_and_holds_nothing_that_is_obeyed(name: bytes) -> None:
    shown = show_name(name)
    assert parse_name(shown) == name
    assert not [char for char in shown if unicodedata.category(char) in OBEYED]


def test_a_job_file_with_a_line_end_in_its_name_is_told_on_one_line() -> None:
    mistake = ConfigMistake(file="jobs/a\nall is well\u202e.toml", line=3, key="source", what="missing", expected="")
    assert str(mistake) == "jobs/a\\nall is well\\u202e.toml:3: source: missing"


def test_what_zfs_allows_in_a_name_is_all_that_a_host_may_answer() -> None:
    check_zfs_names(("tank/photos@autosnap_2026-11-25_01:00:00_daily", "tank/my photos#mark"))
    with pytest.raises(ValueError, match=r"a name that no dataset or snapshot can have: it holds \$\(\)"):
        check_zfs_names(("tank/a", "tank/$(id)"))


def test_a_name_that_aside_gave_is_known_as_one() -> None:
    given = set_aside_name("tank/my photos", datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC))
    assert given == "tank/my photos_aside_2026-03-04T050607Z"
    assert is_set_aside(given)
    assert is_set_aside(f"{given}_aside_2026-03-05T050607Z")
    for other in (f"{given}/below", "tank/photos", "tank/photos_aside", "tank/_aside_2026-03-04T050607Z", f"{given}x"):
        assert not is_set_aside(other), other
