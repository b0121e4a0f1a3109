"""The state of each rotation set and of each of its disks, for notices: late, or overdue by its own name."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from orchestrator.app.job_status import lasting_run
from orchestrator.domain.job import Job
from orchestrator.domain.rotation import DiskState, RotationSet
from orchestrator.history.views import HistoryReader
from orchestrator.planners.health import JobState
from orchestrator.planners.identify_disk import LOOK_ALIKE_HINT
from orchestrator.planners.notifications import CopyStatus
from orchestrator.planners.rotation import SetHealth, SetMember, choose_disk, describe_request, judge_set
from orchestrator.runner.disk.state import is_disk_awaited, jobs_of_set, survey_set_members

SLOW = "another port or cable may be faster; `poolferry disks show` lists its visits"


def survey_members(
    jobs: Sequence[Job], views: HistoryReader, now: datetime, *, of: Collection[str] = (), bad: Collection[str] = ()
) -> tuple[CopyStatus, ...]:
    """Return each set and each disk once, reported by the first job of its set. Lost or retired disks are never missed.

    `of`: only those that these jobs use; all when none is named. `bad`: jobs whose problem is reported already.
    """
    sets = {job.target.rotation.name: job.target.rotation for job in jobs if job.target.rotation is not None}
    return tuple(seen for rotation in sets.values() for seen in _of_set(rotation, jobs, views, now, of, bad))


def _of_set(
    rotation: RotationSet,
    jobs: Sequence[Job],
    views: HistoryReader,
    now: datetime,
    of: Collection[str],
    bad: Collection[str],
) -> Iterator[CopyStatus]:
    users = jobs_of_set(rotation, jobs)
    told = [job for job in users if not of or job.name in of]
    if not told:
        return
    own, local = survey_set_members(rotation, users, views, now=now), now.astimezone()
    health = judge_set(rotation, own, local)
    chosen = choose_disk(rotation, own, local)
    waits = is_disk_awaited(users, views, chosen.visited)
    describe = partial(describe_request, rotation, chosen, health, local, waits=waits)
    last = lasting_run(next(iter(views.runs(told[0].name, 1)), None), told[0], views)
    run = last.id if last else None
    if rotation.fresh_within is not None and own:
        yield _set_status(rotation, health, told, describe(age=False), run, bad)
    for member in own:
        if member.standing is DiskState.ACTIVE and (member.filled or member.enrolled):
            yield _disk_status(member, health.overdue.get(member.disk.name, ""), told[0], describe(), run)
        if member.standing is DiskState.ACTIVE and member.ails is not None:
            yield _health_status(member, member.ails, told[0], run)


def _set_status(
    rotation: RotationSet,
    health: SetHealth,
    jobs: Sequence[Job],
    disk_request: str,
    run: int | None,
    bad: Collection[str],
) -> CopyStatus:
    """Return a set's state. Why passing: a cause is reported once, and a late job reports it by its own limit."""
    passing = "its job reports it" if health.late and any(job.name in bad for job in jobs) else ""
    return CopyStatus(
        job=jobs[0].name, target=f"set {rotation.name}", called=f"the set {rotation.name}", whole=True, run=run, passing=passing,
        state=JobState.LATE if health.late else JobState.UP if health.newest else JobState.NEW, why=health.late or "a fresh copy is there",
        cause="late" if health.late else "", hint=disk_request if health.late else "",
    )  # fmt: skip


def _health_status(member: SetMember, ails: Mapping[str, str], job: Job, run: int | None) -> CopyStatus:
    name = member.disk.name
    replace = f"bring another disk soon, `poolferry disks enroll` it, and then: poolferry disks retire {name}"
    strange = f"{LOOK_ALIKE_HINT}: poolferry disks readopt {name}"
    return CopyStatus(
        job=job.name, target=f"health of {name}", called=f"disk {name}", run=run, state=JobState.FAILING if ails else JobState.UP,
        why="; ".join(ails.values()) or "nothing is wrong with it", cause=" and ".join(ails),
        hint=strange if "look-alike" in ails else replace if "health" in ails else SLOW if ails else "",
    )  # fmt: skip


def _disk_status(member: SetMember, why: str, job: Job, disk_request: str, run: int | None) -> CopyStatus:
    return CopyStatus(
        job=job.name, target=member.disk.name, called=f"disk {member.disk.name}", run=run,
        state=JobState.LATE if why else JobState.UP if member.filled else JobState.NEW,
        why=why or "it came in time", cause="overdue" if why else "", hint=disk_request if why else "",
    )  # fmt: skip
