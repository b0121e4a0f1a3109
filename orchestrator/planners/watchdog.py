"""Detection of stuck runs: a run ends its own stalled transfers, so one that does not is blocked by something worse."""

from collections.abc import Sequence

from orchestrator.domain.events import ProcessActivity
from orchestrator.domain.job import Job
from orchestrator.domain.units import Seconds

LEAST = Seconds(30 * 60)
_BESIDES = 5 * 60
# A run that only waits checks twice a second: measured, 0.03 % of a core. ssh's keepalives are 80 bytes each.
_IDLE = 0.002
_NOISE = 128


def silence_limit(job: Job) -> Seconds:
    """Return how long a run of this job may show no sign of life."""
    waits = max(job.retry.wait_at_most, job.hooks.timeout) + _BESIDES
    return Seconds(max(2 * job.pipe.stall_after, waits, LEAST))


def shows_activity(before: Sequence[ProcessActivity], after: Sequence[ProcessActivity], passed: float) -> bool:
    """Return True when something was done in the `passed` seconds between two checks: bytes, work, or a new process."""
    known = {each.pid: each for each in before}
    if any(each.pid not in known for each in after):
        return True
    worked = sum(each.processor_s - known[each.pid].processor_s for each in after)
    moved = sum((each.moved or 0) - (known[each.pid].moved or 0) for each in after)
    return worked > _IDLE * passed or moved > _NOISE * passed
