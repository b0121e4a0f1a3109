"""The command `poolferry disks scan`: each disk of ours that is plugged in is visited, one after the other."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Frame
from orchestrator.app.subscriber import unheard
from orchestrator.domain.fast_dataclass import dataclass

if TYPE_CHECKING:
    from orchestrator.app.disk_visits import Arrivals
    from orchestrator.app.session import Desk
    from orchestrator.domain.job import Job
    from orchestrator.domain.rotation import RotationSet
    from orchestrator.domain.run import RunReport
    from orchestrator.planners.identify_disk import Recognised, Visited
    from orchestrator.views.visits import SetStanding

PLUGGED_IN = "a disk was plugged in"


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitEnd:
    """A visit as it ended, and how its set stands afterwards."""

    visit: "Visited"
    following: "SetStanding"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanEnd:
    """All visits of a scan. `others`: what was plugged in and cannot be used; `ours` False: the disk is nobody's business."""

    visits: "tuple[Visited, ...]" = ()
    others: "tuple[Recognised, ...]" = ()
    ours: bool = True


def scan_disks(
    frame: Frame,
    names: Sequence[str] = (),
    *,
    why: str = PLUGGED_IN,
    identity: str | None = None,
    hears: Callable[[VisitEnd], None] = unheard,
) -> ScanEnd:
    """Runs on each disk that is here all jobs of its set. `names`, `identity`: on these disks alone.

    `hears`: is told of each visit once it has ended.
    """
    known = frame.configuration()
    if identity is not None:  # udev tells of every filesystem, and most are nobody's business
        names = [own.name for each in known.sets for own in each.disks if own.identity == identity.lower()]
        if not names:
            return ScanEnd(ours=False)
    from orchestrator.app.disk_visits import Arrivals, dock, find_disk
    from orchestrator.app.session import opened

    for name in names:
        find_disk(known, name)
    with opened(frame) as desk:
        # Not for udev: the disk that is woken would be one that was plugged in, and wake the next.
        used = dock(frame.where, desk.history, say=frame.say, log=frame.log)
        arrivals = Arrivals(known, used, awake=identity is None)
        others = [each for each in arrivals.strangers() if not names or (each.disk and each.disk.name in names)]
        for each in others:
            frame.say(f"{each.says}; {each.cure}")
        ended = [
            each for rotation in known.sets for each in _visits(frame, desk, arrivals, rotation, names, why, hears)
        ]
    return ScanEnd(visits=tuple(ended), others=tuple(others))


def _visits(
    frame: Frame,
    desk: "Desk",
    arrivals: "Arrivals",
    rotation: "RotationSet",
    names: Sequence[str],
    why: str,
    hears: Callable[[VisitEnd], None],
) -> "list[Visited]":
    """Visit all disks of a set that are here, one after the other."""
    from orchestrator.app.disk_visits import call_safe_hooks
    from orchestrator.app.run_observers import Around
    from orchestrator.app.session import reader
    from orchestrator.domain.run import Outcome
    from orchestrator.runner.disk.state import in_turn, of_set, owes
    from orchestrator.runner.disk.visit import Stay
    from orchestrator.runner.run import run_job

    around = Around(frame.where, arrivals.known.jobs, frame.say)

    def run(job: "Job") -> "RunReport":
        begun = around.begins(job)
        report = desk.do(job, run_job, why=why)
        frame.subscriber.ended(report)
        around.ended(job, report, begun)
        return report

    ended = []
    for found in arrivals.usable(rotation):
        if desk.stopped or found.disk is None or (names and found.disk.name not in names):
            continue
        stay = arrivals.begin(found, rotation)
        if isinstance(stay, Stay):
            for job in in_turn(of_set(rotation, arrivals.known.jobs)):
                if told := owes(job, stay.disk, desk.history.views, compose.now()):
                    frame.say(f"{job.name}: not now: {told}")
                    continue
                report = stay.run(job, run)
                if report is None or report.outcome is Outcome.INTERRUPTED:
                    break
            if rotation.verify is not None and not desk.stopped:
                stay.read_again(in_turn(of_set(rotation, arrivals.known.jobs)), rotation.verify, reader(frame, desk))
            stay = stay.end(power_off=rotation.power_off)
        call_safe_hooks(frame.where, arrivals.known, stay, desk.history, frame.say)
        ended.append(stay)
        hears(VisitEnd(visit=stay, following=arrivals.standing(rotation)))
    return ended
