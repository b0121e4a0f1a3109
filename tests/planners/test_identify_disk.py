"""Test which disk a device is; nothing may be taken for one of ours that is not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.authentication import AuthenticationKey
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.rotation import DiskMarker, DiskRecord, DiskState
from orchestrator.planners.identify_disk import (
    DeviceState,
    IdentifiedDevice,
    identify_devices,
    next_disk_name,
    verify_identity,
)
from tests.planners.rotation_world import BLUE_UUID, KEY, NOW, OWNER, RED_UUID, device, disk, known, marker, tagged


def one(found: tuple[IdentifiedDevice, ...]) -> IdentifiedDevice:
    (only,) = found
    return only


def test_one_of_ours_is_still_to_be_proved() -> None:
    found = one(identify_devices([device()], [disk(note="red sticker")], [known()]))
    assert (found.state, found.disk) == (DeviceState.TO_VERIFY, disk(note="red sticker"))
    assert found.says == "disk red (red sticker) is here (/dev/sdb)"


def test_neither_name_nor_label_nor_serial_make_a_disk_ours() -> None:
    stranger = device(uuid=BLUE_UUID, label="red", serial="S1")
    assert identify_devices([stranger], [disk()], [known()])[0].disk is None


def test_an_inner_disk_that_is_not_ours_is_nobodys_business() -> None:
    assert identify_devices([device(uuid=BLUE_UUID, external=False)], [disk()], []) == ()
    assert identify_devices([device(uuid="", kind="", size=0)], [disk()], []) == (), "a card reader without a card"


def test_an_inner_disk_may_be_ours() -> None:
    assert one(identify_devices([device(external=False)], [disk()], [])).state is DeviceState.TO_VERIFY


def test_a_whole_disk_counts_by_its_partitions_and_a_device_by_what_lies_below() -> None:
    whole = device("sdb", kind="", uuid="", parts=("sdb1",), table="gpt")
    part = device("sdb1", disk="sdb", above=("dm-0",))
    node = device("dm-0", external=False)
    assert [found.device.name for found in identify_devices([whole, part, node], [disk()], [])] == ["sdb1"]


def test_a_device_of_ours_that_lost_its_disk_is_no_copy_of_it() -> None:
    node = device("dm-0", path="/dev/mapper/poolferry-red", external=False)
    assert [found.state for found in identify_devices([node, device("sdc")], [disk()], [])] == [DeviceState.TO_VERIFY]


def test_a_pool_that_lost_its_disk_is_told_until_the_disk_is_back() -> None:
    pooled = disk(content="zfs", identity="17")
    told = one(identify_devices([], [pooled], [], held={"red": False}))
    assert (told.state, told.disk) == (DeviceState.HELD, pooled)
    assert "the pool of disk red is still held, and its disk is gone" in told.says
    assert "plug disk red in again, in any port" in told.hint
    assert [found.state for found in identify_devices([device(uuid="17")], [pooled], [], held={"red": False})] == [
        DeviceState.TO_VERIFY
    ]


def test_a_pool_whose_export_hangs_is_told_so_while_its_disk_is_away() -> None:
    told = one(identify_devices([], [disk(content="zfs", identity="17")], [], held={"red": True}))
    assert told.state is DeviceState.HELD
    assert "hangs in the kernel" in told.says
    assert told.hint.startswith("restart this machine")


STRANGERS = [
    (device(kind="", uuid="", serial="X", answers=False), DeviceState.SILENT, "it cannot be read", "another cable"),
    (device(kind="", uuid="", serial="X"), DeviceState.BLANK, "it is blank", "poolferry disks enroll /dev/sdb --set "),
    (device(uuid=BLUE_UUID, serial="X", label="PHOTOS", kind="exfat"), DeviceState.FOREIGN, 'exfat "PHOTOS"', "may be unplugged"),
    (device(uuid="1", serial="X", kind="zfs_member"), DeviceState.FOREIGN, "a pool", "may be unplugged"),
    (device(uuid="1", serial="X", kind="", table="dos"), DeviceState.FOREIGN, "a partition table", "may be unplugged"),
    (device(uuid="1", serial="X", kind="crypto_LUKS", model=""), DeviceState.FOREIGN, "/dev/sdb (serial X)", "may be"),
    (device(uuid=BLUE_UUID), DeviceState.REFORMATTED, "looks like disk red, but holds ext4 now", "poolferry disks lost red"),
    (device(uuid="", kind=""), DeviceState.REFORMATTED, "but is blank now", "poolferry disks lost red"),
]  # fmt: skip


@pytest.mark.parametrize(("found", "state", "says", "hint"), STRANGERS)
def test_a_stranger_is_told_and_left_alone(found: BlockDevice, state: DeviceState, says: str, hint: str) -> None:
    told = one(identify_devices([found], [disk()], [known()]))
    assert (told.state, told.disk) == (state, None)
    assert says in told.says
    assert "nothing was written to it" in told.says
    assert hint in told.hint


def test_a_serial_that_all_disks_of_a_case_tell_accuses_none() -> None:
    here, other = device("sdb"), device("sdc", uuid=BLUE_UUID)
    assert [found.state for found in identify_devices([here, other], [disk()], [known()])] == [
        DeviceState.TO_VERIFY,
        DeviceState.FOREIGN,
    ]
    assert (
        one(identify_devices([device(uuid=BLUE_UUID, serial="")], [disk()], [known(serial="")])).state
        is DeviceState.FOREIGN
    )


def test_a_copy_beside_its_disk_shuts_both_out() -> None:
    found = identify_devices([device("sdb"), device("sdc", serial="S2")], [disk()], [known()])
    assert [each.state for each in found] == [DeviceState.CLONE, DeviceState.CLONE]
    assert "serial S1" in found[0].says
    assert "serial S2" in found[0].says
    pool = [device("sdb", kind="zfs_member", sub="1"), device("sdc", kind="zfs_member", sub="2")]
    assert {each.state for each in identify_devices(pool, [disk()], [])} == {DeviceState.TO_VERIFY}, (
        "two parts of one pool"
    )


@pytest.mark.parametrize(
    ("found", "remembered", "state", "says"),
    [
        (device(read_only=True), known(), DeviceState.READ_ONLY, "can only be read"),
        (device(at=("/media/me/red",)), known(), DeviceState.IN_USE, "mounted at /media/me/red, by somebody else"),
        (device(at=("/run/poolferry/disks/red",)), known(), DeviceState.TO_VERIFY, "is here"),
        (device(answers=False), known(), DeviceState.SILENT, "red"),
        (device(), known(standing=DiskState.LOST), DeviceState.SET_ASIDE, "was said to be lost"),
        (device(), known(standing=DiskState.RETIRED), DeviceState.SET_ASIDE, "was said to be retired"),
    ],
)
def test_one_of_ours_that_cannot_be_used(found: BlockDevice, remembered: object, state: DeviceState, says: str) -> None:
    told = one(identify_devices([found], [disk()], [remembered]))  # type: ignore[list-item]
    assert told.state is state
    assert says in told.says
    assert told.hint or state is DeviceState.TO_VERIFY


MARKED = [
    (marker(), known(), DeviceState.READY, "it is the one"),
    (marker(), None, DeviceState.READY, "it is the one"),
    (marker(generation=6), known(generation=6), DeviceState.READY, "it is the one"),
    (marker(generation=5), known(generation=6), DeviceState.READY, "it is the one"),
    (marker(generation=4), known(), DeviceState.STALE, "it is at visit 4, and disk red has had 5"),
    (marker(generation=6), known(), DeviceState.NEWER, "it has had 6 visits, and history knows of 5"),
    (marker(owner="b" * 32, host="nas"), known(), DeviceState.ANOTHER_HOST, 'disk red of the machine "nas"'),
    (None, known(), DeviceState.NOT_VERIFIED, "no marker of ours"),
    (marker(name="blue"), known(), DeviceState.NOT_VERIFIED, "says disk blue of the set offsite, not red of offsite"),
    (marker(set="home"), None, DeviceState.NOT_VERIFIED, "says disk red of the set home"),
    (marker(disk="d2"), known(), DeviceState.NOT_VERIFIED, "says disk red"),
]


@pytest.mark.parametrize(("seen", "remembered", "state", "says"), MARKED)
def test_the_marker_decides(seen: object, remembered: object, state: DeviceState, says: str) -> None:
    told = verify_identity(disk(), device(), tagged(seen), remembered, OWNER, key=KEY, tagged=True)  # type: ignore[arg-type]
    assert told.state is state
    assert says in told.says
    assert bool(told.hint) is (state is not DeviceState.READY)
    assert ("nothing was written to it" in told.says) is (state is not DeviceState.READY)


OTHER = AuthenticationKey(b"o" * 32, NOW)
TAGS = [
    (marker(), known(), False, DeviceState.READY, ""),
    (marker(), known(), True, DeviceState.LOOK_ALIKE, "a disk that looks like red"),
    (marker(), None, False, DeviceState.NOT_VERIFIED, "has no tag, and history does not know the disk"),
    (tagged(marker(), OTHER), known(), False, DeviceState.NOT_VERIFIED, f"the tag of the key {OTHER.id}"),
    (tagged(marker(), OTHER), None, False, DeviceState.NOT_VERIFIED, "which is not on this machine"),
    (tagged(marker(), OTHER), known(), True, DeviceState.LOOK_ALIKE, "does not have the tag of this host's key"),
    (tagged(marker()), None, False, DeviceState.READY, "it is the one"),
    (marker(authentication=f"{KEY.id}:"), known(), False, DeviceState.LOOK_ALIKE, "a disk that looks like red"),
    (marker(authentication=f"{KEY.id}:\udcff"), known(), False, DeviceState.LOOK_ALIKE, "a disk that looks like red"),
    (replace(tagged(marker()) or marker(), generation=6), known(generation=6), True, DeviceState.LOOK_ALIKE, "looks like"),
    (replace(tagged(marker()) or marker(), disk="d2"), known(), True, DeviceState.LOOK_ALIKE, "looks like red"),
    (replace(tagged(marker()) or marker(), host="nas"), known(), True, DeviceState.LOOK_ALIKE, "looks like red"),
    (marker(generation=4), known(), True, DeviceState.STALE, "an older copy of disk red"),
    (marker(generation=4, authentication=f"{KEY.id}:0"), known(), True, DeviceState.LOOK_ALIKE, "looks like red"),
    (marker(name="green"), None, False, DeviceState.NOT_VERIFIED, "says disk green"),
    (marker(owner="b" * 32, host="nas"), known(), True, DeviceState.ANOTHER_HOST, 'of the machine "nas"'),
]  # fmt: skip


@pytest.mark.parametrize(("seen", "remembered", "before", "state", "says"), TAGS)
def test_the_tag_decides_too(
    seen: DiskMarker, remembered: DiskRecord | None, before: bool, state: DeviceState, says: str
) -> None:
    told = verify_identity(disk(), device(), seen, remembered, OWNER, key=KEY, tagged=before)
    assert told.state is state
    assert says in told.says
    assert bool(told.hint) is (state is not DeviceState.READY)
    assert ("nothing was written to it" in told.says) is (state is not DeviceState.READY)
    assert state in (DeviceState.READY, DeviceState.ANOTHER_HOST) or "poolferry disks readopt red" in told.hint


def test_a_tag_is_for_one_storage_alone() -> None:
    for other in (disk(identity=BLUE_UUID), disk(inside=BLUE_UUID)):
        told = verify_identity(other, device(), tagged(marker()), known(), OWNER, key=KEY, tagged=True)
        assert told.state is DeviceState.LOOK_ALIKE


MARKERS = st.builds(
    marker, disk=st.sampled_from(["d1", "d2"]), name=st.sampled_from(["red", "blue"]), owner=st.sampled_from([OWNER, "b"]),
    set=st.sampled_from(["offsite", "home"]), generation=st.integers(0, 9),
)  # fmt: skip
KNOWN = st.builds(known, written=st.integers(0, 9)).flatmap(
    lambda each: st.builds(known, written=st.just(each.written), generation=st.integers(each.written, each.written + 1))
)


@given(MARKERS | st.none(), KNOWN)
def test_only_the_very_disk_is_ready(seen: object, remembered: object) -> None:
    told = verify_identity(disk(), device(), tagged(seen), remembered, OWNER, key=KEY, tagged=True)  # type: ignore[arg-type]
    if told.state is DeviceState.READY:
        assert seen is not None
        assert (seen.disk, seen.name, seen.set, seen.owner) == ("d1", "red", "offsite", OWNER)  # type: ignore[attr-defined]
        assert remembered.written <= seen.generation <= remembered.generation  # type: ignore[attr-defined]


DEVICES = st.lists(
    st.builds(
        device, st.sampled_from(["sdb", "sdc", "sdd"]), uuid=st.sampled_from([RED_UUID, BLUE_UUID, ""]),
        serial=st.sampled_from(["S1", "S2", ""]), kind=st.sampled_from(["ext4", ""]), external=st.booleans(),
        read_only=st.booleans(), at=st.sampled_from([(), ("/mnt",)]),
    ),
    max_size=3, unique_by=lambda each: each.name,
)  # fmt: skip


@given(DEVICES)
def test_at_most_one_device_is_taken_for_a_disk(devices: list[BlockDevice]) -> None:
    found = identify_devices(devices, [disk()], [known()])
    usable = [each for each in found if each.state is DeviceState.TO_VERIFY]
    assert len(usable) <= 1
    for each in usable:
        assert each.device.uuid == RED_UUID
        assert not each.device.read_only
        assert not each.device.at


def test_a_name_after_a_former_one_is_free() -> None:
    assert next_disk_name("red", {"red"}) == "red-2"
    assert next_disk_name("red", {"red", "red-2", "red-3"}) == "red-4"
    assert next_disk_name("red-2", {"red", "red-2"}) == "red-3"
    assert next_disk_name("-7", {"-7"}) == "-7-2"
