"""Wording: instants, tables, what a terminal would obey."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.names import make_printable
from orchestrator.views import format as text
from orchestrator.views.run_report import reason_lines

NOON = datetime(2026, 7, 15, 10, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A time zone two hours before UTC in summer, one in winter."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("instant", "shown"),
    [
        (NOON, "today 12:00"),
        (NOON - timedelta(hours=12), "today 00:00"),
        (NOON - timedelta(hours=12, minutes=1), "yesterday 23:59"),
        (NOON - timedelta(days=2), "2026-07-13 12:00"),
        (NOON + timedelta(days=1), "2026-07-16 12:00"),
        (datetime(2026, 1, 15, 10, 0, tzinfo=UTC), "2026-01-15 11:00"),
        (None, "unknown"),
    ],
)
def test_people_read_their_own_clock(instant: datetime | None, shown: str) -> None:
    assert text.format_clock(instant, now=NOON) == shown


def test_machines_read_utc() -> None:
    assert text.format_iso(NOON) == "2026-07-15T10:00:00Z"
    assert text.format_iso(NOON.astimezone()) == "2026-07-15T10:00:00Z"
    assert text.format_iso(None) is None


@pytest.mark.parametrize(
    ("told", "instant"),
    [
        ("2026-07-15 12:00", NOON),
        ("2026-07-15T12:00:00", NOON),
        ("2026-07-15T10:00:00Z", NOON),
        ("2026-07-15T10:00:00+00:00", NOON),
        ("2026-07-15T100000Z", NOON),
        ("2026-07-15", datetime(2026, 7, 15, 21, 59, 59, tzinfo=UTC)),
        ("2026-01-15 12:00", datetime(2026, 1, 15, 11, 0, tzinfo=UTC)),
    ],
)
def test_an_instant_as_people_write_it(told: str, instant: datetime) -> None:
    assert text.parse_instant(told) == instant


@pytest.mark.parametrize("told", ["", "noon", "2026-13-01", "25:00", "15.7.2026"])
def test_what_is_no_instant(told: str) -> None:
    with pytest.raises(ValueError, match="a time such as"):
        text.parse_instant(told)


def test_an_age_after_now_is_no_age() -> None:
    assert text.format_ago(NOON - timedelta(hours=3), now=NOON) == "3 h ago"
    assert text.format_ago(NOON + timedelta(hours=3), now=NOON) == "3 h after now"
    assert text.format_ago(None, now=NOON) == "never"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain äöü → text", "plain äöü → text"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\tb\nc", "a\tb\nc"),
        ("over\rwrite", "over\\x0dwrite"),
        (b"caf\xe9".decode("utf-8", "surrogateescape"), "caf\\xe9"),
        ("\x9b2J", "\\x9b2J"),
        ("\u2028", "\\u2028"),
        ("gpj.\u202efdp", "gpj.\\u202efdp"),
        ("a\u2066b\u200fc\ufeffd\u200be\xad", "a\\u2066b\\u200fc\\ufeffd\\u200be\\xad"),
        ("\U000e0041", "\\U000e0041"),
        ("C:\\new", "C:\\new"),
    ],
)
def test_a_terminal_obeys_nothing(raw: str, shown: str) -> None:
    assert make_printable(raw) == shown


def test_a_table_lines_up_and_shows_no_escape() -> None:
    rows = text.format_table(
        ("A", "NUMBER", "LAST"), [("x\x1b", "7", "the end"), ("longer", "123", "e")], right=frozenset({"NUMBER"})
    )
    assert ["  ".join(row) for row in rows] == [
        "A       NUMBER  LAST",
        "x\\x1b        7  the end",
        "longer     123  e",
    ]


@pytest.mark.parametrize(
    ("instant", "shown"),
    [
        (NOON, "today 12:00"),
        (NOON - timedelta(hours=13), "Tue 23:00"),
        (NOON + timedelta(days=6), "Tue 12:00"),
        (NOON + timedelta(days=7), "2026-07-22"),
        (NOON - timedelta(days=7), "2026-07-08"),
        (None, "unknown"),
    ],
)
def test_an_instant_in_a_narrow_column(instant: datetime | None, shown: str) -> None:
    assert text.format_brief(instant, now=NOON) == shown


def test_a_refusal_argues_before_it_advises() -> None:
    assert reason_lines("head", hint="mend it", evidence=("a", "b"), evidence_first=True) == [
        "head",
        "  a",
        "  b",
        "  what to do: mend it",
    ]
    assert reason_lines("head", hint="mend it", evidence=("a\nb", "")) == [
        "head",
        "  what to do: mend it",
        "  a\\nb",
    ]
