"""Nothing is erased that was not read right before, and found as it was judged: real ext4 and wipefs on loop devices."""

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.disks.detect import find_path
from orchestrator.domain.plan import Refusal
from orchestrator.history.store import open_history
from orchestrator.planners.enroll import EnrollmentRequest
from orchestrator.process.executor import Writer
from orchestrator.runner.disk.enroll import EnrolledDisk, enroll_disk
from orchestrator.runner.disk.visit import VisitContext
from tests.whole.damage import begin_as_xfs
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")


@pytest.fixture
def dock(tmp_path: Path) -> Iterator[VisitContext]:
    (tmp_path / "state" / "notes").mkdir(parents=True)
    with open_history(str(tmp_path / "state" / "history.sqlite")) as history:
        yield VisitContext(
            history=history, writer=Writer(), clock=lambda: datetime.now(UTC), owner="a" * 32, host="here",
            state=str(tmp_path / "state"), say=print,
        )  # fmt: skip


def test_a_disk_that_holds_two_things_is_not_blank_and_hides_no_other(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    with drawer.image("old").open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.ext4", "-q", drawer.image("old")], check=True)
    begin_as_xfs(drawer.image("old"))
    device = drawer.plug("old")
    # blkid of util-linux 2.38 ends with 8, that of 2.41 with 2, as for a blank disk: its word alone is never enough.
    assert subprocess.run(["blkid", "-p", device], capture_output=True).returncode in (2, 8)
    before = drawer.digest("old")
    requested = ("disks", "enroll", device, "--set", "offsite", "--name", drawer.full("old"), "--inner", "--json")
    ended = drawer.run(*requested)
    assert (ended.code, ended.value["outcome"]) == (3, "refused")
    assert "it holds xfs and ext4" in ended.value["why"]
    assert drawer.scan()["visits"]["red"]["ending"] == "done", "one disk does not shut out the others"
    assert drawer.digest("old") == before


@pytest.mark.parametrize("erase", ["", str(48 << 20)])
def test_what_appears_between_the_look_and_the_erasing_is_kept(
    drawer: LoopDisks, dock: VisitContext, erase: str
) -> None:
    device = drawer.blank("red")
    if erase:
        subprocess.run(["mkfs.ext4", "-q", "-L", "OLD", device], check=True)
    found, _ = find_path(device, dock.writer)
    assert found is not None
    subprocess.run(["mkfs.ext4", "-q", "-F", "-L", "PHOTOS", device], check=True)
    before = drawer.digest("red")
    request = EnrollmentRequest(
        name=drawer.full("red"), set="offsite", content="ext4", adopt=False, erase=erase, inner=True, locked=False
    )
    refused = enroll_disk(request, found, dock, key_file=None, note="")
    assert isinstance(refused, Refusal)
    assert "has changed since it was looked at" in refused.why
    assert drawer.digest("red") == before
    assert dock.history.disks.known() == ()
    again, _ = find_path(device, dock.writer)
    assert again is not None
    assert isinstance(enroll_disk(request, again, dock, key_file=None, note=""), EnrolledDisk), (
        "what is judged as it is now"
    )


def test_a_disk_that_its_jobs_could_not_use_is_not_touched(drawer: LoopDisks) -> None:
    device = drawer.blank("red")
    before = drawer.digest("red")
    ended = drawer.run(
        "disks", "enroll", device, "--set", "offsite", "--name", drawer.full("red"), "--inner", "--content", "zfs"
    )
    assert (ended.code, drawer.digest("red")) == (2, before)
    assert "its engine rsync needs --content ext4, xfs or btrfs" in ended.err
    assert drawer.run("check").code == 0


def test_data_without_a_signature_is_not_blank(drawer: LoopDisks) -> None:
    device = drawer.blank("red")
    with open(device, "r+b") as file:
        file.seek(-4096, 2)
        file.write(b"the end of an encrypted volume")
    before = drawer.digest("red")
    requested = ("disks", "enroll", device, "--set", "offsite", "--name", drawer.full("red"), "--inner", "--json")
    ended = drawer.run(*requested)
    assert (ended.code, drawer.digest("red")) == (3, before)
    assert "it holds data of no known kind" in ended.value["why"]
    assert drawer.run(*requested, "--erase", str(48 << 20)).code == 0
