"""The session of a use case that changes something: an open history, progress, signals, and removable disks.

Signals are requests to stop: a run ends in good order, and the next one continues from there.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from orchestrator import compose
from orchestrator.app.settings import Settings
from orchestrator.domain.events import RunEvent, RunStarted, RunWaits, StepStarted, TransferProgress, no_log
from orchestrator.process.stop import StopRequest

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from orchestrator.app.disk_visits import DiskVisits
    from orchestrator.app.permits import CentrePermits, JobPermit
    from orchestrator.app.settings import ProgressOutput
    from orchestrator.config.models import Configuration
    from orchestrator.domain.job import Job
    from orchestrator.domain.run import VisitCause
    from orchestrator.domain.units import Bytes
    from orchestrator.history.store import History
    from orchestrator.runner.context import RunContext
    from orchestrator.runner.disk.visit import BudgetReader, BudgetReadResult, VisitContext
    from orchestrator.runner.progress_note import ProgressNote

_SHORT = 1.0  # seconds; whoever asks for the progress of a shorter run comes too late
_SIGNAL_TEXTS = {
    signal.SIGTERM: "asked to end (SIGTERM)",
    signal.SIGINT: "interrupted (Ctrl-C)",
    signal.SIGHUP: "the terminal went away (SIGHUP)",
}


@contextlib.contextmanager
def stop_on_signals(stop: StopRequest) -> Iterator[list[int]]:
    """Turn signals into requests to `stop` while inside; repeated signals count as one. Yields the received signals.

    A signal that is ignored stays so: nohup and shells in the background rely on that.
    """

    def heard(number: int, _: FrameType | None) -> None:
        found.append(number)
        stop.request(_SIGNAL_TEXTS[signal.Signals(number)])

    found: list[int] = []
    before = {}
    for number in _SIGNAL_TEXTS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, heard)
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _NotedProgress:
    """The subscriber's events of one run, and from its second second on the note of its bytes for other processes."""

    def __init__(self, state: str, tell: Callable[[RunEvent], None]) -> None:
        self._state, self._tell = state, tell
        self._guard = threading.Lock()
        self._run = 0
        self._begun = self._step_begun = 0.0
        self._note: ProgressNote | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._note is not None:
            self._note.remove()

    def notify(self, event: RunEvent) -> None:
        """Pass an event on; workers call this from threads of their own."""
        self._tell(event)
        if isinstance(event, RunStarted):
            self._run, self._begun = event.run, compose.monotonic()
        elif isinstance(event, TransferProgress) and self._run:
            with self._guard:
                self._moved(event)
        elif isinstance(event, RunWaits):
            with self._guard:
                self._waits(event.text)
        elif isinstance(event, StepStarted):
            with self._guard:
                self._step_begun = compose.monotonic()
                if self._note is not None:
                    self._note.step_begun()

    def _waits(self, text: str) -> None:
        if self._note is None:
            if not text:
                return
            self._note = compose.make_progress_note(self._state, self._run, compose.monotonic())
        self._note.waits(text)
        if not text:
            self._note, self._begun = None, compose.monotonic()

    def _moved(self, event: TransferProgress) -> None:
        if self._note is None:
            if compose.monotonic() - self._begun < _SHORT:
                return
            begun = self._begun if event.whole else self._step_begun
            self._note = compose.make_progress_note(self._state, self._run, begun)
        self._note.moved(event)


def _watched(job: "Job", stop: StopRequest) -> "AbstractContextManager[None]":
    """Return a context in which all work ends that was begun on a disk, once that is pulled out: what waits for one waits for ever."""
    if not job.target.device:  # as of most jobs
        return contextlib.nullcontext()
    from orchestrator.runner.disk.removal_watch import watch_removal

    return watch_removal(job.target, stop)


P = ParamSpec("P")
T = TypeVar("T")


