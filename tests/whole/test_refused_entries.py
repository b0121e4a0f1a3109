"""Test that what one filesystem does not take, or the other does not give, costs no other entry its copy, and is named until it is over."""

import errno
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.turns import turns
from tests.whole.house import House, Ran, facts, loop_filesystem
from tests.whole.odd_filesystem import Rules, odd_filesystem
from tests.whole.sshd import Sshd, sshd

__all__ = ["sshd"]

pytestmark = [pytest.mark.root, pytest.mark.namespace]
MADE = ["create", "mkdir", "mknod", "symlink", "link", "rename"]


@pytest.fixture
def target(house: House, tmp_path: Path) -> Iterator[Rules]:
    """Copies on a filesystem that refuses what a test says."""
    for number in range(20):
        house.write(f"theirs/{number}", random.randbytes(100))
    with odd_filesystem(tmp_path) as (place, rules):
        house.target = place / "copies"
        yield rules


def copy_of(house: House, points: bool) -> Path:
    return house.point() if points else house.target


def lacking(ran: Ran) -> dict[str, str]:
    """Each entry that a run names as left out, with the reason."""
    assert (ran.code, ran.outcome) == (5, "incomplete"), ran
    return dict(line.split(": ", 1) for line in ran["evidence"])


def require_others(house: House, points: bool = True) -> None:
    """All that others have is there, proved, and status does not call the job whole."""
    assert facts(copy_of(house, points) / "theirs") == facts(house.source / "theirs")
    assert house.call("verify", "photos").code == 0
    (job,) = house.call("status").value["jobs"]
    assert job["state"] == "incomplete", job


def require_all(house: House, points: bool = True, *outcomes: str) -> None:
    """Once the target takes it, it is copied, and the job is well again."""
    assert house.run().outcome in (outcomes or ("done",))
    (job,) = house.call("status").value["jobs"]
    assert job["state"] == "up", job
    for folder in ("hers", "theirs"):
        assert facts(copy_of(house, points) / folder) == facts(house.source / folder)


@pytest.mark.parametrize("points", [True, False], ids=["points", "mirror"])
@pytest.mark.sample(1)
def test_a_link_that_is_too_long_for_xfs_costs_no_other_file(house: House, tmp_path: Path, points: bool) -> None:
    """ext4 takes 4,095 bytes of a link's text, XFS 1,024; before, each run of the job failed, and nobody had a copy."""
    house.write("hers/plain", "x")
    os.symlink("x" * 3000, house.source / "hers/long")
    house.write("theirs/file", "content")
    with loop_filesystem(tmp_path, "mkfs.xfs", "-q", size=320 << 20) as disk:
        house.target = disk / "copies"
        house.job(rsync={"points": points})
        for night in range(2):
            house.write(f"theirs/{night}", "content")
            told = lacking(house.run())
            assert told == {
                "hers/long": "its name, or the text of the link, is longer than the target's filesystem takes"
            }
            assert (copy_of(house, points) / "hers/plain").read_text() == "x"
            require_others(house, points)
        ran = house.run()
        assert lacking(ran).keys() == {"hers/long"}
        assert ran["points"] == [] or not points, "nothing else changed, so no point is made"
        (house.source / "hers/long").unlink()
        os.symlink("short", house.source / "hers/long")
        require_all(house, points)


def test_a_link_that_rsync_cannot_name_costs_no_other_file(house: House, tmp_path: Path) -> None:
    """Its path and its text are longer than a message of rsync, which ends without a name; before, each run of the job failed.

    A pattern that fits only such a name at the top leaves out none that lies deeper.
    """
    folder = os.open(house.source, os.O_RDONLY)
    for _ in range(11):
        os.mkdir("d" * 200, dir_fd=folder)
        above, folder = folder, os.open("d" * 200, os.O_RDONLY, dir_fd=folder)
        os.close(above)
    os.symlink("x" * 3500, "long", dir_fd=folder)
    os.symlink("x" * 1000, "taken", dir_fd=folder)
    os.close(folder)
    house.write("theirs/file", "content")
    with loop_filesystem(tmp_path, "mkfs.xfs", "-q", size=320 << 20) as disk:
        house.target = disk / "copies"
        house.job(rsync={"excludes": ["/long"]})
        (left,) = lacking(house.run())
        assert left.endswith("/long"), left
        require_others(house)


@pytest.mark.parametrize(
    ("points", "number"), turns((True, False), (errno.EILSEQ, errno.EINVAL, errno.ENAMETOOLONG, errno.EOVERFLOW))
)
@pytest.mark.sample(3)
def test_names_that_the_target_does_not_take(house: House, target: Rules, number: int, points: bool) -> None:
    """Of each kind; and a folder with all that is in it."""
    target.set(errors=[[[*MADE, "lookup"] if number == errno.EILSEQ else MADE, "^\\.?bad", number]])
    house.write("hers/bad file", "x")
    house.write("hers/good", "x")
    house.write("hers/bad folder/below/file", "x")
    os.symlink("x", house.source / 'hers/bad" -> "link')
    os.mkfifo(house.source / "hers/bad pipe")
    house.job(rsync={"points": points})
    ran = house.run()
    assert lacking(ran).keys() >= {"hers/bad file", "hers/bad folder", "hers/bad pipe", 'hers/bad" -> "link'}
    assert (ran["attempts"], (copy_of(house, points) / "hers/good").read_text()) == (2, "x")
    require_others(house, points)
    target.set()
    require_all(house, points)


