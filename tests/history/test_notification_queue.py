"""What channels were told comes back as it was; a message is sent by one process, and pings tell the newest alone."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from orchestrator.domain.notice import Kind, Message
from orchestrator.history.notification_queue import ToldRecord
from orchestrator.history.store import History, open_history
from orchestrator.history.views import open_reader
from tests.history.records import NOON, ODD, later

TOLD = ToldRecord(
    job=ODD, target="backup", begun_at=NOON, told_at=later(hours=1), reminders=2, causes=(ODD, "late"), unsteady=True,
    well_since=later(hours=2), earlier=(later(days=-3), later(days=-1)),
)  # fmt: skip


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


def message(kind: Kind = Kind.TROUBLE, about: str = "photos", subject: str = "photos is late") -> Message:
    return Message(kind=kind, about=about, made_at=NOON, subject=subject, body=f"{ODD}\n", facts='{"format": 1}')


def test_what_was_told_comes_back(history: History) -> None:
    telling, bare = history.telling, ToldRecord(job="mails", target="backup")
    for told in (TOLD, bare):
        telling.keep_told("me", told)
    assert set(telling.told("me")) == {TOLD, bare}
    assert telling.told("you") == ()
    ended = ToldRecord(job=ODD, target="backup", earlier=(NOON,))
    telling.keep_told("me", ended)
    telling.forget_told("me", "mails", "backup")
    assert telling.told("me") == (ended,)


def test_a_message_waits_until_it_is_sent(history: History, tmp_path: Path) -> None:
    telling = history.telling
    number = telling.queue("me", message())
    (found,) = telling.due(NOON)
    assert (found.id, found.channel, found.message, found.tries) == (number, "me", message(), 0)
    assert telling.due(later(seconds=-1)) == ()
    telling.sent(number, later(seconds=5))
    assert telling.due(later(days=1)) == telling.queued() == ()
    with open_reader(str(tmp_path / "history.sqlite")) as views:
        (told,) = views.telling.messages(20)
    assert (told.sent_at, told.due_at, told.error) == (later(seconds=5), None, None)


def test_one_process_alone_claims_a_message(history: History) -> None:
    telling = history.telling
    telling.queue("me", message())
    (found,) = telling.due(NOON)
    assert [telling.claim(found, later(minutes=2)) for _ in range(2)] == [True, False]
    assert telling.due(later(minutes=1)) == telling.due(later(minutes=1), eagerly=True) == ()
    assert [each.tries for each in telling.due(later(minutes=2))] == [1]


def test_a_failed_message_comes_again_or_is_given_up(history: History) -> None:
    telling = history.telling
    number = telling.queue("me", message())
    telling.failed(number, f"no {ODD}", later(minutes=5))
    assert telling.due(later(minutes=4)) == ()
    assert [each.id for each in telling.due(later(minutes=4), eagerly=True)] == [number]
    assert [each.error for each in telling.due(later(minutes=5))] == [f"no {ODD}"]
    telling.failed(number, "still not", None)
    assert telling.queued() == ()
    assert telling.messages(1)[0].sent_at is None


def test_a_clock_that_was_ahead_puts_nothing_off(history: History) -> None:
    telling = history.telling
    number = telling.queue("me", message())
    telling.failed(number, "x", later(days=3650))
    assert [each.id for each in telling.due(NOON)] == [number]


def test_a_ping_takes_the_place_of_older_ones_of_its_job(history: History) -> None:
    telling = history.telling
    telling.queue("hc", message(Kind.FAIL))
    telling.queue("hc", message(Kind.SUCCESS, about="mails"))
    telling.queue("me", message())
    telling.queue("hc", message(Kind.SUCCESS))
    kinds = [(each.channel, each.message.kind, each.message.about) for each in telling.queued()]
    assert sorted(kinds) == [
        ("hc", Kind.SUCCESS, "mails"), ("hc", Kind.SUCCESS, "photos"), ("me", Kind.TROUBLE, "photos"),
    ]  # fmt: skip


def test_the_last_of_its_kind_is_found(history: History) -> None:
    telling = history.telling
    assert telling.last("hc", "all jobs", Kind.PROTECTED) is None
    telling.queue("hc", message(Kind.PROTECTED, about="all jobs", subject="first"))
    telling.queue("hc", message(Kind.PROTECTED, about="all jobs", subject="second"))
    found = telling.last("hc", "all jobs", Kind.PROTECTED)
    assert found is not None
    assert found.message.subject == "second"
    assert telling.last("hc", "all jobs", Kind.UNPROTECTED) is None


def test_the_day_of_the_last_digest(history: History) -> None:
    telling = history.telling
    assert telling.digest("me") is None
    for day in (date(2026, 11, 16), date(2026, 11, 16) + timedelta(days=7)):
        telling.keep_digest("me", day)
        assert telling.digest("me") == day
