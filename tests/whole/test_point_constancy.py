"""A published point never changes: neither its contents nor owner, mode, times, ACLs or attributes of anything in it."""

import os
import random
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from orchestrator.trees.beneath import Folder
from orchestrator.trees.linked_tree import LinkedTree
from tests.whole.house import House, facts, wait_until
from tests.whole.kills import MIB, half_copied, only_ours, strike

pytestmark = pytest.mark.root
OLD_ENOUGH = 3.2  # seconds: what is younger is looked at again in any case
# A capability to bind low ports, as `setcap cap_net_bind_service=ep` writes it. Source: linux/capability.h, revision 2.
CAPABILITY = bytes.fromhex("0100000200040000000000000000000000000000")


def tree(house: House) -> None:
    for number in range(60):
        house.write(f"small/{number % 6}/{number}", b"x" * number)
    for number in range(3):
        os.link(house.source / f"small/{number}/{number}", house.source / f"linked-{number}")
    os.symlink("nowhere", house.source / "small/link")
    house.write("zz-large", random.randbytes(4 * MIB))


def change_metadata(root: Path, chance: random.Random) -> None:
    """Changes, of some entries, everything that rsync changes in place, and no content."""
    files = sorted(
        path for path in root.rglob("*") if path.is_file() and not path.is_symlink() and path.name != "zz-large"
    )
    for path in chance.sample(files, 15):
        seen = path.stat()
        match chance.randrange(6):
            case 0:
                path.chmod(chance.choice((0o600, 0o755, 0o4711)))
            case 1:
                os.chown(path, chance.randrange(1000, 1010), chance.randrange(1000, 1010))
            case 2:
                os.setxattr(path, "user.colour", chance.randbytes(4).hex().encode())
            case 3:
                subprocess.run(["setfacl", "-m", f"u:{chance.randrange(1000, 1010)}:r", path], check=True)
            case 4:
                os.utime(path, ns=(seen.st_atime_ns, chance.randrange(10**18)))
            case 5:
                os.chown(
                    path, chance.randrange(1000, 1010), 0
                )  # the kernel takes capabilities away from what gets an owner
                os.setxattr(path, "security.capability", CAPABILITY)
    os.chown(root / "small/link", chance.randrange(1000, 1010), 1000, follow_symlinks=False)
    (root / f"small/{chance.randrange(6)}").chmod(chance.choice((0o700, 0o755)))


def cut(house: House, job: str) -> None:
    """A run that is killed once it has linked the small files and copies the large one."""
    process = house.start(job)
    work = house.target / ".poolferry/work"
    wait_until(lambda: half_copied(house) > 300_000 and sum(1 for _ in work.rglob("*")) > 50)
    strike(process, "all")
    house.ended(process)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (0, {}), (1, {"parallel": 2}), (2, {"checksum": True}),
        *(pytest.param(seed, {"parallel": 1 + seed % 2}, marks=pytest.mark.long) for seed in range(3, 24)),
    ],
)  # fmt: skip
@pytest.mark.sample(1)
def test_metadata_that_changes_between_a_kill_and_the_next_run_changes_no_point(
    house: House, seed: int, options: dict[str, object]
) -> None:
    chance = random.Random(seed)
    tree(house)
    assert house.run(house.job(rsync=options)).outcome == "done"
    published = {house.points()[-1]: facts(house.point())}
    for _ in range(3):
        house.write("zz-large", chance.randbytes(4 * MIB))
        house.write(f"new/{chance.randrange(100)}", chance.randbytes(5000))
        for turn in range(chance.randrange(1, 3)):
            cut(house, house.job(rsync=options, pipe={"rate_limit": "1M"}))
            change_metadata(house.source, chance)
            assert {name: facts(house.target / "points" / name) for name in published} == published, turn
        ran = house.run(house.job(rsync=options))
        assert (ran.outcome, ran["resumed"]) == ("done", True), ran
        assert facts(house.source) == facts(house.point())
        assert {name: facts(house.target / "points" / name) for name in published} == published
        published[house.points()[-1]] = facts(house.point())
        only_ours(house)
    assert house.run().outcome == "nothing-to-do"


@pytest.mark.slow
def test_what_a_cut_run_had_copied_with_several_names_is_not_sent_again(house: House) -> None:
    tree(house)
    assert house.run(house.job()).outcome == "done"
    house.write("aa-first", random.randbytes(3 * MIB))
    os.link(house.source / "aa-first", house.source / "aa-second")
    house.write("zz-large", random.randbytes(4 * MIB))
    process = house.start(house.job(pipe={"rate_limit": "2M"}))
    second = house.target / ".poolferry/work/aa-second"
    wait_until(lambda: second.exists() and half_copied(house) > 300_000)
    strike(process, "all")
    house.ended(process)
    ran = house.run(house.job())
    assert (ran.outcome, ran["resumed"]) == ("done", True), ran
    assert ran["moved_bytes"] < 5 * MIB, "the first file was whole"
    assert facts(house.source) == facts(house.point())


