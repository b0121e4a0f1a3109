"""The progress of a run: a bar on a terminal, own plain lines elsewhere."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Self, assert_never

from orchestrator.app.settings import ProgressOutput, count_bytes
from orchestrator.domain.events import RunEvent, RunMessage, RunStarted, RunWaits, StepStarted, TransferProgress
from orchestrator.domain.names import printable_line
from orchestrator.views.run_report import step_line

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress


_LONGEST_SILENCE = 60.0
_LEAST_GAP = 1.0  # a copy that ends at once needs no lines


Print = Callable[[str], None]


def make_progress(
    *, quiet: bool, verbose: bool, monotonic: Callable[[], float], show: Print, is_terminal: bool
) -> ProgressOutput:
    """Return the progress display that fits stderr: a bar on a terminal, else lines, which `show` prints."""
    if not quiet and is_terminal:
        return ProgressBar(verbose=verbose, monotonic=monotonic)
    return PlainProgress(quiet=quiet, verbose=verbose, monotonic=monotonic, show=show)


class PlainProgress:
    """Progress as lines: one for each message and each step, and within a step one each 10 % or 60 s."""

    watched = False

    def __init__(self, *, quiet: bool, verbose: bool, monotonic: Callable[[], float], show: Print) -> None:
        self._show = show
        self._quiet = quiet
        self.verbose = verbose
        self._monotonic = monotonic
        self._guard = threading.Lock()
        self._job = ""
        self._count = count_bytes(monotonic)
        self._spoken = (0.0, 0)  # time of the last line, and its tenth

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def notify(self, event: RunEvent) -> None:
        """Print one event as a line, or print nothing."""
        with self._guard:
            match event:
                case RunStarted():
                    self._job = event.job
                    self._count.restart()
                    self._spoken = (self._monotonic(), 0)
                case RunMessage():
                    if event.level == "warning" or not self._quiet:
                        self._say(f"{'warning: ' if event.level == 'warning' else ''}{event.text}")
                case RunWaits():
                    pass  # said as a message
                case StepStarted():
                    if self._count.step_begun():
                        self._spoken = (self._monotonic(), 0)
                    self._info(step_line(event))
                case TransferProgress():
                    self._moved(event)
                case _:
                    assert_never(event)

    def log(self, line: str) -> None:
        """Print the command line, when --verbose is set."""
        if self.verbose:
            self._show(f"+ {line}")

    def _moved(self, event: TransferProgress) -> None:
        if self._quiet:
            return
        now = self._monotonic()
        pace = self._count.moved(event)
        spoken, tenth = self._spoken
        reached = (pace.percent or 0) // 10
        tenth = tenth if tenth <= reached else 0  # another attempt starts at 0
        if (reached > tenth and now - spoken >= _LEAST_GAP) or now - spoken >= _LONGEST_SILENCE:
            self._spoken = (now, reached)
            self._say(pace.told())

    def _info(self, text: str) -> None:
        if not self._quiet:
            self._say(text)

    def _say(self, text: str) -> None:
        self._show(f"{self._job}: {text}" if self._job else text)


class ProgressBar:
    """A bar with percent, rate and time left; messages scroll above it."""

    watched = True

    def __init__(self, *, verbose: bool, monotonic: Callable[[], float]) -> None:
        self.verbose = verbose
        self._guard = threading.Lock()
        self._count = count_bytes(monotonic)
        self._job = ""
        self._bar = _rich_bar()
        self._task = self._bar.add_task("", total=None, told="", visible=False)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        self._bar.reset(self._task, visible=False)  # the next run's bar must not show this one's end

    def notify(self, event: RunEvent) -> None:
        """Show one event, in the bar or above it."""
        with self._guard:
            match event:
                case RunStarted():
                    self._job = event.job
                    self._count.restart()
                    self._show("looking", None)
                case RunMessage():
                    style = "yellow" if event.level == "warning" else None
                    self._print(f"{self._job}: {'warning: ' if style else ''}{event.text}", style)
                case RunWaits():
                    self._show(event.text or "looking", None)
                case StepStarted():
                    self._show(event.action, event.expected)
                case TransferProgress():
                    self._moved(event)
                case _:
                    assert_never(event)

    def log(self, line: str) -> None:
        """Print the command line, when --verbose is set."""
        if self.verbose:
            self._print(f"+ {line}", "dim")

    def _show(self, action: str, expected: int | None) -> None:
        description = printable_line(f"{self._job}: {action}")
        if self._count.step_begun():
            self._bar.reset(self._task, total=expected, description=description, told="", visible=True)
        else:
            self._bar.update(self._task, description=description)

    def _moved(self, event: TransferProgress) -> None:
        pace = self._count.moved(event)
        self._bar.update(self._task, completed=event.done, total=event.expected, told=pace.told())

    def _print(self, text: str, style: str | None) -> None:
        self._bar.console.print(printable_line(text), style=style, markup=False, highlight=False, soft_wrap=True)


def _rich_bar() -> "RichProgress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
    from rich.table import Column

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[told]}", markup=False, table_column=Column(no_wrap=True)),
        console=Console(stderr=True),
        transient=True,
        expand=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
