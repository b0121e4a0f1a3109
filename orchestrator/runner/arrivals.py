"""A run that prunes what others sent here: when each point came, what the run remembers of it, and the judgement on them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

from orchestrator.domain.answers import NOT_READ, parse_count, parse_instant
from orchestrator.domain.arrival import ARRIVAL_GUARDS, SILENT_AFTER, PointRemoval, ReceivedPoint
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Refusal
from orchestrator.engines.contract.arrivals import ArrivalPruner
from orchestrator.engines.contract.engine import Engine, RunRequest, implements
from orchestrator.history import arrivals as ledger
from orchestrator.planners.arrivals import ArrivalMemory, date_arrivals, judge_arrivals, newest_order
from orchestrator.runner.run_recorder import RunRecorder

_ACCEPTED, _LOOKED = "arrivals accepted", "arrivals looked at"  # small facts of a job
Judge = Callable[[tuple[ReceivedPoint, ...]], tuple[PointRemoval, ...] | Refusal]


def arrival_judge(
    job: Job, engine: Engine, remembered: Mapping[str, str], *, state: str, now: datetime, allowed: frozenset[str]
) -> Judge | None:
    """Return a function that judges which points go; None for an engine that prunes no arrivals. Raises: OrchestratorError."""
    if not implements(engine, ArrivalPruner):
        return None
    rules, memory = engine.arrival_rules(job), _memory(remembered)
    with _explained(state):
        recorded = ledger.read_arrivals(state)

    def judge(points: tuple[ReceivedPoint, ...]) -> tuple[PointRemoval, ...] | Refusal:
        series = date_arrivals(points, recorded, now)
        return judge_arrivals(series, job.keep, rules, job=job.name, now=now, allowed=allowed, memory=memory)

    return judge


def removals(engine: Engine, world: Any, request: RunRequest) -> tuple[PointRemoval, ...]:
    """Return what a run would remove now."""
    if request.judge is None or not implements(engine, ArrivalPruner):
        return ()
    judged = request.judge(engine.received_points(world))
    return () if isinstance(judged, Refusal) else judged


def note_first_sight(journal: RunRecorder, world: Any, request: RunRequest) -> None:
    """Record when points came that no gate recorded, also in a run that is refused; forget those that are gone. Raises: OrchestratorError."""
    engine, state, root = journal.tools.engine, journal.tools.state, journal.job.source.path
    if not implements(engine, ArrivalPruner):
        return
    points = engine.received_points(world)
    there = {(point.series, point.mark) for point in points}
    with _explained(state):
        dated = date_arrivals(points, ledger.read_arrivals(state), request.now)
        fresh = [each for series in dated.values() for each in series if not each.recorded]
        if fresh:
            with ledger.open_ledger(state, ledger.SEEN) as file:
                file.note((each.point.series, each.point.mark, each.at) for each in fresh)
        ledger.forget_arrivals(
            state, lambda series, mark: (series, mark) in there or not f"{series}/".startswith(f"{root}/")
        )


@contextmanager
def _explained(state: str) -> Iterator[None]:
    """Say of a ledger that cannot be read or written where it is. Raises: OrchestratorError; then nothing is pruned."""
    try:
        yield
    except OSError as error:
        folder = f"{state}/{ledger.FOLDER}"
        why = f"when points came cannot be read or recorded in {error.filename or folder}: {error.strerror}"
        raise OrchestratorError(why, hint=f"`ls -la {quoted(folder)}` shows it; nothing was pruned") from error


def remember_look(journal: RunRecorder, world: Any, request: RunRequest) -> None:
    """Remember a good run, and up to which point a person said yes to what looked wrong."""
    engine, history, job = journal.tools.engine, journal.tools.history, journal.job.name
    if not implements(engine, ArrivalPruner):
        return
    history.remember(job, _LOOKED, request.now.isoformat())
    if request.allowed & (set(ARRIVAL_GUARDS) - {SILENT_AFTER}):
        newest = newest_order(date_arrivals(engine.received_points(world), {}, request.now))
        history.remember(job, _ACCEPTED, str(newest))


def _memory(remembered: Mapping[str, str]) -> ArrivalMemory:
    """Return the remembered facts; what cannot be read is forgotten."""
    accepted, looked = 0, None
    with suppress(*NOT_READ):
        accepted = parse_count(remembered[_ACCEPTED])
    with suppress(*NOT_READ):
        looked = parse_instant(remembered[_LOOKED])
    return ArrivalMemory(accepted=accepted, looked=looked)
