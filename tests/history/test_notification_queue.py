"""Test that what channels were told comes back as it was; a message is sent by one process, and pings tell the newest alone."""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from orchestrator.domain.notice import Message, NoticeType
from orchestrator.history.notification_queue import NotifiedRecord
from orchestrator.history.store import History, open_history
from orchestrator.history.views import open_reader
from tests.history.records import NOON, ODD, later

TOLD = NotifiedRecord(
    job=ODD, target="backup", begun_at=NOON, notified_at=later(hours=1), reminders=2, causes=(ODD, "late"), unsteady=True,
    well_since=later(hours=2), earlier=(later(days=-3), later(days=-1)),
)  # fmt: skip


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


def message(kind: NoticeType = NoticeType.TROUBLE, about: str = "photos", subject: str = "photos is late") -> Message:
    return Message(kind=kind, about=about, made_at=NOON, subject=subject, body=f"{ODD}\n", facts='{"format": 1}')


def test_what_was_told_comes_back(history: History) -> None:
    notifications, bare = history.notifications, NotifiedRecord(job="mails", target="backup")
    for told in (TOLD, bare):
        notifications.keep_told("me", told)
    assert set(notifications.told("me")) == {TOLD, bare}
    assert notifications.told("you") == ()
    ended = NotifiedRecord(job=ODD, target="backup", earlier=(NOON,))
    notifications.keep_told("me", ended)
    notifications.forget_told("me", "mails", "backup")
    assert notifications.told("me") == (ended,)


def test_a_message_waits_until_it_is_sent(history: History, tmp_path: Path) -> None:
    notifications = history.notifications
    number = notifications.queue("me", message())
    (found,) = notifications.due(NOON)
    assert (found.id, found.channel, found.message, found.tries) == (number, "me", message(), 0)
    assert notifications.due(later(seconds=-1)) == ()
    notifications.sent(number, later(seconds=5))
    assert notifications.due(later(days=1)) == notifications.queued() == ()
    with open_reader(str(tmp_path / "history.sqlite")) as views:
        (told,) = views.notifications.messages(20)
    assert (told.sent_at, told.due_at, told.error) == (later(seconds=5), None, None)


def test_one_process_alone_claims_a_message(history: History) -> None:
    notifications = history.notifications
    notifications.queue("me", message())
    (found,) = notifications.due(NOON)
    assert [notifications.claim(found, later(minutes=2)) for _ in range(2)] == [True, False]
    assert notifications.due(later(minutes=1)) == notifications.due(later(minutes=1), eagerly=True) == ()
    assert [each.tries for each in notifications.due(later(minutes=2))] == [1]


def test_a_failed_message_comes_again_or_is_given_up(history: History) -> None:
    notifications = history.notifications
    number = notifications.queue("me", message())
    notifications.failed(number, f"no {ODD}", later(minutes=5))
    assert notifications.due(later(minutes=4)) == ()
    assert [each.id for each in notifications.due(later(minutes=4), eagerly=True)] == [number]
    assert [each.error for each in notifications.due(later(minutes=5))] == [f"no {ODD}"]
    notifications.failed(number, "still not", None)
    assert notifications.queued() == ()
    assert notifications.messages(1)[0].sent_at is None


def test_a_clock_that_was_ahead_puts_nothing_off(history: History) -> None:
    notifications = history.notifications
    number = notifications.queue("me", message())
    notifications.failed(number, "x", later(days=3650))
    assert [each.id for each in notifications.due(NOON)] == [number]


def test_a_ping_takes_the_place_of_older_ones_of_its_job(history: History) -> None:
    notifications = history.notifications
    notifications.queue("hc", message(NoticeType.FAIL))
    notifications.queue("hc", message(NoticeType.SUCCESS, about="mails"))
    notifications.queue("me", message())
    notifications.queue("hc", message(NoticeType.SUCCESS))
    kinds = [(each.channel, each.message.kind, each.message.about) for each in notifications.queued()]
    assert sorted(kinds) == [
        ("hc", NoticeType.SUCCESS, "mails"), ("hc", NoticeType.SUCCESS, "photos"), ("me", NoticeType.TROUBLE, "photos"),
    ]  # fmt: skip


def test_the_last_of_its_kind_is_found(history: History) -> None:
    notifications = history.notifications
    assert notifications.last("hc", "all jobs", NoticeType.PROTECTED) is None
    notifications.queue("hc", message(NoticeType.PROTECTED, about="all jobs", subject="first"))
    notifications.queue("hc", message(NoticeType.PROTECTED, about="all jobs", subject="second"))
    found = notifications.last("hc", "all jobs", NoticeType.PROTECTED)
    assert found is not None
    assert found.message.subject == "second"
    assert notifications.last("hc", "all jobs", NoticeType.UNPROTECTED) is None


def test_the_day_of_the_last_digest(history: History) -> None:
    notifications = history.notifications
    assert notifications.digest("me") is None
    for day in (date(2026, 11, 16), date(2026, 11, 16) + timedelta(days=7)):
        notifications.keep_digest("me", day)
        assert notifications.digest("me") == day
