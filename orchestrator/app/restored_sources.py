"""The meaning of a finished restore for all jobs of its source: none takes it for one that was made anew, and all know of it."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.source_identity import LAST_RESTORE, SOURCE_IDENTITY

if TYPE_CHECKING:
    from orchestrator.domain.run import RunReport
    from orchestrator.history.store import History


def note_restore(
    history: "History", jobs: Callable[[], Iterable[Job]], job: Job, to: Location, report: "RunReport", now: datetime
) -> None:
    """Remember a restore to its original place, for each job whose source is that place, lies in it, or holds it.

    `jobs`: reads all that are declared, which a restore of files does not need.
    """
    # A restore that brought less than was asked for brought something, too.
    if not report.why.startswith(f"{to} is back") or " is back already" in report.why or to.path.startswith("/"):
        return
    told = f"on {now:%Y-%m-%d %H:%M} UTC from {job.target.location}"
    for each in jobs():
        if _touches(each, to) and _touches(job, to):
            history.remember(each.name, LAST_RESTORE, told)
            if f"{each.source.path}/".startswith(f"{to.path}/"):
                history.remember(each.name, SOURCE_IDENTITY, "")


def _touches(job: Job, to: Location) -> bool:
    pairs = ((f"{folder.path}/", f"{to.path}/") for folder in job.tree.folders)
    return job.source.host == to.host and any(one.startswith(other) or other.startswith(one) for one, other in pairs)
