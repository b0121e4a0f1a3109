"""Facts about disks that people record or request: a disk's place, a snooze, its loss, and which disk to plug in next."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.disk_visits import find_disk, survey_set
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.views.visits import SetStatus

if TYPE_CHECKING:
    from orchestrator.domain.rotation import Disk, DiskRecord
    from orchestrator.domain.units import Seconds
    from orchestrator.history.disks import DiskHistory
    from orchestrator.views.disks import DiskReport, SetReport


def list_sets(settings: Settings, names: Sequence[str], now: datetime) -> "tuple[SetReport, ...]":
    """Return the state of the sets of these names; without a name of all. Raises: WrongRequest."""
    from contextlib import suppress

    from orchestrator.app.disk_report import report_sets, stranger_lines
    from orchestrator.app.unknown_disk import unknown_disk_lines
    from orchestrator.domain.errors import OutsideError
    from orchestrator.domain.fast_dataclass import replace
    from orchestrator.process.executor import Reader

    known = settings.configuration()
    sets = tuple(each for each in known.sets if not names or each.name in names)
    if strange := [name for name in names if name not in [each.name for each in sets]]:
        raise WrongRequest(f"there is no set {strange[0]}")
    with settings.views() as views:
        found = report_sets(sets, known.jobs, views, now, state=settings.where.state)
        others: tuple[str, ...] = ()
        with suppress(OutsideError):  # what is plugged in and is not ours is an addition
            others = stranger_lines(known.sets, views, Reader(log=settings.log), settings.where.state)
            found = tuple(replace(each, left=(*each.left, *others)) if each is found[0] else each for each in found)
        found = tuple(
            replace(each, left=(*each.left, *unknown_disk_lines(each.rotation, known, views, now, others)))
            for each in found
        )
    return found


def recorded_sets(settings: Settings, now: datetime) -> "tuple[SetReport, ...]":
    """Return the state of all sets without a look at what else is plugged in: that starts programs, and needs devices."""
    from orchestrator.app.disk_report import report_sets

    known = settings.configuration()
    with settings.views() as views:
        return report_sets(known.sets, known.jobs, views, now, state=settings.where.state)


def expect_disks(settings: Settings, now: datetime) -> tuple[SetStatus, ...]:
    """Return which disk each set requests."""
    known = settings.configuration()
    with settings.views() as views:
        return tuple(survey_set(each, known.jobs, views, now=now) for each in known.sets)


def show_disk(settings: Settings, name: str, now: datetime) -> "DiskReport":
    """Return all that is known of a disk. Raises: WrongRequest."""
    from orchestrator.app.disk_report import report_disk
    from orchestrator.app.next_base import forecast_next_copy
    from orchestrator.runner.disk.state import jobs_of_set

    known = settings.configuration()
    rotation, own = find_disk(known, name)
    with settings.views() as views:
        forecast = forecast_next_copy(own, jobs_of_set(rotation, known.jobs), views, settings.log)
        return report_disk(rotation, own, known.jobs, views, now, forecast)


def locate_disk(settings: Settings, name: str, place: str, note: str) -> None:
    """Record where a disk is. Raises: WrongRequest."""
    _, own = find_disk(settings.configuration(), name)
    with compose.open_history(settings.where) as history:
        known = _remembered(own, history.disks)
        history.disks.is_at(known.disk, place, note=note, now=compose.now())


def snooze_disk(settings: Settings, name: str, span: "Seconds | None", note: str, now: datetime) -> datetime | None:
    """Stop waiting for a disk for a while; return until when. `span` None: it is expected again.

    Raises: WrongRequest.
    """
    from datetime import timedelta

    _, own = find_disk(settings.configuration(), name)
    try:
        until = now + timedelta(seconds=span) if span is not None else None
    except OverflowError:
        raise WrongRequest("expected a duration such as 14d") from None
    with compose.open_history(settings.where) as history:
        known = _remembered(own, history.disks)
        if until is None:
            history.disks.wake(known.disk)
        else:
            history.disks.snooze(known.disk, until=until, note=note, now=now)
    return until


def stop_expecting(settings: Settings, name: str, standing: str) -> None:
    """Record that a disk is "lost" or "retired". Raises: WrongRequest; NotNow while it is being visited."""
    from orchestrator.domain.rotation import DiskState
    from orchestrator.runner.disk.state import jobs_of_set
    from orchestrator.runner.locks import lock_visit

    known = settings.configuration()
    rotation, own = find_disk(known, name)
    with lock_visit(own, settings.where.state), compose.open_history(settings.where) as history:
        remembered = _remembered(own, history.disks)
        with history.together():
            history.disks.stands(remembered.disk, DiskState(standing))
            history.disks.is_at(remembered.disk, standing, note="", now=compose.now())
            if standing == "lost":  # data that nobody can fetch is no copy
                for job in jobs_of_set(rotation, known.jobs):
                    history.points_seen(job.name, own.name, {}, compose.now())


def _remembered(disk: "Disk", book: "DiskHistory") -> "DiskRecord":
    from orchestrator.runner.disk.state import find_disk_record

    own = find_disk_record(book.known(), disk)
    if own is None:
        raise WrongRequest(f"history knows nothing of disk {disk.name} yet", "plug it in, then `poolferry disks scan`")
    return own
