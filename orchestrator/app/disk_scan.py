"""The command `poolferry disks scan`: each disk of ours that is plugged in is visited, one after the other."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Settings, unheard
from orchestrator.domain.fast_dataclass import dataclass

if TYPE_CHECKING:
    from orchestrator.app.disk_visits import PluggedInDisks
    from orchestrator.app.session import Session
    from orchestrator.domain.job import Job
    from orchestrator.domain.rotation import RotationSet
    from orchestrator.domain.run import RunReport
    from orchestrator.planners.identify_disk import IdentifiedDevice, VisitResult
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
        ended = [
            each
            for rotation in known.sets
            for each in _visits(settings, session, arrivals, rotation, names, why, hears)
        ]
    return ScanEnd(visits=tuple(ended), others=tuple(others))


def _visits(
    settings: Settings,
    session: "Session",
    arrivals: "PluggedInDisks",
    rotation: "RotationSet",
    names: Sequence[str],
    why: str,
    hears: Callable[[VisitEnd], None],
) -> "list[VisitResult]":
    """Visit all plugged-in disks of a set, one after the other."""
    from orchestrator.app.disk_visits import call_safe_hooks
    from orchestrator.app.run_jobs import RunObservers
    from orchestrator.app.session import make_budget_reader
    from orchestrator.domain.run import Outcome
    from orchestrator.runner.disk.state import explain_not_due, jobs_of_set, order_jobs
    from orchestrator.runner.disk.visit import AttachedDisk
    from orchestrator.runner.run import run_job

    around = RunObservers(settings.where, arrivals.known.jobs, settings.say)

    def run(job: "Job") -> "RunReport":
        begun = around.begins(job)
        report = session.do(job, run_job, why=why)
        settings.subscriber.ended(report)
        around.ended(job, report, begun)
        return report

    ended = []
    for found in arrivals.usable(rotation):
        if session.stopped or found.disk is None or (names and found.disk.name not in names):
            continue
        attached_disk = arrivals.begin(found, rotation)
        if isinstance(attached_disk, AttachedDisk):
            for job in order_jobs(jobs_of_set(rotation, arrivals.known.jobs)):
                if told := explain_not_due(job, attached_disk.disk, session.history.views, compose.now()):
                    settings.say(f"{job.name}: not now: {told}")
                    continue
                report = attached_disk.run(job, run)
                if report is None or report.outcome is Outcome.INTERRUPTED:
                    break
            if rotation.verify is not None and not session.stopped:
                attached_disk.read_again(
                    order_jobs(jobs_of_set(rotation, arrivals.known.jobs)),
                    rotation.verify,
                    make_budget_reader(settings, session),
                )
            attached_disk = attached_disk.end(power_off=rotation.power_off)
        call_safe_hooks(settings.where, arrivals.known, attached_disk, session.history, settings.say)
        ended.append(attached_disk)
        hears(VisitEnd(visit=attached_disk, following=arrivals.standing(rotation)))
    return ended
