"""A run that prunes what others sent here: when each point came, what the run remembers of it, and the judgement on them."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from itertools import pairwise
from typing import Any

from orchestrator.domain.answers import NOT_READ, check_count, parse_count, parse_instant
from orchestrator.domain.arrival import ARRIVAL_GUARDS, SILENT_AFTER, ArrivalRules, PointRemoval, ReceivedPoint
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Refusal
from orchestrator.engines.contract.arrivals import ArrivalPruner
from orchestrator.engines.contract.engine import Engine, RunRequest, implements
from orchestrator.history import arrivals as ledger
from orchestrator.planners.arrivals import ArrivalMemory, date_arrivals, judge_arrivals, newest_order, number_arrivals
from orchestrator.runner.run_recorder import RunRecorder
from orchestrator.trees.beneath import Folder
from orchestrator.trees.removal import count_bytes

_ACCEPTED, _LOOKED = "arrivals accepted", "arrivals looked at"  # small facts of a job
_WEIGHTS = "arrivals weighed"  # of points that are folders: [bytes, bytes that came, bytes of the one before] by mark
Judge = Callable[[tuple[ReceivedPoint, ...]], tuple[PointRemoval, ...] | Refusal]
Weights = dict[str, list[int]]


def arrival_judge(
    job: Job, engine: Engine, remembered: Mapping[str, str], *, state: str, now: datetime, allowed: frozenset[str]
) -> Judge | None:
    """Return a function that judges which points go; None for an engine that prunes no arrivals. Raises: OrchestratorError."""
    if not implements(engine, ArrivalPruner):
        return None
    with _explained(state):
        return ArrivalJudge(job, engine.arrival_rules(job), remembered, state=state, now=now, allowed=allowed)


class ArrivalJudge:
    """The judge of one run: when points came, as the ledger has it, and what was counted of those that are folders."""

    def __init__(
        self,
        job: Job,
        rules: ArrivalRules,
        remembered: Mapping[str, str],
        *,
        state: str,
        now: datetime,
        allowed: frozenset[str],
    ) -> None:
        self._job, self._rules, self._now, self._allowed = job, rules, now, allowed
        self._state, self._memory, self._weights = state, _memory(remembered), _parse_weights(remembered)
        self._recorded = ledger.read_arrivals(state)
        self._numbers = ledger.read_numbers(state, job.source.path)

    def __call__(self, points: tuple[ReceivedPoint, ...]) -> tuple[PointRemoval, ...] | Refusal:
        """Return which points go, or why none may. Raises: OrchestratorError."""
        return judge_arrivals(
            date_arrivals(self.complete(points), self._recorded, self._now), self._job.keep, self._rules, job=self._job.name,
            now=self._now, allowed=self._allowed, memory=self._memory,
        )  # fmt: skip

    def complete(self, points: tuple[ReceivedPoint, ...]) -> tuple[ReceivedPoint, ...]:
        """Return the points, those that are folders with their order and bytes. Raises: OrchestratorError."""
        numbered = sorted(number_arrivals(points, self._numbers), key=lambda each: each.order)
        with _explained(self._state):
            return tuple(
                self._weighed(each, before) if each.tree else each
                for before, each in pairwise((None, *numbered))
                if each is not None
            )

    def _weighed(self, point: ReceivedPoint, before: ReceivedPoint | None) -> ReceivedPoint:
        """Return the point with its bytes, which are counted once: a point never changes, and another may be before it one day."""
        if point.mark not in self._weights:
            self._weights[point.mark] = _count(point, before)
        holds, brought, held = self._weights[point.mark]
        return replace(point, holds=holds, brought=brought, before=held)

    def weights(self, points: tuple[ReceivedPoint, ...]) -> str:
        """Return what was counted of these points, as text to remember."""
        there = {point.mark for point in points}
        return json.dumps({mark: each for mark, each in self._weights.items() if mark in there})


def _count(point: ReceivedPoint, before: ReceivedPoint | None) -> list[int]:
    with ExitStack() as opened:
        tree = opened.enter_context(Folder.at_place(point.tree))
        older = opened.enter_context(Folder.at_place(before.tree)) if before is not None else None
        holds, brought = count_bytes(tree, older)
        held = count_bytes(older, None)[0] if older is not None else 0
    return [holds, brought, held]


def _parse_weights(remembered: Mapping[str, str]) -> Weights:
    """Return what was counted before; what cannot be read is counted again."""
    with suppress(*NOT_READ):
        return {mark: [check_count(one) for one in each] for mark, each in json.loads(remembered[_WEIGHTS]).items()}
    return {}


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
        recorded = ledger.read_arrivals(state)
        dated = date_arrivals([each for each in points if not each.tree], recorded, request.now)
        fresh = [each for series in dated.values() for each in series if not each.recorded]
        if fresh:
            with ledger.open_ledger(state, ledger.SEEN) as file:
                file.note((each.point.series, each.point.mark, each.at) for each in fresh)
        ledger.note_unknown(
            state, ledger.SEEN, root, [each.mark for each in points if each.tree], request.now, recorded=recorded
        )
        ledger.forget_arrivals(
            state, lambda series, mark: (series, mark) in there or not f"{series}/".startswith(f"{root}/")
        )

    if isinstance(request.judge, ArrivalJudge) and any(each.tree for each in points):
        request.judge.complete(points)
        journal.tools.history.remember(journal.job.name, _WEIGHTS, request.judge.weights(points))


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
        points = engine.received_points(world)
        points = number_arrivals(points, ledger.read_numbers(journal.tools.state, journal.job.source.path))
        newest = newest_order(date_arrivals(points, {}, request.now))
        history.remember(job, _ACCEPTED, str(newest))


def _memory(remembered: Mapping[str, str]) -> ArrivalMemory:
    """Return the remembered facts; what cannot be read is forgotten."""
    accepted, looked = 0, None
    with suppress(*NOT_READ):
        accepted = parse_count(remembered[_ACCEPTED])
    with suppress(*NOT_READ):
        looked = parse_instant(remembered[_LOOKED])
    return ArrivalMemory(accepted=accepted, looked=looked)
