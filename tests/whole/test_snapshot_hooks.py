"""Hooks around a snapshot in whole runs: what a kill or a stop in between leaves is let go. zfs and sanoid are stand-ins."""

import os
import signal
from pathlib import Path

import pytest

from tests.daemon.daemon_world import daemon, until
from tests.ferry import Ferry

ZFS = """#!/bin/sh
case "$*" in
*flags*) printf 'tank/photos\\t77\\t-\\ttank/photos\\n' ;;
*) cat "$0.taken" 2>/dev/null || : ;;
esac
"""
SANOID = """#!/bin/sh
echo snapshot >> "{told}"
printf '%s\\ttank/photos@autosnap_x_daily\\n' "$(date +%s)" >> "{bin}/zfs.taken"
"""


class Snapshots:
    """A job that takes snapshots, with hooks that write what they are told to a file."""

    def __init__(self, folder: Path) -> None:
        self.ferry = Ferry(folder)
        self.told, self.bin = folder / "told", folder / "bin"
        self.bin.mkdir()
        for name, text in (("zfs", ZFS), ("sanoid", SANOID.format(told=self.told, bin=self.bin))):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        self.path = {"PATH": f"{self.bin}:{os.environ['PATH']}"}

    def job(self, before: str = "", after: str = "") -> None:
        """Declares it; the hooks run these scripts, too."""
        scripts = {"snapshot-before": before, "snapshot-after": after}
        lines = ['engine = "sanoid"', 'source = "tank/photos"', "[snapshots]", "daily = 3", "[hooks]"]
        for event, script in scripts.items():
            file = self.bin / event
            file.write_text(f'#!/bin/sh\necho $POOLFERRY_EVENT >> "{self.told}"\n{script}\n')
            file.chmod(0o755)
            lines.append(f'{event} = "{file}"')
        (self.ferry.config / "jobs" / "snaps.toml").write_text("\n".join(lines) + "\n")

    def words(self) -> list[str]:
        """Return what happened, in order."""
        return self.told.read_text().split()


@pytest.fixture
def snapshots(tmp_path: Path) -> Snapshots:
    return Snapshots(tmp_path)


def test_a_killed_run_is_followed_by_letting_go_first(snapshots: Snapshots) -> None:
    snapshots.job(before="kill -9 $PPID")
    killed = snapshots.ferry.run("run", "snaps", "--json", **snapshots.path)
    assert (killed.code, snapshots.words()) == (-signal.SIGKILL, ["snapshot-before"])
    snapshots.job()
    ended = snapshots.ferry.run("run", "snaps", "--json", **snapshots.path)
    assert ended.value["outcome"] == "done", ended
    assert snapshots.words() == ["snapshot-before", "snapshot-after", "snapshot-before", "snapshot", "snapshot-after"]
    assert "run 1 was cut while its source was held still" in ended.err


def test_where_the_hook_is_gone_the_next_run_says_once_what_may_be_held(snapshots: Snapshots) -> None:
    snapshots.job(before="kill -9 $PPID")
    snapshots.ferry.run("run", "snaps", **snapshots.path)
    job = snapshots.ferry.config / "jobs" / "snaps.toml"
    job.write_text(job.read_text().partition("[hooks]")[0])
    warned = [snapshots.ferry.run("run", "snaps", "--json", **snapshots.path).value["warnings"] for _ in range(2)]
    assert "run 1 was cut while its source was held still" in warned[0][0]
    assert warned[1] == []


def test_the_daemon_lets_go_when_it_starts(snapshots: Snapshots) -> None:
    snapshots.job(before="kill -9 $PPID")
    snapshots.ferry.run("run", "snaps", **snapshots.path)
    with daemon(snapshots.ferry, PATH=snapshots.path["PATH"]) as one:
        one.says("run 1 was cut while its source was held still")
        until(lambda: snapshots.words() == ["snapshot-before", "snapshot-after"], "snapshot-after", lambda: one.log)
        one.end()


def test_a_stop_while_the_source_is_held_lets_it_go(snapshots: Snapshots) -> None:
    snapshots.job(before="kill -TERM $PPID")
    ended = snapshots.ferry.run("run", "snaps", "--json", **snapshots.path)
    assert ended.value["outcome"] == "interrupted", ended
    assert snapshots.words() == ["snapshot-before", "snapshot-after"]


def test_hooks_around_a_snapshot_that_nothing_takes_are_a_mistake(snapshots: Snapshots) -> None:
    snapshots.job()
    job = snapshots.ferry.config / "jobs" / "snaps.toml"
    job.write_text(job.read_text().replace("[snapshots]", "[snapshots]\nautosnap = false"))
    told = snapshots.ferry.run("check")
    assert told.code == 2
    assert "this job takes no snapshots, so it is never called" in told.out + told.err
