"""Which disks are here: what lsblk and blkid print, read into devices. Pure."""

import json
from typing import Any

import pytest

from orchestrator.domain.device import Device
from orchestrator.domain.errors import OutsideError
from orchestrator.process.result import StopReason
from orchestrator.process.scripted import Scripted, answer
from orchestrator.targets.failures import Damaged
from orchestrator.targets.presence import (
    find_path,
    merged,
    parse_probe,
    parse_tree,
    probe_pipeline,
    survey_devices,
    tree_pipeline,
)


def node(name: str, kind: str = "disk", **more: Any) -> dict[str, Any]:
    told = {
        "kname": name, "path": f"/dev/{name}", "size": 1 << 30, "type": kind, "ro": False, "rm": False, "hotplug": False,
        "tran": None, "serial": None, "model": None, "wwn": None, "fstype": None, "uuid": None, "label": None,
        "pttype": None, "mountpoints": [None],
    }  # fmt: skip
    return {**told, **more}


def tree(*nodes: dict[str, Any]) -> bytes:
    return json.dumps({"blockdevices": nodes}).encode()


STICK = node(
    "sdb", tran="usb", hotplug=True, serial=" S1 ", model="WD  Elements ", wwn="0x5", pttype="gpt",
    children=[
        node("sdb1", "part", fstype="crypto_LUKS", uuid="AB-CD", pttype="gpt", children=[
            node("dm-0", "crypt", path="/dev/mapper/open", fstype="ext4", uuid="in", mountpoints=["/media/x"]),
        ]),
        node("sdb2", "part", fstype="vfat", label="EFI", pttype="gpt", ro=True),
    ],
)  # fmt: skip


def test_partitions_have_what_their_disk_tells_and_what_was_made_on_them() -> None:
    whole, first, inner, second = parse_tree(tree(STICK))
    assert (whole.parts, whole.table, whole.external, whole.above) == (("sdb1", "sdb2"), "gpt", True, ())
    assert (first.disk, first.serial, first.model, first.wwn, first.external) == (
        "sdb",
        "S1",
        "WD  Elements",
        "0x5",
        True,
    )
    assert (first.kind, first.uuid, first.table) == ("crypto_LUKS", "ab-cd", "")
    assert (first.above, first.at) == (("dm-0",), ("/media/x",))
    assert (inner.name, inner.disk, inner.external, inner.at) == ("dm-0", "dm-0", False, ("/media/x",))
    assert (second.read_only, second.label, second.at) == (True, "EFI", ())


@pytest.mark.parametrize(
    ("told", "external"),
    [({"tran": "usb"}, True), ({"hotplug": True}, True), ({"rm": True}, True), ({"tran": "sata"}, False), ({}, False)],
)
def test_what_may_be_pulled_out(told: dict[str, Any], external: bool) -> None:
    assert parse_tree(tree(node("sda", **told)))[0].external is external
    assert not parse_tree(tree(node("sr0", "rom", hotplug=True)))[0].external


def test_a_device_that_is_on_two_disks_is_told_once() -> None:
    array = node("md0", "raid1")
    assert [each.name for each in parse_tree(tree(node("sda", children=[array]), node("sdb", children=[array])))] == [
        "sda", "md0", "sdb",
    ]  # fmt: skip


PROBED = b"""DEVNAME=/dev/sdb
PTTYPE=gpt

DEVNAME=/dev/sdc
LABEL=my\\ disk
UUID=15440512953407512343
UUID_SUB=77
TYPE=zfs_member
"""


def test_what_is_read_from_the_medium_counts_more_than_what_udev_remembers() -> None:
    assert parse_probe(PROBED)["/dev/sdc"]["LABEL"] == "my disk"
    old = parse_tree(
        tree(node("sdc", fstype="ext4", uuid="old"), node("sdd", fstype="ext4", uuid="x"), node("sde", fstype="xfs"))
    )
    found = merged(old, ["/dev/sdc", "/dev/sdd"], parse_probe(PROBED))
    assert [(each.kind, each.uuid, each.sub) for each in found] == [
        ("zfs_member", "15440512953407512343", "77"), ("", "", ""), ("xfs", "", ""),
    ]  # fmt: skip
    assert [each.blank for each in found] == [False, True, False]


def surveyed(nodes: bytes, probe: tuple[str, ...] = (), told: Any = None) -> tuple[Device, ...]:
    script = {str(tree_pipeline()): answer(nodes)}
    return survey_devices(Scripted({**script, **({str(probe_pipeline(probe)): told} if probe else {})}))


def test_only_what_may_be_pulled_out_or_is_unknown_is_read() -> None:
    known = node("sda", fstype="ext4", uuid="x")
    used = node("sdf", children=[node("dm-1", "lvm", fstype="ext4")])
    assert [each.uuid for each in surveyed(tree(known, used))] == ["x", "", ""]
    found = surveyed(
        tree(known, node("sdc", tran="usb"), node("sdd", size=0, tran="usb")), ("/dev/sdc",), answer(PROBED)
    )
    assert [each.uuid for each in found] == ["x", "15440512953407512343", ""]


def test_nothing_found_is_an_answer_and_a_failure_is_none() -> None:
    stick = tree(node("sdb", tran="usb", fstype="ext4"))
    assert surveyed(stick, ("/dev/sdb",), answer(exits=(2,)))[0].blank
    with pytest.raises(Damaged):
        surveyed(stick, ("/dev/sdb",), answer(exits=(4,), words="blkid: /dev/sdb: Input/output error"))
    stuck = answer(exits=(None,))
    with pytest.raises(OutsideError, match="did not end"):
        surveyed(stick, ("/dev/sdb",), type(stuck)(exits=(2,), stopped=StopReason.TIMED_OUT))
    with pytest.raises(OutsideError):
        survey_devices(Scripted({str(tree_pipeline()): answer(exits=(1,), words="lsblk: failed")}))


def test_a_link_leads_to_its_device() -> None:
    script = {
        "readlink -f /dev/disk/by-id/usb-x": answer(b"/dev/sdb\n"), str(tree_pipeline()): answer(tree(node("sdb"))),
        str(probe_pipeline(["/dev/sdb"])): answer(exits=(2,)),
    }  # fmt: skip
    found = find_path("/dev/disk/by-id/usb-x", Scripted(script))
    assert found is not None
    assert found.name == "sdb"
    gone = {**script, "readlink -f /dev/sdz": answer(exits=(1,))}
    assert find_path("/dev/sdz", Scripted(gone)) is None
