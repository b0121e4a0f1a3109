"""What verifications found, as JSON."""

from typing import Any

from orchestrator.domain.names import show_name
from orchestrator.domain.point import Reading, Verified
from orchestrator.domain.run_values import report_value

_FINDINGS = 1000


def verified_value(verified: Verified) -> dict[str, Any]:
    """One verification for `verify --json`."""
    return {
        **report_value(verified.report),
        "point": verified.point,
        "reading": reading_value(verified.reading),
        "source": reading_value(verified.source),
    }


def reading_value(reading: Reading | None) -> dict[str, Any] | None:
    """What a reading found."""
    if reading is None:
        return None
    return {
        "sound": reading.sound,
        "entries": reading.entries,
        "files_read": reading.files_read,
        "bytes_read": reading.bytes_read,
        "took_s": round(reading.took_s, 3),
        "counts": {verdict.value: count for verdict, count in reading.counts},
        "findings": [
            {"path": show_name(found.path), "verdict": found.verdict.value, "detail": found.detail}
            for found in reading.findings[:_FINDINGS]
        ],
    }
