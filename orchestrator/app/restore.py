"""Restores: the request in plain values, the choice of the copy, the plan, the restore, and the bases of the next runs."""

import contextlib
import os
import shlex
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.session import open_session, open_visits
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.app.spare_state import on_usable_state
from orchestrator.domain.errors import DeclarationError, HistoryError, NotNow, OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.names import show_name
from orchestrator.domain.rotation import MOUNT_ROOT, POOL_PREFIX
from orchestrator.domain.run import UNRECORDED, Outcome
from orchestrator.runner.disk.lease import end_request, hold_disk, request_disk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.domain.job import Job
    from orchestrator.domain.place import Location
    from orchestrator.domain.plan import Plan, Refusal
    from orchestrator.domain.rotation import Disk, RotationSet
    from orchestrator.domain.run import RunReport
    from orchestrator.planners.choose_copy import CandidatePoint, CopyCandidate
    from orchestrator.planners.restore import OwnFolder
    from orchestrator.runner.context import RunContext
    from orchestrator.runner.restore.request import RestoreOptions
    from orchestrator.views.copies import CopySearchResult
    from orchestrator.views.restore import TargetNextBase


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreCommand:
    """A person's request for a restore, each value by the name of its option; `job` or `origin`, a target itself."""

    job: str | None = None
    origin: str | None = None
    to: str | None = None
    path: str = ""
    point: str | None = None
    at: datetime | None = None
    aside: bool = False
    content: bool = False
    lost_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """Plan of a restore. `others`: copies that would restore newer data; None: there is no configuration."""

    job: str
    decision: "Plan | Refusal"
    others: "tuple[tuple[CopyCandidate, CandidatePoint, str], ...] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreEnd:
    """Result of a restore. `links`: the bases of the next runs; None: not applicable to the restored data."""

    report: "RunReport"
    links: "tuple[TargetNextBase, ...] | None"


def choose_copy(settings: Settings, request: RestoreCommand) -> "CopySearchResult":
    """Return all copies of a job's source, and which one to restore from. Raises: WrongRequest."""
    from orchestrator.app.find_copies import find_copies

    job = _job(settings, request)
    if request.origin is not None:
        raise WrongRequest("--from needs --to")
    name = None if request.point == "latest" else request.point
    path = _below(request.path)
    return on_usable_state(settings, lambda usable: find_copies(usable, job, at=request.at, name=name, path=path))


def plan_restore(settings: Settings, request: RestoreCommand) -> RestorePlan:
    """Return the plan of a restore; change nothing. Raises: WrongRequest."""
    from orchestrator.runner.restore.restore import plan_restore

    job = _job(settings, request)
    restore_request = _restore_options(settings, job, request)

    def plan(usable: Settings) -> RestorePlan:
        with open_session(usable) as session:
            decision = session.do(job, plan_restore, restore_request)
        others = _newer(usable, job, restore_request, request) if request.origin is None else None
        return RestorePlan(job=job.name, decision=decision, others=others)

    return on_usable_state(settings, plan)


def _newer(
    settings: Settings, job: "Job", restore_request: "RestoreOptions", request: RestoreCommand
) -> "tuple[tuple[CopyCandidate, CandidatePoint, str], ...]":
    """Return the copies of other jobs, disks and places that hold a newer point, each with its command."""
    from orchestrator.app.find_copies import find_better_copies, find_copies

    name = None if restore_request.point in (None, "latest") else restore_request.point
    found = find_copies(settings, job, at=restore_request.at, name=name)
    return find_better_copies(
        found, job, lambda job, point: restore_words(replace(request, job=job, point=point, at=None)),
        at=restore_request.at, name=name,
    )  # fmt: skip


def run_restore(settings: Settings, request: RestoreCommand) -> RestoreEnd:
    """Restore data and verify it. Raises: WrongRequest."""
    from orchestrator.runner.restore.restore import run_restore

    job = _job(settings, request)
    restore_request = _restore_options(settings, job, request)

    def restore(usable: Settings) -> "RunReport":
        report = _on_its_disk(usable, job, run_restore, restore_request, restore_words(request))
        return report if usable is settings else replace(report, run=UNRECORDED)

    report = on_usable_state(settings, restore)
    settings.subscriber.ended(report)
    datasets = report.outcome is Outcome.DONE and not restore_request.to.path.startswith("/")
    return RestoreEnd(report=report, links=_links(settings, job, restore_request) if datasets else None)


