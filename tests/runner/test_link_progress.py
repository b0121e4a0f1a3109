"""A host that links a point says so: each minute a line, and no silence that looks like a stall."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.rsync.script_commands import link_tree_command
from orchestrator.process.executor import Writer
from orchestrator.runner.link_tree import LinkProgress


def test_each_minute_is_told_how_many_entries_are_linked() -> None:
    now, told = [0.0], list[str]()
    progress = LinkProgress(told.append, lambda: now[0])
    for chunk, at in ((b"1000\n20", 59.0), (b"00\n", 61.0), (b"3000\n", 62.0), (b"4000\n5000\n6", 122.0)):
        now[0] = at
        progress.feed(chunk)
    assert told == ["2000 entries are linked so far", "5000 entries are linked so far"]


@pytest.mark.parametrize("garbage", [b"\xff\n", b"-5\n", b"9" * 70_000 + b"\n", b"\n", b"1e9\n", b"\xb2\n"])
def test_what_is_no_number_is_ignored(garbage: bytes) -> None:
    told = list[str]()
    progress = LinkProgress(told.append, lambda: 0.0, after=0.0)
    progress.feed(garbage)
    progress.feed(b"7" * 100_000)
    assert not told


@pytest.mark.root
def test_a_host_counts_what_it_links_and_says_where_it_failed(tmp_path: Path) -> None:
    work = tmp_path / ".poolferry/work"
    work.mkdir(parents=True, mode=0o700)
    (tmp_path / ".poolferry/lock").touch()
    old = tmp_path / "points/p"
    old.mkdir(parents=True)
    for number in range(2100):
        os.close(os.open(old / f"{number}", os.O_CREAT))
    (tmp_path / "names").write_bytes(b"./7\0./8\0")
    point = RestorePoint(name="p", taken=datetime.now(UTC), tree=Location(path=str(old)), manifest=None)
    command = link_tree_command(Location(path=str(work)), point)
    said = list[bytes]()
    linking = Pipeline(stages=(command,), reads=str(tmp_path / "names"))
    result = Writer().stream(linking, on_output=said.append)
    assert (result.exits, b"".join(said)) == ((0,), b"1000\n2000\n"), result.last_output
    assert len(os.listdir(work)) == 2098
    assert os.stat(work / "9").st_nlink == 2
    assert Writer().stream(linking, on_output=said.append).exits == (1,), "it is not empty any more"
    subprocess.run(["rm", "-rf", work], check=True)
    work.mkdir(mode=0o700)
    gone = link_tree_command(
        Location(path=str(work)), RestorePoint(name="q", taken=datetime.now(UTC), tree=point.tree, manifest=None)
    )
    result = Writer().stream(Pipeline(stages=(gone,), reads=str(tmp_path / "names")), on_output=said.append)
    assert not result.well
