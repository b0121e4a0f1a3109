"""Notices: told once, repeated at growing intervals, ended once; what comes and goes is one trouble."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.notice import STATES, NoticeType
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import Seconds
from orchestrator.planners.health import JobState
from orchestrator.planners.notifications import (
    GIVE_UP,
    ChannelMemory,
    CopyStatus,
    decide_notice,
    digest_day,
    is_digest_due,
    is_last_believable,
    is_ping_due,
    next_delivery,
    trouble_cause,
)

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
USUAL = ("failing", "late")
UP, FAILING, LATE, WAITING, PAUSED, NEW = (
    JobState.UP, JobState.FAILING, JobState.LATE, JobState.WAITING, JobState.PAUSED, JobState.NEW,
)  # fmt: skip
Look = tuple[float, JobState] | tuple[float, JobState, str]  # hours after noon, how it stands, the cause


def seen(state: JobState, cause: str = "", passing: str = "") -> CopyStatus:
    return CopyStatus(
        job="photos", target="backup", state=state, why="because", cause=cause or str(state), passing=passing
    )


def told(
    looks: Iterable[Look], states: Iterable[str] = USUAL, memory: ChannelMemory | None = None
) -> list[tuple[float, NoticeType]]:
    """Return what is told at which of the looks."""
    found, known = [], memory or ChannelMemory()
    for hours, state, *cause in looks:
        now = NOON + timedelta(hours=hours)
        known, notice = decide_notice(seen(state, *cause), known, states=tuple(states), now=now)
        if notice:
            found.append((hours, notice.kind))
    return found


def nightly(*states: JobState) -> list[Look]:
    return [(24.0 * night, state) for night, state in enumerate(states)]


@pytest.mark.parametrize(
    ("looks", "kinds"),
    [
        ([(0, UP), (1, UP)], []),
        ([(0, NEW), (1, WAITING), (2, PAUSED)], []),
        ([(0, FAILING), (1, FAILING), (2, UP), (3, UP)], [(0, NoticeType.TROUBLE), (2, NoticeType.RECOVERY)]),
        ([(0, FAILING), (1, WAITING), (2, UP)], [(0, NoticeType.TROUBLE), (2, NoticeType.RECOVERY)]),
        ([(0, FAILING, "failed: x"), (2, LATE, "failed: x")], [(0, NoticeType.TROUBLE)]),
        ([(0, FAILING, "x"), (1, FAILING, "y"), (2, FAILING, "x")], [(0, NoticeType.TROUBLE), (1, NoticeType.TROUBLE)]),
        ([(n, FAILING, f"cause {n}") for n in range(20)], [(n, NoticeType.TROUBLE) for n in range(4)]),
        ([(0, FAILING), (1, PAUSED), (200, PAUSED), (201, FAILING)], [(0, NoticeType.TROUBLE), (201, NoticeType.REMINDER)]),
        ([(0, FAILING), (1, PAUSED), (2, UP)], [(0, NoticeType.TROUBLE), (2, NoticeType.RECOVERY)]),
        ([(0, FAILING), (30, WAITING)], [(0, NoticeType.TROUBLE), (30, NoticeType.REMINDER)]),
    ],
)  # fmt: skip
def test_what_is_told(looks: list[Look], kinds: list[tuple[float, NoticeType]]) -> None:
    assert told(looks) == kinds


def test_reminders_grow_to_a_week() -> None:
    """Each hour a look; and each night one, which is now and then a minute early."""
    hours = [(float(hour), FAILING) for hour in range(24 * 26)]
    days = [at / 24 for at, _ in told(hours)]
    assert [round(day) for day in days] == [0, 1, 4, 11, 18, 25]
    nights = [(24 * night - (night % 2) / 60, FAILING) for night in range(26)]
    assert [round(at / 24) for at, _ in told(nights)] == [0, 1, 4, 11, 18, 25]


def test_what_passes_by_itself_wakes_nobody_and_ends_nothing() -> None:
    memory, notice = decide_notice(seen(FAILING, passing="one run failed"), ChannelMemory(), states=USUAL, now=NOON)
    assert (memory, notice) == (ChannelMemory(), None)
    known, _ = decide_notice(seen(FAILING), ChannelMemory(), states=USUAL, now=NOON)
    later = NOON + timedelta(hours=1)
    after, notice = decide_notice(seen(LATE, "late", passing="a run is going on"), known, states=USUAL, now=later)
    assert (after, notice) == (known, None)


def test_what_comes_and_goes_is_one_trouble_with_one_end() -> None:
    flapping = nightly(*[FAILING, UP] * 4, *[UP] * 4)
    assert told(flapping) == [
        (0, NoticeType.TROUBLE), (24, NoticeType.RECOVERY), (48, NoticeType.TROUBLE), (72, NoticeType.RECOVERY),
        (96, NoticeType.TROUBLE), (144, NoticeType.REMINDER), (216, NoticeType.RECOVERY),
    ]  # fmt: skip


def test_troubles_far_apart_are_each_told() -> None:
    looks: list[Look] = [(24.0 * day, FAILING if day % 8 == 0 else UP) for day in range(32)]
    assert len(told(looks)) == 8


def test_the_times_are_counted() -> None:
    memory, times = ChannelMemory(), []
    for number, state in enumerate([FAILING, UP, FAILING, UP, FAILING]):
        memory, notice = decide_notice(seen(state), memory, states=USUAL, now=NOON + timedelta(hours=number))
        times.append(notice.times if notice else None)
    assert times == [1, 1, 2, 2, 3]


@pytest.mark.parametrize("state", [JobState(name) for name in STATES])
def test_a_channel_is_told_of_the_states_it_asks_for(state: JobState) -> None:
    assert told([(0, state), (1, UP)], states=(state.value,)) == [(0, NoticeType.TROUBLE), (1, NoticeType.RECOVERY)]
    others = tuple(name for name in STATES if name != state)
    assert told([(0, state), (1, UP)], states=others) == []


def test_a_clock_that_was_years_ahead_silences_nobody() -> None:
    ahead, _ = decide_notice(seen(FAILING), ChannelMemory(), states=USUAL, now=NOON + timedelta(days=3650))
    looks: list[Look] = [(0, FAILING), (23, FAILING)]
    assert told(looks, memory=ahead) == [(23, NoticeType.REMINDER)]


def test_the_cause_is_the_failure_without_its_numbers() -> None:
    short = trouble_cause(FAILING, Outcome.FAILED, "12 GiB are missing on disk 7")
    assert (
        short
        == trouble_cause(LATE, Outcome.FAILED, "3 GiB are missing on disk 7")
        == "failed: 0 GiB are missing on disk 0"
    )
    assert trouble_cause(LATE, Outcome.WAITING, "disk away") == "late"
    assert trouble_cause(FAILING, Outcome.REFUSED, "x") != trouble_cause(FAILING, Outcome.FAILED, "x")


STATE = st.sampled_from(JobState)


@given(st.lists(st.tuples(st.integers(0, 72), STATE, st.sampled_from(["a", "b"])), max_size=60))
def test_each_end_has_a_beginning_and_no_end_comes_twice(steps: list[tuple[int, JobState, str]]) -> None:
    hours, looks = 0.0, list[Look]()
    for step, state, cause in steps:
        hours += step
        looks.append((hours, state, cause))
    open_now = False
    for _, kind in told(looks):
        if kind is NoticeType.RECOVERY:
            assert open_now
        open_now = kind is not NoticeType.RECOVERY
        assert kind is not NoticeType.REMINDER or open_now
    assert open_now or not looks or looks[-1][1] not in (FAILING, LATE)


@pytest.mark.parametrize(
    ("local", "day"),
    [
        (datetime(2026, 11, 16, 7, 59, tzinfo=UTC), date(2026, 11, 9)),
        (datetime(2026, 11, 16, 8, 0, tzinfo=UTC), date(2026, 11, 16)),
        (datetime(2026, 11, 20, 7, 0, tzinfo=UTC), date(2026, 11, 16)),
        (datetime(2026, 11, 22, 23, 0, tzinfo=UTC), date(2026, 11, 16)),
        (datetime(2026, 11, 23, 8, 0, tzinfo=UTC), date(2026, 11, 23)),
    ],
)  # fmt: skip
def test_the_digest_of_monday_eight(local: datetime, day: date) -> None:
    assert digest_day(local, 0, time(8)) == day


def test_a_digest_is_due_once_a_week_whatever_the_looks() -> None:
    last, sent = date(2026, 11, 16), 0
    for hour in range(24 * 7 * 8):
        day = digest_day(NOON + timedelta(hours=hour), 0, time(8))
        if is_digest_due(day, last):
            last, sent = day, sent + 1
    assert sent == 8
    assert not is_digest_due(last, None)


def test_a_digest_of_a_wrong_clock_is_not_believed() -> None:
    day = date(2026, 11, 16)
    assert is_last_believable(day, day)
    assert is_last_believable(day, date(2026, 11, 23))
    assert not is_last_believable(day, date(2036, 11, 17))
    assert not is_last_believable(day, None)


def test_a_ping_comes_as_often_as_told_and_after_a_wrong_clock() -> None:
    hour = Seconds(3600)
    assert is_ping_due(None, hour, NOON)
    assert not is_ping_due(NOON - timedelta(minutes=59), hour, NOON)
    assert is_ping_due(NOON - timedelta(minutes=60), hour, NOON)
    assert is_ping_due(NOON + timedelta(days=99), hour, NOON)


def test_a_message_is_tried_more_and_more_seldom_and_given_up_after_a_week() -> None:
    now, waits = NOON, list[float]()
    while again := next_delivery(len(waits) + 1, NOON, now):
        waits.append((again - now).total_seconds())
        now = again
    assert waits[:6] == [60, 300, 900, 1800, 3600, 3600]
    assert GIVE_UP <= now - NOON < GIVE_UP + timedelta(hours=2)


def test_memory_of_long_ago_is_let_go() -> None:
    old = ChannelMemory(earlier=tuple(NOON - timedelta(days=8 + n) for n in range(3)))
    memory, notice = decide_notice(seen(FAILING), old, states=USUAL, now=NOON)
    assert memory.earlier == ()
    assert notice is not None
    assert notice.times == 1
    assert replace(memory, trouble=None) == ChannelMemory()


def test_a_disk_is_named_in_place_of_its_jobs() -> None:
    assert seen(JobState.UP).name == "photos"
    assert replace(seen(JobState.UP), called="disk red").name == "disk red"
