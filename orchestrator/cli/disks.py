"""disks: removable disks and rotation sets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from orchestrator import compose
from orchestrator.app.disk_scan import PLUGGED_IN, scan_disks
from orchestrator.app.settings import Frame
from orchestrator.cli.disks_enroll import eject, enroll
from orchestrator.cli.options import GroupWithUsual, pass_frame
from orchestrator.views import output as door

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.rotation import Disk, Known, RotationSet
    from orchestrator.history.disks import Disks


@click.group("disks", cls=GroupWithUsual, short_help="Removable disks: who is expected, late, and where.")
def disks() -> None:
    """Removable disks and rotation sets: which one to bring, who is overdue, and where each is."""


def _rotation(known: "Configuration", name: str) -> "tuple[RotationSet, Disk]":
    """The set of the disk of that name, and the disk."""
    found = [(each, disk) for each in known.sets for disk in each.disks if disk.name == name]
    if not found:
        names = ", ".join(disk.name for each in known.sets for disk in each.disks)
        raise click.UsageError(f"there is no disk {name}; " + (f"one of {names}" if names else "none is enrolled"))
    return found[0]


def _remembered(disk: "Disk", book: "Disks") -> "Known":
    from orchestrator.runner.disk.state import find_known

    own = find_known(book.known(), disk)
    if own is None:
        raise click.UsageError(f"history knows nothing of disk {disk.name} yet; plug it in: poolferry disks scan")
    return own


@disks.command("list")
@click.argument("name", metavar="SET", required=False)
@pass_frame
def list_disks(frame: Frame, name: str | None) -> int:
    """All disks by set: the age of their copies, where they are, who is late (the usual command)."""
    from orchestrator.app.disk_report import sets_lines, sets_value

    known, now = frame.configuration(), compose.now()
    sets = tuple(each for each in known.sets if name in (None, each.name))
    if name is not None and not sets:
        raise click.UsageError(f"there is no set {name}")
    with frame.views() as views:
        frame.answer(sets_value(sets, known.jobs, views, now), lambda: sets_lines(sets, known.jobs, views, now))
    return 0


@disks.command("expected")
@pass_frame
def expected(frame: Frame) -> int:
    """Which disk to plug in next, of each set."""
    from orchestrator.app.disk_visits import set_standing, standing_value

    known, now = frame.configuration(), compose.now()
    with frame.views() as views:
        found = [set_standing(each, known.jobs, views, now=now) for each in known.sets]
    lines = [each.request for each in found] or ["there is no rotation set"]
    frame.answer({"sets": [standing_value(each) for each in found]}, lines)
    return 0


@disks.command("show")
@click.argument("disk")
@pass_frame
def show(frame: Frame, disk: str) -> int:
    """All that is known of one disk: its visits, and where it was."""
    from orchestrator.app.disk_report import disk_lines, disk_value
    from orchestrator.app.next_copy import forecast_of
    from orchestrator.runner.disk.state import of_set

    known, now = frame.configuration(), compose.now()
    rotation, own = _rotation(known, disk)
    with frame.views() as views:
        told = forecast_of(own, of_set(rotation, known.jobs), views, frame.log)
        asked = (rotation, own, known.jobs, views, now, told)
        frame.answer(disk_value(*asked), lambda: disk_lines(*asked))
    return 0


@disks.command("locate")
@click.argument("disk")
@click.argument("place")
@click.option("--note", default="", metavar="TEXT", help="what to remember with it")
@pass_frame
def locate(frame: Frame, disk: str, place: str, note: str) -> int:
    """Tell where a disk is now: locate red office."""
    _, own = _rotation(frame.configuration(), disk)
    with compose.open_history(frame.where) as history:
        known = _remembered(own, history.disks)
        history.disks.is_at(known.disk, place, note=note, now=compose.now())
    frame.answer({"disk": disk, "place": place, "note": note}, [f"{disk}: is at {place}"])
    return 0


@disks.command("snooze")
@click.argument("disk")
@click.option("--for", "span", metavar="TIME", help="for so long, such as 14d")
@click.option("--off", is_flag=True, help="wait for it again")
@click.option("--note", default="", metavar="TEXT", help="why; it is shown with the disk")
@pass_frame
def snooze(frame: Frame, disk: str, span: str | None, note: str, *, off: bool) -> int:
    """Wait for a disk no longer for a while: it is not asked for and not late; plugged in, it is used as ever."""
    from datetime import timedelta

    from orchestrator.domain.units import parse_duration
    from orchestrator.views.format import clock, iso

    if off is (span is not None):
        raise click.UsageError("tell either --for or --off")
    _, own = _rotation(frame.configuration(), disk)
    now = compose.now()
    try:
        until = now + timedelta(seconds=parse_duration(span)) if span else None
    except (ValueError, OverflowError):
        raise click.UsageError(f"--for {span!r}: expected a duration such as 14d") from None
    with compose.open_history(frame.where) as history:
        known = _remembered(own, history.disks)
        if until is None:
            history.disks.wake(known.disk)
        else:
            history.disks.snooze(known.disk, until=until, note=note, now=now)
    told = f"nobody waits for it until {clock(until, now=now)}" if until else "it is waited for again"
    frame.answer({"disk": disk, "until": iso(until), "note": note}, [f"{disk}: {told}"])
    return 0


def _stands(frame: Frame, disk: str, standing: str, told: str) -> int:
    from orchestrator.domain.rotation import Standing
    from orchestrator.runner.disk.state import of_set
    from orchestrator.runner.locks import visiting

    known = frame.configuration()
    rotation, own = _rotation(known, disk)
    with visiting(own, frame.where.state), compose.open_history(frame.where) as history:
        remembered = _remembered(own, history.disks)
        with history.together():
            history.disks.stands(remembered.disk, Standing(standing))
            history.disks.is_at(remembered.disk, standing, note="", now=compose.now())
            if standing == "lost":  # what nobody can bring back is no copy
                for job in of_set(rotation, known.jobs):
                    history.points_seen(job.name, own.name, {}, compose.now())
    frame.answer({"disk": disk, "standing": standing}, [f"{disk}: {told}"])
    return 0


@disks.command("lost")
@click.argument("disk")
@pass_frame
def lost(frame: Frame, disk: str) -> int:
    """A disk is gone: nobody waits for it, and its copies count no more."""
    return _stands(frame, disk, "lost", "nobody waits for it, and its copies count no more")


@disks.command("retire")
@click.argument("disk")
@pass_frame
def retire(frame: Frame, disk: str) -> int:
    """A disk takes no more copies; what is on it stays, and nobody waits for it."""
    return _stands(frame, disk, "retired", "takes no more copies; what is on it stays")


@disks.command("readopt")
@click.argument("disk")
@pass_frame
def readopt(frame: Frame, disk: str) -> int:
    """Take a disk that is plugged in for the one of that name, though its marker says otherwise. Erases nothing."""
    from orchestrator.app.disk_visits import dock
    from orchestrator.app.session import opened
    from orchestrator.runner.disk.enroll import readopt as readopted

    known = frame.configuration()
    _, own = _rotation(known, disk)
    with opened(frame) as desk:
        told = readopted(own, known.sets, dock(frame.where, desk.history, say=door.say, log=frame.log))
    frame.answer({"disk": disk, "state": told.state.value, "why": told.says, "cure": told.cure}, [told.says])
    return 0 if not told.cure else 3


@disks.command("attach")
@click.argument("disk")
@pass_frame
def attach(frame: Frame, disk: str) -> int:
    """Attach a disk and leave it so, to look at it or to restore from it; `disks eject` lets it go."""
    from orchestrator.app.disk_visits import Arrivals, dock
    from orchestrator.app.session import opened
    from orchestrator.domain.errors import NotNow, OrchestratorError
    from orchestrator.planners.identify_disk import State
    from orchestrator.runner.disk.state import of_set, on_disk
    from orchestrator.runner.disk.visit import Stay, begin_visit

    known = frame.configuration()
    rotation, own = _rotation(known, disk)
    with opened(frame) as desk:
        arrivals = Arrivals(known, dock(frame.where, desk.history, say=door.say, log=frame.log), awake=True)
        found = next((each for each in arrivals.found if each.disk == own), None)
        if found is None:
            raise OrchestratorError(f"disk {disk} is not here", cure="plug it in")
        if found.state is not State.TO_PROVE:
            raise OrchestratorError(found.says, cure=found.cure)
        stay = begin_visit(found, arrivals.dock)
        if not isinstance(stay, Stay):
            kind = NotNow if stay.seen is State.VISITED else OrchestratorError
            raise kind(stay.why, cure=stay.cure)
        stay.leave()
    places = {job.name: str(on_disk(job, own).target.location) for job in of_set(rotation, known.jobs)}
    lines = [f"{name} is at {place}" for name, place in places.items()]
    again = frame.repeat(f"disks eject {disk}")
    frame.answer({"disk": disk, "places": places}, [*lines, f"do not unplug it before: {again}"])
    return 0


@disks.command("scan")
@click.argument("disk", nargs=-1)
@click.option("--why", default=PLUGGED_IN, hidden=True, metavar="TEXT")
@click.option(
    "--identity", default=None, hidden=True, metavar="UUID", help="only the disk of this identity, if it is one of ours"
)
@pass_frame
def scan(frame: Frame, disk: Sequence[str], why: str, identity: str | None) -> int:
    """Look which disks are plugged in, and run on each of ours all jobs of its set, one disk after the other."""
    for name in disk:
        _rotation(frame.configuration(), name)
    return scan_disks(frame, disk, why=why, identity=identity)


disks.add_command(enroll)
disks.add_command(eject)
COMMANDS: tuple[click.Command, ...] = (disks,)
