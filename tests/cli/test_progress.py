"""Progress: plain lines, and a bar on a real terminal."""

import os
import pty
import re
import select
import time

import pytest

from orchestrator.cli.terminal.progress import PlainProgress
from orchestrator.cli.terminal.screen import print_message
from orchestrator.domain.events import RunEvent, RunMessage, RunStarted, StepStarted, TransferProgress
from tests.ferry import COMMAND, Ferry

SLOW = '[pipe]\nrate-limit = "1M"\n'


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


def told(capsys: pytest.CaptureFixture[str], *events: RunEvent | float, **how: bool) -> list[str]:
    """The lines of these events; a number lets so many seconds pass."""
    clock = Clock()
    quiet, verbose = how.get("quiet", False), how.get("verbose", False)
    with PlainProgress(quiet=quiet, verbose=verbose, monotonic=clock, show=print_message) as plain:
        for event in events:
            if isinstance(event, float):
                clock.at += event
            else:
                plain.notify(event)
        plain.log("rsync -a")
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


COPY = (RunStarted(run=1, job="photos"), StepStarted(action="copy", expected=1000))


def test_a_line_for_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    moves = [each for done in range(0, 1001, 20) for each in (2.0, TransferProgress(done=done, expected=1000))]
    lines = told(capsys, *COPY, *moves)
    assert lines[0] == "photos: copy (1000 B)"
    assert [re.match(r"photos: (\d+)%, ", line)[1] for line in lines[1:]] == [str(n) for n in range(10, 101, 10)]  # type: ignore[index]
    assert lines[5] == "photos: 50%, 500 B of 1000 B, 10 B/s, 50 s left"


def test_a_line_each_minute_when_it_is_slow_or_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    moves = [each for done in range(1, 301) for each in (1.0, TransferProgress(done=done, expected=None))]
    assert len(told(capsys, *COPY, *moves)) == 1 + 5


def test_a_quick_copy_needs_no_lines(capsys: pytest.CaptureFixture[str]) -> None:
    moves = [each for done in range(0, 1001, 20) for each in (0.01, TransferProgress(done=done, expected=1000))]
    assert told(capsys, *COPY, *moves) == ["photos: copy (1000 B)"]


def test_each_step_begins_anew(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(
        capsys,
        *COPY,
        5.0,
        TransferProgress(done=900, expected=1000),
        COPY[1],
        5.0,
        TransferProgress(done=100, expected=1000),
    )
    assert [line.partition(",")[0] for line in lines] == [
        "photos: copy (1000 B)",
        "photos: 90%",
        "photos: copy (1000 B)",
        "photos: 10%",
    ]


def test_what_counts_over_the_whole_run_goes_on_from_step_to_step(capsys: pytest.CaptureFixture[str]) -> None:
    moves = [
        each
        for done in range(0, 1001, 100)
        for each in (5.0, TransferProgress(done=done, expected=1000, whole=True), COPY[1])
    ]
    lines = [line for line in told(capsys, *COPY, *moves) if "%" in line]
    assert [re.match(r"photos: (\d+)%, ", line)[1] for line in lines] == [str(n) for n in range(10, 101, 10)]  # type: ignore[index]
    assert lines[4] == "photos: 50%, 500 B of 1000 B, 16 B/s, 30 s left"


def test_another_attempt_and_another_count_begin_anew(capsys: pytest.CaptureFixture[str]) -> None:
    whole = [TransferProgress(done=done, expected=1000, whole=True) for done in (100, 900)]
    again = [each for move in (*whole, *whole) for each in (5.0, move)]
    lines = told(
        capsys,
        *COPY,
        *again,
        COPY[1],
        5.0,
        TransferProgress(done=950, expected=None),
        *(99.0, TransferProgress(done=960, expected=None)),
    )
    assert [line.partition(": ")[2] for line in lines[1:]] == [
        "10%, 100 B of 1000 B, 20 B/s, 45 s left", "90%, 900 B of 1000 B, 90 B/s, 1.1 s left",
        "10%, 100 B of 1000 B", "90%, 900 B of 1000 B, 180 B/s, 0.6 s left", "copy (1000 B)", "960 B, 9 B/s",
    ]  # fmt: skip


def test_quiet_says_warnings_only(capsys: pytest.CaptureFixture[str]) -> None:
    said = (
        RunMessage(level="info", text="a"),
        RunMessage(level="warning", text="b"),
        99.0,
        TransferProgress(done=500, expected=1000),
    )
    assert told(capsys, *COPY, *said, quiet=True) == ["photos: warning: b"]


def test_verbose_shows_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, verbose=True) == ["+ rsync -a"]


def on_a_terminal(ferry: Ferry, *arguments: str) -> tuple[int, str]:
    """The exit code of a command whose stderr and stdout are a terminal, and all it showed."""
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(ferry.root)
        variables = {**ferry.variables(), "TERM": "xterm", "COLUMNS": "140"}
        os.execve(COMMAND[0], [*COMMAND, *arguments], variables)  # noqa: S606 - the terminal is this child's
    shown, until = b"", time.monotonic() + 60
    while time.monotonic() < until:
        if not select.select([terminal], [], [], 1.0)[0]:
            continue
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # Source: pty(7): the terminal's last user is gone
            break
        if not chunk:
            break
        shown += chunk
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown.decode()


@pytest.mark.slow
def test_a_terminal_shows_percent_rate_and_time_left(ferry: Ferry) -> None:
    source = ferry.job(more=SLOW)
    assert ferry.run("run", "photos").code == 0
    (source / "big").write_bytes(os.urandom(3 << 20))
    ferry.job("music")
    code, shown = on_a_terminal(ferry, "run", "photos", "music")
    assert code == 0, shown
    assert "music: done: made " in shown
    percents = {int(each) for each in re.findall(r"(\d+)%, ", shown)}
    assert len(percents) >= 2, shown
    assert re.search(r"\d+%, [\d.]+ \w+ of 3\.0 MiB, [\d.]+ [KM]iB/s, [\d.]+ s left", shown), shown
    assert "photos: done: made " in shown


@pytest.mark.slow
def test_the_same_without_a_terminal_is_plain_lines(ferry: Ferry) -> None:
    source = ferry.job(more=SLOW)
    ferry.run("run", "photos")
    (source / "big").write_bytes(os.urandom(3 << 20))
    ended = ferry.run("run", "photos")
    assert re.search(r"^photos: \d+%, [\d.]+ \w+ of 3\.0 MiB, [\d.]+ [KM]iB/s, [\d.]+ s left$", ended.err, re.MULTILINE)
    assert "\x1b" not in ended.err


def test_colours_only_where_they_are_welcome(ferry: Ferry) -> None:
    ferry.job()
    assert "\x1b[" in on_a_terminal(ferry, "status")[1]
    assert "\x1b[" not in ferry.run("status").out
    ferry.variables = lambda: {**Ferry.variables(ferry), "NO_COLOR": "1"}  # type: ignore[method-assign]
    assert "\x1b[" not in on_a_terminal(ferry, "status")[1]
