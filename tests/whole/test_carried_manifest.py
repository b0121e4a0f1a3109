"""A manifest made of the lines of the one before says of each entry what is there, whatever changed at the source or in a point."""

import gzip
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.engines.rsync.tree_owner import Owner
from tests.whole.house import House, differences
from tests.whole.manifest_facts import OLD_ENOUGH, carried, run, there, told

pytestmark = [pytest.mark.root, pytest.mark.namespace, pytest.mark.slow]
ROUNDS = 5


class HonestOwner(Owner):
    """An owner whose every change shows in size or times: no comparison of a listing finds another."""

    def rewrite_unseen(self) -> None:
        """Writes nothing that nobody sees."""


def plant(house: House, chance: random.Random) -> Owner:
    """Make a source of which each entry is old enough to be recorded."""
    house.source.mkdir(exist_ok=True)
    owner = HonestOwner(house.source, chance)
    for _ in range(40):
        chance.choice([owner.write, owner.write, owner.make_folder, owner.special, owner.acl, owner.attribute])()
    house.job(rsync={"whole_look": 1000}, guard={"max_deleted": "100%", "max_changed": "100%"})
    time.sleep(OLD_ENOUGH)
    run(house)
    return owner


@pytest.mark.parametrize("seed", [1, *(pytest.param(each, marks=pytest.mark.long) for each in range(2, 20))])
def test_each_entry_is_told_as_it_is(house: House, seed: int) -> None:
    chance = random.Random(seed)
    owner = plant(house, chance)
    often = 0
    for number in range(ROUNDS):
        house.write("note", str(number))
        for _ in range(chance.choice([0, 1, 2, 4])):
            owner.act()
        ran = run(house)
        assert ran.outcome == "done"
        often += carried(ran)
        assert differences(house.source, house.point()) == ""
        assert told(house.point()) == there(house.point())
        assert house.run().outcome == "nothing-to-do"
    assert often
    assert house.call("verify", "photos").code == 0


def test_the_first_run_records_its_look(house: House) -> None:
    shutil.rmtree(house.target, ignore_errors=True)
    house.write("kept", "as it is")
    house.job()
    time.sleep(OLD_ENOUGH)
    run(house)
    house.write("new", "more")
    ran = run(house)
    assert ran.outcome == "done"
    assert carried(ran)
    assert told(house.point()) == there(house.point())


def test_what_a_carried_run_records_is_as_both_sides_are_listed(house: House) -> None:
    """The next look finds all as it was recorded: it asks rsync for nothing."""
    for number in range(300):
        house.write(f"d{number % 7}/{number}", str(number))
    house.job()
    time.sleep(OLD_ENOUGH)
    run(house)
    for changed in (range(3, 300, 10), range(0)):
        for number in changed:
            (house.source / f"d{number % 7}/{number}").write_text("changed in place")
        (house.source / "d1/new").write_text(str(changed))
        os.unlink(house.source / f"d2/{2 if changed else 9}")
        time.sleep(OLD_ENOUGH)
        ran = run(house)
        assert (ran.outcome, carried(ran)) == ("done", True)
        assert told(house.point()) == there(house.point())
        (record,) = (record for record in house.state.glob("notes/look-*/*") if record.suffix != ".looks")
        before = record.read_bytes()
        again = run(house)
        assert (again.outcome, "--dry-run" in again.errors) == ("nothing-to-do", False)
        assert record.read_bytes() == before


def test_a_manifest_that_is_another_file_than_the_one_recorded_carries_nothing(house: House) -> None:
    for name in ("kept", "other"):
        house.write(name, "as it is")
    house.job()
    time.sleep(OLD_ENOUGH)
    run(house)
    manifest = Path(f"{house.point()}.manifest.gz")
    manifest.write_bytes(gzip.compress(gzip.decompress(manifest.read_bytes())))
    house.write("new", "more")
    ran = run(house)
    assert (ran.outcome, carried(ran)) == ("done", False)
    assert told(house.point()) == there(house.point())
    house.write("newer", "more")
    assert carried(run(house))


def test_small_files_that_change_in_place_need_no_rsync_and_what_is_not_plain_is_left_to_it(house: House) -> None:
    for name in ("d/plain", "d/link-me", "d/kept"):
        house.write(name, "as it is")
    house.job()
    time.sleep(OLD_ENOUGH)
    run(house)
    (house.source / "d/plain").write_text("changed in place")
    time.sleep(OLD_ENOUGH)
    ran = run(house)
    assert (ran.outcome, carried(ran), "rsync --" in ran.errors) == ("done", True, False)
    assert differences(house.source, house.point()) == ""
    assert told(house.point()) == there(house.point())
    (house.source / "d/plain").write_text("changed again")
    os.setxattr(house.source / "d/kept", "user.a", b"b")
    (house.source / "d/link-me").unlink()
    (house.source / "d/link-me").symlink_to("plain")
    (house.source / "e").mkdir(mode=0o701)
    (house.source / "e/new").write_text("in a new folder")
    time.sleep(OLD_ENOUGH)
    ran = run(house)
    assert (ran.outcome, "rsync --" in ran.errors) == ("done", True)
    assert differences(house.source, house.point()) == ""
    assert told(house.point()) == there(house.point())
    assert house.call("verify", "photos").code == 0


@pytest.mark.parametrize("mounted", [False, True])
def test_another_mount_at_the_source_meanwhile_carries_nothing(house: House, mounted: bool) -> None:
    """The look's listing says nothing of other files than those that it listed."""
    house.write("d/kept", "as it is")
    house.job()
    time.sleep(OLD_ENOUGH)
    run(house)
    house.write("d/new", "more")
    (house.source / "d/link").symlink_to("what is plain comes without rsync")
    ours = f"nsenter --mount=/proc/{os.getpid()}/ns/mnt"  # rsync has mounts of its own
    mount = f"{ours} mount --bind '{house.source}' '{house.source}'" if mounted else ":"
    rsync = house.write(
        house.folder / "bin/rsync",
        f'#!/bin/sh\ncase " $* " in *" --ignore-existing "*) {mount} ;; esac\nexec /usr/bin/rsync "$@"\n',
    )
    rsync.chmod(0o755)
    house.environment["PATH"] = f"{rsync.parent}:{house.environment['PATH']}"
    try:
        ran = run(house)
        assert (ran.outcome, carried(ran)) == ("done", not mounted)
        assert told(house.point()) == there(house.point())
    finally:
        if mounted:
            subprocess.run(["umount", house.source], check=True)
