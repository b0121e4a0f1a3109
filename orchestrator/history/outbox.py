"""Rows of the history that the centre of a fleet is still to be told of; and which incarnation of this history each belongs to.

The outbox names rows, it holds none: a row that changed five times while the centre was away is told once, as it is then. So the
outbox never has more rows than the history itself, and goes with them when old details are thinned.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from orchestrator.domain.ledger import NAMED, SUBJECTS, LedgerMark, LedgerRow, incarnation_of, plain_text
from orchestrator.history.columns import needed, to_microseconds
from orchestrator.history.database import Database, Row, decode_list, parse_stored

MOST = 1000  # rows at once: read in a few milliseconds, so that no run waits for it
_BORN = {
    "run": "begun_at", "step": "begun_at", "point": "known_at", "verdict": "read_at", "drill": "drilled_at",
    "problem": "since_at", "disk": "enrolled_at", "visit": "arrived_at", "notice": "made_at",
}  # fmt: skip
_ROWS = {
    "run": "outbox_run",
    "step": "outbox_step",
    "point": "outbox_point",
    "verdict": "outbox_verdict",
    "drill": "outbox_drill",
    "problem": "outbox_problem",
    "disk": "outbox_disk",
    "visit": "outbox_visit",
    "notice": "outbox_notice",
}
_BIRTHS = {
    "run": "births_run",
    "step": "births_step",
    "point": "births_point",
    "verdict": "births_verdict",
    "drill": "births_drill",
    "problem": "births_problem",
    "disk": "births_disk",
    "visit": "births_visit",
    "notice": "births_notice",
}
# The public names of columns with an older word; and what stays at the host.
_NAMES = {
    "cure": "hint",
    "kind": "type",
    "does": "action",
    "proved": "confirmed",
    "standing": "state",
    "reading_sound": "sound",
    "set_name": "set",
}
_AT_HOME = frozenset("seq id pid process_started boot host evidence content wwn written".split())
_LISTS: Mapping[str, Callable[[str], object]] = {
    "points": lambda text: [plain_text(each) for each in decode_list(text)],
    "warnings": lambda text: [plain_text(each) for each in decode_list(text)[:20]],
    "jobs": lambda text: [plain_text(each) for each in decode_list(text)],
    "counts": parse_stored,
}


class OutboxHistory:
    """The outbox of a history. A host that has joined no centre has none, and pays nothing for it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def mark(self) -> LedgerMark | None:
        """Return what the centre is known to have; None: no centre was joined."""
        return self._database.value("fleet", _mark)

    def count(self) -> int:
        """Return how many rows wait."""
        return self._database.value("outbox_count", lambda row: int(row["number"])) or 0

    def page(self, most: int = MOST) -> tuple[LedgerRow, ...]:
        """Return the oldest rows that wait, as they are now."""
        with self._database.glance():
            listed = self._database.rows("outbox_page", after=0, most=most)
            if not listed:
                return ()
            span = {"first": listed[0]["seq"], "last": listed[-1]["seq"]}
            rows = {
                row["seq"]: row
                for subject in {each["subject"] for each in listed}
                for row in self._database.rows(_ROWS[subject], **span)
            }
            begins = self.begins()
        with self._database.understood("outbox_page"):
            return tuple(_ledger_row(each, rows.get(each["seq"]), begins) for each in listed)

    def sending(self, batch: str, last: int) -> None:
        """Record before it is sent that a batch is on its way. `last`: its newest seq."""
        self._database.change("fleet_sending", batch=batch, last=last)

    def stored(self, batch: str, last: int) -> None:
        """Record that the centre has the batch: its rows wait no more, unless they changed since."""
        with self._database.together():
            if self._database.change("fleet_stored", batch=batch):
                self._database.change("outbox_stored", last=last)

    def drop(self, seq: int) -> None:
        """Take out a row that no centre takes."""
        self._database.change("outbox_drop", seq=seq)

    def join(
        self, centre: str, batch: str, *, above: int, incarnation: int, first: Mapping[str, int], back: bool
    ) -> None:
        """Begin to tell a centre everything. `batch`, `above`: its last batch, and the newest change that it has of this host.

        `first`: from which number on the rows of each subject belong to this incarnation; empty: all are of those before.
        `back`: rows of older incarnations are told only where the centre lacks them.
        """
        with self._database.together():
            if self.mark() is None:
                self._database.change("empty_outbox")
            self._database.change("join_fleet", centre=centre, batch=batch, last=above)
            for subject, number in first.items():
                self._database.change("begin_incarnation", number=incarnation, subject=subject, first=number)
            self._renumber(above)
            for subject, key in self._all_keys():
                older = back and subject in first and int(key) < first[subject]
                self._database.change("tell_again", subject=subject, key=key, back=older)

    def leave(self) -> None:
        """Tell no centre any more; what waits is dropped. Incarnations stay: a centre that is joined again knows them."""
        with self._database.together():
            self._database.change("leave_fleet")
            self._database.change("empty_outbox")

    def births(self, subject: str) -> dict[int, int]:
        """Return the rows of a subject that has numbers, each with the microseconds since 1970 when it was made."""
        return dict(self._database.values(_BIRTHS[subject], lambda row: (row["id"], _born(row, "born_at"))))

    def _renumber(self, above: int) -> None:
        """Give what waits, and all that follows, numbers above: the centre takes a row only if it is newer than its own."""
        listed = self._database.rows("outbox_page", after=0, most=1 << 40)
        self._database.change("raise_outbox", seq=above)
        self._database.change("empty_outbox")
        for each in listed:
            self._database.change("tell_again", subject=each["subject"], key=each["key"], back=each["back"])

    def _all_keys(self) -> Iterator[tuple[str, str]]:
        for subject in SUBJECTS:
            for row in self._database.rows(_BIRTHS[subject]):
                yield subject, str(row["key"] if subject in NAMED else row["id"])

    def begins(self) -> dict[str, list[tuple[int, int]]]:
        """Return where incarnations begin, by subject: (first number, incarnation), rising."""
        found: dict[str, list[tuple[int, int]]] = {}
        read = self._database.values(
            "incarnations", lambda row: (row["subject"], int(row["first"]), int(row["number"]))
        )
        for subject, first, number in read:
            found.setdefault(subject, []).append((first, number))
        return found


def _mark(row: Row) -> LedgerMark:
    needed(row, "centre", "batch", "stored_last", "sending", "sending_last")
    return LedgerMark(
        centre=row["centre"], batch=row["batch"], last=row["stored_last"], sending=row["sending"], sending_last=row["sending_last"],
    )  # fmt: skip


def _born(row: Row, column: str) -> int:
    needed(row, column)
    return to_microseconds(row[column])


def _ledger_row(listed: Row, row: Row | None, begins: Mapping[str, list[tuple[int, int]]]) -> LedgerRow:
    subject, key = listed["subject"], listed["key"]
    body = (
        None
        if row is None
        else {_NAMES.get(name, name): _value(name, value) for name, value in row.items() if name not in _AT_HOME}
    )
    if body is not None and body.get("run") is not None:
        body["run_incarnation"] = incarnation_of("run", str(body["run"]), begins)
    return LedgerRow(
        subject=subject, incarnation=incarnation_of(subject, key, begins), key=key, seq=listed["seq"],
        born=_born(row, _BORN[subject]) if row else 0, body=body, back=bool(listed["back"]),
    )  # fmt: skip


def _value(name: str, value: object) -> object:
    if name in _LISTS:
        return None if value is None else _LISTS[name](str(value))
    if isinstance(value, datetime):
        return value.isoformat()
    return plain_text(value) if isinstance(value, str) else value
