"""Test which disks are here: what lsblk and blkid print, read into devices."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestrator.disks import detect
from orchestrator.disks.detect import (
    empty_pipelines,
    find_path,
    parse_probe,
    parse_signatures,
    parse_tree,
    probe_pipeline,
    signatures_pipeline,
    survey_devices,
    tree_pipeline,
)
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.errors import OutsideError
from orchestrator.domain.rotation import Disk
from orchestrator.process.pipeline import StopReason
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.disks.lsblk import node, tree

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


def test_disks_behind_one_bridge_are_in_one_case() -> None:
    visit_context = [
        node("sdb", tran="usb", hctl="6:0:0:0", children=[node("sdb1", "part")]),
        node("sdc", tran="usb", hctl="6:0:0:1"),
    ]
    found = parse_tree(
        tree(*visit_context, node("sdd", tran="usb", hctl="7:0:0:0"), node("sde", tran="sas", hctl="6:0:0:2"))
    )
    assert [each.case for each in found] == ["6:0:0", "6:0:0", "6:0:0", "7:0:0", ""]


def test_a_device_that_is_on_two_disks_is_told_once() -> None:
    array = node("md0", "raid1")
    assert [each.name for each in parse_tree(tree(node("sda", children=[array]), node("sdb", children=[array])))] == [
        "sda", "md0", "sdb",
    ]  # fmt: skip


PROBED = b"""DEVNAME=/dev/sdc
LABEL=my\\ disk
UUID=15440512953407512343
UUID_SUB=77
TYPE=zfs_member
"""
NOTHING = scripted_result(b'{"signatures": []}')
TWO = scripted_result(
    b'{"signatures": [{"type": "ext4", "uuid": "x"}, {"type": "zfs_member"}, {"type": "zfs_member"}]}'
)
UNREADABLE = scripted_result(exits=(1,), words="wipefs: error: /dev/sdc: probing initialization failed")


def surveyed(nodes: bytes, probe: Any = None, signatures: Any = None, end: int = 0) -> tuple[BlockDevice, ...]:
    """Return what is found where only /dev/sdc is read. `end`: what cmp says of its last MiB."""
    first, last = empty_pipelines("/dev/sdc", 1 << 30)
    script = {
        str(tree_pipeline()): scripted_result(nodes), str(probe_pipeline("/dev/sdc")): probe,
        str(signatures_pipeline("/dev/sdc")): signatures, str(first): scripted_result(),
        str(last): scripted_result(exits=(end,)),
    }  # fmt: skip
    return survey_devices(ScriptedExecutor({question: told for question, told in script.items() if told is not None}))


def stick(**more: Any) -> bytes:
    return tree(node("sdc", tran="usb", **more))


def test_what_is_read_from_the_medium_counts_more_than_what_udev_remembers() -> None:
    (found,) = surveyed(stick(fstype="ext4", uuid="old"), scripted_result(PROBED))
    assert (found.kind, found.uuid, found.sub, found.label) == ("zfs_member", "15440512953407512343", "77", "my disk")
    assert parse_probe(b"DEVNAME=/dev/sdb\nPTTYPE=gpt\n\n" + PROBED)["/dev/sdb"] == {"PTTYPE": "gpt"}


def test_only_what_may_be_pulled_out_or_is_unknown_is_read() -> None:
    known = node("sda", fstype="ext4", uuid="x")
    used = node("sdf", children=[node("dm-1", "lvm", fstype="ext4")])
    assert [each.uuid for each in surveyed(tree(known, used, node("sdd", size=0, tran="usb")))] == ["x", "", "", ""]
    found = surveyed(tree(known, node("sdc")), scripted_result(PROBED))
    assert [each.uuid for each in found] == ["x", "15440512953407512343"]


def test_only_what_was_read_is_blank() -> None:
    """Source: blkid(8), exit 2: "if the specified token was not found, or no devices could be identified"."""
    (found,) = surveyed(stick(fstype="ext4", uuid="old"), scripted_result(exits=(2,)), NOTHING)
    assert (found.blank, found.uuid, found.answers) == (True, "", True)
    (found,) = surveyed(stick(), scripted_result(exits=(2,)), UNREADABLE)
    assert (found.blank, found.answers) == (False, False)
    (found,) = surveyed(stick(), scripted_result(exits=(2,)), NOTHING, end=2)
    assert (found.blank, found.answers) == (False, False), "wipefs tells nothing of it either"
    (found,) = surveyed(stick(), scripted_result(exits=(2,)), NOTHING, end=1)
    assert (found.blank, found.kind) == (False, "data of no known kind"), "as an encrypted volume"
    stuck = type(NOTHING)(exits=(None,), stopped=StopReason.TIMED_OUT)
    (found,) = surveyed(stick(fstype="ext4", uuid="old"), stuck, stuck)
    assert (found.blank, found.answers, found.uuid) == (False, False, "old"), "what udev remembers tells whose it is"


def test_what_holds_two_things_is_not_blank_and_hides_no_other_disk() -> None:
    """Source: blkid(8), exit 8: an ambivalent probing result; it ends there, whatever devices follow."""
    ambivalent = scripted_result(exits=(8,), words="blkid: /dev/sdc: ambivalent result")
    found = surveyed(tree(node("sdc", tran="usb"), node("sda", fstype="ext4", uuid="x")), ambivalent, TWO)
    assert [(each.kind, each.uuid) for each in found] == [("ext4 and zfs_member", ""), ("ext4", "x")]
    assert parse_signatures(b"") == (), "as some versions of wipefs tell of a blank device"


def test_a_tree_that_cannot_be_listed_is_a_failure() -> None:
    with pytest.raises(OutsideError):
        survey_devices(ScriptedExecutor({str(tree_pipeline()): scripted_result(exits=(1,), words="lsblk: failed")}))


def test_a_link_leads_to_its_device() -> None:
    script = {
        "readlink -f /dev/disk/by-id/usb-x": scripted_result(b"/dev/sdb\n"), str(tree_pipeline()): scripted_result(tree(node("sdb"))),
        str(probe_pipeline("/dev/sdb")): scripted_result(exits=(2,)), str(signatures_pipeline("/dev/sdb")): NOTHING,
        **{str(each): scripted_result() for each in empty_pipelines("/dev/sdb", 1 << 30)},
    }  # fmt: skip
    found, (only,) = find_path("/dev/disk/by-id/usb-x", ScriptedExecutor(script))
    assert found is not None
    assert found.name == only.name == "sdb"
    gone = {**script, "readlink -f /dev/sdz": scripted_result(exits=(1,))}
    assert find_path("/dev/sdz", ScriptedExecutor(gone))[0] is None


HIDES = """import ctypes, os
os.setresuid(USER, USER, USER)
assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0  # PR_SET_DUMPABLE
print(flush=True)
input()
"""


@pytest.mark.root
@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "user", "exports"),
    [
        (("zpool", "export", "poolferry-blue"), 0, True), (("zpool", "export", "poolferry-blue"), 65534, False),
        (("zpool", "export"), 0, False), (("zpool", "export", "poolferry-red"), 0, False),
    ],
)  # fmt: skip
def test_only_an_export_of_roots_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: tuple[str, ...], user: int, exports: bool
) -> None:
    """A process that forbids to dump its memory owns no file below /proc: root does."""
    (tmp_path / "export").write_text(HIDES.replace("USER", str(user)))
    monkeypatch.setattr(detect, "node_path", lambda _: str(tmp_path))
    blue = Disk(name="blue", set="s", identity="1", content="zfs")
    with subprocess.Popen(
        words, executable="/usr/bin/python3", cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"\n"
        assert os.stat(f"/proc/{process.pid}/cmdline").st_uid == 0
        assert detect.pools_without_disk([blue]) == {"blue": exports}
        process.communicate(b"\n")
