"""Notices in the history: what each channel was told, and the messages that wait to be delivered."""

import json
from datetime import date, datetime, timedelta

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.notice import PINGS, Kind, Message
from orchestrator.history.codec import instant, listed, micros, unlisted
from orchestrator.history.database import Door, Row

_LONGEST_WAIT = timedelta(hours=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldRecord:
    """What a channel was told of a job's copy at a place. `begun_at` None: no trouble of it has been told, or it ended."""

    job: str
    target: str
    begun_at: datetime | None = None
    told_at: datetime | None = None
    reminders: int = 0
    causes: tuple[str, ...] = ()
    unsteady: bool = False
    well_since: datetime | None = None
    earlier: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """A message and how far it came. `due_at` None: nothing more is done; then `sent_at` None: it was given up.

    `held_at`: until then a process that is sending it has it for itself.
    """

    id: int
    channel: str
    message: Message
    tries: int
    due_at: datetime | None
    held_at: datetime | None
    sent_at: datetime | None
    error: str | None


class Telling:
    """What is remembered of notices. Every method raises HistoryError."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def told(self, channel: str) -> tuple[ToldRecord, ...]:
        """What a channel was told, of each copy that it was ever told of."""
        return tuple(map(_told, self._door.rows("told", channel=channel)))

    def keep_told(self, channel: str, told: ToldRecord) -> None:
        """From now on this was told."""
        self._door.change(
            "keep_told", channel=channel, job=told.job, target=told.target, begun=told.begun_at, told=told.told_at,
            reminders=told.reminders, causes=listed(told.causes), unsteady=int(told.unsteady), well_since=told.well_since,
            earlier=listed(micros(begun) for begun in told.earlier),
        )  # fmt: skip

    def forget_told(self, channel: str, job: str, target: str) -> None:
        """The copy is no longer declared."""
        self._door.change("forget_told", channel=channel, job=job, target=target)

    def queue(self, channel: str, message: Message) -> int:
        """The message is to be delivered; its number. A ping takes the place of older ones of the same job."""
        with self._door.together():
            if message.kind in PINGS:
                self._door.change("drop_pings", channel=channel, about=message.about)
            return self._door.add(
                "make_message", channel=channel, kind=message.kind, about=message.about, made=message.made_at,
                subject=message.subject, body=message.body, facts=message.facts,
            )  # fmt: skip

    def due(self, now: datetime, *, eagerly: bool = False) -> tuple[MessageRecord, ...]:
        """The messages that are to be tried now, those that wait longest first.

        `eagerly`: also those that wait for their next try, but none that somebody is sending.
        """
        return tuple(each for each in self.queued() if not _is_ahead(each.held_at if eagerly else each.due_at, now))

    def queued(self) -> tuple[MessageRecord, ...]:
        """All messages that wait to be delivered."""
        return tuple(map(_message, self._door.rows("messages_queued")))

    def claim(self, found: MessageRecord, until: datetime) -> bool:
        """Whether the message is ours to deliver until then; False: another process has it."""
        return self._door.change("claim_message", message=found.id, due=found.due_at, until=until) == 1

    def sent(self, message: int, now: datetime) -> None:
        """The peer has taken it."""
        self._door.change("message_sent", message=message, now=now)

    def failed(self, message: int, error: str, due: datetime | None) -> None:
        """The peer has not taken it; `due` None: it is given up."""
        self._door.change("message_failed", message=message, error=error, due=due)

    def messages(self, limit: int) -> tuple[MessageRecord, ...]:
        """The newest first."""
        return tuple(map(_message, self._door.rows("messages", limit=limit)))

    def last(self, channel: str, about: str, kind: Kind) -> MessageRecord | None:
        """The newest message of this kind."""
        row = self._door.first("last_about", channel=channel, about=about, kind=kind)
        return _message(row) if row else None

    def digest(self, channel: str) -> date | None:
        """The day of the last digest."""
        row = self._door.first("digest", channel=channel)
        return date.fromisoformat(row["day"]) if row else None

    def keep_digest(self, channel: str, day: date) -> None:
        """The digest of this day is sent, or is that from which on is counted."""
        self._door.change("keep_digest", channel=channel, day=day.isoformat())


def _is_ahead(instant: datetime | None, now: datetime) -> bool:
    """Whether it is still to come. Further ahead than any wait of ours, it was noted by a clock that was wrong."""
    return instant is not None and now < instant <= now + _LONGEST_WAIT


def _told(row: Row) -> ToldRecord:
    earlier = tuple(instant(count) for count in json.loads(row["earlier"]))
    kept = {name: row[name] for name in ("job", "target", "begun_at", "told_at", "reminders")}
    return ToldRecord(
        **kept,
        causes=unlisted(row["causes"]),
        unsteady=bool(row["unsteady"]),
        well_since=row["well_since_at"],
        earlier=earlier,
    )


def _message(row: Row) -> MessageRecord:
    message = Message(
        kind=Kind(row["kind"]), about=row["about"], made_at=row["made_at"], subject=row["subject"], body=row["body"],
        facts=row["facts"],
    )  # fmt: skip
    kept = {name: row[name] for name in ("id", "channel", "tries", "due_at", "held_at", "sent_at", "error")}
    return MessageRecord(message=message, **kept)
