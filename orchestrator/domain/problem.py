"""Problems of copies: damage, loss and files left out, each a state of its own that ends only when it is over."""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import assert_never

from orchestrator.domain.answers import NOT_READ, parse_instant, parse_json
from orchestrator.domain.command_line import quoted
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import show_short_name
from orchestrator.domain.point import MIRROR, MIRROR_WRITES
from orchestrator.domain.units import show_count

_OF_BYTES = (
    "rotten",
    "edited",
    "missing",
    "unreadable",
)  # in words of a verification; the rest is metadata and additions
_NAMED = 3
REMOVING = (
    "points being removed from "  # before a place's name, a small fact of a job: those that vanish now are no loss
)


# Why files are left out.
UNREAD_WORDS = "could not be read"
UNSTORED_WORDS = "could not be stored as they are"
UNREAD_OR_UNSTORED_WORDS = "could not be read, or not be stored as they are"


class ProblemType(StrEnum):
    """The kinds of problems, the gravest first.

    DAMAGED: a point differs from its manifest. MANIFEST: a point's manifest is missing, unreadable, or not the one that this
    host wrote, so nothing in the point can be verified. POINTS_GONE: points vanished that [keep] did not remove.
    HALF_WRITTEN: a mirror holds a part of a newer state, as the run that changed it did not end: no copy is whole.
    SOURCE_ROTTEN: files at the source have other bytes than when they were copied, with size and time as then: no run copies them, and the
    points have the good ones. LEFT_OUT: a point lacks files that could not be read at the source, or has other times or attributes of them than the source.
    KIT: what a recovery needs beside copies of files is damaged. UNPRUNED: snapshots of the source that no rule keeps stay, as no
    run copied all of it: its pool fills.
    """

    DAMAGED = "damaged"
    MANIFEST = "manifest"
    POINTS_GONE = "points-gone"
    HALF_WRITTEN = "half-written"
    SOURCE_ROTTEN = "source-rotten"
    KIT = "kit"
    LEFT_OUT = "left-out"
    UNPRUNED = "unpruned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem of a job's copies at a place. `point` empty: it is none of a single point.

    `paths`: the first files, or the points that are gone, of `count` in all. `tried`: a run could not mend it. `ended`: when and
    by what it was over; None: it is not.
    """

    job: str
    place: str
    kind: ProblemType
    point: str
    why: str
    paths: tuple[str, ...]
    count: int
    since: datetime
    tried: bool = False
    ended: datetime | None = None
    ended_by: str = ""


SAME_COMMAND = "say the same command again"  # the end of a hint for a place that cannot be looked at
DRILL_FAILED = "the drill failed: "  # begins why a restore test failed
DAMAGE_FOUND = "the copy is damaged in point "  # and goes on so, where it found damage, which is a problem of its own
UNSEEN = "copies unseen on "  # before a place's name, a small fact of a job


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenCopies:
    """Copies that the last look at their place did not find. `since`: the first look that did not; `why`: what it found.

    `looked` False: nobody could look, as the host did not answer; that says nothing of the copies.
    """

    since: datetime
    why: str
    looked: bool = True

    def __str__(self) -> str:
        return json.dumps([self.since.isoformat(), self.why, self.looked])


def parse_unseen(text: str) -> UnseenCopies | None:
    """Parse that fact; None for an empty text, and for one that is none."""
    try:
        since, why, *looked = parse_json(text or "null")  # an earlier version wrote two
        return UnseenCopies(since=parse_instant(since), why=str(why), looked=looked != [False])
    except NOT_READ:
        return None


def find_half_written(job: str, memory: Mapping[str, str]) -> tuple[Problem, ...]:
    """Return a problem for each mirror of a job that a run began to change, and did not end. `memory`: the job's small facts."""
    found = []
    for key, text in memory.items():
        if key.startswith(MIRROR_WRITES) and text:
            try:
                run, since = parse_json(text)
                why, when = f"run {int(run)}, which changed it, did not end", parse_instant(since)
            except NOT_READ:
                continue
            place = key.removeprefix(MIRROR_WRITES)
            found.append(
                Problem(
                    job=job,
                    place=place,
                    kind=ProblemType.HALF_WRITTEN,
                    point=MIRROR,
                    why=why,
                    paths=(),
                    count=0,
                    since=when,
                )
            )
    return tuple(found)


