"""Problems of copies in the history: opened by whatever finds them, ended only by what shows that they are over."""

from collections.abc import Collection, Sequence
from datetime import datetime

from orchestrator.domain.problem import REMOVING, Problem, ProblemType
from orchestrator.history.columns import needed
from orchestrator.history.database import Database, Row, decode_list, encode_list

MOST_PATHS = 1000


class ProblemHistory:
    """Records of problems. Every method raises HistoryError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open_of(self, job: str, place: str | None = None) -> tuple[Problem, ...]:
        """Return a job's problems that are not over, the gravest first; at one place, or at all."""
        return tuple(each for each in self.open_of_jobs((job,))[job] if place in (None, each.place))

    def open_of_jobs(self, jobs: Collection[str]) -> dict[str, tuple[Problem, ...]]:
        """Return the problems of many jobs that are not over by job, the gravest first."""
        order = list(ProblemType)
        found = self._database.by_job("open_problems", _problem, jobs)
        return {
            job: tuple(sorted(problems, key=lambda each: (order.index(each.kind), each.since, each.point)))
            for job, problems in found.items()
        }

    def of(self, job: str) -> tuple[Problem, ...]:
        """Return all problems of a job, those that are over too, oldest first."""
        return self._database.values("problems_of_job", _problem, job=job)

    def missed_points(self, job: str, place: str) -> frozenset[str]:
        """Return the names of points that a place held by all that is known, and that no removal of ours took."""
        here = {str(row["name"]) for row in self._database.rows("names_there", job=job, place=place)}
        gone = {
            path for each in self.open_of(job, place) if each.kind is ProblemType.POINTS_GONE for path in each.paths
        }
        ours = self._database.value("recall", lambda row: decode_list(row["value"]), job=job, key=REMOVING + place)
        return frozenset(here | gone).difference(ours or ())

    def open(
        self, job: str, place: str, kind: ProblemType, point: str, *, why: str, paths: Sequence[str], count: int,
        now: datetime, tried: bool = False,
    ) -> None:  # fmt: skip
        """Record a problem; one that is open already keeps its beginning, and gets these details."""
        self._database.change(
            "open_problem", job=job, place=place, kind=kind, point=point, why=why, number=count,
            paths=encode_list(paths[:MOST_PATHS]), now=now, tried=tried,
        )  # fmt: skip

    def end(
        self, job: str, place: str, kinds: Sequence[ProblemType], point: str | None, *, by: str, now: datetime
    ) -> int:
        """End the open problems of these kinds: of one point, or of all (None); return how many."""
        if not self.open_of(job, place):  # as nearly always: nothing is written then
            return 0
        with self._database.together():
            return sum(
                self._database.change("end_problem", job=job, place=place, kind=kind, point=point, by=by, now=now)
                for kind in kinds
            )


def _problem(row: Row) -> Problem:
    needed(row, "why", "point")
    return Problem(
        job=row["job"], place=row["place"], kind=ProblemType(row["kind"]), point=row["point"], why=row["why"],
        paths=decode_list(row["paths"]), count=row["number"], since=row["since_at"], tried=bool(row["tried"]),
        ended=row["ended_at"], ended_by=row["ended_by"],
    )  # fmt: skip
