"""A note of progress comes back as it was; anything else is none."""

import json
from datetime import UTC, datetime

import pytest

from orchestrator.domain.run_progress import RunProgress, parse_progress_note, progress_value

NOW = datetime(2026, 11, 25, 2, 30, tzinfo=UTC)
WHOLE = RunProgress(run=3, done=50, expected=100, rate=10, left_s=5.0, at=NOW)
UNKNOWN = RunProgress(run=3, done=50, expected=None, rate=None, left_s=None, at=NOW)
WAITS = RunProgress(run=3, done=0, expected=None, rate=None, left_s=None, at=NOW, waits="waits for the permit lab")


@pytest.mark.parametrize("found", [WHOLE, UNKNOWN, WAITS])
def test_it_comes_back(found: RunProgress) -> None:
    assert parse_progress_note(json.dumps(progress_value(found)).encode()) == found


@pytest.mark.parametrize("wrong", [b"", b"[]", b"{}", b"\xff", b"[" * 5000])
def test_what_is_no_note_is_none(wrong: bytes) -> None:
    assert parse_progress_note(wrong) is None


@pytest.mark.parametrize("key", ["run", "done_bytes", "expected_bytes", "bytes_per_s", "left_s", "at"])
@pytest.mark.parametrize("value", [-1, "x", [], 1e999, True, {}])
def test_each_value_is_looked_at(key: str, value: object) -> None:
    text = json.dumps(progress_value(WHOLE) | {key: value}).encode()
    assert parse_progress_note(text) is None


def test_what_a_run_waits_for_is_one_line_of_text() -> None:
    told = progress_value(WAITS)
    assert parse_progress_note(json.dumps(told | {"waits": 7}).encode()) is None
    found = parse_progress_note(json.dumps(told | {"waits": "a\nb"}).encode())
    assert found is not None
    assert "\n" not in found.waits
