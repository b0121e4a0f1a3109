"""The state of each rotation set and of each of its disks, for notices: late, or overdue by its own name."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

from orchestrator.app.job_status import kept
from orchestrator.domain.job import Job
from orchestrator.domain.rotation import RotationSet, Standing
from orchestrator.history.views import Views
from orchestrator.planners.health import State
from orchestrator.planners.notifications import Seen
from orchestrator.planners.rotation import Member, SetHealth, ask, judge_set, request
from orchestrator.runner.disk.state import members, of_set

SLOW = "another port or cable may be faster; `poolferry disks show` tells how its visits went"


def members_seen(
    jobs: Sequence[Job], views: Views, now: datetime, *, of: Collection[str] = (), bad: Collection[str] = ()
) -> tuple[Seen, ...]:
    """Return each set and each disk once, reported by the first job of its set. Lost or retired disks are never missed.

    `of`: only what these jobs use; all when none is named. `bad`: jobs whose trouble is told already.
    """
    sets = {job.target.rotation.name: job.target.rotation for job in jobs if job.target.rotation is not None}
    return tuple(seen for rotation in sets.values() for seen in _of_set(rotation, jobs, views, now, of, bad))


def _of_set(
    rotation: RotationSet, jobs: Sequence[Job], views: Views, now: datetime, of: Collection[str], bad: Collection[str]
) -> Iterator[Seen]:
    users = of_set(rotation, jobs)
    told = [job for job in users if not of or job.name in of]
    if not told:
        return
    own, local = members(rotation, users, views), now.astimezone()
    health = judge_set(rotation, own, local)
    asked = request(rotation, ask(rotation, own, local), health, local)
    last = kept(next(iter(views.runs(told[0].name, 1)), None), told[0], views)
    run = last.id if last else None
    if rotation.fresh_within is not None and own:
        yield _set_seen(rotation, health, told, asked, run, bad)
    for member in own:
        if member.standing is Standing.ACTIVE and (member.filled or member.enrolled):
            yield _disk_seen(member, health.overdue.get(member.disk.name, ""), told[0], asked, run)
        if member.standing is Standing.ACTIVE and member.ails is not None:
            yield _health_seen(member, member.ails, told[0], run)


def _set_seen(
    rotation: RotationSet, health: SetHealth, jobs: Sequence[Job], asked: str, run: int | None, bad: Collection[str]
) -> Seen:
    """Return a set's state. Why passing: a cause is reported once, and a late job reports it by its own limit."""
    passing = "its job tells it" if health.late and any(job.name in bad for job in jobs) else ""
    return Seen(
        job=jobs[0].name, target=f"set {rotation.name}", called=f"the set {rotation.name}", whole=True, run=run, passing=passing,
        state=State.LATE if health.late else State.UP if health.newest else State.NEW, why=health.late or "a fresh copy is there",
        cause="late" if health.late else "", cure=asked if health.late else "",
    )  # fmt: skip


def _health_seen(member: Member, ails: Mapping[str, str], job: Job, run: int | None) -> Seen:
    name = member.disk.name
    replace = f"bring another disk soon, `poolferry disks enroll` it, and then: poolferry disks retire {name}"
    return Seen(
        job=job.name, target=f"health of {name}", called=f"disk {name}", run=run, state=State.FAILING if ails else State.UP,
        why="; ".join(ails.values()) or "nothing is wrong with it", cause=" and ".join(ails),
        cure=replace if "health" in ails else SLOW if ails else "",
    )  # fmt: skip


def _disk_seen(member: Member, why: str, job: Job, asked: str, run: int | None) -> Seen:
    return Seen(
        job=job.name, target=member.disk.name, called=f"disk {member.disk.name}", run=run,
        state=State.LATE if why else State.UP if member.filled else State.NEW,
        why=why or "it came in time", cause="overdue" if why else "", cure=asked if why else "",
    )  # fmt: skip
