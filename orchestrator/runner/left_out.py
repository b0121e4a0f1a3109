"""Files that a run could not read at the source: a state of its own until a run reads everything."""

from collections.abc import Sequence

from orchestrator.domain.names import show_name
from orchestrator.domain.problem import ProblemType, problem_hint, problem_sentence
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.engines.contract.engine import SkippedEntries
from orchestrator.runner.run_recorder import RunRecorder

_NAMED = 50


def end_left_out(journal: RunRecorder) -> None:
    """Record that a run read everything."""
    job, by = journal.job, f"run {journal.run} read everything"
    journal.tools.history.problems.end(job.name, job.target.name, (ProblemType.LEFT_OUT,), None, by=by, now=journal.now)


def unreadable_entries(left_out: Sequence[SkippedEntries]) -> dict[bytes, str]:
    """Return the entries that could not be read, each with the reason."""
    return {name: why for each in left_out for name, why in each.unreadable}


def end_incomplete(journal: RunRecorder, unreadable: dict[bytes, str], *, point: str, made: str) -> RunReport:
    """Record which files the new point lacks, and end the run as incomplete."""
    job, history = journal.job, journal.tools.history
    with history.together():
        known = [
            each for each in history.problems.open_of(job.name, job.target.name) if each.kind is ProblemType.LEFT_OUT
        ]
        since = min((each.since for each in known), default=journal.now)
        history.problems.end(
            job.name,
            job.target.name,
            (ProblemType.LEFT_OUT,),
            None,
            by="a newer point has its own list",
            now=journal.now,
        )
        paths = sorted(name.decode("utf-8", "surrogateescape") for name in unreadable)
        history.problems.open(
            job.name, job.target.name, ProblemType.LEFT_OUT, point, why="could not be read", paths=paths, count=len(paths),
            now=since,
        )  # fmt: skip
        problem = next(each for each in history.problems.open_of(job.name, job.target.name) if each.point == point)
        return journal.ended(
            Outcome.INCOMPLETE, f"{problem_sentence(problem)}; {made}", hint=problem_hint(problem, newest=point),
            evidence=[f"{show_name(name)}: {why}" for name, why in sorted(unreadable.items())[:_NAMED]],
        )  # fmt: skip
