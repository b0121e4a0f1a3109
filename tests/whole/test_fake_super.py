"""Test a target whose user may keep neither owners nor devices, and which holds whole copies by the owner's word (fake-super)."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.whole.house import House, facts, wait_until
from tests.whole.kills import strike
from tests.whole.loop_disks import LoopDisks, missing
from tests.whole.metadata_chaos import CAPABILITY
from tests.whole.sshd import Sshd, plain

pytestmark = [pytest.mark.root, pytest.mark.slow]
__all__ = ["plain"]


@pytest.fixture
def here(house: House) -> House:
    """A house with a source of all kinds, and a job to a folder of this machine."""
    fill(house)
    house.job(rsync={"fake_super": True})
    return house


@pytest.fixture
def kept(house: House, plain: Sshd) -> Iterator[House]:
    """A house with a source of all kinds, and a job to a folder of that user's."""
    fill(house)
    folder = Path(mkdtemp(dir="/var/tmp"))
    os.chown(folder, 1234, 1234)
    house.target = folder / "copies"
    declare(house, plain)
    yield house
    subprocess.run(["rm", "-rf", folder], check=True)


def declare(house: House, plain: Sshd, **rsync: object) -> None:
    """Write the job."""
    house.job(target=plain.url(house.target), pipe=plain.pipe, rsync={"fake_super": True, **rsync})


def fill(house: House) -> None:
    """Make entries of all kinds, which an ordinary user may not make."""
    for number, (uid, mode) in enumerate(((0, 0o644), (1000, 0o4755), (1234, 0o600), (77, 0o2001), (4294967294, 0))):
        file = house.write(b"files/%d \xff\n\\134" % number, f"content {number}")
        os.chown(file, uid, uid)
        os.chmod(file, mode)
    os.link(house.write("joined", "content"), house.source / "joined too")
    os.setxattr(house.write("able", "content"), "security.capability", CAPABILITY)
    os.setxattr(house.source / "able", "trusted.mine", b"\0odd\n")
    os.setxattr(house.source / "able", "user.mine", b"value")
    os.symlink(b"there\nand \xff", house.source / "link\n\\")
    os.symlink("x" * 4095, house.source / "long")
    os.chown(house.source / "long", 55, 66, follow_symlinks=False)
    os.mkfifo(house.source / "fifo", 0o621)
    os.mknod(house.source / "null", 0o20666, os.makedev(1, 3))
    os.mknod(house.source / "disk", 0o60640, os.makedev(259, 70000))
    os.mkdir(house.source / "drop")
    os.chmod(house.source / "drop", 0o3777)
    for number, words in enumerate((("u:1:r",), ("u:55:rwx,g:7:rw,u:3:x,m::r",), ("m::rx",), ("g::rwx,u:0:r",))):
        subprocess.run(["setfacl", "-m", *words, house.write(f"lists/{number}", "content")], check=True)
    subprocess.run(["setfacl", "-d", "-m", "u:9:r,g:4:x", house.source / "lists"], check=True)


def test_a_whole_copy_comes_back_from_an_ordinary_users_folder(kept: House) -> None:
    ran = kept.run()
    assert ran.outcome == "done", ran
    assert {os.lstat(path).st_uid for path in kept.target.rglob("*")} == {1234}
    assert kept.run().outcome == "nothing-to-do"
    assert kept.call("verify", "photos").code == 0
    against = kept.call("verify", "photos", "--source")
    assert (against.code, against["source"]["findings"]) == (0, []), against
    restored = kept.call("restore", "run", "photos", "--to", str(kept.folder / "back"))
    assert restored.code == 0, restored
    assert facts(kept.folder / "back") == facts(kept.source)
    single = kept.call("restore", "run", "photos", "--path", "link\n\\", "--to", str(kept.folder / "one"))
    assert (single.code, os.readlink(os.fsencode(kept.folder / "one"))) == (0, b"there\nand \xff"), single


