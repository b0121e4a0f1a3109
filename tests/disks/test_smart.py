"""Test what a disk says of its own health: read from what smartctl 7.3 printed of emulated disks, one of which had failed.

Where no emulated disk can fail so, the record is changed as smartctl would print it.
"""

import json

import pytest

from orchestrator.disks.smart import ask_health, health_pipeline, parse_health
from orchestrator.process.pipeline import StopReason
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.disks.smart import FAILED, SECTORS, recorded, sata
from tests.planners.rotation_world import device


def scsi() -> bytes:
    words = {"asc": 93, "ascq": 0, "ie_string": "FAILURE PREDICTION THRESHOLD EXCEEDED"}
    return json.dumps({"smart_status": {"passed": False, "scsi": words}}).encode()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (recorded("sata-well"), ""),
        (recorded("nvme-well"), ""),
        (recorded("nvme-failing"), "SMART says FAILED: spare below threshold; reliability degraded"),
        (recorded("usb-bridge"), None),
        (sata(5), f"SMART says that it may fail soon: {SECTORS}"),
        (sata(5, smart_status={"passed": False}), FAILED),
        (sata(smart_status={"passed": False}), "SMART says FAILED"),
        (sata(5, when_failed="past"), ""),
        (sata(190, prefailure=False), ""),
        (sata(smart_status={}), None),
        (scsi(), "SMART says FAILED: FAILURE PREDICTION THRESHOLD EXCEEDED"),
        (b"", None),
        (sata()[:-9], None),
        (b"[]", None),
        (sata(smart_status=None), None),
        (b'{"ata_smart_attributes": {"table": [{"when_failed": "now"}]}}', None),
    ],
)
def test_a_verdict(text: bytes, said: str | None) -> None:
    assert parse_health(text) == said


def test_the_whole_disk_is_asked_and_its_exit_status_is_not_believed() -> None:
    part, requested = device("sdb1", disk="sdb"), "smartctl -j -H -A /dev/sdb"
    assert str(health_pipeline("sdb")) == requested
    assert ask_health(part, ScriptedExecutor({requested: scripted_result(sata(), exits=(64,))})) == ""
    assert (
        ask_health(part, ScriptedExecutor({requested: scripted_result(sata(smart_status={"passed": False}))}))
        == "SMART says FAILED"
    )


def test_who_cannot_be_asked_is_silent() -> None:
    requested, part = "smartctl -j -H -A /dev/sdb", device("sdb1", disk="sdb")
    missing = scripted_result(exits=(127,), words="smartctl: command not found")
    stuck = type(missing)(exits=(None,), stopped=StopReason.TIMED_OUT)
    assert [ask_health(part, ScriptedExecutor({requested: told})) for told in (missing, stuck)] == [None, None]