def test_a_run_that_is_killed_while_it_links_is_resumed_and_changes_no_point(house: House) -> None:
    """The kill at a known moment: after the second folder."""
    tree(house)
    assert house.run(house.job()).outcome == "done"
    before = {house.points()[-1]: facts(house.point())}
    work = house.target / ".poolferry/work"
    work.mkdir(mode=0o700)
    asked = iter((False, False, True))
    with Folder(str(house.point())) as old, Folder(str(work)) as new:
        LinkedTree((), stops=lambda: next(asked, True)).make(old, new)
    assert 0 < sum(1 for _ in work.rglob("*")) < sum(1 for _ in house.point().rglob("*"))
    change_metadata(house.source, random.Random(1))
    house.write("new", "new")
    ran = house.run()
    assert (ran.outcome, ran["resumed"]) == ("done", True), ran
    assert facts(house.source) == facts(house.point())
    assert {name: facts(house.target / "points" / name) for name in before} == before
    only_ours(house)


def test_a_run_links_what_is_unchanged_and_copies_all_that_differs(house: House) -> None:
    tree(house)
    os.link(house.source / "small/3/3", house.source / "small/3/again")
    assert house.run(house.job()).outcome == "done"
    before = {house.points()[-1]: facts(house.point())}
    change_metadata(house.source, random.Random(2))
    for name in ("small/3/3", "small/4/4"):  # a third name of a file with two, and a second one of a file with one
        os.link(house.source / name, house.source / f"small/{name[-1]}/more")
    (house.source / "small/5/5").unlink()
    (house.source / "small/5/5").mkdir()
    house.write("small/5/5/inside", "inside")
    house.write("zz-large", random.randbytes(MIB))
    ran = house.run()
    assert ran.outcome == "done", ran
    assert any(step["action"].startswith("link unchanged entries from point") for step in ran["steps"]), ran
    assert facts(house.source) == facts(house.point())
    assert {name: facts(house.target / "points" / name) for name in before} == before
    assert house.run().outcome == "nothing-to-do"
    assert house.call("verify", "photos").code == 0


def rsync_with(house: House, case: str) -> None:
    """Make runs start an rsync that does something else as well. `case`: by its words, with SOURCE and REAL for what is meant."""
    programs = house.folder / "programs"
    programs.mkdir()
    real = shutil.which("rsync")
    case = case.replace("SOURCE", shlex.quote(str(house.source))).replace("REAL", str(real))
    (programs / "rsync").write_text(f'#!/bin/sh\ncase " $* " in {case} esac\nexec {real} "$@"\n')
    (programs / "rsync").chmod(0o755)
    house.environment["PATH"] = f"{programs}:{house.environment['PATH']}"


def test_what_changes_between_the_look_and_the_copy_changes_no_point(house: House) -> None:
    """At that very moment, by an rsync that changes metadata once it has looked. What was not to be copied then is so in the next run."""
    tree(house)
    os.mkfifo(house.source / "pipe")
    time.sleep(OLD_ENOUGH)
    assert house.run(house.job()).outcome == "done"
    before = {house.points()[-1]: facts(house.point())}
    house.write("new", "new")
    rsync_with(
        house,
        '*" --dry-run "*) REAL "$@"; code=$?; cd SOURCE || exit; chmod 600 small/0/6 pipe;'
        "chown -h 1005:1006 small/link pipe small/1/7; touch -h -d @7 small/link; exit $code ;;",
    )
    ran = house.run()
    (house.folder / "programs" / "rsync").unlink()
    assert ran.outcome == "done", ran
    assert {name: facts(house.target / "points" / name) for name in before} == before
    before[house.points()[-1]] = facts(house.point())
    assert house.run().outcome in ("done", "nothing-to-do"), (
        "without the wall against links the same run lists and mends all"
    )
    assert facts(house.source) == facts(house.point())
    assert {name: facts(house.target / "points" / name) for name in before} == before
    assert house.call("verify", "photos").code == 0
    assert house.run().outcome == "nothing-to-do"


def test_a_folder_that_becomes_a_file_at_the_copy_lets_the_same_run_copy_without_links_made_before(
    house: House,
) -> None:
    tree(house)
    assert house.run(house.job()).outcome == "done"
    before = {house.points()[-1]: facts(house.point())}
    (house.source / "new").symlink_to("what is plain comes without rsync")
    rsync_with(house, '*" --ignore-existing "*) cd SOURCE && rm -r small/5 && echo file > small/5 || exit ;;')
    ran = house.run()
    assert (ran.outcome, ran["attempts"]) == ("done", 2), ran
    assert facts(house.source) == facts(house.point())
    assert {name: facts(house.target / "points" / name) for name in before} == before
