"""Health of a job's copy at a place, judged by the age of the newest verified copy, not by how runs ended.

`status` shows the state at once. A problem that may end by itself is `passing`, and no notice is sent for it yet:

* late, while a run goes on that began less than half of late-after ago (but an hour at least), or in the first hour
  after the machine was off or asleep: then the missed run is being caught up.
* failing, when one single run has failed and the newest verified copy is younger than half of late-after: another run begins
  before anything is late. A second failure in a row ends this. Nothing is passing without late-after, without a verified copy,
  when a copy was read again and found damaged, or after a refusal.

A failure remains until a run ends well; a run that only waits, or was interrupted, does not end it. A problem of the copies
themselves (damage, points that vanished, files left out) remains until it is over itself: a good run does not end it.
"""

from datetime import datetime
from enum import StrEnum

from orchestrator.domain.age import CLOCKS_DIFFER, is_over
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.run import Outcome, RunType
from orchestrator.domain.units import Seconds, show_count, show_duration

_HOUR = 3600
_KINDS = {RunType.VERIFY: "verification", RunType.DRILL: "restore test"}


class JobState(StrEnum):
    """State of a job's copy; only those in BAD need a person. INCOMPLETE: files are left out or stored otherwise.

    NO_FILE: the job has no file any more, and nobody said that it is over. No job with a file is judged so.
    """

    NEW = "new"
    UP = "up"
    LATE = "late"
    FAILING = "failing"
    INCOMPLETE = "incomplete"
    NO_FILE = "no-file"
    WAITING = "waiting"
    PAUSED = "paused"


BAD = (JobState.LATE, JobState.FAILING, JobState.INCOMPLETE, JobState.NO_FILE)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthInput:
    """Remembered facts of a job. `last`, `last_why`, `last_kind`: outcome, reason and kind of the newest ended run.

    A failure that no good run has followed yet is shown instead, and then `since` says how the newest run ended. `newest_verified`: the
    newest state of the source that a verified copy holds; a run that finds nothing to do renews it. `failures`: runs that ended
    badly since the last one that ended well. `running`: when the run that goes on began. `awake`: since when the machine is on
    again, if it was recently off or asleep. `paused`: why and until when; empty: not. `broken`: a copy was read again and
    differs from its manifest. `copies` False: the job works on its source alone, and `newest_verified` is its last good run. `problem`:
    the gravest of the copies themselves; `points`: those that history knows; `left_out`: the files that the newest copy lacks, as they could
    not be read. `unread`: what was not read again within its promise. `unseen`: since when looks at
    the place have not found that copy, and why; `looked` False: as nobody could look there, which alone makes no copy a lost one.
    """

    first_begun: datetime | None
    last: Outcome | None
    last_why: str
    newest_verified: datetime | None
    failures: int = 1
    running: datetime | None = None
    awake: datetime | None = None
    paused: str = ""
    broken: bool = False
    since: str = ""
    copies: bool = True
    problem: str = ""
    unseen: str = ""
    looked: bool = True
    last_kind: RunType = RunType.RUN
    left_out: str = ""
    unread: str = ""
    points: int = 0

    @property
    def newest(self) -> str:
        """Return the name for what the age measures: the newest verified copy, or the last good run."""
        return "the newest verified copy" if self.copies else "the last good run"

    @property
    def none(self) -> str:
        """Return the phrase for a missing verified copy or good run."""
        return "no verified copy" if self.copies else "no good run"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyHealth:
    """State of a job. `age`: of the newest verified copy; None: there is none.

    `passing`: why this problem may end by itself; empty when it will not, or when there is none.
    """

    state: JobState
    why: str
    age: Seconds | None
    passing: str = ""


def judge_health(facts: HealthInput, *, now: datetime, late_after: Seconds | None) -> CopyHealth:
    """Return a job's state; paused outranks late, late outranks the last run's outcome. `late_after` None: never late."""
    age = None if facts.newest_verified is None else Seconds((now - facts.newest_verified).total_seconds())
    if facts.paused:
        return CopyHealth(state=JobState.PAUSED, why=f"{facts.paused}; {_copy(facts, age)}", age=age)
    if facts.first_begun is None and facts.newest_verified is None:
        return CopyHealth(state=JobState.NEW, why=_unknown(facts), age=None)
    late = _late(facts, age, now=now, late_after=late_after)
    if late:
        return CopyHealth(
            state=JobState.LATE, why=late, age=age, passing=_made_up_for(facts, now, late_after or Seconds(0))
        )
    state, why = _by_last_run(facts, age)
    passing = _may_pass(facts, age, late_after) if state is JobState.FAILING else ""
    return CopyHealth(state=state, why=why, age=age, passing=passing)


