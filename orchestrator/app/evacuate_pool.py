"""The use case `poolferry evacuate`: what lies on a pool is copied to the places that the job files name, and verified there.

It copies to no other place, and nothing is removed but what the jobs' own rules let go: a new place needs a job file, and emptying
needs `poolferry restore pool`.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.evacuation import JobEvacuation
from orchestrator.domain.names import unescape_mount_path
from orchestrator.domain.point import VerifyJobResult
from orchestrator.domain.run import Outcome, unrecorded_report
from orchestrator.domain.source_identity import SOURCE_IDENTITY
from orchestrator.planners.evacuation import (
    explain_changed_pool,
    find_jobs_of_pool,
    find_source_pools,
    judge_job,
    refuse_other_pool,
    remembered_guids,
)

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.domain.plan import Refusal
    from orchestrator.domain.run import RunReport

_MOUNTS = "/proc/self/mounts"


def evacuate_pool(
    settings: Settings, pool: str, *, why: str, guid: int | None = None
) -> "tuple[JobEvacuation, ...] | Refusal":
    """Run each job whose source lies on the pool, then verify its newest copy; return how each ended. `why`: for the records.

    `guid`: of the pool that is meant; None: the one that its jobs copied before. Raises: WrongRequest for a pool on which no source lies.
    """
    from orchestrator.runner.disk.state import order_jobs

    known = settings.configuration().jobs
    kept = {job.name: here for job, here in jobs_of_pool(pool, known)}
    jobs = [job for job in order_jobs(known) if job.name in kept]
    with settings.views() as views:
        copied = remembered_guids(pool, {name: views.memory(name).get(SOURCE_IDENTITY, "") for name in kept})
    there = _read_guid(settings, pool)
    if refusal := refuse_other_pool(pool, there, guid, copied):
        return refusal
    ran = _run(settings, [job.name for job in jobs if not kept[job.name]], why)
    read = {
        name: _verify(settings, name, why)
        for name, report in ran.items()
        if report.outcome not in (Outcome.WAITING, Outcome.INTERRUPTED) and not settings.stopped
    }
    changed = explain_changed_pool(pool, there, _read_guid(settings, pool))
    return tuple(judge_job(job, kept[job.name], ran.get(job.name), read.get(job.name), changed=changed) for job in jobs)


def _read_guid(settings: Settings, pool: str) -> int | None:
    """Return the guid of a pool; None: it is not imported, this machine has no ZFS, or it gives no answer."""
    from orchestrator.disks.pool import read_guid
    from orchestrator.process.executor import Reader

    try:
        return read_guid(pool, Reader(log=settings.log))
    except OrchestratorError as error:
        settings.say(f"the guid of the pool {pool} is not known: {error.why}")
        return None


def jobs_of_pool(pool: str, jobs: "Iterable[Job]") -> "tuple[tuple[Job, str], ...]":
    """Return the jobs whose source lies on the pool, each with why it brings nothing elsewhere; empty: it does.

    Raises: WrongRequest where there is none, with the pools that there are.
    """
    known = tuple(jobs)
    if found := find_jobs_of_pool(pool, known, _mounts(), _own_names()):
        return found
    there = ", ".join(source_pools(known)) or "no pool at all"
    raise WrongRequest(f"no job's source lies on a pool {pool} of this machine; sources lie on: {there}")


def source_pools(jobs: "Iterable[Job]") -> tuple[str, ...]:
    """Return the pools of this machine on which sources lie, by name."""
    return find_source_pools(jobs, _mounts())


def _own_names() -> frozenset[str]:
    """Return the names and addresses by which ssh reaches this machine itself, as far as they are known without asking anybody."""
    name = os.uname().nodename.lower()
    return frozenset({"localhost", "127.0.0.1", "::1", name, name.partition(".")[0]})


def _mounts() -> tuple[tuple[str, str], ...]:
    """Return (dataset, folder) of all mounts of this machine; what is no dataset has no name. Source: proc(5)."""
    with open(_MOUNTS, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        told = [line.split(" ", 3) for line in file]
    return tuple(
        (unescape_mount_path(what) if kind == "zfs" else "", unescape_mount_path(at)) for what, at, kind, _ in told
    )


def _run(settings: Settings, names: list[str], why: str) -> "dict[str, RunReport]":
    from orchestrator.app.run_jobs import run_jobs

    return {end.report.job: end.report for end in run_jobs(settings, names, why=why).runs} if names else {}


def _verify(settings: Settings, name: str, why: str) -> "VerifyJobResult":
    """Verify one job's newest copy. Why one by one: a disk that is away ends a verification, not those of the other jobs."""
    from orchestrator.app.copy_checks import verify_jobs

    try:
        return verify_jobs(settings, [name], why=why).ends[0].verified
    except OrchestratorError as error:
        report = unrecorded_report(name, Outcome.WAITING, error.why, hint=error.hint)
        return VerifyJobResult(report=report, point=None, reading=None)
