"""Plain lines, read without the library that reads all other lines, are read as the library would."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as some

from orchestrator.app.restore import RestoreCommand
from orchestrator.cli.terminal import overview, root, runs
from orchestrator.cli.terminal.errors import WrongUsage
from orchestrator.cli.terminal.plain_lines import (
    parse_gate_call,
    parse_plain_restore,
    parse_plain_run,
    parse_plain_scan,
    parse_plain_status,
)
from orchestrator.cli.terminal.screen import Terminal

HERE = str(Path(__file__))
WORDS = (
    "run", "photos", "mails", "--json", "--quiet", "-q", "-v", "--verbose", "-qv", "--config", "--state", "/nowhere/at/all",
    HERE, str(Path(HERE).parent), "--config=/x", "--why", "a reason", "--due", "--allow", "max-deleted", "--aside", "--help",
    "-h", "--", "-", "", "--js", "--version", "plan",
)  # fmt: skip
_OWN = ("config", "state", "json", "verbose", "quiet")


def of_the_library(words: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any] | None:
    """Return what the library makes of the words; None if it makes no run of them."""
    told: list[dict[str, Any]] = []

    def run_and_show(terminal: Terminal, names: Sequence[str], **more: Any) -> int:
        told.append({"names": tuple(names), **more, **{name: getattr(terminal, name) for name in _OWN}})
        return 0

    with monkeypatch.context() as patched:
        patched.setattr(runs, "run_and_show", run_and_show)
        try:
            root.call(list(words), Terminal(json="--json" in words))
        except WrongUsage:
            return None
    return told[0] if told else None


@given(words=some.lists(some.sampled_from(WORDS), max_size=5).map(lambda rest: ["run", *rest]))
@example(words=["run", "photos", "--config", ""])
@example(words=["run", "photos", "--why", ""])
@example(words=["run", "--scheduled", "photos"])
def test_it_is_read_as_the_library_reads_it(words: list[str]) -> None:
    if (plain := parse_plain_run(words)) is None:
        return
    with pytest.MonkeyPatch.context() as monkeypatch:
        told = of_the_library(words, monkeypatch)
    own = {name: getattr(plain.terminal, name) for name in _OWN}
    assert told == {
        "names": plain.jobs,
        "why": plain.why,
        "allowed": frozenset(),
        "only_due": False,
        "scheduled": plain.scheduled,
        **own,
    }


@given(words=some.lists(some.sampled_from((*WORDS, "--watch", "-w")), max_size=5).map(lambda rest: ["status", *rest]))
@example(words=["status"])
@example(words=["status", "photos", "--json", "--config", str(Path(HERE).parent)])
def test_a_status_is_read_as_the_library_reads_it(words: list[str]) -> None:
    if (plain := parse_plain_status(words)) is None:
        return
    told = list[Any]()

    def show_overview(terminal: Terminal, jobs: Sequence[str]) -> int:
        told.append(({name: getattr(terminal, name) for name in _OWN}, tuple(jobs)))
        return 0

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(overview, "show_overview", show_overview)
        root.call(words, Terminal(json="--json" in words))
    assert told == [({name: getattr(plain[0], name) for name in _OWN}, plain[1])]


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("status", True), ("status photos --json", True), ("status -q --state /x", True), ("status --watch", False), ("status -w", False),
        ("--json status", False), ("status --help", False), ("status --config", False), ("states", False), ("", False),
    ],
)  # fmt: skip
def test_which_statuses_are_plain(line: str, plain: bool) -> None:
    assert (parse_plain_status(line.split()) is not None) is plain


RESTORES = (
    "photos", "mails", "--to", "--path", "--point", "--aside", "--from", "--at", "--content", "--lost-key", "--json", "-q", "-v",
    "--config", "--state", HERE, str(Path(HERE).parent), "2026/a.jpg", "2026", "--to=/x", "--", "-", "", "--help", "--pa",
)  # fmt: skip


def restored_by_the_library(
    words: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[RestoreCommand | dict[str, Any], ...]:
    told = list[RestoreCommand]()

    def restore_and_show(terminal: Terminal, request: RestoreCommand) -> int:
        told.append(request)
        settings.update({name: getattr(terminal, name) for name in _OWN})
        return 0

    settings = dict[str, Any]()
    with monkeypatch.context() as patched:
        patched.setattr(runs, "restore_and_show", restore_and_show)
        with contextlib.suppress(WrongUsage):
            root.call(list(words), Terminal(json="--json" in words))
    return *told, settings


@given(words=some.lists(some.sampled_from(RESTORES), max_size=7).map(lambda rest: ["restore", "run", *rest]))
@example(words=["restore", "run", "photos", "--to", "", "--path", ""])
@example(words=["restore", "run", "photos", "--to", "/x", "--to", "/y", "--aside", "--point", "2026"])
def test_a_restore_is_read_as_the_library_reads_it(words: list[str]) -> None:
    if (plain := parse_plain_restore(words)) is None:
        return
    with pytest.MonkeyPatch.context() as monkeypatch:
        told = restored_by_the_library(words, monkeypatch)
    assert told == (plain.request(), {name: getattr(plain.terminal, name) for name in _OWN})


@pytest.mark.parametrize(
    ("line", "plain"),
    [
        ("restore run photos --to /x", True), ("restore run photos --path a/b --to /x --json", True),
        ("restore run --point 2026 photos --to /x --aside -q", True), ("restore run --to /x", False),
        ("restore run photos mails --to /x", False), ("restore run photos --to /x --at yesterday", False),
        ("restore run --from /backup/photos --to /x", False), ("restore plan photos --to /x", False), ("restore run photos --to", False),
    ],
)  # fmt: skip
def test_which_restores_are_plain(line: str, plain: bool) -> None:
    assert (parse_plain_restore(line.split()) is not None) is plain


@pytest.mark.parametrize(
    "words",
    [["run", "photos"], ["run", "photos", "mails", "--json"], ["run", "--state", "/x", "photos", "-q", "--why", "by cron"]],
)  # fmt: skip
def test_what_machines_type_is_plain(words: list[str]) -> None:
    assert parse_plain_run(words)


@pytest.mark.parametrize(
    "words",
    [
        [], ["run"], ["plan", "photos"], ["--json", "run", "photos"], ["run", "photos", "--due"], ["run", "photos", "--help"],
        ["run", "photos", "--config"], ["run", "photos", "--config", "--json"], ["run", "photos", "--config", HERE],
        ["run", "photos", "--allow", "max-deleted"],
    ],
)  # fmt: skip
def test_all_else_is_left_to_the_library(words: list[str]) -> None:
    assert parse_plain_run(words) is None


def test_a_shell_that_completes_is_left_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_POOLFERRY_COMPLETE", "bash_complete")
    assert parse_plain_run(["run", "photos"]) is None
    assert parse_plain_status(["status"]) is None
    assert parse_plain_scan(["disks", "scan", "--identity", "77"]) is None
    assert parse_plain_restore(["restore", "run", "photos", "--to", "/x"]) is None


@pytest.mark.parametrize("identity", ["b0a1-77", "3138753135168276427", ""])
def test_the_line_of_udev_is_read_as_the_library_reads_it(identity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words, told = ["disks", "scan", "--identity", identity], list[Any]()

    def scan_and_show(terminal: Terminal, names: Sequence[str], **more: Any) -> int:
        told.append((terminal.json, tuple(names), more))
        return 0

    monkeypatch.setattr(runs, "scan_and_show", scan_and_show)
    root.call(words, Terminal(json=False))
    assert parse_plain_scan(words) == identity
    assert told == [(False, (), {"why": None, "identity": identity})]


@pytest.mark.parametrize(
    "words",
    [
        [], ["disks"], ["disks", "scan"], ["disks", "scan", "red"], ["disks", "scan", "--identity"], ["run", "scan", "--identity", "7"],
        ["disks", "scan", "--identity", "--help"], ["disks", "scan", "--identity", "7", "--json"],
    ],
)  # fmt: skip
def test_other_scans_are_left_to_the_library(words: list[str]) -> None:
    assert parse_plain_scan(words) is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gate laptop", (None, None)), ("gate laptop --config /c", ("/c", None)), ("gate laptop --state /s", (None, "/s")),
        ("gate laptop --config /c --state /s", ("/c", "/s")), ("gate laptop --state /s --config /c", ("/c", "/s")),
    ],
)  # fmt: skip
def test_the_line_by_which_sshd_calls_a_gate(line: str, expected: tuple[str | None, str | None]) -> None:
    parsed = parse_gate_call(line.split())
    assert parsed is not None
    assert (parsed[1], (parsed[0].config, parsed[0].state)) == ("laptop", expected)


@pytest.mark.parametrize(
    "words",
    [
        (), ("gate",), ("gate", "--help"), ("gate", "laptop", "--config"), ("gate", "laptop", "--config", ""), ("gate", "laptop", "more"),
        ("gate", "laptop", "--config", "/a", "--config", "/b"), ("gate", "laptop", "--json", "x"), ("run", "laptop"),
    ],
)  # fmt: skip
def test_other_lines_about_gates_are_left_to_the_library(words: tuple[str, ...]) -> None:
    assert parse_gate_call(words) is None
