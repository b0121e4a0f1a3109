"""healthchecks: which signal each event sends, and that a sick monitor stops nothing."""

import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest

SIGNALS = {
    "before": "/start",
    "done": "",
    "nothing-to-do": "",
    "failed": "/fail",
    "refused": "/fail",
    "interrupted": "/fail",
    "waiting": "/log",
    "late": "/log",
    "disk-arrived": "/log",
    "disk-safe": "/log",
    "disk-overdue": "/log",
}


@pytest.mark.parametrize(("event", "signal"), SIGNALS.items())
def test_each_event_sends_its_signal(hook: Any, web: Any, event: str, signal: str) -> None:
    assert hook("healthchecks", f"{web.url}/ping/abc/", event=event, why="because", seconds="61").returncode == 0
    ((method, path, _, body),) = web.requests
    assert (method, urlsplit(path).path) == ("POST", f"/ping/abc{signal}")
    assert body == f"photos: {event.replace('-', ' ')}\nbecause\n1 min 01 s"


def test_start_and_end_of_one_run_carry_one_id_another_run_another(hook: Any, web: Any) -> None:
    for event, run in (("before", "17"), ("done", "17"), ("before", "18")):
        hook("healthchecks", f"{web.url}/ping/abc?create=1", event=event, run=run)
    queries = [parse_qs(urlsplit(path).query) for _, path, *_ in web.requests]
    start, end, other = (str(UUID(query["rid"][0])) for query in queries)
    assert start == end != other
    assert all(query["create"] == ["1"] for query in queries)


def test_the_address_may_stand_in_a_credential(hook: Any, web: Any, tmp_path: Path) -> None:
    (tmp_path / "photos-ping").write_text(f"{web.url}/ping/abc\n")
    assert hook("healthchecks", "@photos-ping", event="done", credentials=tmp_path).returncode == 0
    assert urlsplit(web.requests[0][1]).path == "/ping/abc"


def test_newlines_in_a_reason_change_nothing_but_the_body(hook: Any, web: Any) -> None:
    evil = "a\r\nHost: evil\n\n'\"\x00"[:-1]
    assert hook("healthchecks", f"{web.url}/ping/abc", event="failed", why=evil, job=evil, run=evil).returncode == 0
    ((_, path, headers, body),) = web.requests
    assert urlsplit(path).path == "/ping/abc/fail"
    assert headers["Host"] in web.url
    assert body.splitlines() == ["a Host: evil '\": failed", "a Host: evil '\""]


def test_a_monitor_that_hangs_or_fails_stops_no_run(hook: Any, web: Any) -> None:
    web.answers = ["hang", 500]
    begun = time.monotonic()
    end = hook("healthchecks", f"{web.url}/ping/abc", "--timeout", "1", "--tries", "2", event="before")
    assert (end.returncode, len(web.requests)) == (0, 2)
    assert "HTTP 500" in end.stderr
    assert time.monotonic() - begun < 10


def test_a_lost_ping_at_the_end_is_recorded_as_an_error(hook: Any, web: Any) -> None:
    web.answers = [404]
    end = hook("healthchecks", f"{web.url}/ping/abc", event="done")
    assert (end.returncode, len(web.requests)) == (1, 1)
    assert "abc" not in end.stderr
