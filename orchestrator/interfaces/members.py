"""How each disk of a rotation set stands, for notices: overdue by its own name, or not.

Reads.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from orchestrator.domain.job import Job
from orchestrator.domain.rotation import RotationSet, Standing
from orchestrator.history.views import Views
from orchestrator.planners.health import State
from orchestrator.planners.noticing import Seen
from orchestrator.planners.rotation import ask, judge_set, request
from orchestrator.runner.disks import members, of_set


def members_seen(jobs: Sequence[Job], views: Views, now: datetime) -> tuple[Seen, ...]:
    """Each disk once, told by the first job of its set. Disks that are lost or retired are missed by nobody."""
    sets = {job.target.rotation.name: job.target.rotation for job in jobs if job.target.rotation is not None}
    return tuple(seen for rotation in sets.values() for seen in _of_set(rotation, of_set(rotation, jobs), views, now))


def _of_set(rotation: RotationSet, jobs: Sequence[Job], views: Views, now: datetime) -> Iterator[Seen]:
    own, local = members(rotation, jobs, views), now.astimezone()
    health = judge_set(rotation, own, local)
    asked = request(rotation, ask(rotation, own, local), health, local)
    last = next(iter(views.runs(jobs[0].name, 1)), None)
    for member in own:
        if member.standing is not Standing.ACTIVE or (member.filled is None and member.enrolled is None):
            continue
        why = health.overdue.get(member.disk.name, "")
        yield Seen(
            job=jobs[0].name, target=member.disk.name, state=State.LATE if why else State.UP if member.filled else State.NEW,
            why=why or "it came in time", cause="overdue" if why else "", cure=asked if why else "",
            run=last.id if last else None,
        )  # fmt: skip
