"""Jobs without a file: those that are over, as their owner said, and those whose copies are strays, as the file may be lost."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.config.load import NO_JOB
from orchestrator.domain.errors import DeclarationError
from orchestrator.domain.job import Job
from orchestrator.domain.place import OVER, USED
from orchestrator.domain.rotation import MOUNT_ROOT
from orchestrator.views.status import StrayCopies

if TYPE_CHECKING:
    from orchestrator.history.views import HistoryReader


def stray_copies(jobs: Sequence[Job], views: "HistoryReader") -> tuple[StrayCopies, ...]:
    """Return the jobs that copied and have no file any more, by name; without those that are over. `jobs`: all declared ones."""
    declared = {name for one in jobs for name in (one.name, one.identity)}
    used = views.facts_of_jobs(USED)
    gone = {job: place for job, place in used.items() if job not in declared}
    over = views.facts_of_jobs(OVER) if gone else {}
    heirs = [one for one in jobs if one.copies and one.identity not in used] if gone else []
    found = (_stray(views, job, place, over.get(job, ""), heirs) for job, place in sorted(gone.items()))
    return tuple(each for each in found if each)


def _stray(views: "HistoryReader", job: str, used: str, over: str, heirs: Sequence[Job]) -> StrayCopies | None:
    """Return the copies of a job whose newest run copied, and began after it was over last. `over`: the number of its newest run then.

    `heirs`: jobs that have made no copy, of which one may be this job under another name.
    """
    facts = views.health_facts(job, limit=1)
    run = next(iter(facts.last), None)
    if run is None or run.source == run.target or (over.isdecimal() and run.id <= int(over)):
        return None
    target = facts.copies[0].place if facts.copies else run.target
    place = "" if used.startswith(MOUNT_ROOT) else used
    heir = next(
        (one.file for one in heirs if (str(one.tree), str(one.target.location)) == (run.source, run.target)), ""
    )
    return StrayCopies(job=job, place=place, target=target, newest=facts.newest_copy, last=run, heir=heir)


def names_with_file(settings: Settings, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of these jobs, each once.

    Raises: WrongRequest for one whose copies are strays: what helps there is another command · DeclarationError for one that nobody knows.
    """
    known = settings.configuration()
    missing = set(names) - {one.name for one in known.jobs}
    if missing:
        with settings.views() as views:
            strays = [one.job for one in stray_copies(known.jobs, views) if one.job in missing]
        for name in strays:
            over = settings.repeat(f"end {name}")
            raise WrongRequest(
                f"{name} has no file any more, so no run of it begins",
                f"put jobs/{name}.toml back; or, if it is over: `{over}`",
            )
    return tuple(one.name for one in settings.jobs(names))


def end_jobs(settings: Settings, names: Sequence[str], *, undo: bool) -> tuple[str, ...]:
    """Record that these jobs, which have no file, are over; return their names. `undo`: that they are not.

    Raises: WrongRequest for a job with a file · DeclarationError for one that nobody knows · HistoryError.
    """
    jobs, nothing_left = tuple(dict.fromkeys(names)), None
    try:
        declared = {one.name for one in settings.configuration().jobs}
    except DeclarationError as error:
        if [each.what for each in error.mistakes] != [NO_JOB] or not os.path.isdir(f"{settings.where.config}/jobs"):
            raise
        declared, nothing_left = set(), error  # the last file of all was removed, which is a mistake everywhere else
    for name in jobs:
        if name in declared:
            rest = settings.repeat(f"pause {name}")
            raise WrongRequest(
                f"{name} has a file, so it is not over", f"remove jobs/{name}.toml first; `{rest}` lets it rest"
            )
    with compose.open_history(settings.where) as history:
        copied = history.views.facts_of_jobs(USED)
        for name in jobs:
            if name not in copied:
                if nothing_left is not None:
                    raise nothing_left
                settings.configuration().job(name)
        with history.together():
            for name in jobs:
                newest = next(iter(history.views.runs(name, 1)), None)
                history.remember(name, OVER, "" if undo or newest is None else str(newest.id))
    return jobs
