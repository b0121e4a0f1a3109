"""Records of removable disks: the identity of each, its visits, and its places."""

from collections.abc import Sequence
from datetime import datetime

from orchestrator.domain.fast_dataclass import fields
from orchestrator.domain.rotation import Known, Snooze, Standing, Visit, Whereabouts
from orchestrator.history.codec import listed, unlisted
from orchestrator.history.database import Door, Row


class Disks:
    """A read view of the disk records. Every method raises HistoryError."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def known(self) -> tuple[Known, ...]:
        """Return all disks, in the order of their enrollment."""
        return tuple(sorted(map(_known, self._door.rows("disks")), key=lambda each: (each.enrolled, each.disk)))

    def named(self, name: str) -> Known | None:
        """Return the disk of that name that was enrolled last."""
        return next((each for each in reversed(self.known()) if each.name == name), None)

    def visits(self, disk: str, limit: int) -> tuple[Visit, ...]:
        """Return the newest visits of a disk, the last one first."""
        return tuple(_visit(row) for row in self._door.rows("visits_of_disk", disk=disk, limit=limit))

    def being_visited(self) -> tuple[str, ...]:
        """Return the ids of disks whose visit has no end: it goes on, or its process died."""
        return tuple(disk for disk, visit in self.last_visits().items() if visit.outcome == "open")

    def last_visits(self) -> dict[str, Visit]:
        """Return the last visit of each disk, by disk id."""
        return {row["disk"]: _visit(row) for row in self._door.rows("last_visits")}

    def last_healths(self) -> dict[str, Visit]:
        """Return the last visit of each disk in which it reported its health, by disk id."""
        return {row["disk"]: _visit(row) for row in self._door.rows("last_healths")}

    def whereabouts(self, disk: str, limit: int) -> tuple[Whereabouts, ...]:
        """Return the past places of a disk, the newest first."""
        return tuple(_whereabouts(row) for row in self._door.rows("whereabouts_of_disk", disk=disk, limit=limit))

    def places(self) -> dict[str, Whereabouts]:
        """Return the current place of each disk, by disk id."""
        return {row["disk"]: _whereabouts(row) for row in self._door.rows("disks_are_at")}

    def snoozes(self) -> dict[str, Snooze]:
        """Return the snoozed disks, by disk id, including expired snoozes."""
        return {
            row["disk"]: Snooze(since=row["since_at"], until=row["until_at"], note=row["note"])
            for row in self._door.rows("snoozes")
        }


class DisksBook(Disks):
    """A write view of the disk records."""

    def keep(self, known: Known) -> None:
        """Record an enrolled or readopted disk; earlier data of this id is replaced, except its enrollment."""
        self._door.change("keep_disk", **{field.name: getattr(known, field.name) for field in fields(known)})

    def stands(self, disk: str, standing: Standing) -> None:
        """Record the status that a person set for a disk."""
        self._door.change("disk_standing", disk=disk, standing=standing)

    def decide_generation(self, disk: str, generation: int) -> None:
        """Record the next generation before it is written on the disk: from now on the disk may have either."""
        self._door.change("next_generation", disk=disk, generation=generation)

    def generation_written(self, disk: str, generation: int) -> None:
        """Record that the generation is on the disk for certain."""
        self._door.change("generation_written", disk=disk, generation=generation)

    def begin_visit(self, disk: str, now: datetime) -> int:
        """Record the start of a visit and return its number."""
        return self._door.add("begin_visit", disk=disk, now=now)

    def visit_ended(
        self, visit: int, *, jobs: Sequence[str], outcome: str, why: str, released: datetime | None, safe: bool
    ) -> None:
        """Record the end of a visit. `released` None: the disk was not released."""
        self._door.change(
            "visit_ended", visit=visit, jobs=listed(jobs), outcome=outcome, why=why, released=released, safe=safe
        )

    def visit_health(self, visit: int, health: str | None) -> None:
        """Record the health that the disk reported: see Visit."""
        self._door.change("visit_health", visit=visit, health=health)

    def visit_is_slow(self, name: str, why: str) -> None:
        """Record that a copy in the current visit of the disk of that name would take too long."""
        self._door.change("visit_is_slow", name=name, why=why)

    def visits_died(self, disk: str, why: str) -> None:
        """Record visits of a disk without an end as cut off, when no visit is going on."""
        self._door.change("visits_died", disk=disk, why=why)

    def is_at(self, disk: str, place: str, *, note: str, now: datetime) -> None:
        """Record the new place of a disk."""
        self._door.change("disk_is_at", disk=disk, place=place, note=note, now=now)

    def snooze(self, disk: str, *, until: datetime, note: str, now: datetime) -> None:
        """Snooze a disk until then; an earlier snooze is replaced."""
        self._door.change("snooze_disk", disk=disk, until=until, note=note, now=now)

    def wake(self, disk: str) -> None:
        """Remove the snooze of a disk."""
        self._door.change("wake_disk", disk=disk)


def _known(row: Row) -> Known:
    told = {**row, "set": row["set_name"], "enrolled": row["enrolled_at"], "standing": Standing(row["standing"])}
    return Known(**{field.name: told[field.name] for field in fields(Known)})


def _visit(row: Row) -> Visit:
    return Visit(
        id=row["id"], disk=row["disk"], arrived=row["arrived_at"], jobs=unlisted(row["jobs"]), outcome=row["outcome"],
        why=row["why"], released=row["released_at"], safe=bool(row["safe"]), health=row["health"], slow=row["slow"],
    )  # fmt: skip


def _whereabouts(row: Row) -> Whereabouts:
    return Whereabouts(place=row["place"], since=row["since_at"], note=row["note"])