def test_points_share_what_is_unchanged_and_follow_what_changes(kept: House) -> None:
    """Owner, kind, list and target of a link change; what is found wrong at the target is named."""
    assert kept.run().outcome == "done"
    os.chown(kept.source / "null", 5, 6)
    (kept.source / "fifo").unlink()
    os.symlink("elsewhere", kept.source / "fifo")
    subprocess.run(["setfacl", "-b", kept.source / "lists/0"], check=True)
    os.chmod(kept.source / "joined", 0o4711)
    assert kept.run().outcome == "done"
    assert kept.run().outcome == "nothing-to-do"
    old, new = (kept.target / "points" / name for name in kept.points())
    assert os.stat(old / "disk").st_ino == os.stat(new / "disk").st_ino
    assert os.stat(old / "joined").st_ino != os.stat(new / "joined").st_ino
    assert kept.call("verify", "photos", "--point", old.name).code == 0
    drilled = kept.call("drill", "photos")
    assert drilled.code == 0, drilled
    back = kept.folder / "back"
    assert kept.call("restore", "run", "photos", "--to", str(back)).code == 0
    assert facts(back) == facts(kept.source)
    os.setxattr(new / "null", "user.rsync.%stat", b"104755 0,0 0:0")
    os.setxattr(new / "lists/1", "user.rsync.%aacl", b"junk")
    (new / "long").write_text("y")
    os.removexattr(new / "able", "user.rsync.trusted.mine")
    told = kept.call("verify", "photos")
    assert {(each["path"], each["verdict"]) for each in told["reading"]["findings"]} == {
        ("able", "metadata"), ("lists/1", "metadata"), ("long", "metadata"), ("null", "edited"),
    }, told  # fmt: skip
    assert kept.run().outcome == "done"
    assert kept.call("verify", "photos").code == 0


def test_a_job_is_not_turned_between_both_kinds(kept: House, plain: Sshd) -> None:
    """Neither a run nor a look believes copies of the other kind, and the hint's key reads them."""
    assert kept.run().outcome == "done"
    declare(kept, plain, fake_super=False)
    for words in (
        ("run", "photos"),
        ("verify", "photos"),
        ("restore", "run", "photos", "--to", str(kept.folder / "back")),
    ):
        told = kept.call(*words)
        assert (told.code, told.outcome) == (3, "refused"), told
    assert not (kept.folder / "back").exists()
    (job,) = kept.call("status")["jobs"]
    assert job["newest_verified"]["unseen"] is None, "its copies were seen"
    declare(kept, plain)
    assert kept.run().outcome == "nothing-to-do"


def test_an_owners_attributes_give_her_no_right(kept: House, plain: Sshd) -> None:
    """Neither in the copy nor after a restore: what she writes by the names of rsync's own stays behind, and is named."""
    hers = kept.write("hers/file", "content")
    forged = {
        "%stat": b"104755 1,3 0:0",
        "%aacl": b"x" * 16,
        "security.capability": CAPABILITY,
        "trusted.x": b"x",
        "user.rsync.%stat": b"x",
    }
    for path in (hers, hers.parent):
        os.chown(path, 1000, 1000)
        for name, value in forged.items():
            os.setxattr(path, f"user.rsync.{name}", value)
    ran = kept.run()
    assert ran.outcome == "done", ran
    assert [
        each.startswith("2 entries of the source have attributes by names of rsync's own") for each in ran["warnings"]
    ] == [True], ran
    assert kept.run().outcome == "nothing-to-do"
    os.chmod(hers, 0o4711)  # rsync looks at it once more, by its name alone
    assert kept.run().outcome == "done"
    assert kept.call("verify", "photos").code == 0
    assert kept.call("restore", "run", "photos", "--to", str(kept.folder / "back")).code == 0
    for path in (hers, hers.parent):
        for name in os.listxattr(path):
            os.removexattr(path, name)
    assert facts(kept.folder / "back") == facts(kept.source)


def mirror_follows(house: House) -> None:
    """Run a mirror, change its source, and bring all of it back as it is then."""
    assert house.run().outcome == "done"
    (house.source / "null").unlink()
    os.chown(house.source / "fifo", 3, 4)
    assert house.run().outcome == "done"
    assert house.run().outcome == "nothing-to-do"
    assert house.call("verify", "photos").code == 0
    assert house.call("restore", "run", "photos", "--to", str(house.folder / "back")).code == 0
    assert facts(house.folder / "back") == facts(house.source)