def _on_its_disk(
    settings: Settings,
    job: "Job",
    action: "Callable[[Job, RunContext, RestoreOptions], RunReport]",
    restore_request: "RestoreOptions",
    command: str,
) -> "RunReport":
    """Restore data; for copies on removable disks, from the disk that is attached."""
    from orchestrator.app.restored_sources import note_restore

    with open_session(settings) as session, _attached_disk_held(settings, job):
        if job.target.rotation is None:
            report = session.do(job, action, restore_request)
            note_restore(
                session.history, partial(_known_jobs, settings), job, restore_request.to, report, compose.now()
            )
            return report
        from orchestrator.app.kit_disk import accept_kit_disk
        from orchestrator.domain.run import VisitCause

        accept_kit_disk(settings, session)
        with open_visits(settings, session, settings.configuration(), cause=VisitCause.RESTORE) as visits:

            def do(placed: "Job", absent: "NotNow | None") -> "RunReport":
                if absent is not None:
                    raise absent
                report = session.do(placed, action, restore_request)
                note_restore(
                    session.history, partial(_known_jobs, settings), placed, restore_request.to, report, compose.now()
                )
                return report

            try:
                report = visits.run(job, do) if visits else do(job, None)
            except NotNow:
                _request_disks(settings, job, job.target.rotation, command)
                raise
            if report.outcome is Outcome.DONE:
                for disk in job.target.rotation.disks:
                    end_request(disk, settings.where.state)
            return report


def _request_disks(settings: Settings, job: "Job", rotation: "RotationSet", command: str) -> None:
    """Record that a restore waits for the disks of a set that hold its points: plugged in, they stay on and are not visited."""
    with settings.views() as views:
        places = {point.place for point in views.points(job.name)}
    for disk in [each for each in rotation.disks if each.name in places] or rotation.disks:
        request_disk(disk, command, settings.where.state, compose.now())


@contextlib.contextmanager
def _attached_disk_held(settings: Settings, job: "Job") -> "Iterator[None]":
    """Hold the disk on which a copy lies that is named by its place (--from), when it is one of ours that is attached."""
    disk = None if job.target.rotates else _disk_below(settings, job.target.location.path)
    if disk is None:
        yield
        return
    with hold_disk(disk, f"a restore from {job.target.location}", settings.where.state, compose.now()):
        yield


def _disk_below(settings: Settings, path: str) -> "Disk | None":
    """Return the disk of a set whose mount, or pool, holds this path; None also where there is no configuration."""
    first = path.removeprefix(f"{MOUNT_ROOT}/").partition("/")[0] if path.startswith(f"{MOUNT_ROOT}/") else ""
    if not first and not path.startswith("/") and path.startswith(POOL_PREFIX):
        first = path.removeprefix(POOL_PREFIX).partition("/")[0]
    if not first:
        return None
    try:
        sets = settings.configuration().sets
    except DeclarationError:
        return None
    return next((disk for each in sets for disk in each.disks if disk.name == first), None)


def restore_words(request: RestoreCommand) -> str:
    """Return the command line of a restore, to be said again."""
    import shlex

    at = request.at.isoformat() if request.at else None
    options = (
        ("--from", request.origin), ("--to", request.to), ("--path", request.path), ("--point", request.point), ("--at", at),
        *(("--lost-key", name) for name in request.lost_keys),
    )  # fmt: skip
    words = [word for name, value in options if value for word in (name, value)]
    return shlex.join(["poolferry", "restore", "run", *filter(None, [request.job]), *words]) + (
        (" --aside" if request.aside else "") + (" --content" if request.content else "")
    )


def _known_jobs(settings: Settings) -> "tuple[Job, ...]":
    """Return the declared jobs; none on a machine without a configuration, where a restore comes from a target itself."""
    try:
        return settings.configuration().jobs
    except OrchestratorError:
        return ()


def _links(settings: Settings, job: "Job", restore_request: "RestoreOptions") -> "tuple[TargetNextBase, ...]":
    """Return the base of each target's next run; only for data that were restored to their original place."""
    from orchestrator.app.next_base import find_next_bases

    home = job.source / os.fsdecode(restore_request.path) if restore_request.path else job.source
    return find_next_bases(settings, restore_request.to) if restore_request.to == home else ()


