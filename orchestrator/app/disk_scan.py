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
    from orchestrator.domain.rotation import RotationSet
    from orchestrator.domain.run import RunReport
    from orchestrator.planners.identify_disk import IdentifiedDevice, VisitResult
    from orchestrator.runner.disk.visit import AttachedDisk
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
        for each in others:
            settings.say(f"{each.says}; {each.hint}")
        return ScanEnd(visits=_Scan(settings, session, arrivals, why, hears).visit_all(names), others=tuple(others))


class _Scan:
    """The visits of one scan, one after the other; a disk whose jobs wait for permits stays attached until the others were visited."""

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
        self._attached: list[AttachedDisk] = []
        self._ended: list[VisitResult] = []

    def visit_all(self, names: Sequence[str]) -> "tuple[VisitResult, ...]":
        """Visit the disks that are plugged in, and return how each visit ended. `names`: these disks alone; none: all."""
        with ExitStack() as attached:  # whatever fails, no disk stays attached
            held = self._visit_at_once(names, attached)
            for rotation, attached_disk, waiting in held:
                left = list(waiting)
                while left and not self._session.stopped and self._run_if_due(attached_disk, left[0]):
                    left.pop(0)
                end = self._break_off if left and self._session.stopped else self._let_go
                end(rotation, attached_disk)
        return tuple(self._ended)

    def _visit_at_once(
        self, names: Sequence[str], attached: ExitStack
    ) -> "list[tuple[RotationSet, AttachedDisk, list[Job]]]":
        """Run what need not wait on each disk; return the disks on which jobs wait, which stay attached."""
        from orchestrator.runner.disk.visit import AttachedDisk

        held: list[tuple[RotationSet, AttachedDisk, list[Job]]] = []
        for rotation in self._arrivals.known.sets:
            for found in self._arrivals.usable(rotation):
                if self._session.stopped or found.disk is None or (names and found.disk.name not in names):
                    continue
                begun = self._arrivals.begin(found, rotation)
                if not isinstance(begun, AttachedDisk):
                    self._end(rotation, begun)
                    continue
                self._attached.append(begun)
                attached.callback(self._break_off, rotation, begun)
                if waiting := self._run_at_once(rotation, begun):
                    held.append((rotation, begun, waiting))
                else:
                    self._let_go(rotation, begun)
        return held

    def _run_at_once(self, rotation: "RotationSet", attached_disk: "AttachedDisk") -> "list[Job]":
        """Run the set's jobs on a disk; return those that must wait for a permit."""
        from orchestrator.app.run_jobs import waits_for_permit
        from orchestrator.runner.disk.state import jobs_of_set, order_jobs

        waiting: list[Job] = []
        for job in order_jobs(jobs_of_set(rotation, self._arrivals.known.jobs)):
            if not self._is_due(attached_disk, job):
                continue
            if waits_for_permit(job, waiting, self._session):
                waiting.append(job)
            elif not self._run(attached_disk, job):
                return []
        return waiting

    def _is_due(self, attached_disk: "AttachedDisk", job: "Job") -> bool:
        from orchestrator.runner.disk.state import explain_not_due

        told = explain_not_due(job, attached_disk.disk, self._session.history.views, compose.now())
        if told:
            self._settings.say(f"{job.name}: not now: {told}")
        return not told

    def _run_if_due(self, attached_disk: "AttachedDisk", job: "Job") -> bool:
        """Run a job that waited, if it is not paused since; return False when no other job can run there."""
        return not self._is_due(attached_disk, job) or self._run(attached_disk, job)

    def _run(self, attached_disk: "AttachedDisk", job: "Job") -> bool:
        """Run a job on a disk; return False when no other job can run there."""
        from orchestrator.domain.run import Outcome
        from orchestrator.runner.run import run_job

        def run(placed: "Job") -> "RunReport":
            begun = self._around.begins(placed)
            report = self._session.do(placed, run_job, why=self._why)
            self._settings.subscriber.ended(report)
            self._around.ended(placed, report, begun)
            return report

        with self._patience.of(job):  # also a run that cannot begin gives back what was lent for it
            report = attached_disk.run(job, run)
        return report is not None and report.outcome is not Outcome.INTERRUPTED

    def _let_go(self, rotation: "RotationSet", attached_disk: "AttachedDisk") -> None:
        """Read copies again as far as the set's budget goes, and end the visit."""
        from orchestrator.app.session import make_budget_reader
        from orchestrator.runner.disk.state import jobs_of_set, order_jobs

        if rotation.verify is not None and not self._session.stopped:
            jobs = order_jobs(jobs_of_set(rotation, self._arrivals.known.jobs))
            attached_disk.read_again(jobs, rotation.verify, make_budget_reader(self._settings, self._session))
        self._detach(rotation, attached_disk)

    def _break_off(self, rotation: "RotationSet", attached_disk: "AttachedDisk") -> None:
        """End a visit that something else cut short: it is none that its jobs had."""
        if attached_disk in self._attached and attached_disk.failure is None:
            attached_disk.failure = OrchestratorError(
                "the scan ended before all jobs had run", hint="poolferry disks scan"
            )
        self._detach(rotation, attached_disk)

    def _detach(self, rotation: "RotationSet", attached_disk: "AttachedDisk") -> None:
        """End the visit, unless it has ended."""
        if attached_disk in self._attached:
            self._attached.remove(attached_disk)
            self._end(rotation, attached_disk.end(power_off=rotation.power_off))

    def _end(self, rotation: "RotationSet", ended: "VisitResult") -> None:
        from orchestrator.app.disk_visits import call_safe_hooks

        call_safe_hooks(self._settings.where, self._arrivals.known, ended, self._session.history, self._settings.say)
        self._ended.append(ended)
        self._hears(VisitEnd(visit=ended, following=self._arrivals.standing(rotation)))
