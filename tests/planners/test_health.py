"""Health: the age of the newest verified copy first, the last run second."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.run import Outcome, RunType
from orchestrator.domain.units import Seconds
from orchestrator.planners.health import HealthInput, JobState, judge_health

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAY = Seconds(86400)


def facts(
    *, first: float | None = 240, last: Outcome | None = Outcome.DONE, why: str = "", newest_verified: float | None = 2
) -> HealthInput:
    """Hours before now."""
    return HealthInput(
        first_begun=None if first is None else NOW - timedelta(hours=first),
        last=last,
        last_why=why,
        newest_verified=None if newest_verified is None else NOW - timedelta(hours=newest_verified),
    )


@pytest.mark.parametrize(
    ("known", "state", "why"),
    [
        (facts(first=None, last=None, newest_verified=None), JobState.NEW, "history knows no run of it"),
        (
            # The history was lost, and somebody looked at the place since.
            replace(facts(first=None, last=None, newest_verified=None), points=2),
            JobState.NEW,
            "history knows no run of it; 2 points there, none known as verified",
        ),
        (facts(first=1, last=None, newest_verified=None), JobState.NEW, "no verified copy yet"),
        (facts(), JobState.UP, "the newest verified copy is 2 h old"),
        (facts(last=Outcome.NOTHING), JobState.UP, "the newest verified copy is 2 h old"),
        (facts(first=None, last=None), JobState.UP, "the newest verified copy is 2 h old"),
        (facts(newest_verified=-1), JobState.UP, "the newest verified copy is 0.0 s old"),
        (facts(newest_verified=24), JobState.UP, "the newest verified copy is 1 d old"),
        (facts(newest_verified=25), JobState.LATE, "the newest verified copy is 1 d 1 h old; late-after is 1 d"),
        (facts(last=Outcome.FAILED, newest_verified=25), JobState.LATE, "the newest verified copy is 1 d 1 h old; late-after is 1 d"),
        (
            facts(newest_verified=-25), JobState.LATE,
            "the newest verified copy is dated 1 d 1 h after now, so its age is unknown; late-after is 1 d",
        ),
        (
            facts(newest_verified=-2), JobState.LATE,
            "the newest verified copy is dated 2 h after now, so its age is unknown; late-after is 1 d",
        ),
        (facts(first=25, newest_verified=None), JobState.LATE, "no verified copy, 1 d 1 h after the first run; late-after is 1 d"),
        (facts(first=23, newest_verified=None), JobState.FAILING, "no verified copy yet"),
        (
            facts(last=Outcome.FAILED, why="disk full"), JobState.FAILING,
            "the last run failed: disk full; the newest verified copy is 2 h old",
        ),
        (
            replace(facts(last=Outcome.FAILED, why="disk full"), since="waiting: disk away"), JobState.FAILING,
            "a run failed: disk full; the one since is waiting: disk away; the newest verified copy is 2 h old",
        ),
        (replace(facts(), unseen="not seen"), JobState.FAILING, "the newest verified copy is 2 h old, and may be gone: not seen"),
        (
            replace(facts(), unseen="not seen", looked=False), JobState.UP,
            "the newest verified copy is 2 h old, not seen",
        ),
        (replace(facts(), copies=False), JobState.UP, "the last good run is 2 h old"),
        (replace(facts(newest_verified=25), copies=False), JobState.LATE, "the last good run is 1 d 1 h old; late-after is 1 d"),
        (replace(facts(first=1, last=None, newest_verified=None), copies=False), JobState.NEW, "no good run yet"),
        (
            replace(facts(first=25, newest_verified=None), copies=False), JobState.LATE,
            "no good run, 1 d 1 h after the first run; late-after is 1 d",
        ),
        (facts(last=Outcome.REFUSED, first=3, newest_verified=None), JobState.FAILING, "the last run refused; no verified copy yet"),
        (
            replace(facts(last=Outcome.REFUSED, why="no point", first=3, newest_verified=None), last_kind=RunType.VERIFY), JobState.NEW,
            "no verified copy yet; the last verification refused: no point",
        ),
        (
            replace(facts(last=Outcome.REFUSED, why="none", first=3, newest_verified=None), last_kind=RunType.VERIFY, problem="gone"),
            JobState.FAILING, "the last verification refused: none; no verified copy yet",
        ),
        (
            facts(last=Outcome.WAITING, why="disk away"), JobState.WAITING,
            "the last run is waiting: disk away; the newest verified copy is 2 h old",
        ),
        (
            facts(last=Outcome.INTERRUPTED, first=3, newest_verified=None), JobState.WAITING,
            "the last run is interrupted; no verified copy yet",
        ),
    ],
)  # fmt: skip
def test_a_job_stands_as_its_copies_do(known: HealthInput, state: JobState, why: str) -> None:
    health = judge_health(known, now=NOW, late_after=DAY)
    assert (health.state, health.why) == (state, why)


def test_the_age_is_told_and_none_is_none() -> None:
    assert judge_health(facts(), now=NOW, late_after=DAY).age == Seconds(7200)
    assert judge_health(facts(newest_verified=None), now=NOW, late_after=None).age is None


def test_without_a_limit_nothing_is_late() -> None:
    assert judge_health(facts(newest_verified=10**5), now=NOW, late_after=None).state is JobState.UP
    assert judge_health(facts(newest_verified=None), now=NOW, late_after=None).state is JobState.FAILING


@given(
    st.none() | st.integers(0, 99),
    st.none() | st.sampled_from(Outcome),
    st.none() | st.integers(0, 99),
    st.integers(0, 99),
)
def test_a_job_never_gets_better_by_waiting(
    first: int | None, last: Outcome | None, newest_verified: int | None, hours: int
) -> None:
    early = judge_health(facts(first=first, last=last, newest_verified=newest_verified), now=NOW, late_after=DAY)
    after = judge_health(
        facts(first=first, last=last, newest_verified=newest_verified), now=NOW + timedelta(hours=hours), late_after=DAY
    )
    assert after.state in (early.state, JobState.LATE)
    assert early.why


def hours_ago(hours: float) -> datetime:
    return NOW - timedelta(hours=hours)


@pytest.mark.parametrize(
    ("known", "passing"),
    [
        (facts(last=Outcome.FAILED), "one run failed, and the next comes before the copy is late"),
        (facts(last=Outcome.FAILED, newest_verified=11.9), "one run failed, and the next comes before the copy is late"),
        (facts(last=Outcome.FAILED, newest_verified=12), ""),
        (replace(facts(last=Outcome.FAILED), failures=2), ""),
        (replace(facts(last=Outcome.FAILED), broken=True), ""),
        (facts(last=Outcome.REFUSED), ""),
        (facts(last=Outcome.FAILED, newest_verified=None, first=2), ""),
        (facts(newest_verified=25), ""),
        (replace(facts(newest_verified=25), running=hours_ago(11)), "a run is going on"),
        (replace(facts(newest_verified=25), running=hours_ago(12)), ""),
        (replace(facts(newest_verified=25), running=hours_ago(-1)), ""),
        (replace(facts(newest_verified=25), awake=hours_ago(0.9)), "the machine was off or asleep, and makes up for it"),
        (replace(facts(newest_verified=25), awake=hours_ago(1)), ""),
        (replace(facts(newest_verified=25), awake=hours_ago(-1)), ""),
        (facts(), ""),
    ],
)  # fmt: skip
def test_a_trouble_that_may_pass_by_itself_says_so(known: HealthInput, passing: str) -> None:
    assert judge_health(known, now=NOW, late_after=DAY).passing == passing


def test_without_a_limit_no_failure_passes_by_itself() -> None:
    assert judge_health(facts(last=Outcome.FAILED), now=NOW, late_after=None).passing == ""


def test_a_run_of_an_hour_is_always_waited_for() -> None:
    known = replace(facts(newest_verified=1), running=hours_ago(0.9))
    assert judge_health(known, now=NOW, late_after=Seconds(60)).passing == "a run is going on"


def test_paused_outranks_all_and_tells_the_age() -> None:
    health = judge_health(
        replace(facts(newest_verified=99), paused="paused until it is resumed: holidays"), now=NOW, late_after=DAY
    )
    assert health.state is JobState.PAUSED
    assert health.why == "paused until it is resumed: holidays; the newest verified copy is 4 d 3 h old"
    assert health.age == Seconds(99 * 3600)


def test_without_late_after_a_copy_that_is_dated_after_now_is_no_good_one_either() -> None:
    health = judge_health(facts(newest_verified=-30 * 24), now=NOW, late_after=None)
    assert health.state is JobState.FAILING
    assert health.why == "the newest verified copy is dated 30 d after now: a clock was wrong, and its age is unknown"


def test_a_problem_of_the_copies_and_files_that_are_missing_are_told_before_the_last_run() -> None:
    missing = replace(facts(), left_out="3 files could not be read")
    judged = judge_health(missing, now=NOW, late_after=None)
    assert (judged.state, judged.why.partition(";")[0]) == (JobState.INCOMPLETE, "3 files could not be read")
    judged = judge_health(replace(missing, problem="point a is damaged"), now=NOW, late_after=None)
    assert (judged.state, judged.why.partition(";")[0]) == (JobState.FAILING, "point a is damaged")
