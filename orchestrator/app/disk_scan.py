"""The command `poolferry disks scan`: each disk of ours that is plugged in is visited, one after the other."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Settings, unheard
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass

if TYPE_CHECKING:
    from orchestrator.app.disk_visits import PluggedInDisks
    from orchestrator.app.session import Session
    from orchestrator.domain.job import Job
    from orchestrator.domain.rotation import Disk, RotationSet
    from orchestrator.domain.run import RunReport
    from orchestrator.planners.identify_disk import IdentifiedDevice, VisitResult
    from orchestrator.runner.disk.visit import AttachedDisk
    from orchestrator.runner.run_recorder import RunRecorder
    from orchestrator.views.visits import SetStatus

PLUGGED_IN = "a disk was plugged in"


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitEnd:
    """Result of a visit, and the state of the disk's set afterwards."""

    visit: "VisitResult"
    following: "SetStatus"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanEnd:
    """Results of all visits of a scan. `others`: plugged-in devices that cannot be used; `ours` False: it is not our disk."""

    visits: "tuple[VisitResult, ...]" = ()
    others: "tuple[IdentifiedDevice, ...]" = ()
    ours: bool = True


def scan_disks(
    settings: Settings,
    names: Sequence[str] = (),
    *,
    why: str = PLUGGED_IN,
    identity: str | None = None,
    hears: Callable[[VisitEnd], None] = unheard,
) -> ScanEnd:
    """Run all jobs of its set on each plugged-in disk. `names`, `identity`: on these disks alone.

    `hears`: receives each visit once it has ended.
    """
    known = settings.configuration()
    if identity is not None:  # udev reports every filesystem, and most are not on our disks
        names = [own.name for each in known.sets for own in each.disks if own.identity == identity.lower()]
        if not names:
            from orchestrator.app.unknown_disk import note_unknown_disk

            note_unknown_disk(settings, known, identity)
            return ScanEnd(ours=False)
    from orchestrator.app.disk_visits import PluggedInDisks, find_disk, make_visit_context
    from orchestrator.app.session import open_session
    from orchestrator.domain.run import VisitCause

    for name in names:
        find_disk(known, name)
    with open_session(settings) as session:
        # Not for udev: a woken disk would count as plugged in, and its scan would wake the next one.
        cause = VisitCause.BY_HAND if identity is None else VisitCause.AUTOMATIC
        used = make_visit_context(settings.where, session.history, say=settings.say, log=settings.log, cause=cause)
        arrivals = PluggedInDisks(known, used, awake=identity is None)
        others = [each for each in arrivals.strangers() if not names or (each.disk and each.disk.name in names)]
        for told in dict.fromkeys(f"{each.says}; {each.hint}" for each in others):  # of twins each says the same
            settings.say(told)
        return ScanEnd(visits=_Scan(settings, session, arrivals, why, hears).visit_all(names), others=tuple(others))


class _Visit:
    """A disk that is plugged in. `attached` None: not yet; `over`: it was let go, or cannot be used.

    `waiting`: its jobs that must wait for a permit; `ended`: the runs that ended before it was attached.
    """

    def __init__(self, rotation: "RotationSet", found: "IdentifiedDevice", disk: "Disk") -> None:
        self.rotation, self.found, self.disk = rotation, found, disk
        self.attached: AttachedDisk | None = None
        self.over = False
        self.waiting: tuple[Job, ...] = ()
        self.ended: tuple[RunReport, ...] = ()


