"""Safe is said only of a device that is quiet or gone."""

from typing import Any

import pytest

from orchestrator.disks import commands, release
from orchestrator.disks.detect import probe_pipeline, signatures_pipeline, tree_pipeline
from orchestrator.disks.release import ReleaseResult, release_disk
from orchestrator.domain.errors import OrchestratorError
from orchestrator.process.pipeline import PipelineResult
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.disks.lsblk import node, tree
from tests.planners.rotation_world import RED_UUID, device

RED = device("sdb")
PROBED = f"DEVNAME=/dev/sdb\nUUID={RED_UUID}\nTYPE=ext4\n".encode()


@pytest.fixture(autouse=True)
def unheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """/dev/sdb of these tests is none of this machine; who holds a real one is tried with real disks."""
    monkeypatch.setattr(release, "_held_by", {"/dev/sdb": ("", "")}.__getitem__)


def script(**more: Any) -> ScriptedExecutor:
    return ScriptedExecutor(answers(**more))


def answers(
    *, probed: bytes | None = PROBED, in_flight: bytes = b"0 0\n", here: bool = True, **more: Any
) -> dict[str, PipelineResult]:
    nodes = [node("sdb", tran="usb", fstype="ext4", uuid=RED_UUID, **more)] if here else [node("sda", fstype="ext4")]
    return {
        str(commands.flush("/dev/sdb")): scripted_result(), str(commands.switch_off("sdb")): scripted_result(exits=(0, 0)),
        str(tree_pipeline()): scripted_result(tree(*nodes)),
        str(probe_pipeline("/dev/sdb")): scripted_result(probed) if probed else scripted_result(exits=(2,)),
        str(signatures_pipeline("/dev/sdb")): scripted_result(exits=(1,)),
        str(commands.in_flight("sdb")): scripted_result(in_flight),
    }  # fmt: skip


def test_a_quiet_disk_and_one_that_is_gone_are_safe() -> None:
    assert release_disk(RED, script(), power_off=False) == ReleaseResult(hinders="")
    assert release_disk(RED, script(here=False), power_off=True) == ReleaseResult(hinders="")
    assert release_disk(RED, script(probed=PROBED.replace(b"0b7f", b"1111")), power_off=False) == ReleaseResult(
        hinders=""
    ), "another disk by now"


@pytest.mark.parametrize(
    ("used", "why"),
    [
        (script(mountpoints=["/media/x"]), "mounted at /media/x"),
        (script(children=[node("dm-0", "crypt", fstype="ext4")]), "in use by dm-0"),
        (script(probed=None), "it does not answer"),
        (script(in_flight=b"       0        3\n"), "it still works"),
    ],
)
def test_a_disk_that_is_used_or_works_is_not_safe(
    used: ScriptedExecutor, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "_PAUSE", 0)
    assert why in release_disk(RED, used, power_off=False).hinders


def test_what_others_still_read_of_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "_PAUSE", 0)
    busy, line = iter([True] * 3), str(commands.in_flight("sdb"))
    first = (lambda pipeline: str(pipeline) == line and next(busy, False), scripted_result(b"3 0\n"))
    assert release_disk(RED, ScriptedExecutor([first, *answers().items()]), power_off=False).hinders == ""
    assert next(busy, None) is None


def beside(*more: dict[str, Any], **told: Any) -> ScriptedExecutor:
    """Our disk with more nodes beside it."""
    own = node("sdb", tran="usb", fstype="ext4", uuid=RED_UUID, hctl="6:0:0:0", **told)
    probed = {str(probe_pipeline("/dev/sdc")): scripted_result(b"DEVNAME=/dev/sdc\nTYPE=ext4\n")}
    return ScriptedExecutor({**answers(), **probed, str(tree_pipeline()): scripted_result(tree(own, *more))})


def test_a_disk_whose_neighbour_in_the_same_case_is_in_use_is_safe_and_its_case_is_not() -> None:
    other = node("sdc", tran="usb", fstype="ext4", hctl="6:0:0:1", mountpoints=["/mnt/theirs"])
    found = release_disk(device("sdb", case="6:0:0"), beside(other), power_off=True)
    assert found == ReleaseResult(hinders="", beside="/dev/sdc is mounted at /mnt/theirs")
    elsewhere = node("sdc", tran="usb", fstype="ext4", hctl="7:0:0:0", mountpoints=["/mnt/theirs"])
    assert release_disk(device("sdb", case="6:0:0"), beside(elsewhere), power_off=True) == ReleaseResult(hinders="")


def test_a_disk_of_which_another_part_is_in_use_is_neither_switched_off_nor_safe() -> None:
    parts = [
        node("sdb1", "part", fstype="ext4", uuid=RED_UUID), node("sdb2", "part", fstype="ext4", mountpoints=["/mnt/theirs"]),
    ]  # fmt: skip
    whole = node("sdb", tran="usb", hctl="6:0:0:0", children=parts)
    used = ScriptedExecutor({
        **answers(), str(tree_pipeline()): scripted_result(tree(whole)), str(commands.flush("/dev/sdb1")): scripted_result(),
        str(probe_pipeline("/dev/sdb1")): scripted_result(PROBED.replace(b"/dev/sdb", b"/dev/sdb1")),
        str(probe_pipeline("/dev/sdb2")): scripted_result(b"DEVNAME=/dev/sdb2\nTYPE=ext4\n"),
    })  # fmt: skip
    found = release_disk(device("sdb1", disk="sdb"), used, power_off=True)
    assert found.hinders == "/dev/sdb2, another part of the same disk, is mounted at /mnt/theirs"
    assert str(commands.switch_off("sdb")) not in map(str, used.requested)


def test_only_what_may_be_pulled_out_is_switched_off() -> None:
    off = str(commands.switch_off("sdb"))
    for external, power_off, wanted in ((True, True, True), (True, False, False), (False, True, False)):
        used = script()
        release_disk(device("sdb", external=external), used, power_off=power_off)
        assert (off in map(str, used.requested)) is wanted


def test_what_cannot_be_flushed_is_not_safe() -> None:
    broken = ScriptedExecutor(
        {str(commands.flush("/dev/sdb")): scripted_result(exits=(1,), words="Input/output error")}
    )
    with pytest.raises(OrchestratorError):
        release_disk(RED, broken, power_off=False)