def test_names_that_are_longer_than_the_target_takes(house: House, target: Rules) -> None:
    """rsync's messages have the beginning of such a name alone; so its list of what it copies is asked for the whole."""
    target.set(longest=143)
    long = [f"hers/{'n' * 247}{end}" for end in ("1", "2")]
    for name in long:
        house.write(name, "x")
    house.write(f"hers/{'f' * 200}/file", "x")
    house.write("hers/plain", "x")
    house.job(rsync={"excludes": ["nothing"]})  # without patterns such a target is refused before
    assert lacking(house.run()).keys() == {*long, f"hers/{'f' * 200}"}
    require_others(house)
    target.set()
    require_all(house)


@pytest.mark.parametrize("points", [True, False], ids=["points", "mirror"])
@pytest.mark.sample(1)
def test_files_that_are_larger_than_the_target_takes(house: House, target: Rules, points: bool) -> None:
    """rsync ends at the first; an older state of one that a cut copy holds is in no point, as if it were this one."""
    for name in ("A1", "A2", "Az"):
        house.write(f"hers/{name}", random.randbytes(100_000))
    house.job(rsync={"points": points})
    house.write("hers/Az", "small")
    target.set(errors=[[MADE, "^\\.?A1", errno.EIO]])
    assert house.run().outcome == "failed"
    target.set(errors=[[["write"], "^\\.?A", errno.EFBIG]])
    for name in ("A3", "Az"):
        house.write(f"hers/{name}", random.randbytes(100_000))
    ran = house.run()
    assert lacking(ran) == dict.fromkeys(
        ("hers/A1", "hers/A3", "hers/Az"), "it is larger than the target's filesystem takes"
    )
    assert not points or os.listdir(house.point() / "hers") == ["A2"], "which came before"
    require_others(house, points)
    target.set()
    require_all(house, points)


def test_many_files_that_are_larger_than_the_target_takes_cost_one_attempt(house: House, target: Rules) -> None:
    """rsync names the first alone; before, more than 99 of them, which one owner may have, made each run fail."""
    for number in range(110):
        house.write(f"hers/A{number:03}", "x")
        os.truncate(house.source / f"hers/A{number:03}", (1 << 20) + 1)
    house.write("hers/B", random.randbytes(1 << 20))
    target.set(errors=[[["write"], "^\\.?A", errno.EFBIG]])
    house.job()
    ran = house.run()
    assert set(lacking(ran).values()) == {"it is larger than the target's filesystem takes"}
    assert (ran["attempts"], os.listdir(house.point() / "hers")) == (2, ["B"])
    assert "110" in ran["why"], ran["why"]
    require_others(house)


@pytest.mark.parametrize("points", [True, False], ids=["points", "mirror"])
@pytest.mark.sample(1)
def test_a_quota_of_one_owner_costs_no_other_file(house: House, target: Rules, points: bool) -> None:
    """As ZFS has them, also for what root writes: a file counts once it is given to its owner. Before, it passed for a full target."""
    for name in ("one", "n" * 245, "folder/below", "plain"):
        house.write(f"hers/{name}", "x")
    for name in ("one", "n" * 245, "folder"):
        os.chown(house.source / "hers" / name, 1234, -1)
    target.set(errors=[[["chown"], "^\\.?(one|nnn|folder)", errno.EDQUOT]])
    house.job(rsync={"points": points})
    ran = house.run()
    assert lacking(ran) == dict.fromkeys(
        ("hers/folder", f"hers/{'n' * 245}", "hers/one"),
        "the quota that its owner or group has at the target is used up",
    )
    assert (ran["attempts"], (copy_of(house, points) / "hers/plain").read_text()) == (2, "x")
    assert not points or os.listdir(house.point() / "hers") == ["plain"]
    require_others(house, points)
    target.set()
    require_all(house, points)


