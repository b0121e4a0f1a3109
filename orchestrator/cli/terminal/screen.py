"""The terminal: the settings that were typed, and the output, of which no byte is one that a terminal would obey.

Results go to stdout, everything else to stderr. A command that fails ends with plain lines or one JSON object and an exit code,
never with a traceback.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from orchestrator import compose
from orchestrator.app.settings import ProgressOutput, Settings, Subscriber
from orchestrator.domain.names import printable_line

if TYPE_CHECKING:
    from orchestrator.domain.errors import DeclarationError, OrchestratorError
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

    from orchestrator.domain.run_values import with_former_keys

    _write(sys.stdout, json.dumps(with_former_keys({"format": 1, **value}), indent=2))


def print_message(line: str) -> None:
    """Print a line that is not a result to stderr."""
    _write(sys.stderr, printable_line(line))


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
            print_lines(report_lines(report))

    def progress(self) -> ProgressOutput:
        """Return a bar or lines."""
        from orchestrator.cli.terminal.progress import make_progress

        return make_progress(
            quiet=self._terminal.quiet, verbose=self._terminal.verbose, monotonic=compose.monotonic, show=print_message,
            is_terminal=wants_colours(sys.stderr),
        )  # fmt: skip


_WORST = (1, 3, 5, 75, 0)


def exit_code(outcomes: "Iterable[Outcome]") -> int:
    """Return the exit code of several runs: failed has priority over refused, incomplete, waiting and done."""
    from orchestrator.domain.run import EXIT_CODES

    codes = {EXIT_CODES[outcome] for outcome in outcomes}
    return next(code for code in _WORST if code in (*codes, 0))


FAILED, WRONG = 1, 2
DEBUG = "POOLFERRY_DEBUG"


class WrongUsage(Exception):
    """An error for a command line that cannot be parsed. `usage`: the correct usage, if it is known."""

    def __init__(self, why: str, hint: str, usage: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.hint = hint
        self.usage = usage


class CommandResult:
    """The exit code of the command line."""

    code = 0


@contextlib.contextmanager
def report_errors(terminal: Terminal) -> Iterator[CommandResult]:
    """Convert every exception from inside to a message and an exit code."""
    end = CommandResult()
    try:
        yield end
    except WrongUsage as error:
        end.code = _usage(terminal, error)
    except KeyboardInterrupt:
        end.code = _print_error(terminal, FAILED, "interrupted")
    except OSError as error:
        end.code = _system(terminal, error)
    except Exception as error:  # noqa: BLE001 - the last place that can report it
        end.code = _any(terminal, error)


def _any(terminal: Terminal, error: Exception) -> int:
    from orchestrator.domain.errors import DeclarationError, OrchestratorError

    match error:
        case DeclarationError():
            return _mistakes(terminal, error)
        case OrchestratorError():
            return _print_known_error(terminal, error)
    return _ours(terminal, error)


def _print_error(
    terminal: Terminal, code: int, text: str, hint: str = "", evidence: tuple[str, ...] = (), **more: Any
) -> int:
    if terminal.json:
        with contextlib.suppress(OSError):
            print_json({"error": text, "hint": hint, "evidence": list(evidence), **more})
    print_message(f"poolferry: {text}")
    for line in [f"what to do: {hint}"] if hint else []:
        print_message(f"  {line}")
    for line in evidence:
        print_message(f"  {line}")
    return code


def _usage(terminal: Terminal, error: WrongUsage) -> int:
    if error.usage is not None:
        for line in error.usage.split("\n"):
            print_message(line)
    return _print_error(terminal, WRONG, error.why, error.hint)


def _mistakes(terminal: Terminal, error: "DeclarationError") -> int:
    found = error.mistakes
    count = "one mistake" if len(found) == 1 else f"{len(found)} mistakes"
    if terminal.json:
        value = [
            {"file": each.file, "line": each.line, "key": each.key, "what": each.what, "expected": each.expected}
            for each in found
        ]
        print_json({"error": f"{count} in the configuration", "mistakes": value})
    for each in found:
        print_message(str(each))
    if len(found) > 1:
        print_message(f"{count}; nothing was done")
    return WRONG


def _print_known_error(terminal: Terminal, error: "OrchestratorError") -> int:
    from orchestrator.domain.errors import OutsideError
    from orchestrator.domain.run import EXIT_CODES, outcome_of

    evidence: tuple[str, ...] = ()
    if isinstance(error, OutsideError):
        from orchestrator.domain.run_values import evidence_lines

        evidence = evidence_lines(error.evidence)
    return _print_error(terminal, EXIT_CODES[outcome_of(error)], error.why, error.hint, evidence)


def _system(terminal: Terminal, error: OSError) -> int:
    _trace(error)
    name = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return _print_error(terminal, FAILED, f"{name}{error.strerror or error}")


def _ours(terminal: Terminal, error: Exception) -> int:
    _trace(error)
    text = f"this is a mistake in poolferry: {type(error).__name__}: {error}".replace("\n", " ")
    hint = "" if DEBUG in os.environ else f"report it with the output of the same command under {DEBUG}=1"
    return _print_error(terminal, FAILED, text, hint)


def _trace(error: Exception) -> None:
    if DEBUG in os.environ:
        import traceback

        for line in "".join(traceback.format_exception(error)).splitlines():
            print_message(line)
