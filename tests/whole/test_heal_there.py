"""Test where the same bytes are, when copies lie on a host, or on disks that are away; and the command that brings them back."""

import os
import shlex
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator import compose
from orchestrator.app.repair_sources import find_repair_sources
from orchestrator.app.settings import Settings
from orchestrator.domain.point import Finding, Verdict
from orchestrator.domain.run import Outcome
from orchestrator.history.store import open_history
from orchestrator.process.stop import StopRequest
from orchestrator.runner.disk.state import job_on_disk
from orchestrator.runner.run import run_job
from tests.whole.damage import rot
from tests.whole.house import House
from tests.whole.sshd import Sshd

pytestmark = pytest.mark.slow
# Each is a word of grep's, or needs escaping in a manifest.
NAMES = ("plain", "[a]*.$^\\", "new\nline\ttab", "-e x", "latin-\udce9")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return what the host was asked to do, one line each."""
    return tmp_path / "asked"


@pytest.fixture
def sshd(tmp_path: Path, log: Path) -> Iterator[Sshd]:
    """A host that notes what it is asked."""
    force = tmp_path / "force"
    force.write_text(
        f'#!/bin/sh\nprintf "%s" "$SSH_ORIGINAL_COMMAND" | tr "\\n" " " >>{log}; echo >>{log}\n'
        'exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    force.chmod(0o755)
    server = Sshd(tmp_path / "sshd", more=f"ForceCommand {force}")
    server.start()
    yield server
    server.stop()


def two_copies(house: House, sshd: Sshd, *, far: str) -> None:
    """The same source copied by two jobs, one of them to a host; then the source loses all of it."""
    for name in NAMES:
        house.write(f"in/{name}", f"of {name!r}")
    places: dict[str, Any] = {"photos": house.target, "other": house.folder / "second"}
    places[far] = sshd.url(places[far])
    for job, place in places.items():
        house.job(job, target=place, pipe=sshd.pipe)
        assert house.run(job).outcome == "done"
    for name in NAMES:
        (house.source / "in" / name).unlink()


def healed(house: House, *command: str) -> dict[str, dict[str, Any]]:
    """By place, what is said of the damaged files; all of them are told."""
    read = house.call(*command, "photos")
    assert (read.code, read.outcome) == (1, "failed"), read
    return {each["path"]: each for each in read["heal"]}


@pytest.mark.parametrize("far", ["other", "photos"])
@pytest.mark.sample(1)
def test_the_same_bytes_in_a_copy_on_a_host_or_of_one(house: House, sshd: Sshd, log: Path, far: str) -> None:
    two_copies(house, sshd, far=far)
    for name in NAMES:
        rot(house.point() / "in" / name)
    log.write_bytes(b"")
    found = healed(house, "verify")
    assert (len(found), {each["job"] for each in found.values()}) == (len(NAMES), {"other"}), found
    requested = [line for line in log.read_bytes().splitlines() if b"gzip -dc" in line]
    assert len(requested) == 1, "one command for a host, whatever the number of files"
    for hint in found.values():
        words = shlex.split(hint["command"])
        if "\\" not in hint["path"]:  # what cannot be shown is told, and not to be pasted
            assert house.call(*words[1:]).outcome == "done"
    assert (house.source / "in" / "plain").read_text() == "of 'plain'"
    assert (house.source / "in" / "-e x").read_text() == "of '-e x'"


def test_a_copy_on_a_host_that_is_damaged_too_is_not_named(house: House, sshd: Sshd) -> None:
    two_copies(house, sshd, far="other")
    second = house.folder / "second" / "latest" / "in"
    (second / "plain").chmod(0o600)
    rot(house.point() / "in" / "plain")
    rot(second / "plain")
    assert house.call("verify", "other").code == 1
    assert healed(house, "verify") == {}


def test_a_host_that_does_not_answer_is_told_with_what_it_may_hold(house: House, sshd: Sshd) -> None:
    two_copies(house, sshd, far="other")
    rot(house.point() / "in" / "plain")
    sshd.stop()
    (hint,) = healed(house, "verify").values()
    assert hint["command"] is None
    assert "cannot be reached: the host did not answer" in hint["says"]
    assert hint["says"].endswith("it may hold it"), "it was copied later, when the file may have been another one"


def test_a_source_on_a_host_that_still_has_it(house: House, sshd: Sshd) -> None:
    for name in NAMES:
        house.write(name, f"of {name!r}")
    house.job(source=sshd.url(house.source), pipe=sshd.pipe)
    assert house.run().outcome == "done"
    for name in NAMES:
        rot(house.point() / name)
    (house.source / "plain").write_text("changed since")
    found = healed(house, "verify")
    assert {each["place"] for each in found.values()} == {"source"}
    assert len(found) == len(NAMES) - 1, "what the source has otherwise is not called the same"
    assert house.run().outcome == "done"
    assert house.call("verify", "photos")["heal"] == []


def rotating(house: House, *disks: str) -> None:
    """Declares a set of disks, and a job that copies the source to it."""
    with open(house.config / "targets.toml", "a", encoding="utf-8") as targets:
        targets.write("\n[set.offsite]\n")
        for number, disk in enumerate(disks):
            identity = f"0aa1b2c3-1111-4222-8333-44445555{number:04}"
            targets.write(f'[disk.{disk}]\nset = "offsite"\nidentity = "{identity}"\n')
    (house.config / "jobs" / "usb.toml").write_text(
        f'engine = "rsync"\nsource = "{house.source}"\ntarget = "offsite"\n'
    )


def test_the_disk_to_plug_in_is_named(house: House) -> None:
    """Its content is known by history alone: a point that is younger than the file, and older than the damaged one."""
    now = datetime.now(UTC).replace(microsecond=0)
    house.write("old", "first")
    os.utime(house.source / "old", (now.timestamp() - 7 * 86400,) * 2)
    house.write("young", "second")
    house.job()
    assert house.run().outcome == "done"
    for name in ("old", "young"):
        (house.source / name).unlink()
        rot(house.point() / name)
    rotating(house, "red", "blue")
    with open_history(str(house.state / "history.sqlite")) as history:
        for disk, days in (("red", 2), ("blue", 30)):
            name, taken = f"2026-01-{days:02}T000000Z", now - timedelta(days=days)
            history.points_seen("usb", disk, {name: taken}, taken)
            history.point_verified("usb", disk, name, 1, taken)
    found = healed(house, "verify")
    assert set(found) == {"old"}, found
    assert found["old"]["says"] == (
        "old: disk red (job usb) holds 2026-01-02T000000Z: fetch it, and plug it in; the file is older than that"
    )
    assert (found["old"]["place"], found["old"]["command"]) == ("red", None)


@pytest.mark.root
def test_an_older_point_of_the_disk_that_is_here(house: House) -> None:
    """The job as it is placed on the disk, a folder in its place: what lies on it can be looked at."""
    name = f"red-{os.getpid()}"
    house.write("file", "first")
    house.job()
    rotating(house, name)
    settings = Settings(config=str(house.config), state=str(house.state))
    known = settings.configuration()
    placed = job_on_disk(known.job("usb"), known.rotation("offsite").disk(name))
    disk = Path("/run/poolferry/disks", name)
    try:
        with compose.open_history(settings.where) as history:
            for second in (0, 1):  # another time: the same bytes become a file of their own
                os.utime(house.source / "file", (second, second))
                disk.mkdir(parents=True, exist_ok=True)
                tools = compose.make_run_context(
                    placed,
                    settings.where,
                    history,
                    notify=lambda _: None,
                    log=lambda _: None,
                    stop=StopRequest(),
                    ssh_options=(),
                )
                assert run_job(placed, tools, why="by hand").outcome is Outcome.DONE
        older, newer = sorted(
            path.name for path in Path(placed.target.location.path, "points").iterdir() if path.is_dir()
        )
        (house.source / "file").unlink()
        found = find_repair_sources(
            settings, placed, newer, (Finding(path=b"file", verdict=Verdict.ROTTEN, detail=""),)
        )
    finally:
        shutil.rmtree(disk)
    (hint,) = found
    assert (hint.place, hint.point, hint.command.startswith("poolferry restore run usb")) == (name, older, True), hint
