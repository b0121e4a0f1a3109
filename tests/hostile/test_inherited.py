"""Root started by `su` or `sudo -E`: the variables of a user, her folder, a umask, closed streams."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.hostile.conftest import STRANGER
from tests.whole.house import House, wait_until

pytestmark = pytest.mark.root
PROGRAMS = (
    "rsync",
    "find",
    "sh",
    "setpriv",
    "stat",
    "flock",
    "sync",
    "ssh",
    "perl",
    "env",
    "python3",
    "mount",
    "zfs",
    "lsblk",
)


@pytest.fixture
def hers(house: House) -> Path:
    """A folder of the stranger's with programs, modules and settings that leave a mark."""
    folder = house.folder / "hers"
    folder.mkdir()
    for name in PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\ntouch {house.folder}/MARK-$(basename $0)\nexit 1\n")
        (folder / name).chmod(0o755)
    (folder / "orchestrator.py").write_text(f"open('{house.folder}/MARK-module', 'w')\n")
    (folder / ".popt").write_text(f"rsync alias --archive -rlptgoD --log-file={house.folder}/MARK-popt\n")
    for path in (folder, *folder.iterdir()):
        os.chown(path, STRANGER, STRANGER)
    house.write("a/b", "x")
    house.job()
    return folder


def run(house: House, hers: Path, closed: str = "", **variables: str) -> "subprocess.CompletedProcess[str]":
    argv = [house.python, "-P", *house.argv("run", "photos")[1:]]
    return subprocess.run(
        ["/bin/sh", "-c", f'umask 0; exec "$@" {closed}', "sh", *argv],
        cwd=hers, env={**house.environment, **variables}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    "variables",
    [
        {"PATH": "{hers}:/usr/sbin:/usr/bin:/sbin:/bin"}, {"PATH": ".:/usr/sbin:/usr/bin:/sbin:/bin"}, {"PATH": "link:/usr/bin:/bin"},
        {"PATH": "{hers}"}, {"HOME": "{hers}"}, {"TMPDIR": "{hers}", "TEMP": "{hers}"},
        {"RSYNC_RSH": "{hers}/ssh", "RSYNC_OLD_ARGS": "1", "RSYNC_ICONV": "utf-8,latin1", "RSYNC_PARTIAL_DIR": "/tmp"},
        {"ENV": "{hers}/sh", "BASH_ENV": "{hers}/sh", "IFS": "/", "CDPATH": "/", "PS4": "$(touch {root}/MARK)", "SHELLOPTS": "xtrace"},
        {"POSIXLY_CORRECT": "1", "DF_BLOCK_SIZE": "1G", "BLOCKSIZE": "1G", "COLUMNS": "1", "TZ": ":/etc/hostname", "LANG": "tr_TR.UTF-8"},
    ],
    ids=["path", "path-here", "path-link", "path-alone", "home", "temporary", "rsync", "shell", "formats"],
)  # fmt: skip
def test_nothing_of_hers_runs_or_counts(house: House, hers: Path, variables: dict[str, str]) -> None:
    told = {name: value.format(hers=hers, root=house.folder) for name, value in variables.items()}
    done = run(house, hers, **told)
    assert done.returncode == 0, done
    assert list(house.folder.glob("MARK*")) == []
    assert (house.point() / "a/b").read_text() == "x"


def test_nobody_else_may_write_what_is_made_with_a_umask_that_lets_all(house: House, hers: Path) -> None:
    assert run(house, hers).returncode == 0
    ours = [house.state, house.target, *house.state.rglob("*"), *house.target.rglob("*")]
    copied = {path for point in house.target.glob("points/*Z") for path in (point, *point.rglob("*"))}
    assert [path for path in ours if path not in copied and not path.is_symlink() and path.stat().st_mode & 0o022] == []


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_with_closed_streams_is_a_run(house: House, hers: Path, closed: str) -> None:
    done = run(house, hers, closed)
    assert done.returncode == 0, done
    assert "mistake in poolferry" not in done.stdout + done.stderr
    assert (house.point() / "a/b").read_text() == "x"
    assert house.call("history", "photos").code == 0
    assert house.run().outcome == "nothing-to-do"


def test_programs_are_heard_where_their_ends_were_ignored(house: House, hers: Path) -> None:
    done = subprocess.run(
        ["env", "--ignore-signal=CHLD", *house.argv("run", "photos")], env=house.environment, capture_output=True, text=True, timeout=60
    )  # fmt: skip
    assert done.returncode == 0, done


def test_a_run_whose_signals_were_blocked_can_be_stopped(house: House, hers: Path) -> None:
    house.write("large", os.urandom(8 << 20))
    house.job(pipe={"rate_limit": "1M"})
    argv = ["env", "--block-signal=TERM", *house.argv("run", "photos")]
    with subprocess.Popen(argv, env=house.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: any("large" in path.name for path in house.target.rglob("*")))
        process.terminate()
        assert process.wait(5) != 0
    assert house.call("history", "photos").value["runs"][0]["outcome"] == "interrupted"