def test_a_mirror(kept: House, plain: Sshd) -> None:
    declare(kept, plain, points=False, delete=True)
    mirror_follows(kept)


def test_a_cut_copy_goes_on(kept: House, plain: Sshd) -> None:
    """All that is there is taken up, and the point that it becomes is whole, though its link and its device were there before."""
    kept.write("zz/large", os.urandom(6 << 20))
    kept.job(target=plain.url(kept.target), pipe={**plain.pipe, "rate_limit": "2M"}, rsync={"fake_super": True})
    process = kept.start()
    wait_until(lambda: any(path.stat().st_size > 1 << 20 for path in kept.target.rglob("*large*") if path.is_file()))
    strike(process, "all")
    kept.ended(process)
    os.chown(kept.source / "null", 8, 8)
    declare(kept, plain)
    ran = kept.run()
    assert (ran.outcome, ran["resumed"]) == ("done", True), ran
    assert kept.call("verify", "photos").code == 0
    assert kept.call("restore", "run", "photos", "--to", str(kept.folder / "back")).code == 0
    assert facts(kept.folder / "back") == facts(kept.source)


def test_what_stands_in_the_way_is_said_before_a_byte_is_copied(kept: House, plain: Sshd) -> None:
    """A filesystem without attributes of users, whatever is excluded; several sources; a target on this machine."""
    bare = kept.target.with_name("bare")
    bare.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "none", bare], check=True)  # it stores no attributes
    try:
        os.chown(bare, 1234, 1234)
        kept.target = bare / "copies"
        for excludes in ((), ("x",)):
            declare(kept, plain, excludes=list(excludes))
            ran = kept.run()
            assert (ran.outcome, ran["moved_bytes"]) == ("refused", 0), ran
            assert ran["why"].startswith("the target cannot hold what the source has: attributes of users (user."), ran
    finally:
        subprocess.run(["umount", "-l", bare], check=True)
    kept.target = bare.with_name("copies")
    names = [str(kept.source / name) for name in ("files", "lists")]
    kept.job(source=None, sources=names, target=plain.url(kept.target), pipe=plain.pipe, rsync={"fake_super": True})
    ran = kept.run()
    assert (ran.outcome, ran["why"].startswith("rsync gives the folders above several sources")) == ("refused", True), (
        ran
    )
    kept.job(source=plain.url(kept.source), pipe=plain.pipe, rsync={"fake_super": True})
    ran = kept.run()
    assert (ran.code, [each["key"] for each in ran["mistakes"]]) == (2, ["rsync.fake-super"]), ran


def test_the_page_for_a_recovery_by_hand_brings_all_back(kept: House, plain: Sshd) -> None:
    """By rsync alone, as the page stands."""
    assert kept.run().outcome == "done"
    page = (kept.state / "notes/kit-photos/RECOVERY.md").read_text()
    blocks = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    client = str(plain.folder / "client")
    script = (
        "\n".join(blocks)
        .replace("ssh -p", f"ssh -F {client} -p")
        .replace(f"to={kept.source}", f"to={kept.folder}/back")
    )
    subprocess.run(["sh", "-e", "-c", script], check=True, capture_output=True)
    assert facts(kept.folder / "back") == facts(kept.source)
    tools = kept.folder / "tools"
    tools.mkdir()
    (tools / "ssh").write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {client} "$@"\n')
    (tools / "ssh").chmod(0o755)
    kept.environment["PATH"] = f"{tools}:{kept.environment['PATH']}"
    found = kept.call("restore", "run", "--from", plain.url(kept.target), "--to", str(kept.folder / "found"))
    assert found.code == 0, found
    assert facts(kept.folder / "found") == facts(kept.source)
    here = kept.call("restore", "run", "--from", str(kept.target), "--to", str(kept.folder / "here"))
    assert here.code == 0, here
    assert facts(kept.folder / "here") == facts(kept.source)


