"""The output: results to stdout, everything else to stderr, and never a byte that a terminal would obey."""

import contextlib
import errno
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, TextIO

from orchestrator.domain.former_keys import with_former_keys
from orchestrator.domain.names import make_printable

_GONE = (errno.EPIPE, errno.EIO)  # the reader of a pipe, or the terminal
_COLOURS = {"red": "31", "green": "32", "yellow": "33", "bold": "1", "dim": "2"}


def set_up_output() -> None:
    """Set up the output: names may hold any byte, a terminal may know less than Unicode; neither may fail."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def wants_colours(stream: TextIO) -> bool:
    """Return True when colours help: only on a terminal, and not when the user disabled them."""
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str | None, stream: TextIO | None = None) -> str:
    """Return the text in a colour, or unchanged."""
    if colour is None or not wants_colours(stream or sys.stdout):
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def print_lines(lines: Iterable[str]) -> None:
    """Print result lines to stdout."""
    for line in lines:
        _write(sys.stdout, make_printable(line))


def print_painted_lines(lines: Iterable[str]) -> None:
    """Print result lines whose parts are printable already, and may be in colours."""
    for line in lines:
        _write(sys.stdout, line)


def print_json(value: Mapping[str, Any]) -> None:
    """Print the one JSON object of a command to stdout."""
    import json  # --help must not wait for it

    _write(sys.stdout, json.dumps(with_former_keys({"format": 1, **value}), indent=2))


def print_message(line: str) -> None:
    """Print a line that is not a result to stderr."""
    _write(sys.stderr, make_printable(line))


def flush_output() -> None:
    """Flush all output, as long as a reader exists. Raises: OSError for a full disk."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            _let_go(stream)  # else Python itself would try again at its end, and exit with 120
            _forgive(stream, error)


def _write(stream: TextIO, line: str) -> None:
    try:
        stream.write(line + "\n")
        if stream is sys.stderr:
            stream.flush()
    except OSError as error:
        _let_go(stream)
        _forgive(stream, error)


def _forgive(stream: TextIO, error: OSError) -> None:
    """Ignore a closed reader or a full log disk, so that a run continues; raise the error when a result is lost."""
    if stream is sys.stdout and error.errno not in _GONE:
        raise error


def _let_go(stream: TextIO) -> None:
    """Send the stream's pending and later output to /dev/null."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
