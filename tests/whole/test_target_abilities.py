"""Test that what a target cannot store is named, and lost only by consent; its copies are verified against the source all the same."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.processes import family
from tests.whole.house import House, facts, hinted_commands, kill, loop_filesystem, wait_until
from tests.whole.metadata_chaos import CAPABILITY
from tests.whole.sshd import Sshd, make_key, plain

pytestmark = [pytest.mark.root, pytest.mark.slow]
__all__ = ["plain"]


@pytest.fixture
def theirs() -> Iterator[Path]:
    """A folder of that user's."""
    folder = Path(mkdtemp(dir="/var/tmp"))
    os.chown(folder, 1234, 1234)
    yield folder
    subprocess.run(["rm", "-rf", folder], check=True)


def tool(folder: Path, name: str, script: str) -> Path:
    """A folder with one program of that name, for the front of PATH."""
    tools = folder / "tools"
    tools.mkdir()
    (tools / name).write_text(f"#!/bin/sh\n{script}\n")
    (tools / name).chmod(0o755)
    return tools


def test_what_an_ordinary_user_there_cannot_hold_is_refused_before_a_byte_is_copied(
    house: House, plain: Sshd, theirs: Path
) -> None:
    """And the keys that the hint names, written as they stand there, let the copy be made and come back."""
    os.chown(house.write("in/mine\nhere", "content"), 1000, 1000)
    os.setxattr(house.write("in/able", "content"), "security.capability", CAPABILITY)
    os.mknod(house.source / "null", 0o20600, os.makedev(1, 3))
    house.target = theirs / "copies"
    far = {"target": plain.url(house.target), "pipe": plain.pipe}
    ran = house.run(house.job(**far))
    assert (ran.code, ran.outcome, ran["moved_bytes"]) == (3, "refused", 0), ran
    assert ran["evidence"] == [
        ran["evidence"][0], "device nodes: null", "capabilities and attributes of root: in/able",
    ]  # fmt: skip
    assert ran["evidence"][0].startswith("owners and groups: ")
    assert list(house.target.iterdir()) == []
    keys = dict(re.findall(r"([a-z]+) = (false)", ran["hint"]))
    assert keys == {"owners": "false", "devices": "false", "xattrs": "false"}
    house.job(**far, rsync=dict.fromkeys(keys, False))
    assert house.run().outcome == "done"
    assert house.call("verify", "photos").code == 0
    told = "its copies hold no owners or groups and no extended attributes (owners = false, xattrs = false): what comes back has none"
    (checked,) = house.call("check", "--system").value["jobs"]
    assert [each["text"].startswith(told) for each in checked["advice"] if each["subject"] == "[rsync]"] == [True]
    against = house.call("verify", "photos", "--source")["source"]
    assert [each for each in against["findings"] if each["path"] != "null"] == [], (
        "what a key consents to is no difference"
    )
    assert house.run().outcome == "nothing-to-do"
    restored = house.call("restore", "run", "photos", "--to", str(house.folder / "back"))
    assert (restored.code, [line.startswith(told) for line in restored["warnings"]]) == (0, [True]), restored
    assert not (house.folder / "back/null").exists()


def test_with_patterns_a_loss_is_found_after_the_copy(house: House, plain: Sshd, theirs: Path) -> None:
    """Only rsync knows what its patterns leave out, so that nothing is refused for what is never copied."""
    house.write("mine", "content")
    os.chown(house.source / "mine", 1000, 1000)
    os.chown(house.write("apart/other", "content"), 1000, 1000)
    house.target = theirs / "copies"
    far = {"target": plain.url(house.target), "pipe": plain.pipe}
    ran = house.run(house.job(**far, rsync={"excludes": ["apart"]}))
    assert ran.outcome == "failed", ran
    assert "owner 1234:1234, expected 1000:1000" in ran["why"]
    assert re.findall(r"[a-z]+ = false", ran["hint"]) == ["owners = false"]
    assert house.points() == []
    house.job(**far, rsync={"owners": False, "excludes": ["apart"]})
    ran = house.run()
    assert (ran.outcome, ran["resumed"]) == ("done", True), ran


