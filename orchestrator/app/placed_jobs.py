"""Jobs of rotation sets, each with its place on the disks that a person attached."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.domain.errors import NotNow
from orchestrator.domain.job import Job
from orchestrator.domain.rotation import Disk, RotationSet

if TYPE_CHECKING:
    from orchestrator.app.settings import Settings


@contextmanager
def jobs_on_attached_disks(settings: "Settings", job: Job, command: str) -> Iterator[tuple[Job, ...]]:
    """Yield the job with its place on each disk of its set that a person attached; they are held, so that no visit detaches them.

    A job whose target stays where it is is yielded as it is. `command`: what a disk is held for. Raises: NotNow.
    """
    if not job.target.rotates:
        yield (job,)
        return
    from orchestrator.runner.disk.lease import hold_disk
    from orchestrator.runner.disk.state import job_on_disk

    rotation = settings.configuration().rotation(job.target.name)
    here = _attached(settings, rotation)
    if not here:
        raise _explain_detached(settings, job, rotation)
    with ExitStack() as held:
        for disk in here:
            held.enter_context(hold_disk(disk, command, settings.where.state, compose.now()))
        yield tuple(job_on_disk(job, disk) for disk in here)


def _explain_detached(settings: "Settings", job: Job, rotation: RotationSet) -> NotNow:
    """Return why nothing can be read of a job whose copies are on the disks of a rotation set."""
    why = f"the copies of {job.name} lie on the disks of the set {rotation.name}, and none of them is attached"
    if not rotation.disks:
        return NotNow(why, hint=f"it has no disk: {settings.repeat(f'disks enroll DEVICE --set {rotation.name}')}")
    points, attach = settings.repeat(f"points {job.name}"), settings.repeat(f"disks attach {rotation.disks[0].name}")
    return NotNow(why, hint=f"`{points}` shows which point lies on which disk; plug it in, and: {attach}")


def _attached(settings: "Settings", rotation: RotationSet) -> tuple[Disk, ...]:
    from orchestrator.disks import disk as medium
    from orchestrator.disks.detect import survey_devices
    from orchestrator.planners.identify_disk import DeviceState, identify_devices
    from orchestrator.process.executor import Reader

    reader = Reader(log=settings.log)
    with settings.views() as views:
        found = identify_devices(survey_devices(reader), list(rotation.disks), views.disks.known())
    fitting = [each for each in found if each.disk is not None and each.state is DeviceState.TO_VERIFY]
    return tuple(
        each.disk for each in fitting if each.disk is not None and medium.use(each.disk, each.device, reader).attached
    )
