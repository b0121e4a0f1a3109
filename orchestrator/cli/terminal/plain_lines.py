"""Plain command lines, which are parsed here: runs, the status, a restore, what udev starts, and what a machine sends to a gate.

Why: `poolferry run JOB` with nothing to do must cost as little as rsync's survey, and importing the library that parses all other lines
is a quarter of our own part of it, and a third of a status. And udev starts poolferry for every new device, most of which are not our
disks. One file comes back in the time that a copy of it takes, and a start. Every other line, above all a wrong one, is left to the
library.
"""

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.cli.terminal.screen import Terminal
from orchestrator.domain.fast_dataclass import dataclass

if TYPE_CHECKING:
    from orchestrator.app.restore import RestoreCommand

_SWITCHES = {"--json": "json", "--quiet": "quiet", "-q": "quiet", "--verbose": "verbose", "-v": "verbose"}
_FOLDERS = {"--config": "config", "--state": "state"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """The command `poolferry run JOB...`, as a timer and the daemon call it."""

    terminal: Terminal
    jobs: tuple[str, ...]
    why: str | None
    scheduled: bool


def parse_plain_run(words: Sequence[str]) -> RunArguments | None:
    """Parse a plain run: names of jobs, and options each as a word of its own; None: it is another command line."""
    if (
        "run" not in words[:1]
        or (plain := _parse_plain(words[1:], switches={"--scheduled"}, options={"--why"})) is None
    ):
        return None
    terminal, jobs, given = plain
    if not jobs:
        return None
    return RunArguments(terminal=terminal, jobs=jobs, why=given.get("--why"), scheduled="--scheduled" in given)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreArguments:
    """The command `poolferry restore run JOB --to PLACE`."""

    terminal: Terminal
    job: str
    to: str | None
    path: str
    point: str | None
    aside: bool

    def request(self) -> "RestoreCommand":
        """Return the request of these words."""
        from orchestrator.app.restore import RestoreCommand

        return RestoreCommand(job=self.job, to=self.to, path=self.path, point=self.point, aside=self.aside)


def parse_plain_restore(words: Sequence[str]) -> RestoreArguments | None:
    """Parse a plain restore of a job's newest point or a named one; None: it is another command line."""
    if [*words[:2]] != ["restore", "run"]:
        return None
    plain = _parse_plain(words[2:], switches={"--aside"}, options={"--to", "--path", "--point"})
    if plain is None or len(plain[1]) != 1:
        return None
    terminal, (job,), given = plain
    to, path, point = given.get("--to"), given.get("--path", ""), given.get("--point")
    return RestoreArguments(terminal=terminal, job=job, to=to, path=path, point=point, aside="--aside" in given)


def _parse_plain(
    words: Sequence[str], *, switches: set[str], options: set[str]
) -> tuple[Terminal, tuple[str, ...], dict[str, str]] | None:
    """Return the settings, the names, and the command's own switches and options; None: it is no plain line."""
    if "_POOLFERRY_COMPLETE" in os.environ:
        return None
    terminal, names, given = Terminal(), list[str](), dict[str, str]()
    rest = iter(words)
    for word in rest:
        if word in _SWITCHES:
            setattr(terminal, _SWITCHES[word], True)
        elif word in switches:
            given[word] = ""
        elif not word.startswith("-"):
            names.append(word)
        elif word not in (*_FOLDERS, *options) or (value := next(rest, "-")).startswith("-"):
            return None
        elif word in options:
            given[word] = value
        elif not value or (os.path.exists(value) and not os.path.isdir(value)):
            return None
        else:
            setattr(terminal, _FOLDERS[word], value)
    return terminal, tuple(names), given


def parse_plain_scan(words: Sequence[str]) -> str | None:
    """Return the identity in `poolferry disks scan --identity IDENTITY`, the command that udev starts; else None."""
    if len(words) != 4 or [*words[:3]] != ["disks", "scan", "--identity"] or "_POOLFERRY_COMPLETE" in os.environ:
        return None
    return None if words[3].startswith("-") else words[3]


def parse_gate_call(words: Sequence[str]) -> tuple[Terminal, str] | None:
    """Parse `poolferry gate NAME`, which sshd calls for each request of a key, with its directories or without; else None."""
    name, options = words[1:2], words[2:]
    if words[:1] != ["gate"] or not name or name[0].startswith("-") or "_POOLFERRY_COMPLETE" in os.environ:
        return None
    given = dict(zip(options[::2], options[1::2], strict=False))
    if 2 * len(given) != len(options) or not given.keys() <= _FOLDERS.keys() or not all(given.values()):
        return None
    terminal = Terminal()
    for option, folder in given.items():
        setattr(terminal, _FOLDERS[option], folder)
    return terminal, name[0]


def parse_plain_status(words: Sequence[str]) -> tuple[Terminal, tuple[str, ...]] | None:
    """Parse a plain status of all jobs or of some; None: it is another command line."""
    if "status" not in words[:1] or (plain := _parse_plain(words[1:], switches=set(), options=set())) is None:
        return None
    return plain[:2]


def parse_plain_line(words: Sequence[str]) -> tuple[Terminal, Callable[[], int]] | None:
    """Return the settings of a plain line, and its command, which returns the exit code; None: it is another command line."""
    if run := parse_plain_run(words):
        return run.terminal, partial(_run, run)
    if status := parse_plain_status(words):
        return status[0], partial(_show_overview, *status)
    if restore := parse_plain_restore(words):
        return restore.terminal, partial(_restore, restore)
    if (identity := parse_plain_scan(words)) is not None:
        return (terminal := Terminal()), partial(_scan, terminal, identity)
    if gate := parse_gate_call(words):
        return gate[0], partial(_answer, *gate)
    return None


def _run(given: RunArguments) -> int:
    from orchestrator.cli.terminal.runs import run_and_show

    return run_and_show(given.terminal, given.jobs, why=given.why, scheduled=given.scheduled)


def _show_overview(terminal: Terminal, jobs: Sequence[str]) -> int:
    from orchestrator.cli.terminal.overview import show_overview

    return show_overview(terminal, jobs)


def _restore(given: RestoreArguments) -> int:
    from orchestrator.cli.terminal.runs import restore_and_show

    return restore_and_show(given.terminal, given.request())


def _scan(terminal: Terminal, identity: str) -> int:
    from orchestrator.cli.terminal.runs import scan_and_show

    return scan_and_show(terminal, identity=identity)


def _answer(terminal: Terminal, name: str) -> int:
    from orchestrator.cli.terminal.runs import answer_and_show

    return answer_and_show(terminal, name)
