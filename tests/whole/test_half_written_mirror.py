"""A mirror that a run began to change is the only copy there, and no whole one until a run has ended well: each command says so."""

import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.whole.house import House, facts, mounted, wait_until
from tests.whole.kills import MIB, strike
from tests.whole.sshd import Sshd, sshd

__all__ = ["sshd"]

NAMES = [f"d/{number:02}" for number in range(20)]


@pytest.fixture
def mirrored(house: House) -> House:
    """A house whose mirror was verified, and whose source has changed since."""
    for name in NAMES:
        house.write(name, f"first {name}")
    house.job(rsync={"points": False, "delete": True})
    assert house.run().outcome == "done"
    for name in NAMES:
        house.write(name, f"second, and another size: {name}")
    house.write("zz", random.randbytes(4 * MIB))
    return house


def cut(house: House) -> None:
    """Kills the run that changes the mirror, and all its programs, once a file of it is new."""
    process = house.start(
        house.job(rsync={"points": False, "delete": True}, pipe={"rate_limit": "1M"}, guard={"max_changed": "100%"})
    )
    wait_until(
        lambda: (
            any((house.target / ".poolferry/temporary").iterdir())
            if (house.target / ".poolferry/temporary").is_dir()
            else False
        )
    )
    strike(process, "all")
    house.ended(process)


def test_no_command_calls_a_half_written_mirror_a_verified_copy(mirrored: House, tmp_path: Path) -> None:
    """Before, `status` was up after a power cut, VERIFIED was yes, and a restore blamed the filesystem that it was made on."""
    cut(mirrored)
    for _ in range(2):  # the first as history was left, the second after a command that writes
        told = mirrored.call("status")
        [job] = told["jobs"]
        assert (told.code, job["state"], job["newest_verified"]) == (4, "failing", None), job
        assert job["last_run"]["outcome"] == "interrupted", job
        assert [(each["kind"], each["hint"]) for each in job["problems"]] == [
            ("half-written", "`poolferry run photos` goes on with it")
        ]
        assert "the mirror is half written: run 2, which changed it, did not end" in job["why"]
        [point] = mirrored.call("points", "photos")["points"]
        assert point["verified_at"] is None, point
        restored = mirrored.call("restore", "run", "photos", "--to", str(tmp_path / "back"))
        assert any("the mirror is half written" in each for each in restored["warnings"]), restored.value
        if restored.outcome != "done":
            assert restored["hint"].startswith("the mirror is half written"), restored.value
    read = mirrored.call("verify", "photos")
    assert (read.outcome, "half written" in read["hint"]) == ("failed", True), read.value
    assert mirrored.run().outcome == "done"
    ended = mirrored.call("status")
    assert (ended.code, ended["jobs"][0]["state"], ended["jobs"][0]["problems"]) == (0, "up", []), ended.value
    assert mirrored.call("points", "photos")["points"][0]["verified_at"] is not None
    assert mirrored.call("verify", "photos").outcome == "done"


@pytest.mark.parametrize("far", [False, True], ids=["here", "ssh"])
def test_a_mirror_comes_back_without_configuration_and_state(
    house: House, sshd: Sshd, tmp_path: Path, *, far: bool
) -> None:
    """Before, it was said to hold no restore point: only those were looked for."""
    for name in NAMES[:3]:
        house.write(name, f"first {name}")
    house.job(rsync={"points": False})
    assert house.run().outcome == "done"
    expected = facts(house.source)
    shutil.rmtree(house.config)
    shutil.rmtree(house.state)
    shutil.rmtree(house.source)
    if far:
        config = sshd.folder / "client"
        house.environment["PATH"] = f"{with_ssh_settings(tmp_path, config)}:{os.environ['PATH']}"
    place = sshd.url(house.target) if far else str(house.target)
    back = house.call("restore", "run", "--from", place, "--to", str(tmp_path / "back"))
    assert back.outcome == "done", back.value
    assert facts(tmp_path / "back") == expected
    (house.target / ".poolferry/work").mkdir()  # as a run leaves it that was cut
    planned = house.call("restore", "plan", "--from", place, "--to", str(tmp_path / "again"))
    assert any("half written" in each and "poolferry run" not in each for each in planned["warnings"]), planned.value


def with_ssh_settings(folder: Path, config: Path) -> Path:
    """Return a folder with an ssh that knows the host, as the one who restores would have it in ~/.ssh/config."""
    programs = folder / "programs"
    programs.mkdir()
    (programs / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {config} "$@"\n')
    (programs / "ssh").chmod(0o755)
    return programs


@pytest.fixture
def full(house: House) -> Iterator[House]:
    """A house with a mirror on a target of 4 MiB, which a file of 9 MiB has filled."""
    with mounted(house.target, "size=4m,mode=700"):
        for name in NAMES:
            house.write(name, f"first {name}")
        house.job(rsync={"points": False, "delete": True})
        assert house.run().outcome == "done"
        house.write("zz", random.randbytes(9 * MIB))
        yield house


def test_a_mirror_that_a_file_filled_goes_on_once_that_has_left_the_source(full: House) -> None:
    """Before, what was copied of it stayed, and each later run failed; the hint named [keep] and points, which a mirror has not."""
    ended = full.run()
    assert (ended.outcome, "the target has no space left" in ended["why"]) == ("failed", True), ended.value
    assert ended["hint"] == (
        "free space on the target, or leave out more of the source (excludes in [rsync]): the next run continues from what is there; "
        "the mirror is half written until a run ends well"
    )
    [job] = full.call("status")["jobs"]
    assert (job["state"], job["newest_verified"]) == ("failing", None), job
    full.job(rsync={"points": False, "delete": True, "excludes": ["/zz"]})  # as the hint says
    ended = full.run()
    assert ended.outcome == "done", ended.value
    assert full.call("status")["jobs"][0]["state"] == "up"
    assert sorted(os.listdir(full.target)) == [".poolferry", "d"]


def test_a_mirrors_own_folder_that_was_changed_is_as_the_source_after_a_run(mirrored: House) -> None:
    """Before, the damage stayed for ever where nothing else was found: no run was said to mend folders."""
    mirrored.job(rsync={"points": False, "delete": True}, guard={"max_changed": "100%"})
    assert mirrored.run().outcome == "done"
    mirrored.target.chmod(0o711)
    assert mirrored.call("verify", "photos").outcome == "failed"
    [job] = mirrored.call("status")["jobs"]
    assert (job["state"], job["problems"][0]["kind"]) == ("failing", "damaged")
    assert mirrored.follow(job["problems"][0]["hint"]).outcome == "done"
    assert mirrored.call("status")["jobs"][0]["state"] == "up"
    assert mirrored.call("verify", "photos").outcome == "done"