class Session:
    """Open history, progress and signals, for a use case that changes something."""

    def __init__(self, settings: Settings, history: "History", shown: "ProgressOutput") -> None:
        self.history = history
        self._settings = settings
        self._shown = shown
        self.stopped = False
        self.queue_patience_s: float | None = None  # of a run that waits for a permit; None: until it is its turn
        self.visit_patience_s: float | None = (
            None  # of a run that holds a disk meanwhile, also while the centre is away
        )
        self.waited_s = 0.0  # for permits, of all runs together
        self._lender: tuple[str, CentrePermits] | None = None  # with what was lent for a run that is about to begin

    def do(
        self, job: "Job", action: "Callable[Concatenate[Job, RunContext, P], T]", *arguments: P.args, **more: P.kwargs
    ) -> T:
        """Call `action` with the job and its tools, while signals request it to stop.

        A job that is placed on no disk of its set is placed on one that a person attached.

        Raises: NotNow when there is none; not for a run, which reports that itself.
        """
        if job.target.rotates and "absent" not in more:
            from orchestrator.app.placed_jobs import jobs_on_attached_disks

            with jobs_on_attached_disks(self._settings, job, "a command that reads it") as placed:
                return self.do(placed[0], action, *arguments, **more)
        return self.do_unplaced(job, action, *arguments, **more)

    def do_unplaced(
        self, job: "Job", action: "Callable[Concatenate[Job, RunContext, P], T]", *arguments: P.args, **more: P.kwargs
    ) -> T:
        """Call `action` as `do` does, though the job may be placed on no disk of its set yet."""
        stop = compose.make_stop_request(job)
        noted = _NotedProgress(self._settings.where.state, self._shown.notify)
        with (
            noted, stop_on_signals(stop) as heard, self._shown, compose.open_connections(job) as ssh_options, _watched(job, stop)
        ):  # fmt: skip
            tools = compose.make_run_context(
                job, self._settings.where, self.history, notify=noted.notify, log=self._shown.log if self._shown.verbose else no_log, stop=stop,
                ssh_options=ssh_options, watched=self._shown.watched,
                permit=self._permit(job, stop),
            )  # fmt: skip
            done = action(job, tools, *arguments, **more)
        self.stopped = bool(heard)
        self._settings.interrupted |= signal.SIGINT in heard
        self._settings.stopped |= self.stopped
        return done

    def must_wait(self, job: "Job") -> bool:
        """Return True when a run of the job would wait for its permit now. What is lent meanwhile is for that run, if it comes next."""
        self.drop_permit()
        if not job.permit:
            return False
        lender = self._permits_of(job)
        if not lender.lends_at_once(job.name, job.permit):
            return True
        self._lender = (job.name, lender)
        return False

    def _permits_of(self, job: "Job") -> "CentrePermits":
        from orchestrator.app.permits import CentrePermits

        def runs_elsewhere() -> bool:
            return self.history.runs_elsewhere(job.name, compose.is_process_alive, own=os.getpid())

        return CentrePermits(self._settings.where, runs_elsewhere=runs_elsewhere)

    def drop_permit(self) -> None:
        """Give back what was lent for a run that did not begin: no other run of this host may wait for it."""
        lender, self._lender = self._lender, None
        if lender is not None:
            lender[1].drop()
            self.waited_s += lender[1].waited_s

    def _permit(self, job: "Job", stop: StopRequest) -> "JobPermit | None":
        """Return what holds the permit of a run. Only jobs that need one import any of it."""
        from orchestrator.app.permits import JobPermit

        if job.permit is None:
            return None
        if self._lender is None or self._lender[0] != job.name:
            self.drop_permit()
            self._lender = (job.name, self._permits_of(job))
        lender = self._lender[1]
        lender.patience_s, lender.visit_patience_s = self.queue_patience_s, self.visit_patience_s
        lender.aside = (
            f"; disk {job.target.disk} stays attached meanwhile"
            if job.target.disk
            else "; its disk is attached afterwards"
            if job.target.rotates
            else ""
        )
        return JobPermit(lender, job.name, job.permit, stop)


class open_session:  # noqa: N801 - used as a function: `with open_session(settings) as session`
    """Context manager of a session, which is open as long as the block runs."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __enter__(self) -> Session:
        self._history = compose.open_history(self._settings.where)
        self._session = Session(self._settings, self._history, self._settings.subscriber.progress())
        return self._session

    def __exit__(self, *_: object) -> None:
        self._session.drop_permit()
        self._history.close()


def open_visits(
    settings: Settings,
    session: "Session",
    known: "Configuration",
    *,
    read_again: bool = False,
    cause: "VisitCause | None" = None,
) -> "AbstractContextManager[DiskVisits | None]":
    """Return a context for visits of removable disks, if there are any: those attached are detached at the end.

    `read_again`: before that, copies are read again as far as their set's budget goes. `cause`: by default a person's command.
    """
    if not known.sets:
        from contextlib import nullcontext

        return nullcontext()
    from orchestrator.app.disk_visits import DiskVisits, make_visit_context
    from orchestrator.domain.run import VisitCause
    from orchestrator.planners.identify_disk import VisitResult
    from orchestrator.views.visits import SetStatus, visit_lines

    def show(ended: VisitResult, following: SetStatus) -> None:
        for line in visit_lines(ended, following):
            settings.say(line)

    def make() -> "VisitContext":
        return make_visit_context(
            settings.where, session.history, say=settings.say, log=settings.log, cause=cause or VisitCause.BY_HAND
        )

    return DiskVisits(
        settings.where, known, make, show,
        read=make_budget_reader(settings, session) if read_again else None,
        keep_promise=make_promise_reader(settings, session) if read_again else None,
    )  # fmt: skip


def make_promise_reader(settings: Settings, session: "Session") -> "Callable[[Job], BudgetReadResult | None]":
    """Return a function that reads again what a job promises, as far as it is its turn, and reports the result."""

    def read(job: "Job", /) -> "BudgetReadResult | None":
        from orchestrator.runner.verify.read_budget import read_as_promised

        done = session.do(job, read_as_promised)
        if done is not None:
            settings.subscriber.ended(done.report)
        return done

    return read


def make_budget_reader(settings: Settings, session: "Session") -> "BudgetReader":
    """Return a function that reads copies again, within a budget, and reports the result."""

    def read(job: "Job", /, *, budget: "Bytes") -> "BudgetReadResult":
        from orchestrator.runner.verify.read_budget import read_within_budget

        done = session.do(job, read_within_budget, budget=budget)
        settings.subscriber.ended(done.report)
        return done

    return read
