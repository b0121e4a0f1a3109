"""Numbers of a whole fleet for Prometheus: one exporter at the centre, a few series for each host."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.domain.fleet_status import FleetHost, HostState
from orchestrator.views.metrics import generate, make_gauge

if TYPE_CHECKING:
    from prometheus_client.core import Metric

_HOST = "backup_host"  # Prometheus and its exporters have a "host" and an "instance" of their own


def fleet_metrics_text(hosts: Sequence[FleetHost], now: datetime) -> bytes:
    """Return all numbers in Prometheus's text format. Raises: OrchestratorError where prometheus_client is missing."""
    return generate(lambda: tuple(_families(hosts, now)))


def _families(hosts: Sequence[FleetHost], now: datetime) -> "Iterator[Metric]":
    host = (_HOST,)
    yield make_gauge("fleet_look_timestamp_seconds", "When these numbers were taken.", (), [((), now.timestamp())])
    yield make_gauge(
        "fleet_hosts", "Hosts by state.", ("state",),
        [((state.value,), sum(each.state is state for each in hosts)) for state in HostState],
    )  # fmt: skip
    yield make_gauge(
        "fleet_host_silent", "1 for a host that has not kept its promise of a sign of life.", host,
        [((each.name,), float(each.state is HostState.SILENT)) for each in hosts],
    )  # fmt: skip
    yield make_gauge(
        "fleet_host_seen_timestamp_seconds", "The last sign of life of a host, by the centre's clock.", host,
        [((each.name,), each.seen.timestamp() if each.seen else None) for each in hosts],
    )  # fmt: skip
    yield make_gauge(
        "fleet_host_jobs", "Jobs that a host declares.", host, [((each.name,), each.jobs) for each in hosts]
    )
    yield make_gauge(
        "fleet_host_jobs_bad", "Jobs of a host that are late, failing or incomplete.", host,
        [((each.name,), each.bad) for each in hosts],
    )  # fmt: skip
    yield make_gauge(
        "fleet_host_oldest_copy_timestamp_seconds", "The oldest of the newest verified copies of a host's jobs.", host,
        [((each.name,), each.oldest_copy.timestamp() if each.oldest_copy else None) for each in hosts],
    )  # fmt: skip
    yield make_gauge(
        "fleet_host_clock_ahead_seconds", "How far a host's clock is before the centre's.", host,
        [((each.name,), each.clock_ahead.total_seconds() if each.clock_ahead is not None else None) for each in hosts],
    )  # fmt: skip
    yield make_gauge(
        "fleet_host_told_bytes", "Bytes of the rows that a host told.", host, [((each.name,), each.told) for each in hosts],
    )  # fmt: skip
    yield make_gauge(
        "fleet_host_quota_bytes",
        "Bytes of rows that a host may tell.",
        host,
        [((each.name,), each.most) for each in hosts],
    )
    yield make_gauge(
        "fleet_host_rows_waiting", "Rows that a host had not told yet at its last sign of life.", host,
        [((each.name,), each.waiting) for each in hosts],
    )  # fmt: skip