def test_a_copy_within_this_machine(here: House) -> None:
    """Points that follow what changes, a cut copy, verification, drill and restores, as over ssh; nothing has an owner there."""
    here.write("zz/large", os.urandom(6 << 20))
    here.job(pipe={"rate_limit": "2M"}, rsync={"fake_super": True})
    process = here.start()
    wait_until(lambda: any(path.stat().st_size > 1 << 20 for path in here.target.rglob("*large*") if path.is_file()))
    strike(process, "all")
    here.ended(process)
    here.job(rsync={"fake_super": True})
    ran = here.run()
    assert (ran.outcome, ran["resumed"]) == ("done", True), ran
    assert {(os.lstat(path).st_uid, os.lstat(path).st_mode & 0o170000) for path in here.point().rglob("*")} == {
        (0, 0o100000), (0, 0o040000),
    }  # fmt: skip
    assert here.run().outcome == "nothing-to-do"
    os.chown(here.source / "null", 5, 6)
    os.chmod(here.source / "joined", 0o4711)
    assert here.run().outcome == "done"
    old, new = (here.target / "points" / name for name in here.points())
    assert os.stat(old / "disk").st_ino == os.stat(new / "disk").st_ino
    for words in (("verify", "photos"), ("verify", "photos", "--source"), ("drill", "photos")):
        assert here.call(*words).code == 0, words
    for named in (("photos",), ("--from", str(here.target))):
        back = here.folder / f"back{len(named)}"
        restored = here.call("restore", "run", *named, "--to", str(back))
        assert restored.code == 0, restored
        assert facts(back) == facts(here.source)
    page = (here.target / ".poolferry/RECOVERY.md").read_text()
    script = "\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL))
    by_hand = script.replace(f"to={here.source}", f"to={here.folder}/hand")
    subprocess.run(["sh", "-eu", "-c", by_hand], check=True, capture_output=True)
    assert facts(here.folder / "hand") == facts(here.source)
    os.setxattr(new / "null", "user.rsync.%stat", b"104755 0,0 0:0")
    assert here.call("verify", "photos").code == 1
    assert (here.run().outcome, here.call("verify", "photos").code) == ("done", 0)


def test_an_owners_attributes_give_her_no_right_here_either(here: House) -> None:
    hers = here.write("hers/file", "content")
    os.chown(hers, 1000, 1000)
    for name, value in {"%stat": b"104755 1,3 0:0", "security.capability": CAPABILITY, "%aacl": b"x" * 16}.items():
        os.setxattr(hers, f"user.rsync.{name}", value)
    assert here.run().outcome == "done"
    assert here.run().outcome == "nothing-to-do"
    assert here.call("restore", "run", "photos", "--to", str(here.folder / "back")).code == 0
    for name in os.listxattr(hers):
        os.removexattr(hers, name)
    assert facts(here.folder / "back") == facts(here.source)


def test_a_mirror_here_and_a_filesystem_without_attributes(here: House) -> None:
    here.job(rsync={"fake_super": True, "points": False, "delete": True})
    mirror_follows(here)
    bare = here.folder / "bare"
    bare.mkdir()
    subprocess.run(["mount", "-t", "ramfs", "none", bare], check=True)  # it stores no attributes
    try:
        here.target = bare / "copies"
        here.job(rsync={"fake_super": True})
        ran = here.run()
        assert (ran.outcome, ran["moved_bytes"]) == ("refused", 0), ran
        assert ran["hint"].startswith("write fake-super = false in [rsync]"), ran
    finally:
        subprocess.run(["umount", "-l", bare], check=True)


@pytest.mark.skipif(bool(missing()), reason=missing() or "none")
@pytest.mark.namespace
def test_a_removable_disk(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    fill_one = drawer.source / "hers"
    fill_one.write_text("content")
    os.chown(fill_one, 1000, 77)
    os.chmod(fill_one, 0o4751)
    drawer.job("photos", "[rsync]\nfake-super = true\n")
    for words in (
        ("run", "photos"),
        ("verify", "photos"),
        ("restore", "run", "photos", "--to", str(drawer.root / "back")),
    ):
        told = drawer.run(*words)
        assert told.code == 0, told
    assert facts(drawer.root / "back") == facts(drawer.source)
