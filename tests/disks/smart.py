"""Samples of smartctl's output: of real disks, and of one that fails."""

import json
from pathlib import Path
from typing import Any

SECTORS = "Reallocated_Sector_Ct is at 36 (threshold 36, counted 0)"
FAILED = f"SMART says FAILED: {SECTORS}"


def recorded(name: str) -> bytes:
    return (Path(__file__).parent / "recorded" / f"smartctl-{name}.json").read_bytes()


def sata(reached: int = 0, when_failed: str = "now", *, prefailure: bool = True, **status: Any) -> bytes:
    """A SATA disk, of which an attribute, by its number, has reached its threshold."""
    told = json.loads(recorded("sata-well"))
    for each in told["ata_smart_attributes"]["table"]:
        if each["id"] == reached:
            each |= {"value": each["thresh"], "when_failed": when_failed}
            each["flags"]["prefailure"] = prefailure
    return json.dumps({**told, **status}).encode()
