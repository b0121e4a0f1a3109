"""Trees with everything a filesystem may hold, and roots of any name: copied, proved, brought back."""

import os
import socket
import stat
import subprocess
from pathlib import Path

import pytest

from tests.whole.house import House, facts, trees_equal, url
from tests.whole.names import NAMES, hostile_tree


def test_hostile_names_are_copied_changed_and_proved(house: House) -> None:
    hostile_tree(house)
    ran = house.run(house.job())
    assert (ran.outcome, ran["warnings"]) == ("done", [])
    assert facts(house.source) == facts(house.point())
    assert house.run().outcome == "nothing-to-do"
    for name in NAMES:
        house.write(b"files/" + name, b"changed")
    ran = house.run()
    assert (ran.outcome, ran["moved_bytes"]) == ("done", 7 * len(NAMES))
    assert facts(house.source) == facts(house.point())
    verified = house.call("verify", "photos")
    assert (verified.code, verified["reading"]["sound"]) == (0, True)
    assert not list(house.folder.rglob("PWNED"))


def test_each_hostile_file_can_go_and_come(house: House) -> None:
    hostile_tree(house)
    house.run(house.job())
    for name in NAMES:
        os.unlink(os.fsencode(house.source) + b"/files/" + name)
    house.write("files/stays")
    assert house.run().outcome == "done"
    assert facts(house.source) == facts(house.point())


ROOTS = (
    b"with space",
    b"new\nline",
    b'quo\'te "double"',
    b"\xff\xfe bytes",
    b"-dash",
    b"*?[1]",
    b"a:b",
    b"back\\slash",
    b"#;$(id)",
)


@pytest.mark.parametrize("name", ROOTS, ids=repr)
@pytest.mark.sample(3)
def test_roots_of_any_name(house: House, tmp_path: Path, name: bytes) -> None:
    source, target = os.fsencode(tmp_path) + b"/s/" + name, os.fsencode(tmp_path) + b"/t/" + name
    os.makedirs(source)
    os.makedirs(os.path.dirname(target))
    house.target = Path(os.fsdecode(target))
    house.write(source + b"/file", "content")
    house.job(source=url(source), target=url(target))
    ran = house.run()
    assert (ran.code, ran.outcome) == (0, "done"), ran
    house.write(source + b"/file", "changed content")
    assert house.run().outcome == "done"
    assert house.run().outcome == "nothing-to-do"
    assert facts(Path(os.fsdecode(source))) == facts(house.point())
    assert len(house.points()) == 2
    assert house.call("verify", "photos").code == 0
    back = house.folder / "back"
    restored = house.call("restore", "run", "photos", "--to", str(back))
    assert (restored.code, restored.outcome) == (0, "done"), restored
    assert facts(back) == facts(house.point())


def every_kind(house: House) -> None:
    root = house.source
    house.write("file", "content")
    os.link(root / "file", root / "other name")
    house.write("folder/x")
    os.link(root / "file", root / "folder/third name")
    (root / "link").symlink_to("nowhere")
    (root / "absolute").symlink_to("/etc/passwd")
    os.mkfifo(root / "fifo")
    os.link(root / "fifo", root / "fifo again")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(root, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
    with open(house.write("sparse"), "r+b") as file:
        file.truncate(50 << 20)
        file.seek(30 << 20)
        file.write(b"middle")
    os.makedirs(root / "empty")
    for name, when in (
        ("1901", -2_145_916_800),
        ("before 1970", -1),
        ("1970", 0),
        ("2106", 4_300_000_000),
        ("future", 4_000_000_000),
    ):
        os.utime(house.write(name, name), ns=(0, when * 10**9 + 123_456_789))
    house.write("setuid").chmod(0o6755)
    (root / "empty").chmod(0o1777)
    house.write("secret").chmod(0)
    os.setxattr(root / "file", "user.colour", b"blue\x00\xff")
    os.setxattr(root / "empty", "user.big", b"x" * 2000)


def as_root(house: House) -> None:
    root = house.source
    os.mknod(root / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.mknod(root / "loop", stat.S_IFBLK | 0o660, os.makedev(7, 99))
    os.chown(house.write("odd owner"), 12345, 54321)
    os.chown(house.write("nobody"), 4_294_967_294, 4_294_967_294)
    os.lchown(root / "link", 777, 888)
    os.setxattr(root / "file", "trusted.secret", b"for root")
    os.setxattr(
        house.write("capable"), "security.capability", bytes.fromhex("0100000200040000000000000000000000000000")
    )
    subprocess.run(["setfacl", "-m", "u:12345:rw,g:54321:r", str(root / "file")], check=True)
    subprocess.run(["setfacl", "-d", "-m", "u:12345:rwx", str(root / "empty")], check=True)


@pytest.mark.root
def test_every_kind_of_entry_is_carried_exactly(house: House) -> None:
    every_kind(house)
    as_root(house)
    ran = house.run(house.job())
    assert (ran.outcome, ran["warnings"]) == ("done", []), ran
    assert facts(house.source) == facts(house.point())
    assert trees_equal(house.source, house.point())
    assert (house.point() / "sparse").stat().st_blocks < 1000
    assert house.run().outcome == "nothing-to-do"
    assert house.call("verify", "photos").code == 0
    back = house.folder / "back"
    assert house.call("restore", "run", "photos", "--to", str(back)).outcome == "done"
    assert facts(back) == facts(house.source)


@pytest.mark.root
def test_a_change_of_metadata_alone_makes_a_point_that_has_it(house: House) -> None:
    """Such a file is no longer the older point's: it is copied, and the older point keeps what it had."""
    house.write("file", "content")
    house.write("other", "content")
    house.run(house.job())
    os.chown(house.source / "file", 1000, 1000)
    os.setxattr(house.source / "other", "user.colour", b"blue")
    assert house.run().outcome == "done"
    assert facts(house.source) == facts(house.point())
    assert (house.point(0) / "file").stat().st_uid == 0
    assert os.listxattr(house.point(0) / "other") == []
    assert house.call("verify", "photos").code == 0
    assert house.call("verify", "photos", "--point", house.points()[0]).code == 0


def test_hard_links_stay_links_within_a_point(house: House) -> None:
    house.write("a/one", "content")
    os.makedirs(house.source / "b")
    os.link(house.source / "a/one", house.source / "b/two")
    house.run(house.job())
    os.link(house.source / "a/one", house.source / "three")
    house.run()
    assert facts(house.source) == facts(house.point())
    (house.source / "b/two").unlink()
    house.write("b/two", "its own content")
    house.run()
    assert facts(house.source) == facts(house.point())
    assert len(house.points()) == 3
