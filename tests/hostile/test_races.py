"""A stranger's process exchanges folders of hers for links while root works in them: no byte leaves root's folders, and none comes in."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.process.scripts import script as text_of
from orchestrator.trees.beneath import Folder, new_file_at
from tests.hostile.adding_gate import ask, gate, script, send
from tests.hostile.conftest import AS_STRANGER, STRANGER, tries
from tests.whole.house import House
from tests.whole.sshd import Sshd, sshd

pytestmark = [pytest.mark.root, pytest.mark.timeout(300)]
__all__ = ["sshd"]
SECRET = b"for root alone\n"
NAMES = tuple(f"file{number}" for number in range(60))
SYSTEM = "/usr/bin/python3"
RACER = Path(__file__).with_name("racer.py")


def rsync_here() -> tuple[int, ...]:
    """Return the version of rsync on this machine."""
    said = subprocess.run(["rsync", "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"version v?(\d+)\.(\d+)", said)
    assert found, said
    return tuple(map(int, found.groups()))


needs_careful_rsync = pytest.mark.skipif(
    rsync_here() < (3, 4),
    reason="this rsync opens files by their paths, as SECURITY.md says of it: no script of ours can help",
)


@contextlib.contextmanager
def racing(one: Path, other: Path) -> Iterator[None]:
    """The stranger exchanges the two until the end; she has done so at least once."""
    python = SYSTEM if os.path.exists(SYSTEM) else sys.executable  # she may not enter the folder of ours
    argv = [*AS_STRANGER, python, "-I", "-c", RACER.read_text(), str(one), str(other)]
    racer = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert racer.stdout is not None
        assert racer.stdout.readline() == b"racing\n", racer.communicate()
        yield
        assert racer.poll() is None, racer.communicate()
    finally:
        racer.send_signal(signal.SIGKILL)
        racer.communicate()


@pytest.fixture
def secret(house: House) -> Path:
    """A folder that root alone may enter, with the names that lie in hers."""
    folder = house.folder / "secret"
    folder.mkdir(mode=0o700)
    for name in NAMES:
        (folder / name).write_bytes(SECRET)
        os.utime(folder / name, (1_700_000_000, 1_700_000_000))
    return folder


def hers(path: Path) -> Path:
    """Give a folder and what lies in it to her."""
    for each in (path, *path.rglob("*")):
        os.chown(each, STRANGER, STRANGER, follow_symlinks=False)
    return path


def fill(house: House, text: str) -> None:
    """New content, as long as the secret one and of the same time, so that nothing tells them apart from outside."""
    for name in NAMES:
        file = house.write(f"w/sub/{name}", text.ljust(len(SECRET))[: len(SECRET)])
        os.utime(file, (1_700_000_000, 1_700_000_000))
    hers(house.source / "w")


def in_copies(house: House) -> list[Path]:
    """The copied files that hold what is root's alone."""
    return [
        path
        for path in house.target.rglob("*")
        if path.is_file() and not path.is_symlink() and SECRET in path.read_bytes()
    ]


def state_of(folder: Path) -> dict[str, tuple[bytes, int, int, int]]:
    return {
        path.name: (path.read_bytes(), path.stat().st_mode, path.stat().st_uid, path.stat().st_mtime_ns)
        for path in sorted(folder.iterdir())
    }


def well(ended: subprocess.CompletedProcess[bytes]) -> None:
    said = ended.stdout + ended.stderr
    assert b"mistake in poolferry" not in said, said
    assert b"Traceback" not in said, said


def command(house: House, *arguments: str) -> None:
    ended = subprocess.run(house.argv(*arguments), env=house.environment, capture_output=True, check=False, timeout=120)
    well(ended)


@needs_careful_rsync
@pytest.mark.parametrize("how", [{}, {"parallel": 2}, {"points": False}], ids=["points", "lanes", "mirror"])
def test_a_source_that_is_exchanged_brings_no_foreign_file(house: House, secret: Path, how: dict[str, object]) -> None:
    fill(house, "hers")
    (house.source / "w/link").symlink_to(secret)
    hers(house.source / "w")
    house.job(rsync=how, guard={"max_deleted": "100%", "max_changed": "100%"})
    with racing(house.source / "w/sub", house.source / "w/link"):
        for _ in range(2):
            command(house, "run", "photos")
            command(house, "verify", "photos", "--source")
    assert in_copies(house) == []


@needs_careful_rsync
@pytest.mark.parametrize("delete", [True, False])
@pytest.mark.sample(1)
def test_a_mirror_whose_folder_is_exchanged_leads_nowhere(house: House, secret: Path, *, delete: bool) -> None:
    fill(house, "first")
    house.run(
        house.job(rsync={"points": False, "delete": delete}, guard={"max_deleted": "100%", "max_changed": "100%"})
    )
    before = state_of(secret)
    (house.target / "w/link").symlink_to(secret)
    hers(house.target / "w")
    assert tries("touch", house.target / "w/hers")
    with racing(house.target / "w/sub", house.target / "w/link"):
        for number in range(2):
            fill(house, f"other {number}")
            house.write("w/sub/new", f"{number}")
            command(house, "run", "photos")
            command(house, "verify", "photos")
            command(house, "drill", "photos", "--whole")
    assert state_of(secret) == before


