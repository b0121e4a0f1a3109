"""Test what can be wrong with a host: each fault has its own sentence and its own cure, and nothing is written."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.whole.house import House, Ran, hinted_commands
from tests.whole.sshd import Sshd, free_port, make_key, sshd

pytestmark = pytest.mark.slow
__all__ = ["sshd"]


def refused_to_copy(house: House, sshd: Sshd, **toml: object) -> Ran:
    """A run that must fail, and does it in words for people; nothing of ours lies on the host."""
    house.write("file", "content")
    house.job(**{"target": sshd.url(house.target), "pipe": sshd.pipe, **toml})
    run = house.run()
    assert (run.code, run.outcome, run["attempts"]) == (1, "failed", 1), run
    assert run["hint"], run
    assert run["evidence"], run
    assert not (house.target / "points").exists() or house.points() == []
    return run


def host_with(folder: Path, script: str, tools: tuple[str, ...] = ()) -> Sshd:
    """A host on which every command goes through a script; its PATH holds only these programs, when any are told."""
    programs = folder / "programs"
    programs.mkdir()
    for tool in tools:
        found = subprocess.run(["which", tool], capture_output=True, text=True, check=True).stdout.strip()
        (programs / tool).symlink_to(found)
    path = f"PATH={programs}; " if tools else ""
    force = folder / "force"
    force.write_text(f'#!/bin/sh\n{path}export PATH\n{script}\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')
    force.chmod(0o755)
    server = Sshd(folder / "other-sshd", more=f"ForceCommand {force}")
    server.start()
    return server


TOOLS = (
    "sh",
    "env",
    "stat",
    "find",
    "cat",
    "readlink",
    "tr",
    "mkdir",
    "touch",
    "rm",
    "mv",
    "true",
    "rmdir",
    "ln",
    "sync",
    "id",
    "chown",
    "chmod",
    "mkfifo",
    "mknod",
)


@pytest.mark.parametrize("missing", ["rsync", "flock"])
def test_a_program_is_missing_there(house: House, tmp_path: Path, missing: str) -> None:
    server = host_with(tmp_path, "", (*TOOLS, *({"rsync", "flock"} - {missing})))
    try:
        run = refused_to_copy(house, server)
    finally:
        server.stop()
    assert "not installed" in run["why"]
    assert missing in run["why"]
    assert "apt install" in run["hint"]


def test_a_login_that_talks(house: House, tmp_path: Path) -> None:
    server = host_with(tmp_path, "echo Welcome to this machine")
    try:
        run = refused_to_copy(house, server)
        planned = house.call("plan", "photos")
        [command] = hinted_commands(run["hint"], "ssh")
        typed = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    finally:
        server.stop()
    assert 'it begins with "Welcome to this machine' in run["why"], run
    assert run["hint"].startswith(f"`ssh -F {server.folder}/client -p ")
    assert "` must print nothing" in run["hint"]
    assert f"`poolferry show {run['run']}` holds it" in run["hint"]
    assert house.follow(run["hint"]).code == 0
    assert planned.value["hint"] == run["hint"].partition(": `poolferry show")[0], (
        "a plan is no run that could be shown"
    )
    assert typed.stdout == "Welcome to this machine\n", "with the job's own ssh-options it is the same login"


def test_the_host_has_another_key(house: House, sshd: Sshd) -> None:
    sshd.stop()
    make_key(sshd.folder / "host_key")
    sshd.start()
    run = refused_to_copy(house, sshd)
    assert "the host's key is another one than before" in run["why"]
    assert "compare it at the host" in run["hint"]
    assert f"-R '[127.0.0.1]:{sshd.port}'` here" in run["hint"]


def test_a_host_that_nobody_knows(house: House, sshd: Sshd) -> None:
    (sshd.folder / "known_hosts").write_text("")
    run = refused_to_copy(house, sshd)
    assert "knows none" in run["why"]
    assert "compare the key" in run["hint"]


def test_our_key_opens_nothing(house: House, sshd: Sshd) -> None:
    make_key(sshd.folder / "user_key")
    run = refused_to_copy(house, sshd)
    assert "refused our login" in run["why"]
    assert "ssh-copy-id" in run["hint"]


def test_the_host_is_down(house: House, sshd: Sshd) -> None:
    sshd.through = free_port()
    run = refused_to_copy(house, sshd)
    assert "did not answer" in run["why"]
    assert "sshd" in run["hint"]


def test_a_name_that_nobody_has(house: House, sshd: Sshd) -> None:
    run = refused_to_copy(house, sshd, target="ssh://root@no-such-host.invalid/backup")
    assert "could not be resolved" in run["why"]
    assert "name" in run["hint"]


def test_a_host_that_is_down_is_tried_again(house: House, sshd: Sshd) -> None:
    """A failure that may pass by itself: the run tries as often as it was told to."""
    sshd.through = free_port()
    house.write("file", "content")
    house.job(target=sshd.url(house.target), pipe=sshd.pipe, retry={"attempts": 3, "wait": "0.1s"})
    run = house.run()
    assert (run.code, run["attempts"]) == (1, 3), run
    assert len(run["warnings"]) == 2


def test_what_check_says_of_a_host(house: House, sshd: Sshd) -> None:
    house.write("file", "content")
    house.job(target=sshd.url(house.target), pipe=sshd.pipe)
    good = house.call("check", "--system")
    assert good.code == 0, good
    advice = {each["subject"]: each["text"] for each in good["jobs"][0]["advice"]}
    assert any(subject.startswith("rsync on") and "version" in text for subject, text in advice.items()), advice
    assert any("compression" in text for text in advice.values())
    sshd.stop()
    bad = house.call("check", "--system")
    assert bad.code == 1
    texts = [each["text"] for each in bad["jobs"][0]["advice"] if each["hinders"]]
    assert texts
    assert all("did not answer" in text for text in texts)


def test_the_source_is_not_there(house: House, sshd: Sshd) -> None:
    house.job(source=sshd.url(house.folder / "nowhere"), pipe=sshd.pipe)
    run = house.run()
    assert (run.code, run.outcome) == (3, "refused"), run
    assert "not there" in run["why"]
    assert os.listdir(house.folder / "source") == []
