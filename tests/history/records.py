"""Small builders for what the history is told."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from orchestrator.domain.errors import Evidence
from orchestrator.domain.point import Finding, Verdict, VerificationResult
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.history import schema
from orchestrator.history.store import History

NOON = datetime(2026, 3, 29, 12, 0, 0, 123456, tzinfo=UTC)
ODD = b"caf\xe9 \xff\n\\x \xc3\xa4".decode("utf-8", "surrogateescape")
EVIDENCE = Evidence(lines=(f"rsync {ODD}",), exits=(23, None), last_output=(ODD, ""), host="backup")


OLDER = 10  # a format of the history


def later(**by: float) -> datetime:
    """A while after noon."""
    return NOON + timedelta(**by)


def begin(history: History, job: str = "photos", *, now: datetime = NOON, **other: Any) -> int:
    """A begun run."""
    told: dict[str, Any] = {
        "engine": "rsync",
        "source": "/srv/photos",
        "target": "backup",
        "pid": 4711,
        "process_started": 98765,
        "boot": "a-b-c",
        "host": "here",
        "why": "asked by hand",
    }
    return history.begin(job=job, now=now, **{**told, **other})


def report(run: int, job: str = "photos", outcome: Outcome = Outcome.DONE, **other: Any) -> RunReport:
    """Return how a run ended."""
    told: dict[str, Any] = {
        "why": "copied 3 files",
        "hint": "",
        "moved_bytes": 3000,
        "took_s": 1.5,
        "resumed": False,
        "attempts": 1,
        "steps": (),
        "points": (),
        "warnings": (),
    }
    return RunReport(run=run, job=job, outcome=outcome, **{**told, **other})


def finish(history: History, outcome: Outcome, job: str = "photos", *, now: datetime = NOON, **other: Any) -> int:
    """A run from begin to end."""
    run = begin(history, job, now=now, **other)
    history.ended(run, report(run, job, outcome), now)
    return run


def reading(*findings: Finding, **counts: int) -> VerificationResult:
    """A reading with these findings, or these numbers of them."""
    numbers = {Verdict(name): count for name, count in counts.items()}
    for finding in findings:
        numbers[finding.verdict] = numbers.get(finding.verdict, 0) + 1
    return VerificationResult(
        entries=10, files_read=8, bytes_read=800, took_s=0.25, counts=tuple(numbers.items()), findings=findings
    )


def older_history(path: Path) -> bytes:
    """Return the bytes of an empty history of an older format."""
    with closing(sqlite3.connect(path)) as connection, connection:
        schema.make_version(connection, OLDER)
        connection.execute(f"PRAGMA user_version = {OLDER}")
        connection.execute(f"PRAGMA application_id = {schema.MARK}")
    return path.read_bytes()
