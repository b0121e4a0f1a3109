"""State of each job as numbers for Prometheus.

Names follow Prometheus's rules: one unit each, seconds and bytes, `_total` for counters. Needs the extra `metrics`, which is
imported on use.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator import __version__
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import show_name
from orchestrator.domain.run import Outcome
from orchestrator.history.values import RunTotals
from orchestrator.planners.health import JobState
from orchestrator.views.status import JobStatus, StrayCopies

if TYPE_CHECKING:
    from prometheus_client.core import Metric

Sample = tuple[tuple[str, ...], float | None]
# Why not "job": it belongs to Prometheus, which renames ours to exported_job at each ordinary scrape and puts its own
# there; every series then has job="node". Source: prometheus.io/docs/prometheus/latest/configuration, honor_labels.
_JOB = "backup_job"
_ENDED = tuple(outcome.value for outcome in Outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsInput:
    """The data behind the metrics. `due`: since when a run is due, by job; `queued`: messages not delivered yet.

    `stray`: copies whose job has no file: of these only that they are there.
    """

    standing: tuple[JobStatus, ...]
    stray: tuple[StrayCopies, ...] = ()
    totals: tuple[RunTotals, ...]
    due: Mapping[str, datetime]
    queued: int
    now: datetime


def metrics_text(measured: MetricsInput) -> bytes:
    """Return all numbers in Prometheus's text format. Raises: OrchestratorError where prometheus_client is missing."""
    return generate(lambda: tuple(families(measured)))


def generate(make: "Callable[[], tuple[Metric, ...]]") -> bytes:
    """Return metrics in Prometheus's text format. Raises: OrchestratorError where prometheus_client is missing."""
    try:
        from prometheus_client import generate_latest
    except ImportError:
        raise OrchestratorError(
            "metrics need prometheus_client, which is not installed",
            hint='pip install "poolferry[metrics]", or apt install python3-prometheus-client',
        ) from None
    return bytes(generate_latest(_MetricsCollector(make())))


class _MetricsCollector:
    """The collector from which generate_latest reads the metrics."""

    def __init__(self, found: "tuple[Metric, ...]") -> None:
        self._found = found

    def collect(self) -> "Iterable[Metric]":
        return self._found


def families(measured: MetricsInput) -> "Iterator[Metric]":
    """Yield all metrics. Unknown values are left out, never 0."""
    each = measured.standing
    yield make_gauge("build_info", "The version that wrote these numbers.", ("version",), [((__version__,), 1)])
    yield make_gauge("look_timestamp_seconds", "When these numbers were taken.", (), [((), measured.now.timestamp())])
    yield make_gauge("notices_queued", "Messages that no channel has taken yet.", (), [((), measured.queued)])
    yield make_gauge(
        "job_due_since_timestamp_seconds", "The instant of the due run of a job that has not ended yet.", (_JOB,),
        [((name,), since.timestamp()) for name, since in sorted(measured.due.items())],
    )  # fmt: skip
    yield from _of_jobs(each, measured.stray)
    yield from _of_copies(each)
    yield from _of_runs(each)
    yield from _totals(measured.totals)


def _of_jobs(found: Sequence[JobStatus], stray: Sequence[StrayCopies]) -> "Iterator[Metric]":
    job = (_JOB,)
    states = [*((one.job.name, one.health.state) for one in found), *((one.job, JobState.NO_FILE) for one in stray)]
    yield make_gauge(
        "job_info", "What a job copies, and where to.", (_JOB, "engine", "source", "target"),
        [((one.job.name, one.job.engine, show_name(str(one.job.tree)), show_name(str(one.job.target.location))), 1) for one in found],
    )  # fmt: skip
    yield make_gauge(
        "job_state", "How a job stands: 1 for the state that it is in.", (_JOB, "state"),
        [((name, state.value), float(judged is state)) for name, judged in states for state in JobState],
    )  # fmt: skip
    yield make_gauge(
        "job_late_after_seconds", "The age from which on a job's newest verified copy is late.", job,
        [((one.job.name,), one.job.late_after) for one in found],
    )  # fmt: skip
    yield make_gauge(
        "job_failures", "Runs that ended badly since the last one that ended well.", job,
        [((one.job.name,), one.facts.failures) for one in found],
    )  # fmt: skip
    yield make_gauge(
        "job_running_since_timestamp_seconds", "When the run began that is running now.", job,
        [((one.job.name,), one.running.begun_at.timestamp() if one.running else None) for one in found],
    )  # fmt: skip


