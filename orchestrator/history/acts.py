"""Acts in the history: who asked the daemon for which, and what became of it."""

from datetime import datetime

from orchestrator.domain.act import ActRecord, ActVerb
from orchestrator.domain.fast_dataclass import replace
from orchestrator.history.columns import needed
from orchestrator.history.database import Database, Row

_KEPT = 20_000


class ActHistory:
    """Records of acts. Every method raises HistoryError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def newest(self, limit: int, *, subject: str | None = None) -> tuple[ActRecord, ...]:
        """Return the newest acts, of one job or disk or of all, each with its runs."""
        about = {} if subject is None else {"subject": subject}
        found = self._database.rows("newest_acts_of" if about else "newest_acts", limit=limit, **about)
        with self._database.understood("newest_acts"):
            return tuple(replace(_act(row), runs=self._runs(row)) for row in found)

    def of(self, act: int) -> ActRecord | None:
        """Return one act with its runs; None: there is none."""
        row = self._database.first("act", act=act)
        with self._database.understood("act"):
            return None if row is None else replace(_act(row), runs=self._runs(row))

    def between(self, first: datetime, last: datetime) -> tuple[ActRecord, ...]:
        """Return the acts of a span of time, oldest first, without their runs."""
        return self._database.values("acts_between", _act, first=first, last=last)

    def _runs(self, row: Row) -> tuple[int, ...]:
        """Return the runs that the act's own processes recorded, the newest first."""
        found = self._database.rows("runs_of_act", act=row["id"], first=row["asked_at"], last=row["ended_at"])
        return tuple(int(each["id"]) for each in found)

    def of_order(self, order: str) -> ActRecord | None:
        """Return the act that came from an attempt at a centre's order; None: none did."""
        row = self._database.first("act_of_order", order=order)
        with self._database.understood("act_of_order"):
            return None if row is None else replace(_act(row), runs=self._runs(row))

    def asked(
        self, verb: ActVerb, subject: str, about: str, who: str, now: datetime, *, order: str | None = None
    ) -> int:
        """Record that an act is asked for, before it begins; return its number. Raises: HistoryError for an order asked twice."""
        with self._database.together():
            act = self._database.add("ask_act", verb=verb, subject=subject, about=about, who=who, now=now, order=order)
            self._database.change("forget_acts", act=act - _KEPT)
        return act

    def begun(self, act: int, pid: int) -> None:
        """Record a process that does it."""
        self._database.change("begin_act", act=act, pid=pid)

    def ended(self, act: int, *, well: bool, said: str, now: datetime) -> None:
        """Record how it ended."""
        self._database.change("end_act", act=act, well=well, said=said, now=now)

    def end_open(self, said: str, now: datetime) -> int:
        """End all that an earlier daemon left open; return how many. What its own runs tell to have ended was not cut: it is told as they ended."""
        with self._database.together():
            by_runs = self._database.change("end_acts_by_runs", now=now)
            return by_runs + self._database.change("end_open_acts", said=said, now=now)


def _act(row: Row) -> ActRecord:
    needed(row, "asked_at")
    well = row["well"]
    return ActRecord(
        id=row["id"], verb=ActVerb(row["verb"]), subject=row["subject"], about=row["about"], who=row["who"],
        asked=row["asked_at"], ended=row["ended_at"], well=None if well is None else bool(well), said=row["said"],
    )  # fmt: skip