def _unknown(facts: HealthInput) -> str:
    """Return that history knows no run. Why not that there was none: a history that was lost knows none, and the copies are there."""
    seen = f"; {show_count(facts.points, 'point')} there, none known as verified" if facts.points else ""
    return f"history knows no run of it{seen}"


def _made_up_for(facts: HealthInput, now: datetime, late_after: Seconds) -> str:
    """Return why a late copy needs no person yet. An instant after now is a clock error and excuses nothing."""
    patience = max(late_after / 2, _HOUR)
    if facts.running and facts.running <= now and not is_over(facts.running, Seconds(patience), now):
        return "a run is going on"
    if facts.awake and facts.awake <= now and not is_over(facts.awake, Seconds(_HOUR), now):
        return "the machine was off or asleep, and makes up for it"
    return ""


def _may_pass(facts: HealthInput, age: Seconds | None, late_after: Seconds | None) -> str:
    """Return why a failing run needs no person yet; empty when it does."""
    if (
        late_after is None
        or age is None
        or facts.last is not Outcome.FAILED
        or facts.failures > 1
        or facts.broken
        or facts.problem
    ):
        return ""
    return "one run failed, and the next comes before the copy is late" if age < late_after / 2 else ""


def _late(facts: HealthInput, age: Seconds | None, *, now: datetime, late_after: Seconds | None) -> str:
    if late_after is None:
        return ""
    limit = f"late-after is {show_duration(late_after)}"
    if age is not None and _is_misdated(age):  # such a copy would hide failures until then
        return f"{facts.newest} is dated {show_duration(-age)} after now, so its age is unknown; {limit}"
    if age is not None:
        return f"{_copy(facts, age)}; {limit}" if age > late_after else ""
    tried = (now - facts.first_begun).total_seconds() if facts.first_begun else 0
    return f"{facts.none}, {show_duration(tried)} after the first run; {limit}" if tried > late_after else ""


def _by_last_run(facts: HealthInput, age: Seconds | None) -> tuple[JobState, str]:
    copy = _copy(facts, age)
    told = f"{facts.last}: {facts.last_why}" if facts.last_why else f"{facts.last}"
    if _asked_too_early(facts, age):
        return JobState.NEW, f"{copy}; the last {_KINDS.get(facts.last_kind, 'run')} {told}"
    if facts.last in (Outcome.FAILED, Outcome.REFUSED):
        what = _KINDS.get(facts.last_kind, "run")
        run = (
            f"a {what} {told}; the {'one' if what == 'run' else 'run'} since is {facts.since}"
            if facts.since
            else f"the last {what} {told}"
        )
        return JobState.FAILING, f"{run}; {copy}"
    if facts.problem:
        return JobState.FAILING, f"{facts.problem}; {copy}"
    if facts.left_out:
        return JobState.INCOMPLETE, f"{facts.left_out}; {copy}"
    there = age is not None and not _is_misdated(age) and not (facts.unseen and facts.looked)
    if there and facts.unread:  # also where a reading was cut: that it is to go on does not make it less late
        return JobState.LATE, f"{facts.unread}; {copy}"
    if facts.last in (Outcome.WAITING, Outcome.INTERRUPTED):
        return JobState.WAITING, f"the last run is {told}; {copy}"
    if there:
        return JobState.UP, copy
    return (JobState.NEW if facts.last is None else JobState.FAILING), copy


def _asked_too_early(facts: HealthInput, age: Seconds | None) -> bool:
    """Return whether all that ended badly is a verification or a restore test of a job that has no copy yet."""
    early = facts.last is Outcome.REFUSED and facts.last_kind in (RunType.VERIFY, RunType.DRILL)
    return early and facts.copies and age is None and facts.failures <= 1 and not facts.problem


def _copy(facts: HealthInput, age: Seconds | None) -> str:
    if age is not None and _is_misdated(age):
        return f"{facts.newest} is dated {show_duration(-age)} after now: a clock was wrong, and its age is unknown"
    if age is None:
        return f"{facts.none} yet"
    unseen = f", {'and may be gone: ' if facts.looked else ''}{facts.unseen}" if facts.unseen else ""
    return f"{facts.newest} is {show_duration(max(age, 0))} old{unseen}"


def _is_misdated(age: Seconds) -> bool:
    """Return whether an instant is further after now than the clocks of two machines differ."""
    return age < -CLOCKS_DIFFER.total_seconds()
