"""What is remembered of removable disks: who each is, its visits, and where it was."""

from collections.abc import Sequence
from datetime import datetime

from orchestrator.domain.fast_dataclass import fields
from orchestrator.domain.rotation import Known, Snooze, Standing, Visit, Whereabouts
from orchestrator.history.codec import listed, unlisted
from orchestrator.history.database import Door, Row


class Disks:
    """A look at it. Every method raises HistoryError."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def known(self) -> tuple[Known, ...]:
        """All disks, in the order in which they were enrolled."""
        return tuple(sorted(map(_known, self._door.rows("disks")), key=lambda each: (each.enrolled, each.disk)))

    def named(self, name: str) -> Known | None:
        """The disk of that name that was enrolled last."""
        return next((each for each in reversed(self.known()) if each.name == name), None)

    def visits(self, disk: str, limit: int) -> tuple[Visit, ...]:
        """The newest stays of a disk, the last one first."""
        return tuple(_visit(row) for row in self._door.rows("visits_of_disk", disk=disk, limit=limit))

    def being_visited(self) -> tuple[str, ...]:
        """The disks, by our id of each, whose visit has not ended, or died."""
        return tuple(disk for disk, visit in self.last_visits().items() if visit.outcome == "open")

    def last_visits(self) -> dict[str, Visit]:
        """The last stay of each disk, by our id of it."""
        return {row["disk"]: _visit(row) for row in self._door.rows("last_visits")}

    def last_healths(self) -> dict[str, Visit]:
        """The last stay in which a disk said how it is, by our id of each that ever did."""
        return {row["disk"]: _visit(row) for row in self._door.rows("last_healths")}

    def whereabouts(self, disk: str, limit: int) -> tuple[Whereabouts, ...]:
        """Where a disk was, the newest first."""
        return tuple(_whereabouts(row) for row in self._door.rows("whereabouts_of_disk", disk=disk, limit=limit))

    def places(self) -> dict[str, Whereabouts]:
        """Where each disk is, by our id of it."""
        return {row["disk"]: _whereabouts(row) for row in self._door.rows("disks_are_at")}

    def snoozes(self) -> dict[str, Snooze]:
        """The disks that nobody waits for, those whose time is over among them, by our id of each."""
        return {
            row["disk"]: Snooze(since=row["since_at"], until=row["until_at"], note=row["note"])
            for row in self._door.rows("snoozes")
        }


class DisksBook(Disks):
    """The same, to write it."""

    def keep(self, known: Known) -> None:
        """A disk was enrolled or readopted; what was known of this id before is replaced, its enrolment apart."""
        self._door.change("keep_disk", **{field.name: getattr(known, field.name) for field in fields(known)})

    def stands(self, disk: str, standing: Standing) -> None:
        """A person told what became of it."""
        self._door.change("disk_standing", disk=disk, standing=standing)

    def decide_generation(self, disk: str, generation: int) -> None:
        """Before it is written on the disk: from now on the disk may be at either."""
        self._door.change("next_generation", disk=disk, generation=generation)

    def generation_written(self, disk: str, generation: int) -> None:
        """It is on the disk for certain."""
        self._door.change("generation_written", disk=disk, generation=generation)

    def begin_visit(self, disk: str, now: datetime) -> int:
        """A disk is here; the number of its stay."""
        return self._door.add("begin_visit", disk=disk, now=now)

    def visit_ended(
        self, visit: int, *, jobs: Sequence[str], outcome: str, why: str, released: datetime | None, safe: bool
    ) -> None:
        """How the stay ended. `released` None: the disk was not let go."""
        self._door.change(
            "visit_ended", visit=visit, jobs=listed(jobs), outcome=outcome, why=why, released=released, safe=safe
        )

    def visit_health(self, visit: int, health: str | None) -> None:
        """What the disk said of itself: see Visit."""
        self._door.change("visit_health", visit=visit, health=health)

    def visit_is_slow(self, name: str, why: str) -> None:
        """In the stay of the disk of that name that goes on, a copy would take too long."""
        self._door.change("visit_is_slow", name=name, why=why)

    def visits_died(self, disk: str, why: str) -> None:
        """Nobody visits the disk: stays that have no end were cut off."""
        self._door.change("visits_died", disk=disk, why=why)

    def is_at(self, disk: str, place: str, *, note: str, now: datetime) -> None:
        """Where a disk is from now on."""
        self._door.change("disk_is_at", disk=disk, place=place, note=note, now=now)

    def snooze(self, disk: str, *, until: datetime, note: str, now: datetime) -> None:
        """Nobody waits for a disk until then; what was told before is replaced."""
        self._door.change("snooze_disk", disk=disk, until=until, note=note, now=now)

    def wake(self, disk: str) -> None:
        """It is waited for again."""
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
