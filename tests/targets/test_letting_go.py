"""Safe is said only of a device that is quiet or gone. Pure."""

from typing import Any

import pytest

from orchestrator.domain.errors import OrchestratorError
from orchestrator.process.scripted import Scripted, answer
from orchestrator.targets import commands
from orchestrator.targets.letting_go import let_go
from orchestrator.targets.presence import probe_pipeline, signatures_pipeline, tree_pipeline
from tests.planners.rotating import RED_UUID, device
from tests.targets.test_presence import node, tree

RED = device("sdb")
PROBED = f"DEVNAME=/dev/sdb\nUUID={RED_UUID}\nTYPE=ext4\n".encode()


def script(*, probed: bytes | None = PROBED, in_flight: bytes = b"0 0\n", here: bool = True, **more: Any) -> Scripted:
    nodes = [node("sdb", tran="usb", fstype="ext4", uuid=RED_UUID, **more)] if here else [node("sda", fstype="ext4")]
    return Scripted({
        str(commands.flush("/dev/sdb")): answer(), str(commands.switch_off("sdb")): answer(exits=(0, 0)),
        str(tree_pipeline()): answer(tree(*nodes)), str(probe_pipeline("/dev/sdb")): answer(probed) if probed else answer(exits=(2,)),
        str(signatures_pipeline("/dev/sdb")): answer(exits=(1,)),
        str(commands.in_flight("sdb")): answer(in_flight),
    })  # fmt: skip


def test_a_quiet_disk_and_one_that_is_gone_are_safe() -> None:
    assert let_go(RED, script(), power_off=False) == ""
    assert let_go(RED, script(here=False), power_off=True) == ""
    assert let_go(RED, script(probed=PROBED.replace(b"0b7f", b"1111")), power_off=False) == "", "another disk by now"


@pytest.mark.parametrize(
    ("used", "why"),
    [
        (script(mountpoints=["/media/x"]), "mounted at /media/x"),
        (script(children=[node("dm-0", "crypt", fstype="ext4")]), "in use by dm-0"),
        (script(probed=None), "it does not answer"),
        (script(in_flight=b"       0        3\n"), "it still works"),
    ],
)
def test_a_disk_that_is_used_or_works_is_not_safe(used: Scripted, why: str) -> None:
    assert why in let_go(RED, used, power_off=False)


def test_only_what_may_be_pulled_out_is_switched_off() -> None:
    off = str(commands.switch_off("sdb"))
    for external, power_off, wanted in ((True, True, True), (True, False, False), (False, True, False)):
        used = script()
        let_go(device("sdb", external=external), used, power_off=power_off)
        assert (off in map(str, used.asked)) is wanted


def test_what_cannot_be_flushed_is_not_safe() -> None:
    broken = Scripted({str(commands.flush("/dev/sdb")): answer(exits=(1,), words="Input/output error")})
    with pytest.raises(OrchestratorError):
        let_go(RED, broken, power_off=False)