def problem_sentence(problem: Problem) -> str:
    """Return what is wrong, as one sentence for status, notices and reports."""
    shown = ", ".join(show_short_name(path) or "." for path in problem.paths[:_NAMED])
    more = f" and {problem.count - _NAMED} more" if problem.count > _NAMED else ""
    copy = "the mirror" if problem.point == MIRROR else f"point {problem.point}"
    match problem.kind:
        case ProblemType.DAMAGED:
            what = f": {shown}{more}" if problem.paths != ("",) and shown else ""
            return f"{copy} is damaged ({problem.why}){what}"
        case ProblemType.MANIFEST:
            return f"{copy} cannot be verified: {problem.why}"
        case ProblemType.POINTS_GONE:
            gone = show_count(problem.count, "point")
            return f"{gone} vanished from {problem.place} that [keep] did not remove: {shown}{more}"
        case ProblemType.HALF_WRITTEN:
            return f"the mirror is half written: {problem.why}"
        case ProblemType.SOURCE_ROTTEN:
            return f"{show_count(problem.count, 'file')} rotten at the source: {shown}{more}; the good copy is in point {problem.why}"
        case ProblemType.KIT:
            return problem.why
        case ProblemType.UNPRUNED:
            return f"no snapshot of the source is pruned since {problem.since:%Y-%m-%d %H:%M} UTC, as not all of it was copied: {problem.why}"
        case ProblemType.LEFT_OUT:
            files = show_count(problem.count, "entry", "entries")
            otherwise = {
                UNSTORED_WORDS: "has them otherwise",
                UNREAD_OR_UNSTORED_WORDS: "lacks them, or has them otherwise",
            }
            words = problem.why if problem.why in otherwise else UNREAD_WORDS
            has = otherwise.get(words, "lacks them")
            if problem.point == MIRROR and words != UNSTORED_WORDS:
                has = "lacks them, or keeps an older state of them"
            return f"{files} {words}, so {copy} {has}: {shown}{more}"
    assert_never(problem.kind)


def problem_hint(problem: Problem, *, newest: str | None) -> str:
    """Return the command that ends a problem, or says what remains. `newest`: the newest point at the place."""
    job, point = problem.job, problem.point
    accept = f"poolferry points accept {job}" + (f" --point {quoted(point)}" if point else "")
    match problem.kind:
        case ProblemType.DAMAGED if not problem.count:
            return f"`poolferry verify {job} --point {quoted(point)}` reads it again, and says which files are damaged"
        case ProblemType.DAMAGED if problem.tried and not any(word in problem.why for word in _OF_BYTES):
            return (
                f"its bytes are sound, and no run mends folders or removes what was added: change that back by hand, then poolferry "
                f"verify {job} --point {quoted(point)}; or keep it as it is: {accept}"
            )
        case ProblemType.DAMAGED if problem.tried:
            return (
                f"no run can mend it: neither the source nor the newest point has these bytes; `poolferry verify {job} --point "
                f"{quoted(point)}` names other places that have them; if you can do without them: {accept}"
            )
        case ProblemType.DAMAGED:
            return f"`poolferry run {job}` copies damaged files again from the source; look at the disk's health, too (smartctl -a)"
        case ProblemType.MANIFEST if point == newest:
            return f"`poolferry run {job}` makes a new point, and links nothing to this one"
        case ProblemType.MANIFEST:
            return (
                f"newer points do not depend on it; bring {point}.manifest.gz back if you have a copy of it, then `poolferry verify "
                f"{job} --point {quoted(point)}`; or keep the point as it is: {accept}"
            )
        case ProblemType.POINTS_GONE:
            return (
                "find out who removed them, or whether another disk or an older state lies there; if they are where you moved them, move them back; "
                f"if that was meant: {accept}"
            )
        case ProblemType.HALF_WRITTEN:
            return f"`poolferry run {job}` goes on with it"
        case ProblemType.SOURCE_ROTTEN:
            return (
                f"`poolferry verify {job} --source` names the command that brings the good copy back, and this is over once it finds none; "
                f"if they are to stay as they are: {accept}"
            )
        case ProblemType.KIT:
            return f"`poolferry run {job}` writes it anew; look at the disk's health, too (smartctl -a)"
        case ProblemType.UNPRUNED:
            return (
                f"`poolferry plan {job}` says what cannot be copied, and what helps; the run that copies all of it prunes again; if the pool fills "
                "before that: name the dataset in [zfs] exclude, or give the pool more disks"
            )
        case ProblemType.LEFT_OUT:
            excluded = "or name the entries in [rsync] excludes"
            helps = {
                UNSTORED_WORDS: "the target's filesystem has no room for such times or attributes: change them at the source, copy to another "
                f"filesystem, {excluded}",
                UNREAD_OR_UNSTORED_WORDS: "mend it at the source (a name or a file that the target takes), raise most-holes in [rsync] where holes are the "
                f"reason, make room where a quota is, copy to another filesystem, {excluded}",
            }
            told = helps.get(problem.why, f"let them be read (owner, mode, a disk that fails), {excluded}")
            return f"{told}; then poolferry run {job}, which tells of each that is left"
    assert_never(problem.kind)