@needs_careful_rsync
@pytest.mark.parametrize("what", ["target", "destination"])
@pytest.mark.sample(1)
def test_a_folder_of_ours_below_hers_that_is_exchanged_leads_nowhere(house: House, secret: Path, what: str) -> None:
    fill(house, "first")
    above = house.folder / "hers"
    above.mkdir()
    os.chown(above, STRANGER, STRANGER)
    place = above / "place"
    place.mkdir()
    (above / "link").symlink_to(secret)
    os.lchown(above / "link", STRANGER, STRANGER)
    house.run(house.job(target=place if what == "target" else house.target))
    before = state_of(secret)
    with racing(place, above / "link"):
        for number in range(2):
            fill(house, f"other {number}")
            command(house, "run", "photos")
            command(house, "restore", "run", "photos", "--to", str(place / "to" if number else place), "--aside")
            command(house, "points", "export", "photos", "--to", str(place / "sums"))
    assert state_of(secret) == before
    assert secret.stat().st_mode & 0o777 == 0o700
    assert secret.stat().st_uid == 0


def test_our_own_door_is_not_led_elsewhere(house: House, secret: Path) -> None:
    above = house.folder / "hers"
    (above / "folder").mkdir(parents=True)
    (above / "link").symlink_to(secret)
    hers(above)
    before, until = state_of(secret), time.monotonic() + 3
    read = set[bytes]()
    with racing(above / "folder", above / "link"), Folder(str(above)) as folder:
        while time.monotonic() < until:
            with contextlib.suppress(OSError), new_file_at(str(above / "folder/file1")) as file:
                file.write(b"ours")
            with contextlib.suppress(OSError):
                read.add(folder.read_file("folder/file1", limit=100))
            with contextlib.suppress(OSError):
                folder.remove_file("folder/file1")
            with contextlib.suppress(OSError), folder.enter("folder") as inner:
                inner.make_folder("made").close()
    assert state_of(secret) == before
    assert read == {b"ours"}


def test_our_scripts_door_is_not_led_elsewhere(house: House, secret: Path) -> None:
    """Her link and root's folder under one name: its owner, its kind and what it leads to are asked one after the other."""
    above = house.folder / "hers"
    above.mkdir()
    (above / "link").symlink_to(secret)
    hers(above)
    (above / "folder").mkdir()
    text = "".join(text_of("engines/rsync", name) for name in ("enter-place.sh", "enter-own-folder.sh"))
    loop = text + '\nfor _ in $(seq 150); do (enter_place "$1" 2>/dev/null && pwd -P); done'
    with racing(above / "folder", above / "link"):
        ended = subprocess.run(
            ["sh", "-c", loop, "sh", str(above / "folder")], capture_output=True, text=True, check=False
        )
    assert str(above / "folder") in ended.stdout, ended
    assert str(secret) not in ended.stdout.split("\n")


def folder_below_hers(house: House, secret: Path) -> Path:
    """A folder of hers with a folder in it, beside a link of hers to what is root's alone."""
    above = house.folder / "hers"
    (above / "folder/sub").mkdir(parents=True)
    for place in (above, above / "folder"):
        (place / "link").symlink_to(secret)
    for place in (above / "folder", above / "folder/sub"):
        for name in NAMES:
            (place / name).write_bytes(b"hers")
    return hers(above)


@pytest.mark.namespace
@pytest.mark.parametrize("what", ["folder", "folder/sub"])
@pytest.mark.sample(1)
def test_a_gate_that_reads_is_led_nowhere(house: House, secret: Path, sshd: Sshd, tmp_path: Path, what: str) -> None:
    """Its own folder is exchanged, or one in it; each request is answered by a fork of what the first left behind."""
    above = folder_below_hers(house, secret)
    (secret / "only-here").write_bytes(SECRET)
    folder = gate(house, sshd, right="reads", folder=above / "folder")
    one, said = above / what, b""
    listing = ("find", f"{folder}/", "-xdev", "-mindepth", "1", "-printf", "%P//%y\\t%s\\t%n\\t%i\\t%b\\0")
    with racing(one, one.parent / "link"):
        for number in range(6):
            well(send(sshd, folder, tmp_path / f"into{number}", "-a", pulls=True))
            well(answer := ask(sshd, *listing))
            said += answer.stdout
    assert b"only-here" not in said
    found = [path for path in tmp_path.glob("into*/**/*") if path.is_file() and not path.is_symlink()]
    assert [path for path in found if path.read_bytes() == SECRET or path.name == "only-here"] == []


@pytest.mark.namespace
def test_a_gate_that_adds_is_led_nowhere(house: House, secret: Path, sshd: Sshd) -> None:
    above = folder_below_hers(house, secret)
    folder = gate(house, sshd, folder=above / "place")
    house.write("file1", "new")
    (above / "link").unlink()
    (above / "link").symlink_to(house.folder / "other")
    for name in (".poolferry/work", "points"):
        (house.folder / "other" / name).mkdir(parents=True)
    before, answered = names_in(house.folder / "other"), set[int]()
    with racing(folder, above / "link"):
        for number in range(80):
            if number >= 8 and 0 in answered:
                break
            answers = (
                script(sshd, "prepare.sh", str(folder), "photos", "1", "work"),
                script(sshd, "store.sh", f"{folder}/.poolferry/manifest.gz", stdin=b"of the run"),
                send(sshd, house.source, f"{folder}/.poolferry/work", "-a"),
                script(sshd, "publish.sh", str(folder), "2026-01-01T000000Z", ".poolferry/manifest.gz"),
            )
            answered |= {each.returncode for each in answers}
            for each in answers:
                well(each)
    assert names_in(house.folder / "other") == before
    assert 0 in answered, "nothing was answered, so nothing was tried"


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
