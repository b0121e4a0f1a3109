"""The terminal: the settings that were typed, and the output, of which no byte is one that a terminal would obey.

Results go to stdout, everything else to stderr.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from orchestrator import compose
from orchestrator.app.settings import ProgressOutput, Settings, Subscriber
from orchestrator.domain.names import printable_line
from orchestrator.domain.units import show_count

if TYPE_CHECKING:
    from orchestrator.domain.run import Outcome, RunReport

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
        _write(sys.stdout, printable_line(line))


def print_painted_lines(lines: Iterable[str]) -> None:
    """Print result lines whose parts are printable already, and may be in colours."""
    for line in lines:
        _write(sys.stdout, line)


def print_json(value: Mapping[str, Any]) -> None:
    """Print the one JSON object of a command to stdout."""
    import json  # --help must wait for neither

    from orchestrator.domain.run_values import with_former_keys, with_readable_bytes

    told = with_former_keys({"format": 1, **value})
    text = json.dumps(told, indent=2)
    _write(sys.stdout, json.dumps(with_readable_bytes(told), indent=2) if "\\udc" in text else text)


def print_json_entries(
    head: Mapping[str, Any], key: str, values: Iterable[Mapping[str, Any]], tail: Callable[[], Mapping[str, Any]]
) -> None:
    """Print one JSON object with a list, one entry a line, as they come; `tail`: what is known only at the end."""
    import json
    from itertools import chain, islice

    from orchestrator.domain.run_values import with_former_keys, with_readable_bytes

    coming = iter(values)
    beginning = tuple(islice(coming, 1))  # an error that comes before any entry is the only object
    told = with_former_keys({"format": 1, **head})
    first = json.dumps(with_readable_bytes(told) if "\\udc" in json.dumps(told) else told)
    _write(sys.stdout, f"{first[:-1]}, {json.dumps(key)}: [")
    comma = ""
    for value in chain(beginning, coming):
        _write(sys.stdout, f"{comma}{json.dumps(value)}", end="")
        comma = ",\n"
    last = json.dumps(tail())
    _write(sys.stdout, f"\n]{', ' if last != '{}' else ''}{last[1:]}")


def print_message(line: str) -> None:
    """Print a line that is not a result to stderr."""
    _write(sys.stderr, printable_line(line))


def repaint(lines: Iterable[str]) -> None:
    """Draw printable lines over those that were drawn before: the screen of a terminal does not flicker.

    What is wider or higher than the screen is cut, as it would scroll.
    """
    import shutil

    told, rows = list(lines), shutil.get_terminal_size().lines
    if len(told) >= rows:
        told[rows - 2 :] = [f"… {show_count(len(told) - rows + 2, 'more line')}"]
    text = "".join(f"{line}\x1b[K\n" for line in told)
    _write(sys.stdout, f"\x1b[?7l\x1b[H{text}\x1b[J\x1b[?7h", end="")
    sys.stdout.flush()


def draw(text: str) -> None:
    """Write to the terminal on stderr, without a line end."""
    _write(sys.stderr, text, end="")


def flush_output() -> None:
    """Flush all output, as long as a reader exists. Raises: OSError for a full disk."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            _let_go(stream)  # else Python itself would try again at its end, and exit with 120
            _forgive(stream, error)


def _write(stream: TextIO, line: str, end: str = "\n") -> None:
    try:
        stream.write(line + end)
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


class Terminal(Settings):
    """A command line: directories, and the amount of output."""

    def __init__(
        self,
        *,
        config: str | None = None,
        state: str | None = None,
        json: bool = False,
        verbose: bool = False,
        quiet: bool = False,
    ) -> None:
        super().__init__(config=config, state=state, subscriber=_Listener(self))
        self.json = json
        self.verbose = verbose
        self.quiet = quiet

    def answer(self, value: Mapping[str, Any], lines: Callable[[], Sequence[str]] | Sequence[str]) -> None:
        """Print the result: the object with --json, else the lines."""
        if self.json:
            print_json(value)
        else:
            print_lines(lines() if callable(lines) else lines)

    def answer_json(self, value: Callable[[], Mapping[str, Any]]) -> None:
        """Print the result of a command whose lines were shown meanwhile: the object with --json."""
        if self.json:
            print_json(value())

    def answer_entries(
        self,
        head: Mapping[str, Any],
        key: str,
        values: Iterable[Mapping[str, Any]],
        lines: Iterable[str],
        tail: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """Print a long result as it comes: the object with --json, its list below `key`, else the lines."""
        if self.json:
            print_json_entries(head, key, values, tail)
        else:
            print_lines(lines)

    def show(self, lines: Iterable[str]) -> None:
        """Print result lines during a command; JSON follows at its end."""
        if not self.json:
            print_lines(lines)


class _Listener(Subscriber):
    """A subscriber that prints the progress of a use case."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def say(self, line: str) -> None:
        """Print a line that is no result."""
        print_message(line)

    def log(self, line: str) -> None:
        """Print a command line, when --verbose is set."""
        if self._terminal.verbose:
            print_message(f"+ {line}")

    def ended(self, report: "RunReport") -> None:
        """Print the end of a run as lines, unless JSON follows, or --quiet is set and the run went well."""
        from orchestrator.domain.run import EXIT_CODES
        from orchestrator.views.run_report import report_lines

        terminal = self._terminal
        if not terminal.json and not (terminal.quiet and EXIT_CODES[report.outcome] in (0, 75)):
            self._print(report_lines(report))

    def _print(self, lines: Iterable[str]) -> None:
        print_lines(lines)

    def progress(self) -> ProgressOutput:
        """Return a bar or lines."""
        from orchestrator.cli.terminal.progress import make_progress

        return make_progress(
            quiet=self._terminal.quiet, verbose=self._terminal.verbose, monotonic=compose.monotonic, show=print_message,
            is_terminal=wants_colours(sys.stderr),
        )  # fmt: skip


class ReportsAside(_Listener):
    """A subscriber for commands whose result is made of several runs: the end of each run is no result, and goes to stderr."""

    def _print(self, lines: Iterable[str]) -> None:
        for line in lines:
            print_message(line)


_WORST = (1, 3, 5, 75, 0)


def exit_code(outcomes: "Iterable[Outcome]") -> int:
    """Return the exit code of several runs: failed has priority over refused, incomplete, waiting and done."""
    from orchestrator.domain.run import EXIT_CODES

    codes = {EXIT_CODES[outcome] for outcome in outcomes}
    return next(code for code in _WORST if code in (*codes, 0))
