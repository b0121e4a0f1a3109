"""Disks that were switched off and are still plugged in, on folders that look as the kernel's do."""

from pathlib import Path

from orchestrator.disks.power import find_asleep, forget_asleep, note_asleep, rescan_pipeline, socket_of, wake_disks
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.planners.rotation_world import disk

PORT = "devices/pci0000:00/usb2/2-2"


def plugged(root: Path, number: str = "3") -> Path:
    """A disk sdb on a USB port; the folder that stands for /sys/block."""
    below = root / PORT / "2-2:1.0/host6/target6:0:0/6:0:0:0/block/sdb"
    below.mkdir(parents=True, exist_ok=True)
    (root / "devices/pci0000:00/usb2/devnum").write_text("1\n")
    (root / PORT / "devnum").write_text(f"{number}\n")
    block = root / "block"
    block.mkdir(exist_ok=True)
    if not (block / "sdb").exists():
        (block / "sdb").symlink_to(below)
    return block


def test_where_a_disk_hangs(tmp_path: Path) -> None:
    found = socket_of("sdb", str(plugged(tmp_path)))
    assert found is not None
    assert (found.port, found.number, found.host) == (str(tmp_path / PORT), "3", "host6")
    (tmp_path / "block/vda").mkdir()
    assert socket_of("vda", str(tmp_path / "block")) is None, "it does not hang on USB"


def test_it_sleeps_until_it_is_taken_out_or_woken(tmp_path: Path) -> None:
    notes = str(tmp_path / "notes")
    assert find_asleep(disk(), notes) is None
    socket = socket_of("sdb", str(plugged(tmp_path)))
    assert socket is not None
    note_asleep(disk(), socket, notes)
    told = find_asleep(disk(), notes)
    assert told is not None
    assert told[0] == socket
    plugged(tmp_path, number="4")
    assert find_asleep(disk(), notes) is None, "something was plugged in there since"
    plugged(tmp_path)
    woken = ScriptedExecutor(
        {str(rescan_pipeline("host6")): scripted_result(exits=(0, 0)), "udevadm settle --timeout=20": scripted_result()}
    )
    assert wake_disks([disk(), disk(identity="another")], woken, notes) == (disk(),)
    assert str(rescan_pipeline("host6")) in map(str, woken.requested)
    assert find_asleep(disk(), notes) is not None, (
        "until a visit of it begins, nothing automatic takes it for a new arrival"
    )
    (tmp_path / disk().identity).touch()
    assert wake_disks([disk()], ScriptedExecutor({}), notes, str(tmp_path)) == (), "it is awake"
    forget_asleep(disk(), notes)
    assert find_asleep(disk(), notes) is None
    forget_asleep(disk(), notes)
    assert wake_disks([disk()], ScriptedExecutor({}), notes) == ()
