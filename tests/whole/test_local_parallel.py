"""parallel = N: the same tree as from one rsync, also after a cut, with hard links, with damage."""

import os
import random
import shutil

import pytest

from tests.whole.house import House, facts, rsyncs, trees_equal, wait_until
from tests.whole.kills import MIB, half_copied, only_ours, strike
from tests.whole.names import NAMES, hostile_tree

LANES = (2, 3)


def wide_tree(house: House) -> None:
    """Several folders of like weight, loose files, links within one folder, empty folders."""
    for folder in "abcdef":
        for number in range(12):
            house.write(f"{folder}/{number % 3}/{number}", random.randbytes(random.randrange(20_000)))
        os.link(house.source / f"{folder}/0/0", house.source / f"{folder}/linked")
        os.utime(house.source / folder, ns=(0, 1_000_000_007 * ord(folder)))
    for number in range(5):
        house.write(f"loose {number}", random.randbytes(5000))
    os.makedirs(house.source / "empty/inside")
    (house.source / "link").symlink_to("a")


@pytest.mark.parametrize("parallel_copies", LANES)
def test_lanes_make_the_same_tree(house: House, parallel_copies: int) -> None:
    wide_tree(house)
    first = house.run(house.job(rsync={"parallel": parallel_copies}))
    assert first.outcome == "done", first
    assert sum(f"of {parallel_copies}" in step["action"] for step in first["steps"]) == parallel_copies
    assert facts(house.source) == facts(house.point())
    assert house.run().outcome == "nothing-to-do"
    house.write("a/0/0", "changed")
    house.write("new folder/new", "new")
    (house.source / "b/linked").unlink()
    second = house.run()
    assert second.outcome == "done", second
    assert second["moved_bytes"] == len("changed") + len("new")
    assert facts(house.source) == facts(house.point())
    assert trees_equal(house.source, house.point())
    assert (house.point(0) / "c/0/0").stat().st_ino == (house.point(1) / "c/0/0").stat().st_ino
    assert house.call("verify", "photos").code == 0


@pytest.mark.parametrize("parallel_copies", LANES)
def test_folders_that_lanes_share_are_as_in_the_source(house: House, parallel_copies: int) -> None:
    """Each lane makes the folders above its parts, and writes into them beside the others."""
    shared = [house.source, *(house.source / path for path in ("a", "a/deep", "a/deep/deeper", "b"))]
    for folder in shared:
        for number in range(40):
            house.write(f"{folder.relative_to(house.source)}/{number}", random.randbytes(random.randrange(2000)))
    for number, folder in enumerate(reversed(shared)):
        os.setxattr(folder, "user.number", b"%d" % number)
        folder.chmod((0o700, 0o2775, 0o555, 0o1777, 0o750)[number])
        os.utime(folder, ns=(0, 1_000_000_007 * (number + 1)))
    ran = house.run(house.job(rsync={"parallel": parallel_copies}))
    assert ran.outcome == "done", ran
    assert sum(f"of {parallel_copies}" in step["action"] for step in ran["steps"]) == parallel_copies
    assert facts(house.source) == facts(house.point())
    house.write("b/new", "new")
    assert house.run().outcome == "done"
    assert facts(house.source) == facts(house.point())
    back = house.folder / "back"
    restored = house.call("restore", "run", "photos", "--to", str(back))
    assert restored.code == 0, restored
    assert sum(f"of {parallel_copies}" in step["action"] for step in restored["steps"]) == parallel_copies, restored
    assert facts(house.source) == facts(back)


def test_a_restore_by_lanes_that_is_killed_goes_on(house: House) -> None:
    """The kill at a known moment: one has begun, and the other stands before its first file."""
    wide_tree(house)
    assert house.run(house.job(rsync={"parallel": 2})).outcome == "done"
    programs, back = house.folder / "programs", house.folder / "back"
    programs.mkdir()
    (programs / "rsync").write_text(
        f'#!/bin/sh\ncase " $* " in *" --files-from=- "*) mkdir {programs}/first || {{ touch {programs}/second; exec sleep 600; }} ;; esac\n'
        f'exec {shutil.which("rsync")} "$@"\n'
    )
    (programs / "rsync").chmod(0o755)
    house.environment["PATH"] = f"{programs}:{house.environment['PATH']}"
    process = house.start_call("restore", "run", "photos", "--to", str(back))
    wait_until(lambda: (programs / "second").exists() and len(os.listdir(back)) > 1)
    strike(process, "all")
    house.ended(process)
    (programs / "rsync").unlink()
    again = house.call("restore", "run", "photos", "--to", str(back))
    assert (again.outcome, again["resumed"]) == ("done", True), again
    assert facts(house.source) == facts(back)
    assert not any(" of 2" in step["action"] for step in again["steps"])


