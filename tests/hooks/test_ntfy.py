"""ntfy: what arrives at a topic, and what happens when the server is ill."""

import base64
import socket
from pathlib import Path
from typing import Any

import pytest

EVIL = 'it\'s "bad"\r\nPriority: 5\r\n\r\nHTTP/1.1 $(id)\x1b[2J'


def test_a_failure_arrives_with_title_priority_tag_and_numbers(hook: Any, web: Any) -> None:
    end = hook(
        "ntfy", f"{web.url}/backups", event="failed", why="no space left", moved_bytes="1610612736", seconds="3720.4"
    )
    assert (end.returncode, end.stderr) == (0, "")
    ((method, path, headers, body),) = web.requests
    assert (method, path) == ("POST", "/backups")
    assert (headers["Title"], headers["Priority"], headers["Tags"]) == ("photos: failed", "4", "rotating_light")
    assert body == "no space left\n1.5 GiB in 1 h 02 min"
    assert "Authorization" not in headers


def test_unknown_numbers_are_left_out_not_told_as_zero(hook: Any, web: Any) -> None:
    hook("ntfy", f"{web.url}/t", event="waiting", why="disk red is away", moved_bytes="", seconds="")
    assert web.requests[0][3] == "disk red is away"


def test_every_event_has_its_own_looks(hook: Any, web: Any) -> None:
    run = ("before", "done", "nothing-to-do", "waiting", "refused", "failed", "interrupted")
    events = (*run, "late", "disk-arrived", "disk-safe", "disk-overdue")
    for event in events:
        assert hook("ntfy", f"{web.url}/t", event=event).returncode == 0
    assert len({headers["Tags"] for *_, headers, _ in web.requests}) == len(events)
    loud = {event for event, request in zip(events, web.requests, strict=True) if request[2]["Priority"] >= "4"}
    assert loud == {"refused", "failed", "interrupted", "late", "disk-overdue"}


def test_newlines_and_quotes_forge_no_header(hook: Any, web: Any) -> None:
    assert hook("ntfy", f"{web.url}/t", event="done", job=EVIL, why=EVIL).returncode == 0
    ((_, _, headers, body),) = web.requests
    assert headers["Priority"] == "2"
    assert headers["Title"].startswith('it\'s "bad" Priority: 5 HTTP/1.1 $(id)')
    assert "\x1b" not in body
    assert "\n" not in body


def test_names_that_are_not_ascii_or_not_even_text_arrive(hook: Any, web: Any) -> None:
    hook("ntfy", f"{web.url}/t", event="done", job="Müllers Bilder", why="caf\udce9.jpg changed")
    ((_, _, headers, body),) = web.requests
    coded = headers["Title"].removeprefix("=?UTF-8?B?").removesuffix("?=")
    assert base64.b64decode(coded).decode() == "Müllers Bilder: done"
    assert body == "caf\N{REPLACEMENT CHARACTER}.jpg changed"


def test_a_long_reason_stays_a_message(hook: Any, web: Any) -> None:
    hook("ntfy", f"{web.url}/t", event="failed", why="é" * 5000)
    assert 2900 < len(web.requests[0][3].encode()) < 4096


def test_the_token_comes_from_a_file_or_a_credential(hook: Any, web: Any, tmp_path: Path) -> None:
    (tmp_path / "ntfy-token").write_text("tk_secret\n")
    for name, folder in ((str(tmp_path / "ntfy-token"), None), ("ntfy-token", tmp_path)):
        assert hook("ntfy", f"{web.url}/t", "--token-file", name, event="done", credentials=folder).returncode == 0
        assert web.requests.pop()[2]["Authorization"] == "Bearer tk_secret"


def test_the_topic_may_stand_in_a_file_and_is_never_shown(hook: Any, web: Any, tmp_path: Path) -> None:
    (tmp_path / "topic").write_text(f"{web.url}/s3cret\n")
    web.answers = [404]
    end = hook("ntfy", f"@{tmp_path / 'topic'}", event="done")
    assert (end.returncode, web.requests[0][1]) == (1, "/s3cret")
    assert end.stderr == "not delivered: 127.0.0.1: HTTP 404 Not Found\n"


def test_trouble_of_the_server_is_tried_again_a_refusal_is_not(hook: Any, web: Any) -> None:
    web.answers = [503, 429]
    assert hook("ntfy", f"{web.url}/t", event="done").returncode == 0
    assert len(web.requests) == 3
    web.requests.clear()
    web.answers = [403]
    end = hook("ntfy", f"{web.url}/t", event="done")
    assert (end.returncode, len(web.requests)) == (1, 1)
    assert "HTTP 403 Forbidden" in end.stderr


def test_a_redirect_is_not_followed_with_the_token(hook: Any, web: Any, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("tk_secret")
    web.answers = [302]
    end = hook("ntfy", f"{web.url}/t", "--token-file", str(tmp_path / "token"), event="done")
    assert (end.returncode, [path for _, path, *_ in web.requests]) == (1, ["/t"])
    assert "HTTP 302" in end.stderr


@pytest.mark.parametrize("illness", ["hang", "dribble"])
def test_a_server_that_hangs_ends_the_hook_in_time(hook: Any, web: Any, illness: str) -> None:
    web.answers = [illness]
    end = hook("ntfy", f"{web.url}/t", "--timeout", "1", "--tries", "1", event="done")
    assert end.returncode == 1
    assert "timed out" in end.stderr or "gave up after 3 s" in end.stderr


def test_no_server_is_an_error_but_stops_no_run_from_beginning(hook: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}/t"
    after, before = (hook("ntfy", nobody, "--tries", "1", event=event) for event in ("failed", "before"))
    assert (after.returncode, before.returncode) == (1, 0)
    assert "Connection refused" in after.stderr
    assert "Connection refused" in before.stderr


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("file:///etc/passwd",),
        ("http://h/a b",),
        ("@/nonexistent",),
        ("http://h/t", "--token-file", "/nonexistent"),
    ],
)
def test_wrong_usage_is_2_also_before_a_run(hook: Any, argv: tuple[str, ...]) -> None:
    end = hook("ntfy", *argv, event="before")
    assert end.returncode == 2
    assert "usage: ntfy" in end.stderr
    assert "Traceback" not in end.stderr
