"""Runs, visits and restores as the terminal shows them, and their plain command lines; and the line that machines send to a gate.

Why those are parsed here: `poolferry run JOB` with nothing to do must cost as little as rsync's survey, and importing the library
that parses all other lines is a quarter of our own part of it. And udev starts poolferry for every new device, most of which are
not our disks. One file comes back in the time that a copy of it takes, and a start. Every other line, above all a wrong one, is left to the library.
"""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.cli.terminal.screen import Terminal, exit_code
from orchestrator.domain.fast_dataclass import dataclass

if TYPE_CHECKING:
    from orchestrator.app.disk_scan import VisitEnd
    from orchestrator.app.restore import RestoreCommand
    from orchestrator.app.run_jobs import RunEnd, RunsEnd


def run_and_show(
    terminal: Terminal,
    names: Sequence[str],
    *,
    why: str | None,
    allowed: frozenset[str] = frozenset(),
    only_due: bool = False,
    scheduled: bool = False,
) -> int:
    """Run jobs, and show each end; return the exit code."""
    from orchestrator.app.run_jobs import run_jobs

    def show(end: "RunEnd") -> None:
        if end.heals:
            terminal.show([f"  to heal {line}" for line in end.heals])

    ends = run_jobs(
        terminal, names, why=why or _run_reason(), allowed=allowed, only_due=only_due, scheduled=scheduled, hears=show
    )
    if ends.not_begun:
        terminal.say(f"not begun: {', '.join(ends.not_begun)}")
    terminal.answer_json(lambda: _value(ends, several=only_due or len(set(names)) > 1))
    drills = [drill.report.outcome for end in ends.runs for drill in end.drills]
    return exit_code([*drills, *(end.report.outcome for end in ends.runs)])


def _run_reason() -> str:
    """Return why a run began, for history."""
    return "by hand" if sys.stdin is not None and sys.stdin.isatty() else "by a command"


def _value(ends: "RunsEnd", *, several: bool) -> dict[str, object]:
    from orchestrator.domain.run_values import report_value

    values: list[dict[str, object]] = []
    for end in ends.runs:
        values.append(report_value(end.report))
        if end.drills:
            from orchestrator.views.drills import drill_value

            values[-1]["drill"] = drill_value(end.drills[-1])
    return {"runs": values} if several else values[0]


def scan_and_show(
    terminal: Terminal, names: Sequence[str] = (), *, why: str | None = None, identity: str | None = None
) -> int:
    """Visit the disks that are plugged in, and show each end; return the exit code."""
    from orchestrator.app.disk_scan import PLUGGED_IN, scan_disks

    def show(end: "VisitEnd") -> None:
        from orchestrator.views.visits import visit_lines

        terminal.show(visit_lines(end.visit, end.following))

    found = scan_disks(terminal, names, why=why or PLUGGED_IN, identity=identity, hears=show)
    if not found.ours:
        return 0
    from orchestrator.views.visits import scan_value, visit_outcome

    terminal.answer_json(lambda: scan_value(found.visits, found.others))
    if not found.visits and not found.others:
        terminal.show(["no disk of ours is plugged in"])
    return exit_code(map(visit_outcome, found.visits))


def restore_and_show(terminal: Terminal, request: "RestoreCommand") -> int:
    """Restore data, and show the end; return the exit code."""
    from orchestrator.app.restore import run_restore

    end = run_restore(terminal, request)
    chains: dict[str, object] = {}
    if end.links is not None:
        from orchestrator.views.restore import next_base_lines, next_base_values

        chains = {"chains": next_base_values(end.links)}
        if end.links and not terminal.quiet:
            terminal.show(["the next runs:", *next_base_lines(end.links)])

    def value() -> dict[str, object]:
        from orchestrator.domain.run_values import report_value

        return {**report_value(end.report), **chains}

    terminal.answer_json(value)
    return exit_code([end.report.outcome])


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


def parse_plain_line(words: Sequence[str]) -> tuple[Terminal, Callable[[], int]] | None:
    """Return the settings of a plain line, and its command, which returns the exit code; None: it is another command line."""
    if run := parse_plain_run(words):
        return run.terminal, partial(run_and_show, run.terminal, run.jobs, why=run.why, scheduled=run.scheduled)
    if restore := parse_plain_restore(words):
        return restore.terminal, lambda: restore_and_show(restore.terminal, restore.request())
    if (identity := parse_plain_scan(words)) is not None:
        return (terminal := Terminal()), partial(scan_and_show, terminal, identity=identity)
    if gate := parse_gate_call(words):
        return gate[0], partial(answer_and_show, *gate)
    return None


def answer_and_show(terminal: Terminal, name: str) -> int:
    """Answer a request that came through a gate; return the exit code of a refusal or of a receive, else never."""
    asker = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]

    def later(line: str, who: str, put_off: Callable[..., None], came: bytes) -> int:
        from orchestrator.cli.terminal.errors import report_errors
        from orchestrator.cli.terminal.screen import flush_output

        with report_errors(terminal) as end:
            end.code = _answer(terminal, name, line, who, put_off=put_off, came=came)
        flush_output()
        return end.code

    return _answer(terminal, name, os.environ.get("SSH_ORIGINAL_COMMAND", ""), asker, later=later)


def _answer(
    terminal: Terminal,
    name: str,
    line: str,
    asker: str,
    *,
    later: Callable[..., int] | None = None,
    put_off: Callable[..., None] | None = None,
    came: bytes = b"",
) -> int:
    from orchestrator.app.gate import answer_request
    from orchestrator.domain.gate import PRINTED, REFUSED, CutStream, GateRefusal
    from orchestrator.views.gate import refusal_line

    try:
        asker = asker or "a person here"
        return answer_request(terminal, name, line, asker, later=later, put_off=put_off, came=came)
    except GateRefusal as refusal:
        terminal.say(refusal_line(name, refusal.why))
        return REFUSED
    except CutStream as cut:
        terminal.say(f"{PRINTED}{name}: {cut.why}")
        return 1  # as its receiver ends
