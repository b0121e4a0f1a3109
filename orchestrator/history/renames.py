"""Another name of a job, or of its place, in the history: all that is recorded of it goes on under the new one."""

import json

from orchestrator.history.database import Database, decode_list, encode_list

_STATEMENTS = (
    "rename_in_runs", "rename_in_points", "rename_in_memory", "rename_in_owed", "rename_in_anchors", "rename_in_pauses",
    "rename_in_told", "rename_in_kits", "rename_in_drills", "rename_in_problems", "rename_in_acts", "rename_in_messages",
)  # fmt: skip


_OF_PLACE = ("place_in_points", "place_in_problems", "place_in_drills", "place_in_memory")


class JobRenames:
    """Renames of jobs and of their places. Every method raises HistoryError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def knows(self, job: str) -> bool:
        """Return True when something is recorded of a job of this name."""
        return self._database.first("knows_job", job=job) is not None

    def knows_place(self, job: str, place: str) -> bool:
        """Return True when the job has, or once had, a point at a place of this name."""
        return self._database.first("knows_place", job=job, place=place) is not None

    def place_before(self, job: str, place: str, name: str) -> str | None:
        """Return the place of another name under which this point of the job is known; None: there is none."""
        row = self._database.first("place_of_point", job=job, place=place, name=name)
        return None if row is None else str(row["place"])

    def rename_place(self, job: str, before: str, now: str) -> None:
        """Record what is known of a job's copies at a place under its new name, in one transaction."""
        with self._database.together():
            for statement in _OF_PLACE:
                self._database.change(statement, job=job, before=before, now=now)

    def rename(self, before: str, now: str) -> None:
        """Record all of a job under its new name, in one transaction; again it changes nothing."""
        with self._database.together():
            for statement in _STATEMENTS:
                self._database.change(statement, before=before, now=now)
            for row in self._database.rows("renamed_visits", quoted=json.dumps(before)):
                jobs = [now if name == before else name for name in decode_list(row["jobs"])]
                self._database.change("rename_in_visit", visit=row["id"], jobs=encode_list(jobs))
            for row in self._database.rows("renamed_rebuilds"):
                kits = json.loads(row["kits"])
                if before in kits:
                    kits[now] = kits.pop(before)
                    self._database.change("rename_in_rebuild", rebuild=row["id"], kits=json.dumps(kits))
