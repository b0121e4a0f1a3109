"""Records of removable disks: the identity of each, its visits, and its places."""

from collections.abc import Sequence
from datetime import datetime

from orchestrator.domain.fast_dataclass import fields
from orchestrator.domain.rotation import DiskLocation, DiskRecord, DiskSnooze, DiskState, DiskVisit
from orchestrator.history.columns import needed
from orchestrator.history.database import Database, Row, decode_list, encode_list


class DiskHistory:
    """A read view of the disk records. Every method raises HistoryError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def known(self) -> tuple[DiskRecord, ...]:
        """Return all disks, in the order of their enrollment."""
        return tuple(sorted(self._database.values("disks", _disk_record), key=lambda each: (each.enrolled, each.disk)))

    def named(self, name: str) -> DiskRecord | None:
        """Return the disk of that name that was enrolled last."""
        return next((each for each in reversed(self.known()) if each.name == name), None)

    def visits(self, disk: str, limit: int) -> tuple[DiskVisit, ...]:
        """Return the newest visits of a disk, the last one first."""
        return self._database.values("visits_of_disk", _visit, disk=disk, limit=limit)

    def being_visited(self) -> tuple[str, ...]:
        """Return the ids of disks whose visit has no end: it goes on, or its process died."""
        return tuple(disk for disk, visit in self.last_visits().items() if visit.outcome == "open")

    def last_visits(self) -> dict[str, DiskVisit]:
        """Return the last visit of each disk, by disk id."""
        return {visit.disk: visit for visit in self._database.values("last_visits", _visit)}

    def last_healths(self) -> dict[str, DiskVisit]:
        """Return the last visit of each disk in which it reported its health, by disk id."""
        return {visit.disk: visit for visit in self._database.values("last_healths", _visit)}

    def whereabouts(self, disk: str, limit: int) -> tuple[DiskLocation, ...]:
        """Return the past places of a disk, the newest first."""
        return self._database.values("whereabouts_of_disk", _whereabouts, disk=disk, limit=limit)

    def places(self) -> dict[str, DiskLocation]:
        """Return the current place of each disk, by disk id."""
        return dict(self._database.values("disks_are_at", lambda row: (str(row["disk"]), _whereabouts(row))))

    def snoozes(self) -> dict[str, DiskSnooze]:
        """Return the snoozed disks, by disk id, including expired snoozes."""
        return dict(self._database.values("snoozes", _snooze))


class DiskHistoryWriter(DiskHistory):
    """A write view of the disk records."""

    def keep(self, known: DiskRecord) -> None:
        """Record an enrolled or readopted disk; earlier data of this id is replaced, except its enrollment."""
        self._database.change("keep_disk", **{field.name: getattr(known, field.name) for field in fields(known)})

    def stands(self, disk: str, standing: DiskState) -> None:
        """Record the status that a person set for a disk."""
        self._database.change("disk_standing", disk=disk, standing=standing)

    def decide_generation(self, disk: str, generation: int) -> None:
        """Record the next generation before it is written on the disk: from now on the disk may have either."""
        self._database.change("next_generation", disk=disk, generation=generation)

    def generation_written(self, disk: str, generation: int) -> None:
        """Record that the generation is on the disk for certain."""
        self._database.change("generation_written", disk=disk, generation=generation)

    def begin_visit(self, disk: str, now: datetime) -> int:
        """Record the start of a visit and return its number."""
        return self._database.add("begin_visit", disk=disk, now=now)

    def visit_ended(
        self, visit: int, *, jobs: Sequence[str], outcome: str, why: str, released: datetime | None, safe: bool,
        beside: str = "",
    ) -> None:  # fmt: skip
        """Record the end of a visit. `released` None: the disk was not released; `beside`: as in DiskVisit."""
        self._database.change(
            "visit_ended", visit=visit, jobs=encode_list(jobs), outcome=outcome, why=why, released=released, safe=safe, beside=beside,
        )  # fmt: skip

    def visit_health(self, visit: int, health: str | None) -> None:
        """Record the health that the disk reported, as in DiskVisit."""
        self._database.change("visit_health", visit=visit, health=health)

    def visit_is_slow(self, name: str, why: str) -> None:
        """Record that a copy in the current visit of the disk of that name would take too long."""
        self._database.change("visit_is_slow", name=name, why=why)

    def visits_died(self, disk: str, why: str) -> None:
        """Record visits of a disk without an end as cut off, when no visit is going on."""
        self._database.change("visits_died", disk=disk, why=why)

    def is_at(self, disk: str, place: str, *, note: str, now: datetime) -> None:
        """Record the new place of a disk."""
        self._database.change("disk_is_at", disk=disk, place=place, note=note, now=now)

    def snooze(self, disk: str, *, until: datetime, note: str, now: datetime) -> None:
        """Snooze a disk until then; an earlier snooze is replaced."""
        self._database.change("snooze_disk", disk=disk, until=until, note=note, now=now)

    def wake(self, disk: str) -> None:
        """Remove the snooze of a disk."""
        self._database.change("wake_disk", disk=disk)


def _disk_record(row: Row) -> DiskRecord:
    told = {**row, "set": row["set_name"], "enrolled": row["enrolled_at"], "standing": DiskState(row["standing"])}
    return DiskRecord(**{field.name: told[field.name] for field in fields(DiskRecord)})


def _snooze(row: Row) -> tuple[str, DiskSnooze]:
    needed(row, "until_at")
    return row["disk"], DiskSnooze(since=row["since_at"], until=row["until_at"], note=row["note"])


def _visit(row: Row) -> DiskVisit:
    needed(row, "outcome", "why")
    return DiskVisit(
        id=row["id"], disk=row["disk"], arrived=row["arrived_at"], jobs=decode_list(row["jobs"]), outcome=row["outcome"],
        why=row["why"], released=row["released_at"], safe=bool(row["safe"]), health=row["health"], slow=row["slow"],
        beside=row["beside"],
    )  # fmt: skip


def _whereabouts(row: Row) -> DiskLocation:
    return DiskLocation(place=row["place"], since=row["since_at"], note=row["note"])