def test_a_filesystem_of_whole_seconds_and_near_times(house: House, tmp_path: Path) -> None:
    """ext4 with inodes of 128 bytes: the first copy is done at once; what lies beyond 2038 is refused then, and named later."""
    house.write("in/file", "content")
    with loop_filesystem(tmp_path, "mkfs.ext4", "-q", "-I", "128") as mounted:
        house.target = mounted / "copies"
        late = house.write("late", "content")
        os.utime(late, (2**32, 2**32))
        ran = house.run(house.job())
        assert (ran.outcome, ran["evidence"]) == ("refused", ["times so far in the future: late"]), ran
        os.utime(late, (10**9, 10**9))
        assert house.run().outcome == "done"
        assert house.run().outcome == "nothing-to-do"
        assert house.call("verify", "photos").code == 0
        os.utime(late, (2**32, 2**32))
        for _ in range(2):
            ran = house.run()
            assert (ran.outcome, "name the entries in [rsync] excludes" in ran["hint"]) == ("incomplete", True), ran
            assert ran["evidence"] == ["late: mtime 2038-01-19T03:14:07Z, expected 2106-02-07T06:28:16Z"]
        house.job(rsync={"excludes": ["late"]})
        assert house.run().outcome == "nothing-to-do"
        house.write("other", "content")
        assert house.run().outcome == "done"
        subprocess.run(["mount", "-o", "remount,ro", str(mounted)], check=True)
        checked = house.call("check", "--system")
        texts = [each["text"] for each in checked.value["jobs"][0]["advice"] if each["hinders"]]
        assert len(texts) == 1, checked
        assert texts[0].startswith("nothing can be written: it is mounted read-only; "), texts
        (look,) = re.findall(r"`(findmnt .*?)`", texts[0])
        assert " ro," in subprocess.run(["sh", "-c", look], check=True, capture_output=True, text=True).stdout


def test_a_filesystem_that_shut_itself_after_an_error(house: House, tmp_path: Path) -> None:
    """As a failing disk does it. The run names its script, and not the text of it; and `check --system` sees it, too."""
    house.write("file", "content")
    with loop_filesystem(tmp_path, "mkfs.ext4", "-q", "-e", "remount-ro") as mounted:
        house.target = mounted / "copies"
        assert house.run(house.job()).outcome == "done"
        house.write("other", "content")
        loop = Path(
            os.path.realpath(f"/sys/dev/block/{os.major(mounted.stat().st_dev)}:{os.minor(mounted.stat().st_dev)}")
        )
        Path("/sys/fs/ext4", loop.name, "trigger_fs_error").write_text("1")
        ran = house.run()
        assert (ran.outcome, "mounted read-only" in ran["why"]) == ("failed", True), ran
        assert max(map(len, ran["evidence"])) < 1000, ran["evidence"]
        checked = house.call("check", "--system")
        texts = [each["text"] for each in checked.value["jobs"][0]["advice"] if each["hinders"]]
        assert texts, checked
        assert texts[0].startswith("nothing can be written: it is mounted read-only; "), texts


