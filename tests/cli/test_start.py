"""The start: what is imported, and how long it takes."""

import os
import resource
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.domain.run import Outcome
from orchestrator.history.store import open_history
from tests.cli.import_samples import imported
from tests.ferry import COMMAND, Ferry
from tests.history.records import begin, report

ROOT = Path(__file__).parents[2]


def test_help_waits_for_nothing(ferry: Ferry) -> None:
    found = imported(ferry, "--help")
    assert "click" in found
    assert not found & {"rich", "sqlite3", "tomllib", "json", "subprocess", "asyncio"}


def test_a_run_without_a_terminal_needs_little(ferry: Ferry) -> None:
    ferry.job()
    found = imported(ferry, "run", "photos")
    assert "sqlite3" in found
    assert not found & {"rich", "click", "inspect", "dataclasses"}
    assert ferry.run("history", "--json").value["runs"][0]["outcome"] == "done"


def test_a_file_comes_back_without_what_only_other_lines_need(ferry: Ferry) -> None:
    ferry.job()
    assert ferry.run("run", "photos").code == 0
    found = imported(ferry, "restore", "run", "photos", "--path", "deep/a.txt", "--to", str(ferry.root / "one"))
    assert (ferry.root / "one").read_text() == "some words\n"
    assert not found & {"rich", "click", "inspect", "dataclasses", "pathlib", "shutil", "tempfile", "uuid"}


@pytest.mark.parametrize("command", ["history", "points"])
def test_looking_into_the_history_asks_no_library_for_the_fields_of_a_value(ferry: Ferry, command: str) -> None:
    ferry.job()
    assert ferry.run("run", "photos").code == 0
    # Rows are told by the names of fields; click has inspect, and inspect has no dataclasses.
    assert "dataclasses" not in imported(ferry, command)


def test_a_status_needs_no_library_for_the_command_line(ferry: Ferry) -> None:
    ferry.job()
    assert not imported(ferry, "status") & {"rich", "click", "inspect", "uuid", "subprocess"}


INTERRUPTED = """
import sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "orchestrator.cli.terminal.screen":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupts())
sys.argv = ["poolferry", "status"]
from orchestrator.__main__ import program
program()
"""


def test_an_interrupt_at_the_start_ends_without_a_word() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("command", ["status", "history", "points"])
def test_looking_needs_no_rich(ferry: Ferry, command: str) -> None:
    ferry.job()
    assert "rich" not in imported(ferry, command)


def took(ferry: Ferry, *arguments: str, times: int = 7) -> float:
    """The least processor time of several starts: what other work on the machine takes does not count."""
    found = []
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*COMMAND, *arguments], env=ferry.variables(), capture_output=True, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def test_help_needs_only_the_command_line(ferry: Ferry) -> None:
    found = imported(ferry, "--help")
    assert "click" in found
    assert not found & {"rich", "sqlite3", "tomllib", "subprocess", "dataclasses", "hashlib", "apscheduler"}


@pytest.mark.slow
def test_status_is_quick_with_many_runs(ferry: Ferry) -> None:
    ferry.job()
    now = datetime.now(UTC)
    with open_history(os.fspath(ferry.state / "history.sqlite")) as history, history.together():
        for number in range(10_000):
            at = now - timedelta(minutes=10_000 - number)
            run = begin(history, now=at)
            history.ended(run, report(run, outcome=Outcome.FAILED if number % 7 else Outcome.DONE), at)
        history.point_current("photos", "photos-copies", "2024-01-01T000000Z", run, now)
        history.point_verified("photos", "photos-copies", "2024-01-01T000000Z", run, now)
    assert took(ferry, "status", times=5) < 0.25
    assert ferry.run("status", "--json").value["jobs"][0]["last_run"]["run"] == 10_000