@pytest.mark.parametrize("far", [False, True], ids=["here", "over ssh"])
@pytest.mark.parametrize("number", [errno.EDQUOT, errno.ENOSPC], ids=["EDQUOT", "ENOSPC"])
@pytest.mark.sample(1)
def test_a_file_that_is_written_in_place_and_has_no_room(
    house: House, target: Rules, sshd: Sshd, number: int, far: bool
) -> None:
    """A write into a file counts at once for its owner's quota, or for its folder's (ENOSPC): the run ended, and named nobody."""
    for name in ("hers/image", "hers/other image"):
        house.write(name, random.randbytes(300_000))
        os.chown(house.source / name, 1234, -1)
    more = {"target": sshd.url(house.target), "pipe": sshd.pipe} if far else {}
    house.job(rsync={"points": False, "in-place": True, "sparse": False}, **more)
    assert house.run().outcome == "done"
    for name in ("hers/image", "hers/other image", "theirs/0"):
        house.write(name, random.randbytes(300_000))
    target.set(errors=[[["write"], "^(other )?image", number]])
    ran = house.run()
    if far and number == errno.ENOSPC:  # how much room others have there is not known
        assert (ran.outcome, "no space left" in ran["why"]) == ("failed", True), ran
    else:
        told = lacking(ran)
        assert told.keys() == {"hers/image", "hers/other image"}, ran
        for why in told.values():
            assert "a quota of its owner (user 1234) or group" in why, why
            assert "may be half written" in why, why
        assert "make room" in ran["hint"], ran
        require_others(house, points=False)
    target.set()
    require_all(house, False)


def test_a_file_of_root_that_has_no_room_is_a_full_target(house: House, target: Rules) -> None:
    house.write("image", random.randbytes(300_000))
    house.job(rsync={"points": False, "in-place": True, "sparse": False})
    assert house.run().outcome == "done"
    house.write("image", random.randbytes(300_000))
    target.set(errors=[[["write"], "^image", errno.EDQUOT]])
    ran = house.run()
    assert (ran.outcome, "a quota at the target is used up" in ran["why"]) == ("failed", True), ran


def test_the_same_over_ssh(house: House, target: Rules, sshd: Sshd) -> None:
    target.set(errors=[[["write"], "^\\.?large", errno.EFBIG], [MADE, "^\\.?bad", errno.EILSEQ]])
    house.write("hers/bad", "x")
    house.write("hers/large", random.randbytes(100_000))
    house.job(target=sshd.url(house.target), pipe=sshd.pipe)
    assert lacking(house.run()).keys() == {"hers/bad", "hers/large"}
    require_others(house)
    target.set()
    require_all(house)


def test_a_banner_of_the_host_is_no_failure_of_an_rsync_that_logs_in_by_itself(
    house: House, target: Rules, tmp_path: Path
) -> None:
    """Its lines stood among those that say what was left out, so a copy in part was a failed one."""
    (tmp_path / "banner").write_text("Unauthorized access is forbidden:\nbe warned\n")
    server = Sshd(tmp_path / "loud", more=f"Banner {tmp_path}/banner")
    server.start()
    client = tmp_path / "loud/client"
    client.write_text(client.read_text().replace("LogLevel ERROR", "LogLevel INFO"))
    try:
        target.set(errors=[[MADE, "^\\.?bad", errno.EILSEQ]])
        house.write("hers/bad", "x")
        pipe = {"ssh-options": [*server.pipe["ssh-options"], "-oControlPath=none"]}  # type: ignore[misc]
        house.job(target=server.url(house.target), pipe=pipe)
        assert lacking(house.run()).keys() == {"hers/bad"}
        require_others(house)
    finally:
        server.stop()


@pytest.mark.parametrize("operation", ["readdir", "opendir", "read", "open", "getattr"])
@pytest.mark.sample(2)
def test_what_the_sources_disk_does_not_give(house: House, tmp_path: Path, operation: str) -> None:
    """Of a folder of which a part could be read, too: before, such a one ended each run."""
    with odd_filesystem(tmp_path) as (place, rules):
        house.source = place / "source"
        for number in range(20):
            house.write(f"theirs/{number}", random.randbytes(100))
        house.write("hers/bad/file", "x")
        house.write("hers/bad file", "x")
        house.write("hers/good", "x")
        house.job()
        rules.set(errors=[[[operation], "^bad", errno.EIO]])
        bad = {"readdir": {"hers/bad"}, "opendir": {"hers/bad"}, "getattr": {"hers/bad", "hers/bad file"}}
        assert lacking(house.run()).keys() == bad.get(operation, {"hers/bad file"})
        require_others(house)
        rules.set()
        require_all(
            house, True, "done", *(["nothing-to-do"] if operation == "readdir" else [])
        )  # its names were read before it failed


def test_what_an_owners_quota_keeps_out_is_not_called_gone(house: House, target: Rules) -> None:
    """The folder that holds most of it gets no owner: the run said that its entries are gone, and how to agree to that."""
    for number in range(40):
        house.write(f"hers/{number}", "x")
    os.chown(house.source / "hers", 1234, -1)
    assert house.run(house.job(guard={"max-deleted": "50%"})).outcome == "done"
    house.write("hers/more", "y")
    house.write("theirs/more", "y")
    target.set(errors=[[["chown"], "^\\.?(hers|more)", errno.EDQUOT]])
    ran = house.run()
    assert lacking(ran) == {"hers": "the quota that its owner or group has at the target is used up"}
    assert "gone" not in ran["why"]
    require_others(house)
    house.write("theirs/again", "y")
    assert lacking(house.run()).keys() == {"hers"}
    target.set()
    require_all(house)
