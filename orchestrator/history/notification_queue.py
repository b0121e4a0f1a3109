"""Notices in the history: the last notice of each channel, and the messages that wait for delivery."""

from datetime import date, datetime, timedelta

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.notice import PING_TYPES, Message, MessageRecord, NoticeType
from orchestrator.history.columns import from_microseconds, to_microseconds
from orchestrator.history.database import Database, Row, decode_list, encode_list, parse_stored

_FIRST_YEAR = 1969
_LONGEST_WAIT = timedelta(hours=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifiedRecord:
    """A channel's last notice about a job's copy at a place. `begun_at` None: no problem was reported, or it ended."""

    job: str
    target: str
    begun_at: datetime | None = None
    notified_at: datetime | None = None
    reminders: int = 0
    causes: tuple[str, ...] = ()
    unsteady: bool = False
    well_since: datetime | None = None
    earlier: tuple[datetime, ...] = ()


class NotificationQueue:
    """Records of notices. Every method raises HistoryError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def told(self, channel: str) -> tuple[NotifiedRecord, ...]:
        """Return the last notices of a channel, one for each copy."""
        return self._database.values("told", _notified_record, channel=channel)

    def keep_told(self, channel: str, told: NotifiedRecord) -> None:
        """Record the last notice of a channel about a copy."""
        self._database.change(
            "keep_told", channel=channel, job=told.job, target=told.target, begun=told.begun_at, told=told.notified_at,
            reminders=told.reminders, causes=encode_list(told.causes), unsteady=int(told.unsteady), well_since=told.well_since,
            earlier=encode_list(to_microseconds(begun) for begun in told.earlier),
        )  # fmt: skip

    def forget_told(self, channel: str, job: str, target: str) -> None:
        """Forget the notices about a copy that is no longer declared."""
        self._database.change("forget_told", channel=channel, job=job, target=target)

    def queue(self, channel: str, message: Message) -> int:
        """Queue a message and return its number. A ping replaces older ones of the same job."""
        with self._database.together():
            if message.kind in PING_TYPES:
                self._database.change("drop_pings", channel=channel, about=message.about)
            return self._database.add(
                "make_message", channel=channel, kind=message.kind, about=message.about, made=message.made_at,
                subject=message.subject, body=message.body, facts=message.facts,
            )  # fmt: skip

    def due(self, now: datetime, *, eagerly: bool = False) -> tuple[MessageRecord, ...]:
        """Return the messages to try now, those that wait longest first.

        `eagerly`: also those that wait for their next try, but none that another process is sending.
        """
        return tuple(each for each in self.queued() if not _is_ahead(each.held_at if eagerly else each.due_at, now))

    def queued(self) -> tuple[MessageRecord, ...]:
        """Return all messages that wait for delivery."""
        return self._database.values("messages_queued", _message)

    def claim(self, found: MessageRecord, until: datetime) -> bool:
        """Claim a message for this process until then; return False when another process has it."""
        return self._database.change("claim_message", message=found.id, due=found.due_at, until=until) == 1

    def sent(self, message: int, now: datetime) -> None:
        """Record that the peer accepted the message."""
        self._database.change("message_sent", message=message, now=now)

    def failed(self, message: int, error: str, due: datetime | None) -> None:
        """Record that the peer did not accept the message; `due` None: it is given up."""
        self._database.change("message_failed", message=message, error=error, due=due)

    def messages(self, limit: int) -> tuple[MessageRecord, ...]:
        """Return the messages, the newest first."""
        return self._database.values("messages", _message, limit=limit)

    def last(self, channel: str, about: str, kind: NoticeType) -> MessageRecord | None:
        """Return the newest message of this kind."""
        return self._database.value("last_about", _message, channel=channel, about=about, kind=kind)

    def digest(self, channel: str) -> date | None:
        """Return the day of the last digest."""
        return self._database.value("digest", _day, channel=channel)

    def keep_digest(self, channel: str, day: date) -> None:
        """Record the day of the digest that was sent, or from which counting begins."""
        self._database.change("keep_digest", channel=channel, day=day.isoformat())


def _is_ahead(instant: datetime | None, now: datetime) -> bool:
    """Return True when the instant is in the future. One further ahead than any wait came from a wrong clock."""
    return instant is not None and now < instant <= now + _LONGEST_WAIT


def _notified_record(row: Row) -> NotifiedRecord:
    earlier = tuple(from_microseconds(count) for count in parse_stored(row["earlier"]))
    kept = {name: row[name] for name in ("job", "target", "begun_at", "reminders")}
    return NotifiedRecord(
        **kept,
        notified_at=row["told_at"],
        causes=decode_list(row["causes"]),
        unsteady=bool(row["unsteady"]),
        well_since=row["well_since_at"],
        earlier=earlier,
    )


def _day(row: Row) -> date:
    day = date.fromisoformat(row["day"])
    if not _FIRST_YEAR < day.year < date.max.year:
        raise ValueError("a day that no clock has shown")
    return day


def _message(row: Row) -> MessageRecord:
    parse_stored(row["facts"])
    message = Message(
        kind=NoticeType(row["kind"]), about=row["about"], made_at=row["made_at"], subject=row["subject"], body=row["body"],
        facts=row["facts"],
    )  # fmt: skip
    kept = {name: row[name] for name in ("id", "channel", "tries", "due_at", "held_at", "sent_at", "error")}
    return MessageRecord(message=message, **kept)
