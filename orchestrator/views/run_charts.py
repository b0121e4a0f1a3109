"""The newest runs of a job as columns: how long each took, and what it moved."""

from collections.abc import Callable, Sequence

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.run import Outcome, RunType
from orchestrator.domain.units import show_duration, show_size
from orchestrator.history.values import RunRecord
from orchestrator.views.charts import ChartColumn

_KINDS = {
    Outcome.DONE: "good", Outcome.NOTHING: "calm", Outcome.WAITING: "calm", Outcome.INCOMPLETE: "warn", Outcome.INTERRUPTED: "warn",
    Outcome.FAILED: "bad", Outcome.REFUSED: "bad",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCharts:
    """Columns of the newest runs, oldest first, and the highest value of each chart as text."""

    durations: tuple[ChartColumn, ...]
    sizes: tuple[ChartColumn, ...]
    longest: str
    largest: str
    first: str
    last: str
    failed: int


def run_charts(runs: Sequence[RunRecord]) -> RunCharts:
    """Return the charts of runs, which come newest first."""
    ended = [each for each in reversed(runs) if each.kind is RunType.RUN and each.took_s is not None]
    longest = max((each.took_s or 0 for each in ended), default=0)
    largest = max((each.moved_bytes or 0 for each in ended), default=0)
    return RunCharts(
        durations=tuple(_column(each, each.took_s or 0, lambda run: show_duration(run.took_s)) for each in ended),
        sizes=tuple(_column(each, each.moved_bytes or 0, lambda run: show_size(run.moved_bytes)) for each in ended),
        longest=show_duration(longest), largest=show_size(largest),
        first=f"{ended[0].begun_at.astimezone():%Y-%m-%d}" if ended else "",
        last=f"{ended[-1].begun_at.astimezone():%Y-%m-%d}" if ended else "",
        failed=sum(_KINDS[each.outcome] == "bad" for each in ended if each.outcome),
    )  # fmt: skip


def _column(run: RunRecord, value: float, words: Callable[[RunRecord], str]) -> ChartColumn:
    kind = _KINDS[run.outcome] if run.outcome else "calm"
    outcome = run.outcome.value if run.outcome else "open"
    return ChartColumn(
        value=value, kind=kind, says=f"run {run.id}, {run.begun_at.astimezone():%Y-%m-%d %H:%M}: {outcome}, {words(run)}"
    )  # fmt: skip
