"""`poolferry disks scan`: each disk of ours that is plugged in is visited, one after the other."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Frame
from orchestrator.views import output as door

if TYPE_CHECKING:
    from orchestrator.app.disk_visits import Arrivals
    from orchestrator.app.session import Desk
    from orchestrator.domain.job import Job
    from orchestrator.domain.rotation import RotationSet
    from orchestrator.domain.run import RunReport
    from orchestrator.runner.disk.visit import Visited

PLUGGED_IN = "a disk was plugged in"


def scan_disks(frame: Frame, names: Sequence[str] = (), *, why: str = PLUGGED_IN, identity: str | None = None) -> int:
    """Runs on each disk that is here all jobs of its set: the exit code. `names`, `identity`: on these disks alone."""
    known = frame.configuration()
    if identity is not None:  # udev tells of every filesystem, and most are nobody's business
        names = [own.name for each in known.sets for own in each.disks if own.identity == identity.lower()]
        if not names:
            return 0
    from orchestrator.app.disk_visits import Arrivals, dock, recognised_value, visited_value
    from orchestrator.app.session import opened

    with opened(frame) as desk:
        # Not for udev: the disk that is woken would be one that was plugged in, and wake the next.
        used = dock(frame.where, desk.history, say=door.say, log=frame.log)
        arrivals = Arrivals(known, used, awake=identity is None)
        others = [each for each in arrivals.strangers() if not names or (each.disk and each.disk.name in names)]
        for each in others:
            door.say(f"{each.says}; {each.cure}")
        ended = [each for rotation in known.sets for each in _visits(frame, desk, arrivals, rotation, names, why)]
    if frame.json:
        door.answer_value(
            {"visits": [visited_value(each) for each in ended], "others": [recognised_value(each) for each in others]}
        )
    elif not ended and not others:
        door.answer(["no disk of ours is plugged in"])
    return _code(ended)


def _visits(
    frame: Frame, desk: "Desk", arrivals: "Arrivals", rotation: "RotationSet", names: Sequence[str], why: str
) -> "list[Visited]":
    """The visits of all disks of a set that are here, one after the other."""
    from orchestrator.app.disk_visits import call_safe_hooks, visited_lines
    from orchestrator.app.run_observers import Around
    from orchestrator.app.session import reader, tell
    from orchestrator.domain.run import Outcome
    from orchestrator.runner.disk.state import in_turn, of_set, owes
    from orchestrator.runner.disk.visit import Stay
    from orchestrator.runner.run import run_job

    around = Around(frame.where, arrivals.known.jobs, door.say)

    def run(job: "Job") -> "RunReport":
        begun = around.begins(job)
        report = desk.do(job, run_job, why=why)
        if not frame.json:
            tell(report)
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
                    door.say(f"{job.name}: not now: {told}")
                    continue
                report = stay.run(job, run)
                if report is None or report.outcome is Outcome.INTERRUPTED:
                    break
            if rotation.verify is not None and not desk.stopped:
                stay.read_again(in_turn(of_set(rotation, arrivals.known.jobs)), rotation.verify, reader(frame, desk))
            stay = stay.end(power_off=rotation.power_off)
        call_safe_hooks(frame.where, arrivals.known, stay, desk.history, door.say)
        ended.append(stay)
        if not frame.json:
            door.answer(visited_lines(stay, arrivals.standing(rotation)))
    return ended


def _code(ended: "Sequence[Visited]") -> int:
    """Failed over refused over waiting for another visit over fine."""
    from orchestrator.app.session import worst
    from orchestrator.planners.identify_disk import State
    from orchestrator.runner.disk.visit import Ending

    codes = {Ending.DONE: 0, Ending.REFUSED: 3}
    return worst([75 if each.seen is State.VISITED else codes.get(each.ending, 1) for each in ended])
