"""The page beside a copy of files: its commands for each kind of place."""

from dataclasses import replace
from datetime import UTC, datetime

from orchestrator.domain.job import Job
from orchestrator.domain.place import Host, Location, Place
from orchestrator.engines.rsync.options import RsyncOptions
from orchestrator.engines.rsync.recovery_page import recovery_page

MADE = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
FAR = Host(name="nas.lan", user="backup", port=2222)
JOB = Job(
    name="photos", file="", engine="rsync", source=Location(path="/srv/my photos"),
    target=Place(name="backup", location=Location(path="/backup/photos")), options=RsyncOptions(),
)  # fmt: skip


def blocks(job: Job) -> str:
    return "".join(block.partition("```")[0] for block in recovery_page(job, MADE).split("```sh\n")[1:])


def test_here() -> None:
    assert blocks(JOB) == (
        "copy=/backup/photos\nto='/srv/my photos'\n"
        'ls "$copy/points"\nmkdir -p "$to"\nrsync -aHAXX --numeric-ids --modify-window=-1 "$copy/latest/" "$to/"\n'
    )
    assert 'cp -a "$copy/latest/." "$to/"' in recovery_page(JOB, MADE)


def test_a_copy_elsewhere() -> None:
    far = replace(JOB, target=Place(name="nas", location=Location(path="/backup/my photos", host=FAR)))
    told = blocks(far)
    assert told.startswith("export RSYNC_RSH='ssh -p 2222'\ncopy='backup@nas.lan:/backup/my photos'\n")
    assert """points=''"'"'/backup/my photos/points'"'"''\nssh -p 2222 backup@nas.lan ls "$points"\n""" in told
    assert "cp -a" not in recovery_page(far, MADE)


def test_a_source_elsewhere_and_a_mirror() -> None:
    job = replace(JOB, source=Location(path="/srv/photos", host=FAR), options=RsyncOptions(points=False))
    told = blocks(job)
    assert told.startswith("export RSYNC_RSH='ssh -p 2222'\n")
    assert "to=backup@nas.lan:/srv/photos\n" in told
    assert "mkdir" not in told
    assert 'rsync -aHAXX --numeric-ids --modify-window=-1 --exclude=/.poolferry "$copy/" "$to/"' in told
    assert "points" not in recovery_page(job, MADE)
