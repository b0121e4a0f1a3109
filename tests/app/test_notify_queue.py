"""A channel that does not get through harms no run, and gets it later; several processes tell it once."""

import subprocess
import time
from contextlib import AbstractContextManager
from datetime import timedelta

import pytest

from orchestrator import compose
from orchestrator.app import notify_queue as delivering
from orchestrator.history.store import History
from tests.app.notices import Sick, by_mail, by_ntfy, declare, look, notices, states
from tests.ferry import COMMAND, Ferry
from tests.peers import MailServer, WebPeer


def test_a_sick_channel_harms_no_run_and_gets_it_later(ferry: Ferry, server: MailServer, web: WebPeer) -> None:
    job = Sick(ferry)
    declare(ferry, by_ntfy(web), by_mail(server))
    web.answers = [503, 503]
    ended = ferry.run("run", "photos")
    job.mark.touch()
    ended = ferry.run("run", "photos")
    assert ended.code == 1
    assert "the notice to phone was not delivered: 127.0.0.1: HTTP 503 Service Unavailable; again in 1 min" in ended.err
    assert len(server.letters) == 1
    assert states(ferry) == [("phone", "trouble", "queued"), ("me", "trouble", "delivered")]
    assert ferry.run("run", "photos").err == ""
    assert len(web.requests) == 1, "a minute has not passed"
    look(ferry, compose.now() + timedelta(minutes=2))
    look(ferry, compose.now() + timedelta(minutes=4))
    assert len(web.requests) == 2, "five minutes have not passed"
    look(ferry, compose.now() + timedelta(minutes=8))
    assert [each["tries"] for each in notices(ferry)] == [3, 1]
    assert states(ferry)[0] == ("phone", "trouble", "delivered")
    assert len(server.letters) == 1


def test_what_nobody_takes_for_a_week_is_given_up_and_said(ferry: Ferry, web: WebPeer) -> None:
    job = Sick(ferry)
    declare(ferry, by_ntfy(web, more='states = ["failing"]\ndigest = false\n'))
    web.answers = [500] * 99
    job.run(sick=True)
    said = look(ferry, compose.now() + timedelta(days=7, hours=1), within=60)
    assert [line.rpartition("; ")[2] for line in said] == ["given up"]
    told = ferry.run("notices").out
    assert "given up: poolferry on" in told
    assert "HTTP 500" in told


def test_channels_that_hang_cost_a_run_seconds_at_most(ferry: Ferry, web: WebPeer) -> None:
    job = Sick(ferry)
    job.run(sick=True)
    declare(ferry, *(by_ntfy(web, f"phone{number}") for number in range(4)))
    web.answers = ["hang"] * 9
    begun = time.monotonic()
    said = look(ferry, compose.now())
    assert time.monotonic() - begun < 14, "one takes 8 s, the next the rest of the 10"
    assert len(said) == len(web.requests) == 2
    assert [state for *_, state in states(ferry)] == ["queued"] * 4


def test_mistakes_in_the_file_are_said_and_stop_no_run(ferry: Ferry) -> None:
    ferry.job()
    declare(ferry, '[notice.me]\nkind = "mial"\n')
    ended = ferry.run("run", "photos")
    assert ended.code == 0
    assert 'notice.me.kind: "mial" does not fit, expected "mail", the nearest name (no notice is sent' in ended.err
    assert ferry.run("check").code == 2


def test_a_history_that_cannot_be_written_raises_nothing(ferry: Ferry, server: MailServer) -> None:
    ferry.job()
    declare(ferry, by_mail(server))
    ferry.state.mkdir()
    (ferry.state / "history.sqlite").write_bytes(b"no database, but long enough to look like a file" * 99)
    (line,) = look(ferry, compose.now())
    assert line.startswith("notices: the history ")


def test_eight_processes_at_once_tell_it_once(ferry: Ferry, server: MailServer) -> None:
    job = Sick(ferry)
    job.run(sick=True)
    declare(ferry, by_mail(server))
    many = [
        subprocess.Popen([*COMMAND, "notices", "send"], env=ferry.variables(), stdout=subprocess.DEVNULL)
        for _ in range(8)
    ]
    assert [each.wait(60) for each in many] == [0] * 8
    assert len(server.letters) == 1


def test_what_another_process_told_between_look_and_deed_is_not_told_again(
    ferry: Ferry, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Sick(ferry)
    job.run(sick=True)
    declare(ferry, by_mail(server))
    real, now = History.together, compose.now()

    def overtaken(history: History) -> AbstractContextManager[None]:
        monkeypatch.setattr(History, "together", real)
        look(ferry, now)
        return real(history)

    monkeypatch.setattr(History, "together", overtaken)
    look(ferry, now)
    assert len(server.letters) == 1


def test_a_process_killed_while_it_sends_leaves_the_message_to_the_next(ferry: Ferry, web: WebPeer) -> None:
    job = Sick(ferry)
    job.run(sick=True)
    declare(ferry, by_ntfy(web))
    web.answers = ["hang"]
    sender = subprocess.Popen([*COMMAND, "notices", "send"], env=ferry.variables(), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 30
    while not web.requests and time.monotonic() < deadline:
        time.sleep(0.02)
    sender.kill()
    sender.wait()
    look(ferry, compose.now())
    assert len(web.requests) == 1, "it is claimed: the sender may still be at it"
    look(ferry, compose.now() + delivering.LEASE + timedelta(seconds=1))
    assert len(web.requests) == 2
    assert states(ferry) == [("phone", "trouble", "delivered")]
