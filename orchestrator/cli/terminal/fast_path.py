"""The command lines that machines send, parsed without the library that parses all others.

Why: `poolferry run JOB` with nothing to do must cost as little as rsync's survey; importing the library is a quarter of our own
part of it. And udev starts poolferry for every new device, most of which are not our disks. Every other line, above all a wrong
one, is left to the library.
"""

import os
from collections.abc import Sequence

from orchestrator.cli.terminal.screen import Terminal
from orchestrator.domain.fast_dataclass import dataclass

_SWITCHES = {"--json": "json", "--quiet": "quiet", "-q": "quiet", "--verbose": "verbose", "-v": "verbose"}
_FOLDERS = {"--config": "config", "--state": "state"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunArguments:
    """The command `poolferry run JOB...`, as a timer and the daemon call it."""

    terminal: Terminal
    jobs: tuple[str, ...]
    why: str | None


def parse_plain_run(words: Sequence[str]) -> RunArguments | None:
    """Parse a plain run: names of jobs, and options each as a word of its own; None: it is another command line."""
    if "run" not in words[:1] or "_POOLFERRY_COMPLETE" in os.environ:
        return None
    terminal, jobs, why = Terminal(), list[str](), None
    rest = iter(words[1:])
    for word in rest:
        if word in _SWITCHES:
            setattr(terminal, _SWITCHES[word], True)
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
    return RunArguments(terminal=terminal, jobs=tuple(jobs), why=why) if jobs else None


def parse_plain_scan(words: Sequence[str]) -> str | None:
    """Return the identity in `poolferry disks scan --identity IDENTITY`, the command that udev starts; else None."""
    if len(words) != 4 or [*words[:3]] != ["disks", "scan", "--identity"] or "_POOLFERRY_COMPLETE" in os.environ:
        return None
    return None if words[3].startswith("-") else words[3]