def test_lanes_carry_hostile_names(house: House) -> None:
    hostile_tree(house)
    for name in NAMES:
        house.write(name + b"/heavy", random.randbytes(5000))
    ran = house.run(house.job(rsync={"parallel": 3}))
    assert (ran.outcome, ran["warnings"]) == ("done", []), ran
    assert facts(house.source) == facts(house.point())
    assert house.call("verify", "photos").code == 0
    assert house.call("restore", "run", "photos", "--to", str(house.folder / "back")).code == 0
    assert facts(house.source) == facts(house.folder / "back")


def test_links_across_folders_keep_their_folders_in_one_lane(house: House) -> None:
    wide_tree(house)
    os.link(house.source / "a/0/0", house.source / "b/linked to a")
    os.link(house.source / "c/0/0", house.source / "loose link")
    assert house.run(house.job(rsync={"parallel": 2})).outcome == "done"
    assert facts(house.source) == facts(house.point())


def test_a_tree_that_links_tie_together_is_refused(house: House) -> None:
    wide_tree(house)
    for folder in "bcdef":
        os.link(house.source / "a/0/0", house.source / f"{folder}/linked to a")
    for number in range(5):
        (house.source / f"loose {number}").unlink()
    for name in ("link",):
        (house.source / name).unlink()
    (house.source / "empty/inside").rmdir()
    (house.source / "empty").rmdir()
    house.job(rsync={"parallel": 3})
    ran = house.run()
    if ran.outcome == "refused":
        assert ran.code == 3
        assert "hard links" in ran["why"]
        assert ran["evidence"]
        assert not house.target.exists()
    else:
        assert facts(house.source) == facts(house.point())
    assert house.run(house.job(rsync={"parallel": 1})).code == 0


def test_a_tree_of_one_inode_is_refused(house: House) -> None:
    house.write("a/one", "x" * 10_000)
    for folder in "bcd":
        os.mkdir(house.source / folder)
        os.link(house.source / "a/one", house.source / folder / "one")
    ran = house.run(house.job(rsync={"parallel": 2}))
    assert (ran.code, ran.outcome) == (3, "refused"), ran
    assert "hard links" in ran["why"]
    assert "parallel = 1" in ran["hint"]
    assert not house.target.exists()
    assert house.run(house.job(rsync={"parallel": 2, "hard_links": False})).outcome == "done"


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["poolferry", "a lane", "all"])
@pytest.mark.parametrize("parallel_copies", LANES)
@pytest.mark.sample(2)
def test_lanes_go_on_after_a_cut(house: House, parallel_copies: int, victim: str) -> None:
    wide_tree(house)
    for folder in "abc":
        house.write(f"{folder}/big", random.randbytes(6 * MIB))
    whole = sum(path.stat().st_size for path in house.source.rglob("*") if path.is_file() and path.name != "linked")
    process = house.start(house.job(rsync={"parallel": parallel_copies}, pipe={"rate_limit": "3M"}))
    wait_until(lambda: half_copied(house) > 3 * MIB)
    before = sum(
        path.stat().st_blocks * 512 for path in (house.target / ".poolferry/work").rglob("*") if path.is_file()
    )
    assert len(rsyncs(process)) == 3 * parallel_copies
    strike(process, "receiver" if victim == "a lane" else victim)
    first = house.ended(process)
    sent = max(before, first.value.get("moved_bytes", 0))
    house.job(rsync={"parallel": parallel_copies})
    ran = house.run()
    assert (ran.code, ran.outcome, ran["resumed"]) == (0, "done", True), ran
    assert sent + ran["moved_bytes"] <= whole * 1.1 + parallel_copies * MIB
    assert facts(house.source) == facts(house.point())
    assert house.call("verify", "photos").code == 0
    only_ours(house)


@pytest.mark.parametrize("parallel_copies", [1, 2])
@pytest.mark.parametrize("changed", [True, False])
@pytest.mark.sample(1)
def test_a_damaged_file_is_repaired_and_not_linked_on(house: House, parallel_copies: int, *, changed: bool) -> None:
    wide_tree(house)
    house.job(rsync={"parallel": parallel_copies})
    house.run()
    path = house.point() / "d/0/0"
    seen, good = path.stat(), path.read_bytes()
    path.write_bytes(bytes([good[0] ^ 1]) + good[1:])
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    found = house.call("verify", "photos")
    assert (found.code, found["reading"]["counts"]) == (1, {"rotten": 2}), found
    if changed:
        house.write("e/changed", "x")
    ran = house.run()
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert facts(house.source) == facts(house.point())
    assert (house.point() / "d/0/0").read_bytes() == good
    assert house.call("verify", "photos").code == 0
    assert house.run().outcome == "nothing-to-do"
