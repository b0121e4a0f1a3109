"""Runs and visits as the terminal shows them, and the command lines that machines send: for these, and for gates.

Why those are parsed here: `poolferry run JOB` with nothing to do must cost as little as rsync's survey, and importing the library
that parses all other lines is a quarter of our own part of it. And udev starts poolferry for every new device, most of which are
not our disks. Every other line, above all a wrong one, is left to the library.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestrator.cli.terminal.screen import Terminal, exit_code
from orchestrator.domain.fast_dataclass import dataclass

if TYPE_CHECKING:
    from orchestrator.app.disk_scan import VisitEnd
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
    if "run" not in words[:1] or "_POOLFERRY_COMPLETE" in os.environ:
        return None
    terminal, jobs, why, scheduled = Terminal(), list[str](), None, False
    rest = iter(words[1:])
    for word in rest:
        if word in _SWITCHES:
            setattr(terminal, _SWITCHES[word], True)
        elif word == "--scheduled":
            scheduled = True
        elif not word.startswith("-"):
            jobs.append(word)
        elif word not in (*_FOLDERS, "--why") or (value := next(rest, "-")).startswith("-"):
            return None
        elif word == "--why":
            why = value
        elif not value or (os.path.exists(value) and not os.path.isdir(value)):
            return None
        else:
            setattr(terminal, _FOLDERS[word], value)
    return RunArguments(terminal=terminal, jobs=tuple(jobs), why=why, scheduled=scheduled) if jobs else None


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