def _of_copies(found: Sequence[JobStatus]) -> "Iterator[Metric]":
    place = (_JOB, "place")
    yield make_gauge(
        "job_newest_copy_timestamp_seconds", "When a verified copy was last as the source was.", place,
        [((one.job.name, copy.place), copy.current_at.timestamp()) for one in found for copy in one.facts.copies],
    )  # fmt: skip
    yield make_gauge(
        "job_copies_unseen_since_timestamp_seconds",
        "Since when looks at the place do not find its copies, which may be gone; without a value they are found.", place,
        [((one.job.name, one.facts.copies[0].place), one.unseen.since.timestamp()) for one in found if one.unseen],
    )  # fmt: skip
    yield make_gauge(
        "job_restore_points", "Restore points that are there.", place,
        [((one.job.name, one.job.target.name), one.points.number) for one in found],
    )  # fmt: skip
    yield make_gauge(
        "job_unsound_restore_points", "Restore points in which the last reading found damage.", place,
        [((one.job.name, one.job.target.name), one.points.unsound) for one in found],
    )  # fmt: skip
    yield make_gauge(
        "job_last_verified_timestamp_seconds", "When all of a restore point was last read again.", (_JOB,),
        [((one.job.name,), one.points.whole_at.timestamp() if one.points.whole_at else None) for one in found],
    )  # fmt: skip


def _of_runs(found: Sequence[JobStatus]) -> "Iterator[Metric]":
    job = (_JOB,)
    ended = [(one.job.name, one.last) for one in found if one.last is not None]
    yield make_gauge(
        "job_last_run_outcome", "How the last run ended: 1 for its outcome.", (_JOB, "outcome"),
        [((name, outcome), float(run.outcome == outcome)) for name, run in ended for outcome in _ENDED],
    )  # fmt: skip
    yield make_gauge(
        "job_last_run_timestamp_seconds", "When the last run ended.", job,
        [((name,), run.ended_at.timestamp() if run.ended_at else None) for name, run in ended],
    )  # fmt: skip
    yield make_gauge(
        "job_last_run_duration_seconds",
        "How long the last run took.",
        job,
        [((name,), run.took_s) for name, run in ended],
    )
    yield make_gauge(
        "job_last_run_moved_bytes", "What the last run moved.", job, [((name,), run.moved_bytes) for name, run in ended]
    )
    yield make_gauge(
        "job_last_run_warnings", "Warnings of the last run.", job, [((name,), len(run.warnings)) for name, run in ended]
    )
    well = [(one.job.name, one.facts.last_well) for one in found]
    yield make_gauge(
        "job_last_success_timestamp_seconds", "When a run last ended well.", job,
        [((name,), run.ended_at.timestamp() if run and run.ended_at else None) for name, run in well],
    )  # fmt: skip


def _totals(totals: Sequence[RunTotals]) -> "Iterator[Metric]":
    by = (_JOB, "outcome")
    yield _counter(
        "runs", "Runs that have ended, as far as history goes back.", by, [((e.job, e.outcome), e.runs) for e in totals]
    )
    yield _counter("moved_bytes", "What these runs moved.", by, [((e.job, e.outcome), e.moved_bytes) for e in totals])
    yield _counter(
        "run_duration_seconds", "How long these runs took.", by, [((e.job, e.outcome), e.took_s) for e in totals]
    )


def make_gauge(name: str, says: str, labels: tuple[str, ...], samples: Iterable[Sample]) -> "Metric":
    """Return one metric of ours with its samples; unknown numbers are left out."""
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(f"poolferry_{name}", says, labels=labels)
    for values, number in samples:
        if number is not None:
            family.add_metric(values, number)
    return family


def _counter(name: str, says: str, labels: tuple[str, ...], samples: Iterable[Sample]) -> "Metric":
    from prometheus_client.core import CounterMetricFamily

    family = CounterMetricFamily(f"poolferry_{name}", says, labels=labels)
    for values, number in samples:
        family.add_metric(values, number or 0)
    return family
