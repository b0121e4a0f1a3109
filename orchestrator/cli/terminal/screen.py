"""The typed command line: the settings of a use case, whose subscriber is the terminal."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator import compose
from orchestrator.app.settings import Settings
from orchestrator.app.subscriber import ProgressOutput, Subscriber
from orchestrator.cli.terminal import output as door

if TYPE_CHECKING:
    from orchestrator.domain.run import Outcome, RunReport


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
            door.print_json(value)
        else:
            door.print_lines(lines() if callable(lines) else lines)

    def answer_json(self, value: Callable[[], Mapping[str, Any]]) -> None:
        """Print the result of a command whose lines were shown meanwhile: the object with --json."""
        if self.json:
            door.print_json(value())

    def show(self, lines: Iterable[str]) -> None:
        """Print result lines during a command; JSON follows at its end."""
        if not self.json:
            door.print_lines(lines)


class _Listener(Subscriber):
    """A subscriber that prints the progress of a use case."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def say(self, line: str) -> None:
        """Print a line that is no result."""
        door.print_message(line)

    def log(self, line: str) -> None:
        """Print a command line, when --verbose is set."""
        if self._terminal.verbose:
            door.print_message(f"+ {line}")

    def ended(self, report: "RunReport") -> None:
        """Print the end of a run as lines, unless JSON follows, or --quiet is set and the run went well."""
        from orchestrator.domain.run import EXIT_CODES
        from orchestrator.views.run_report import report_lines

        terminal = self._terminal
        if not terminal.json and not (terminal.quiet and EXIT_CODES[report.outcome] in (0, 75)):
            door.print_lines(report_lines(report))

    def progress(self) -> ProgressOutput:
        """Return a bar or lines."""
        from orchestrator.cli.terminal.progress import make_progress

        return make_progress(quiet=self._terminal.quiet, verbose=self._terminal.verbose, monotonic=compose.monotonic)


_WORST = (1, 3, 5, 75, 0)


def exit_code(outcomes: "Iterable[Outcome]") -> int:
    """Return the exit code of several runs: failed has priority over refused, incomplete, waiting and done."""
    from orchestrator.domain.run import EXIT_CODES

    codes = {EXIT_CODES[outcome] for outcome in outcomes}
    return next(code for code in _WORST if code in (*codes, 0))
