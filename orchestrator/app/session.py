"""What a use case that does something works at: an open history, progress, signals, and removable disks.

Signals as requests to stop: a run ends in good order, and the next one continues from there.
"""

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from orchestrator import compose
from orchestrator.app.settings import Frame
from orchestrator.process.stop import Stop

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from orchestrator.app.disk_visits import Visits
    from orchestrator.app.subscriber import Progress
    from orchestrator.config.models import Configuration
    from orchestrator.domain.job import Job
    from orchestrator.domain.units import Bytes
    from orchestrator.history.store import History
    from orchestrator.runner.context import Tools
    from orchestrator.runner.disk.visit import Read, Reread


_WORDS = {
    signal.SIGTERM: "asked to end (SIGTERM)",
    signal.SIGINT: "interrupted (Ctrl-C)",
    signal.SIGHUP: "the terminal went away (SIGHUP)",
}


@contextlib.contextmanager
def heard_by(stop: Stop) -> Iterator[list[int]]:
    """Turn signals into requests to `stop` while inside; repeated signals count as one. Yields the received signals.

    A signal that is ignored stays so: nohup and shells in the background rely on that.
    """

    def heard(number: int, _: FrameType | None) -> None:
        found.append(number)
        stop.request(_WORDS[signal.Signals(number)])

    found: list[int] = []
    before = {}
    for number in _WORDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, heard)
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


P = ParamSpec("P")
T = TypeVar("T")


class Desk:
    """Open history, progress and signals, for what does something."""

    def __init__(self, frame: Frame, history: "History", shown: "Progress") -> None:
        self.history = history
        self._frame = frame
        self._shown = shown
        self.stopped = False

    def do(
        self, job: "Job", deed: "Callable[Concatenate[Job, Tools, P], T]", *arguments: P.args, **more: P.kwargs
    ) -> T:
        """Call `deed` with the job and its tools, while signals request it to stop.

        Raises: NotNow for a job that is placed on no disk of its set, but for a run, which says so itself.
        """
        if job.target.rotates and "absent" not in more:
            raise compose.unplaced(job)

        stop = compose.stop_for(job)
        with heard_by(stop) as heard, self._shown, compose.connections(job) as ssh_options:
            tools = compose.make_tools(
                job, self._frame.where, self.history, tell=self._shown.tell, log=self._shown.log, stop=stop,
                ssh_options=ssh_options, watched=self._shown.watched,
            )  # fmt: skip
            done = deed(job, tools, *arguments, **more)
        self.stopped = bool(heard)
        return done


class opened:  # noqa: N801 - used as a word: `with opened(frame) as desk`
    """A session that is open as long as it is needed."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __enter__(self) -> Desk:
        self._history = compose.open_history(self._frame.where)
        return Desk(self._frame, self._history, self._frame.subscriber.progress())

    def __exit__(self, *_: object) -> None:
        self._history.close()


def visits_of(
    frame: Frame, desk: "Desk", known: "Configuration", *, read_again: bool = False
) -> "AbstractContextManager[Visits | None]":
    """Return a context for visits of removable disks, if there are any: those attached are detached at the end.

    `read_again`: before that, copies are read again as far as their set's budget goes.
    """
    if not known.sets:
        from contextlib import nullcontext

        return nullcontext()
    from orchestrator.app.disk_visits import Visits, dock
    from orchestrator.planners.identify_disk import Visited
    from orchestrator.views.visits import SetStanding, visited_lines

    def show(ended: Visited, following: SetStanding) -> None:
        for line in visited_lines(ended, following):
            frame.say(line)

    return Visits(
        frame.where, known, lambda: dock(frame.where, desk.history, say=frame.say, log=frame.log), show,
        read=reader(frame, desk) if read_again else None,
    )  # fmt: skip


def reader(frame: Frame, desk: "Desk") -> "Read":
    """Return a function that reads copies again, within a budget, and reports the result."""

    def read(job: "Job", /, *, budget: "Bytes") -> "Reread":
        from orchestrator.runner.verify.read_budget import reread_job

        done = desk.do(job, reread_job, budget=budget)
        frame.subscriber.ended(done.report)
        return done

    return read
