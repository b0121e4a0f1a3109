"""Bringing data back: the request in plain values, which copy to take, the plan, the restore, and what runs go on from."""

import os
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.session import opened, visits_of
from orchestrator.app.settings import Frame, WrongRequest
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.run import Outcome

if TYPE_CHECKING:
    from orchestrator.domain.errors import NotNow
    from orchestrator.domain.job import Job
    from orchestrator.domain.place import Location
    from orchestrator.domain.plan import Plan, Refusal
    from orchestrator.domain.run import RunReport
    from orchestrator.planners.choose_copy import Copy, Held
    from orchestrator.runner.context import Tools
    from orchestrator.runner.restore.request import Wish
    from orchestrator.views.copies import Found
    from orchestrator.views.restore import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreRequest:
    """What a person asks a restore for, each by the name of its option; `job` or `origin`, a target itself."""

    job: str | None = None
    origin: str | None = None
    to: str | None = None
    path: str = ""
    point: str | None = None
    at: datetime | None = None
    aside: bool = False
    content: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePlan:
    """What a restore would do. `others`: copies that would bring back something newer; None: there is no configuration."""

    job: str
    decision: "Plan | Refusal"
    others: "tuple[tuple[Copy, Held, str], ...] | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreEnd:
    """A restore as it ended. `links`: what the next runs go on from; None: that is no question for what came back."""

    report: "RunReport"
    links: "tuple[Link, ...] | None"


def choose_copy(frame: Frame, request: RestoreRequest) -> "Found":
    """Return all copies of a job's source, and which one to restore from. Raises: WrongRequest."""
    from orchestrator.app.find_copies import find_copies

    job = _job(frame, request)
    if request.origin is not None:
        raise WrongRequest("--from needs --to")
    return find_copies(frame, job, at=request.at, name=None if request.point == "latest" else request.point)


def plan_restore(frame: Frame, request: RestoreRequest) -> RestorePlan:
    """Return what a restore would do; changes nothing. Raises: WrongRequest."""
    from orchestrator.runner.restore.restore import plan_restore

    job = _job(frame, request)
    wish = _wish(job, request)
    with opened(frame) as desk:
        decision = desk.do(job, plan_restore, wish)
    others = _newer(frame, job, wish) if request.origin is None else None
    return RestorePlan(job=job.name, decision=decision, others=others)


def _newer(frame: Frame, job: "Job", wish: "Wish") -> "tuple[tuple[Copy, Held, str], ...]":
    """Return the copies of other jobs, disks and places that hold a newer point, each with its command; extend `lines`."""
    from orchestrator.app.find_copies import better, find_copies

    name = None if wish.point in (None, "latest") else wish.point
    return better(find_copies(frame, job, at=wish.at, name=name), job, at=wish.at, name=name)


def run_restore(frame: Frame, request: RestoreRequest) -> RestoreEnd:
    """Bring data back and read it again. Raises: WrongRequest."""
    from orchestrator.runner.restore.restore import run_restore

    job = _job(frame, request)
    wish = _wish(job, request)
    report = _on_its_disk(frame, job, run_restore, wish)
    frame.subscriber.ended(report)
    datasets = report.outcome is Outcome.DONE and not wish.to.path.startswith("/")
    return RestoreEnd(report=report, links=_links(frame, job, wish) if datasets else None)


def _on_its_disk(
    frame: Frame, job: "Job", deed: "Callable[[Job, Tools, Wish], RunReport]", wish: "Wish"
) -> "RunReport":
    """Restore data; for copies on removable disks, from the disk that is attached."""
    with opened(frame) as desk:
        if not job.target.rotates:
            return desk.do(job, deed, wish)
        with visits_of(frame, desk, frame.configuration()) as visits:

            def do(placed: "Job", absent: "NotNow | None") -> "RunReport":
                if absent is not None:
                    raise absent
                return desk.do(placed, deed, wish)

            return visits.run(job, do) if visits else do(job, None)


def _links(frame: Frame, job: "Job", wish: "Wish") -> "tuple[Link, ...]":
    """Return the base of each target's next run; only for data that were restored to their original place."""
    from orchestrator.app.next_base import links

    home = job.source / os.fsdecode(wish.path) if wish.path else job.source
    return links(frame, wish.to) if wish.to == home else ()


def _job(frame: Frame, request: RestoreRequest) -> "Job":
    if (request.job is None) is (request.origin is None):
        raise WrongRequest("tell either a job or --from")
    if request.job is not None:
        return frame.configuration().job(request.job)
    return compose.job_found_at(_place("--from", str(request.origin)), log=frame.log)


def _place(option: str, text: str) -> "Location":
    from orchestrator.config.models import parse_anywhere

    try:
        return parse_anywhere(text if "://" in text else os.path.abspath(text))
    except ValueError as error:
        raise WrongRequest(f"{option} {text!r}: expected {error}") from None


def _wish(job: "Job", request: RestoreRequest) -> "Wish":
    from orchestrator.runner.restore.request import Wish

    to = request.to
    if to is None:
        raise WrongRequest("Missing option '--to'.")
    if request.point and request.at:
        raise WrongRequest("tell either --point or --at")
    datasets = not job.target.location.path.startswith("/")
    where = _dataset(to) if datasets and not to.startswith(("/", ".")) else _place("--to", to)
    return Wish(
        to=where, path=_below(request.path), point=request.point, at=request.at, aside=request.aside, content=request.content
    )  # fmt: skip


def _dataset(text: str) -> "Location":
    """Parse the dataset that --to names, here or on a host."""
    from orchestrator.config.models import parse_anywhere
    from orchestrator.config.parse_job import as_dataset, wrong_dataset

    try:
        found = as_dataset(parse_anywhere(text.rstrip("/")))
    except ValueError as error:
        raise WrongRequest(f"--to {text!r}: expected {error}") from None
    if wrong := wrong_dataset(found):
        raise WrongRequest(f"--to: {wrong[0]}: expected {wrong[1]}")
    return found


def _below(path: str) -> bytes:
    """Return a path below a point as bytes, without slashes at its ends."""
    parts = [part for part in os.fsencode(path).split(b"/") if part not in (b"", b".")]
    if b".." in parts:
        raise WrongRequest(f'--path {path!r}: expected a path below the source\'s root, without ".."')
    return b"/".join(parts)