def _job(settings: Settings, request: RestoreCommand) -> "Job":
    if (request.job is None) is (request.origin is None):
        raise WrongRequest("use either a job or --from")
    if request.job is not None:
        try:
            return settings.configuration().job(request.job)
        except DeclarationError:
            _say_where(settings, request.job)
            raise
    return compose.job_from_target(_place("--from", str(request.origin)), log=settings.log)


def _say_where(settings: Settings, job: str) -> None:
    """Say how the copies come back without the job's file, where history knows their place. Why no error: the mistakes follow."""
    from orchestrator.domain.place import USED

    try:
        with settings.views() as views:
            used = views.memory(job).get(USED, "")
    except HistoryError:
        return
    if used.startswith(("/", "ssh://")) and not used.startswith(MOUNT_ROOT):
        settings.say(
            f"the copies of {job} lie in {show_name(used)}, and come back without its file: "
            f"poolferry restore run --from {shlex.quote(used)} --to DIR"
        )


def _place(option: str, text: str) -> "Location":
    from orchestrator.config.models import parse_any_location

    try:
        return parse_any_location(text if "://" in text else os.path.abspath(text))
    except ValueError as error:
        raise WrongRequest(f"{option} {text!r}: expected {error}") from None


def _restore_options(settings: Settings, job: "Job", request: RestoreCommand) -> "RestoreOptions":
    from orchestrator.runner.restore.request import RestoreOptions

    to = request.to
    if to is None:
        raise WrongRequest("Missing option '--to'.")
    if job.parts and not _below(request.path) and to == "/":
        line = f"poolferry restore run {job.name} --path {shlex.quote(job.parts[0])} --to {shlex.quote(f'/{job.parts[0]}')}"
        raise WrongRequest(f"--to /: {job.name} copies several folders, and each is brought back by itself: {line}")
    if request.point and request.at:
        raise WrongRequest("use either --point or --at")
    datasets = not job.target.location.path.startswith("/")
    where = _dataset(to) if datasets and not to.startswith(("/", ".")) else _place("--to", to)
    return RestoreOptions(
        to=where, path=_below(request.path), point=request.point, at=request.at, aside=request.aside, content=request.content,
        lost_keys=request.lost_keys, typed=restore_words(request), apart=_own_folders(settings, where),
    )  # fmt: skip


def _own_folders(settings: Settings, to: "Location") -> "tuple[OwnFolder, ...]":
    """Return the folders of all jobs' copies on the destination's machine, and our own state if it is this one.

    Why none of a configuration that is not there: a restore without one knows its own copies.
    """
    from orchestrator.planners.restore import OwnFolder, copy_folders

    if not to.path.startswith("/"):
        return ()
    try:
        jobs = settings.configuration().jobs
    except DeclarationError:
        jobs = ()
    found = (
        [OwnFolder(path=os.path.realpath(settings.where.state), holds="poolferry's own state")]
        if to.host is None
        else []
    )
    for job in jobs:
        place = job.target.location
        if job.copies and not job.target.rotates and place.path.startswith("/") and place.host == to.host:
            root = os.path.realpath(place.path) if to.host is None else place.path
            found += copy_folders(root, job=job.name, points=getattr(job.options, "points", True))
    return tuple(found)


def _dataset(text: str) -> "Location":
    """Parse the dataset that --to names, here or on a host."""
    from orchestrator.config.models import parse_any_location
    from orchestrator.config.parse_job import dataset_location, dataset_mistake

    try:
        found = dataset_location(parse_any_location(text.rstrip("/")))
    except ValueError as error:
        raise WrongRequest(f"--to {text!r}: expected {error}") from None
    if wrong := dataset_mistake(found):
        raise WrongRequest(f"--to: {wrong[0]}: expected {wrong[1]}")
    return found


def _below(path: str) -> bytes:
    """Return a path below a point as bytes, without slashes at its ends."""
    parts = [part for part in os.fsencode(path).split(b"/") if part not in (b"", b".")]
    if b".." in parts:
        raise WrongRequest(f'--path {path!r}: expected a path below the source\'s root, without ".."')
    return b"/".join(parts)