class _Scan:
    """The visits of one scan, one after the other; a disk whose jobs all wait for permits is attached once one is lent.

    One on which other jobs ran first stays attached meanwhile, until the other disks were visited.
    """

    def __init__(
        self,
        settings: Settings,
        session: "Session",
        arrivals: "PluggedInDisks",
        why: str,
        hears: Callable[[VisitEnd], None],
    ) -> None:
        from orchestrator.app.run_jobs import QueuePatience, RunObservers

        self._settings, self._session, self._arrivals, self._why, self._hears = settings, session, arrivals, why, hears
        self._around = RunObservers(settings.where, arrivals.known.jobs, settings.say)
        self._patience = QueuePatience(session)
        self._ended: list[VisitResult] = []

    def visit_all(self, names: Sequence[str]) -> "tuple[VisitResult, ...]":
        """Visit the disks that are plugged in, and return how each visit ended. `names`: these disks alone; none: all."""
        with ExitStack() as attached:  # whatever fails, no disk stays attached
            held = self._visit_at_once(names, attached)
            for visit in held:
                left = list(visit.waiting)
                while left and not self._session.stopped and not visit.over and self._run_if_due(visit, left[0]):
                    left.pop(0)
                end = self._break_off if left and self._session.stopped else self._let_go
                end(visit)
        return tuple(self._ended)

    def _visit_at_once(self, names: Sequence[str], attached: ExitStack) -> "list[_Visit]":
        """Run what need not wait on each disk; return the visits in which jobs wait."""
        held: list[_Visit] = []
        for rotation in self._arrivals.known.sets:
            for found in self._arrivals.usable(rotation):
                if self._session.stopped or found.disk is None or (names and found.disk.name not in names):
                    continue
                visit = _Visit(rotation, found, found.disk)
                attached.callback(self._break_off, visit)
                self._run_at_once(visit)
                if visit.waiting:
                    held.append(visit)
                else:
                    self._let_go(visit)
        return held

    def _run_at_once(self, visit: "_Visit") -> None:
        """Run the set's jobs on a disk, but for those that must wait for a permit."""
        from orchestrator.app.run_jobs import waits_for_permit
        from orchestrator.runner.disk.state import jobs_of_set, order_jobs

        waiting: list[Job] = []
        for job in order_jobs(jobs_of_set(visit.rotation, self._arrivals.known.jobs)):
            if not self._is_due(visit, job):
                continue
            if waits_for_permit(job, waiting, self._session):
                waiting.append(job)
            elif not self._run(visit, job):
                return
        visit.waiting = tuple(waiting)

    def _is_due(self, visit: "_Visit", job: "Job") -> bool:
        from orchestrator.runner.disk.state import explain_not_due

        told = explain_not_due(job, visit.disk, self._session.history.views, compose.now())
        if told:
            self._settings.say(f"{job.name}: not now: {told}")
        return not told

    def _run_if_due(self, visit: "_Visit", job: "Job") -> bool:
        """Run a job that waited, if it is not paused since; return False when no other job can run there."""
        if not self._is_due(visit, job):
            return True
        return self._run(visit, job) if visit.attached else self._wait_and_run(visit, job)

    def _wait_and_run(self, visit: "_Visit", job: "Job") -> bool:
        """Wait for the permit of a job while its disk can be pulled out, then look for the disk again and run the job on it."""
        from orchestrator.runner.run import wait_for_permit

        with self._patience.of(job):
            begun, ended = self._session.do_unplaced(job, wait_for_permit, why=self._why)
            if ended is not None:
                self._settings.subscriber.ended(ended)
                visit.ended = (*visit.ended, ended)
                return not self._session.stopped
            self._arrivals.look_again()
            here = (each for each in self._arrivals.usable(visit.rotation) if each.disk == visit.disk)
            if found := next(here, None):
                visit.found = found
                return self._run_attached(visit, job, begun)
            return self._end_without_disk(visit, job, begun)

    def _end_without_disk(self, visit: "_Visit", job: "Job", begun: "RunRecorder") -> bool:
        """End a run whose disk was pulled out while it waited."""
        from orchestrator.runner.run import run_job

        absent = self._arrivals.absent(visit.rotation)
        ended = self._session.do(job, run_job, why=self._why, absent=absent, begun=begun)
        self._settings.subscriber.ended(ended)
        visit.ended = (*visit.ended, ended)
        return False

    def _run(self, visit: "_Visit", job: "Job") -> bool:
        """Run a job on a disk; return False when no other job can run there."""
        with self._patience.of(job):  # also a run that cannot begin gives back what was lent for it
            return self._run_attached(visit, job, None)

    def _run_attached(self, visit: "_Visit", job: "Job", begun: "RunRecorder | None") -> bool:
        from orchestrator.domain.run import Outcome
        from orchestrator.runner.run import run_job

        def run(placed: "Job") -> "RunReport":
            observed = self._around.begins(placed)
            report = self._session.do(placed, run_job, why=self._why, begun=begun)
            self._settings.subscriber.ended(report)
            self._around.ended(placed, report, observed)
            return report

        attached = self._attach(visit)
        report = None if attached is None else attached.run(job, run)
        if report is None and begun is not None:
            return self._end_without_disk(visit, job, begun)
        return report is not None and report.outcome is not Outcome.INTERRUPTED

    def _attach(self, visit: "_Visit") -> "AttachedDisk | None":
        """Attach a disk, unless it is; None: it cannot be, and its visit is over."""
        from orchestrator.runner.disk.visit import AttachedDisk

        if visit.attached is None and not visit.over:
            begun = self._arrivals.begin(visit.found, visit.rotation)
            if isinstance(begun, AttachedDisk):
                visit.attached = begun
                begun.reports.extend(visit.ended)  # a job that waited in vain is one of the visit, too
            else:
                self._end(visit, begun)
        return visit.attached

    def _let_go(self, visit: "_Visit") -> None:
        """Read copies again as far as the set's budget goes, and as jobs promise; end the visit."""
        from orchestrator.app.session import make_budget_reader, make_promise_reader
        from orchestrator.runner.disk.state import jobs_of_set, order_jobs

        if visit.over:
            return
        if visit.ended and visit.attached is None:
            self._end_unattached(visit)
            return
        attached, rotation = self._attach(visit), visit.rotation
        jobs = order_jobs(jobs_of_set(rotation, self._arrivals.known.jobs))
        if attached is not None and rotation.verify is not None and not self._session.stopped:
            attached.read_again(jobs, rotation.verify, make_budget_reader(self._settings, self._session))
        if attached is not None and not self._session.stopped:
            attached.read_promised(jobs, make_promise_reader(self._settings, self._session))
        self._detach(visit)

    def _end_unattached(self, visit: "_Visit") -> None:
        """End the visit of a disk that was never attached, as its jobs waited for permits in vain."""
        from orchestrator.planners.identify_disk import DeviceState, VisitOutcome, VisitResult

        last = visit.ended[-1]
        self._end(visit, VisitResult(
            disk=visit.disk, ending=VisitOutcome.INCOMPLETE, seen=DeviceState.TO_VERIFY, why=f"{last.job}: {last.why}", hint=last.hint, safe=True,
            reports=visit.ended,
        ))  # fmt: skip

    def _break_off(self, visit: "_Visit") -> None:
        """End a visit that something else cut short: it is none that its jobs had."""
        if visit.attached is not None and not visit.over and visit.attached.failure is None:
            visit.attached.failure = OrchestratorError(
                "the scan ended before all jobs had run", hint="poolferry disks scan"
            )
        if visit.ended and visit.attached is None and not visit.over:
            self._end_unattached(visit)
        self._detach(visit)

    def _detach(self, visit: "_Visit") -> None:
        """End the visit, unless it has ended."""
        if visit.attached is not None and not visit.over:
            self._end(visit, visit.attached.end(power_off=visit.rotation.power_off))

    def _end(self, visit: "_Visit", ended: "VisitResult") -> None:
        from orchestrator.app.disk_visits import call_safe_hooks

        visit.over = True
        if visit.attached is not None:
            known, history = self._arrivals.known, self._session.history
            call_safe_hooks(self._settings.where, known, ended, history, self._settings.say)
        self._ended.append(ended)
        self._hears(VisitEnd(visit=ended, following=self._arrivals.standing(visit.rotation)))
