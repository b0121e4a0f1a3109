"""Test what may be enrolled: nothing that holds anything is erased without the disk's own serial."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.device import BlockDevice
from orchestrator.planners.enroll import EnrollmentRequest, refuse_changed_device, refuse_enrollment
from tests.planners.rotation_world import BLUE_UUID, RED_UUID, device, disk


def request(**more: Any) -> EnrollmentRequest:
    told = {
        "name": "blue",
        "set": "offsite",
        "content": "ext4",
        "adopt": False,
        "erase": "",
        "inner": False,
        "locked": False,
    }
    return EnrollmentRequest(**{**told, **more})


def blank(**more: Any) -> BlockDevice:
    return device(**{"kind": "", "uuid": "", **more})


def held(**more: Any) -> BlockDevice:
    return device(**{"uuid": BLUE_UUID, **more})


ROWS: list[tuple[EnrollmentRequest, BlockDevice, str]] = [
    (request(), blank(), ""),
    (request(), blank(external=False), "cannot be pulled out"),
    (request(inner=True), blank(external=False), ""),
    (request(), blank(size=0), "there is no medium"),
    (request(), blank(read_only=True), "can only be read"),
    (request(erase="S1"), held(answers=False), "cannot be read"),
    (request(), held(), "is not blank: it holds ext4"),
    (request(), held(label="PHOTOS"), 'it holds ext4, "PHOTOS"'),
    (request(), blank(table="dos"), "a dos table"),
    (request(), blank(parts=("sdb1", "sdb2")), "2 partitions"),
    (request(erase="S1"), held(), ""),
    (request(erase="S2"), held(), '"S2" is not the serial'),
    (request(erase="s1"), held(), '"s1" is not the serial'),
    (request(erase=str(1 << 30)), held(serial=""), ""),
    (request(erase="1"), held(serial=""), '"1" is not the size in bytes'),
    (request(erase="S1"), held(uuid=RED_UUID), "is disk red of the set offsite already"),
    (request(erase="S1"), held(at=("/media/x",)), "mounted at /media/x"),
    (request(erase="S1"), held(above=("dm-0",)), "in use by dm-0"),
    (request(adopt=True), held(), ""),
    (request(adopt=True, content="xfs"), held(), "holds ext4, not xfs"),
    (request(adopt=True, content="zfs"), held(kind="zfs_member"), ""),
    (request(adopt=True, locked=True), held(kind="crypto_LUKS"), ""),
    (request(adopt=True), blank(), "holds nothing, not ext4"),
    (request(adopt=True), blank(table="gpt"), "holds a gpt table, not ext4"),
]


@pytest.mark.parametrize(("requested", "found", "why"), ROWS)
def test_what_is_refused(requested: EnrollmentRequest, found: BlockDevice, why: str) -> None:
    refusal = refuse_enrollment(requested, found, [found], [disk()])
    assert (refusal is None) is (why == "")
    if refusal is not None:
        assert why in refusal.why
        assert refusal.why.endswith("nothing was written to it")
        assert refusal.hint


def test_a_disk_of_the_system_is_refused_by_any_of_its_parts() -> None:
    whole = blank(parts=("sdb1",), external=True)
    root = device("sdb1", disk="sdb", at=("/",))
    refusal = refuse_enrollment(request(erase="S1", inner=True), whole, [whole, root], [])
    assert refusal is not None
    assert "mounted at /" in refusal.why
    pool = device("sdb1", disk="sdb", above=("dm-3",))
    node = device("dm-3", disk="dm-3", at=("/srv",))
    refusal = refuse_enrollment(request(erase="S1"), pool, [whole, pool, node], [])
    assert refusal is not None
    assert "/srv" in refusal.why


DEVICES = st.builds(
    device, kind=st.sampled_from(["", "ext4", "zfs_member"]), uuid=st.sampled_from(["", RED_UUID, BLUE_UUID]),
    serial=st.sampled_from(["", "S1"]), size=st.sampled_from([0, 100]), read_only=st.booleans(), external=st.booleans(),
    at=st.sampled_from([(), ("/",)]), above=st.sampled_from([(), ("dm-0",)]), table=st.sampled_from(["", "gpt"]),
)  # fmt: skip
WISHES = st.builds(request, erase=st.sampled_from(["", "S1", "100", "x"]), inner=st.booleans())


@given(WISHES, DEVICES)
def test_nothing_is_erased_without_consent(requested: EnrollmentRequest, found: BlockDevice) -> None:
    if refuse_enrollment(requested, found, [found], [disk()]) is None:
        assert found.blank or requested.erase == (found.serial or str(found.size))
        assert not found.at
        assert not found.above
        assert not found.read_only
        assert found.uuid != RED_UUID
        assert found.external or requested.inner


@pytest.mark.parametrize(
    ("again", "signatures", "why"),
    [
        (blank(), (), ""),
        (None, (), "is gone"),
        (blank(serial="S2"), (), "has changed since it was looked at"),
        (blank(at=("/media/x",)), (), "has changed since it was looked at"),
        (blank(), None, "cannot be read"),
        (blank(), ("ext4", "zfs_member"), "is not blank any more: it holds ext4, zfs_member"),
    ],
)
def test_the_last_look_before_anything_is_erased(again: BlockDevice | None, signatures: Any, why: str) -> None:
    found = refuse_changed_device(blank(), again, signatures)
    assert (found is None) is (why == "")
    assert found is None or (why in found.why and "nothing was written to it" in found.why)


def test_what_a_person_consented_to_erase_is_erased_with_its_signatures() -> None:
    assert refuse_changed_device(held(), held(), ("ext4",)) is None
    assert refuse_changed_device(held(), held(uuid=RED_UUID), ("ext4",)) is not None, (
        "but not another thing that took its place"
    )
