"""Views that go on in a terminal: a status that is drawn again, and a run that is followed to its end."""

import shutil
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.cli.terminal import screen
from orchestrator.cli.terminal.errors import INTERRUPTED
from orchestrator.cli.terminal.screen import Terminal, exit_code
from orchestrator.domain.names import printable_line

if TYPE_CHECKING:
    from orchestrator.app.past import RunGlance

_EVERY = 2.0  # seconds between two looks at the status
_LINE_EVERY = 10.0  # seconds between two lines of progress where nothing can be drawn again


def watch(draw: Callable[[], Sequence[str]]) -> int:
    """Draw lines again and again until Ctrl-C, which is the usual end."""
    try:
        while True:
            screen.repaint(draw())
            compose.sleep(_EVERY)
    except KeyboardInterrupt:
        return 0


def follow_and_show(terminal: Terminal, run: str) -> int:
    """Show a run while it goes on; exit as it does. Ctrl-C leaves it alone."""
    from orchestrator.app.past import follow_run, show_run
    from orchestrator.views.run_history import run_details_value

    shown, number, outcome = _FollowedRun(terminal), 0, None
    try:
        for glance in follow_run(terminal, run):
            number, outcome = glance.run.id, glance.run.outcome
            shown.add(glance)
    except KeyboardInterrupt:
        shown.clear()
        terminal.say(f"run {number} goes on; `{terminal.repeat(f'show {number} --follow')}` watches it again")
        return INTERRUPTED
    if terminal.json:
        found = show_run(terminal, str(number))
        screen.print_json(run_details_value(found.story, found.drilled))
    return exit_code([outcome] if outcome else [])


class _FollowedRun:
    """A run on the terminal: lines for what began, and one line of progress that is drawn again."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._live = screen.wants_colours(sys.stderr) and not terminal.json and not terminal.quiet
        self._begun = False
        self._spoken = compose.monotonic()

    def add(self, glance: "RunGlance") -> None:
        """Show what is new at one look."""
        from orchestrator.views.run_progress import begun_step_line, progress_lines

        self.clear()
        lines = [] if self._begun else [_heading(glance)]
        self._begun = True
        news = [
            (each.said_at, f"{each.said_at.astimezone():%H:%M:%S} {each.level}: {each.text}") for each in glance.said
        ]
        news += [(each.begun_at, begun_step_line(each)) for each in glance.steps]
        lines += [line for _, line in sorted(news, key=lambda each: each[0])]
        if glance.run.outcome is not None:
            lines.append(f"run {glance.run.id} {glance.run.outcome.value}: {glance.run.why or ''}")
            lines += [f"  what to do: {glance.run.hint}"] if glance.run.hint else []
        self._terminal.show(lines)
        screen.flush_output()
        if glance.run.outcome is None:
            self._progress(progress_lines(glance.step, glance.progress, now=compose.now()))

    def _progress(self, lines: Sequence[str]) -> None:
        for line in lines:
            if self._live:
                width = shutil.get_terminal_size().columns - 1
                screen.draw(f"\r\x1b[K{printable_line(line)[:width]}")
            elif compose.monotonic() - self._spoken >= _LINE_EVERY:
                self._spoken = compose.monotonic()
                self._terminal.show([line])

    def clear(self) -> None:
        """Remove the line of progress."""
        if self._live:
            screen.draw("\r\x1b[K")


def _heading(glance: "RunGlance") -> str:
    run = glance.run
    return f"run {run.id}: {run.kind.value} of {run.job}, begun {run.begun_at.astimezone():%Y-%m-%d %H:%M:%S}, {run.begun_why}"