def test_a_target_without_links_holds_no_points(house: House, tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd", path=f"{tool(tmp_path, 'ln', 'exit 1')}:/usr/sbin:/usr/bin:/sbin:/bin")
    server.start()
    try:
        house.write("file", "content")
        (house.source / "link").symlink_to("file")
        far = {"target": server.url(house.target), "pipe": server.pipe}
        ran = house.run(house.job(**far))
        assert (ran.outcome, [line[:14] for line in ran["evidence"]]) == (
            "refused",
            ["hard links, by", "symbolic links"],
        ), ran
        house.job(**far, rsync={"points": False, "excludes": ["link"]})
        assert house.run().outcome == "done"
    finally:
        server.stop()


def test_nothing_is_restored_among_the_copies(house: House) -> None:
    house.write("file", "content")
    house.run(house.job())
    before = facts(house.target)
    for place in ("points/restored", ".poolferry/restored", "points"):
        ran = house.call("restore", "run", "photos", "--to", str(house.target / place))
        assert (ran.code, ran.outcome) == (3, "refused"), ran
        assert "among the copies" in ran["why"]
    (house.folder / "link").symlink_to(house.target / "points")
    assert house.call("restore", "run", "photos", "--to", str(house.folder / "link/x")).outcome == "refused"
    assert facts(house.target) == before
    assert house.call("restore", "run", "photos", "--to", str(house.folder / "back")).code == 0


@pytest.mark.parametrize("aside", [(), ("--aside",)], ids=["as it is", "aside"])
def test_nothing_is_restored_over_copies_or_the_state_nor_are_those_carried_off(
    house: House, aside: tuple[str, ...]
) -> None:
    """Before, --aside, which the refusal advised, renamed the place with all its points, and then nothing was there to be restored."""
    house.write("file", "content")
    (house.folder / "other").mkdir()
    house.job(
        "mirror",
        source=str(house.folder / "other"),
        target=str(house.folder / "places/mirror"),
        rsync={"points": False},
    )
    (house.folder / "places").mkdir()
    (house.folder / "other/x").touch()
    house.run(house.job())
    assert house.run("mirror").outcome == "done"
    before = facts(house.folder / "places"), facts(house.target)
    for place in (
        house.target,
        house.folder,
        house.folder / "places",
        house.folder / "places/mirror",
        house.folder / "places/mirror/new",
        house.state,
        house.state / "x",
    ):
        for command in ("plan", "run"):
            told = house.call("restore", command, "photos", "--to", str(place), *aside)
            assert told.code == 3, (place, told.value)
            assert ("--aside" in told["hint"], told["hint"]) == (False, "give a destination outside of them"), (
                place,
                told.value,
            )
    assert (facts(house.folder / "places"), facts(house.target)) == before
    beside = house.call("restore", "run", "photos", "--to", str(house.folder / "places/back"))
    assert beside.outcome == "done", beside.value


def test_a_place_that_is_not_there_keeps_no_restore_out(house: House) -> None:
    """A folder that was lost, and held the copies of another job, comes back over what lies there now."""
    house.write("file", "content")
    house.run(house.job())
    house.job("other", source=str(house.source), target=str(house.folder / "lost/copies"))
    house.write(house.folder / "lost/new", "made since")
    ran = house.call("restore", "run", "photos", "--to", str(house.folder / "lost"), "--aside")
    assert ran.outcome == "done", ran.value


@pytest.mark.parametrize("program", ["find", "touch"])
def test_a_check_of_the_system_names_programs_that_are_not_gnus(house: House, tmp_path: Path, program: str) -> None:
    says = "touch: invalid date" if program == "touch" else "BusyBox v1.36"
    tools = tool(tmp_path, program, f"echo '{says}' >&2; exit 1")
    server = Sshd(tmp_path / "sshd", path=f"{tools}:/usr/sbin:/usr/bin:/sbin:/bin")
    server.start()
    try:
        house.write("file", "content")
        house.job(target=server.url(house.target), pipe=server.pipe)
        ran = house.call("check", "--system")
        assert ran.code != 0, ran
        assert f"missing, or not GNU's (BusyBox?): {program}" in str(ran.value), ran
        ran = house.run()
        assert "not GNU's" in ran["why"], ran
        assert f"-F {server.folder}/client" in str(ran["evidence"]), "up to the script the line works as it stands"
        assert not house.target.exists()
    finally:
        server.stop()


def test_a_first_mirror_over_ssh_that_is_killed_has_its_manifest_after_the_next_run(
    house: House, tmp_path: Path
) -> None:
    server = Sshd(tmp_path / "sshd")
    server.start()
    try:
        for number in range(20):
            house.write(f"small/{number}", "x")
        house.write("large", os.urandom(3 << 20))
        told = {"target": server.url(house.target), "rsync": {"points": False, "delete": True}}
        house.job(**told, pipe={**server.pipe, "rate_limit": "500k"})
        for moment in (".poolferry/target.json", "small/5"):
            process = house.start()
            wait_until((house.target / moment).exists)
            for pid in (process.pid, *(pid for pid, _ in family(process.pid)), *server.sessions()):
                kill(pid)
            house.ended(process)
        house.job(**told, pipe=server.pipe)
        ran = house.run()
        assert (ran.outcome, ran["resumed"]) == ("done", True), ran
        assert house.call("verify", "photos").code == 0
        assert house.run().outcome == "nothing-to-do"
    finally:
        server.stop()


def test_a_host_key_that_changed_has_a_hint_of_its_own(house: House, tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd")
    make_key(tmp_path / "former")
    known = server.folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{server.port} {(tmp_path / 'former.pub').read_text()}")
    server.start()
    try:
        house.write("file", "content")
        ran = house.run(house.job(target=server.url(house.target), pipe=server.pipe))
        assert "another one than before" in ran["why"], ran
        (removal,) = [each for each in hinted_commands(ran["hint"], "ssh-keygen") if "-R" in each]
        subprocess.run(removal, check=True, capture_output=True)
        server.know(server.port)
        assert house.run().outcome == "done"
    finally:
        server.stop()
