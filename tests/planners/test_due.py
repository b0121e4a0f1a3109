"""Test what a job owes: slots, what was missed, what served it, and clocks that were set."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from orchestrator.domain.due import Downtime, DowntimeCause, DueRun, JobHistory, PastRun, ScheduleAnchor
from orchestrator.domain.job import Job
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import Seconds
from orchestrator.planners.due import CHAINED, DueChanges, DueFacts, decide_due
from orchestrator.schedule.triggers import MOST, ZonedCalendar
from tests.planners.two_years import job

BERLIN = ZonedCalendar(ZoneInfo("Europe/Berlin"))
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NIGHTLY = job("photos", "daily 02:30")
SLOT = datetime(2026, 11, 20, 1, 30, tzinfo=UTC)  # 02:30 in Berlin
WHY = "daily at 02:30; due 2026-11-20 02:30"


def anchor(at: datetime, schedule: str = "daily 02:30", run: int = 0) -> ScheduleAnchor:
    return ScheduleAnchor(job="photos", at=at, schedule=schedule, run=run)


def past(*runs: PastRun, since: int | None = None) -> JobHistory:
    """Return what is known after these runs; those with a higher number than `since` may serve what is due."""
    ended = [run for run in runs if run.outcome]
    return JobHistory(
        last=runs[-1] if runs else None,
        last_ended=ended[-1] if ended else None,
        last_well=next((run for run in reversed(runs) if run.well), None),
        since=() if since is None else tuple(run for run in runs if run.id > since),
    )


def run(
    number: int, begun: datetime, outcome: Outcome | None = Outcome.DONE, why: str = "by hand", said: str = ""
) -> PastRun:
    ended = None if outcome is None else begun + timedelta(minutes=10)
    return PastRun(id=number, begun=begun, begun_why=why, ended=ended, outcome=outcome, why=said)


def due_run(**other: object) -> DueRun:
    usual = DueRun(job="photos", scheduled_at=SLOT, newest=SLOT, slots=1, why=WHY, noted=SLOT, after_run=0)
    return replace(usual, **other)  # type: ignore[arg-type]


def due(
    one: Job = NIGHTLY, *, at: datetime = NOW, held: ScheduleAnchor | None = None, debt: DueRun | None = None,
    known: JobHistory | None = None, others: dict[str, JobHistory] | None = None, absences: tuple[Downtime, ...] = (),
    arrived: datetime | None = None,
) -> DueChanges:  # fmt: skip
    facts = DueFacts(
        anchors={"photos": held} if held else {},
        due={"photos": debt} if debt else {},
        past={"photos": known or JobHistory(), **(others or {})},
        absences=absences,
        arrived={"photos": arrived} if arrived else None,
    )
    return decide_due([one], facts, at, BERLIN)


def test_a_job_that_is_seen_first_owes_nothing_of_before() -> None:
    assert due() == DueChanges(due=(), over=(), anchors=(anchor(NOW),))


def test_a_slot_is_owed_as_soon_as_it_comes() -> None:
    found = due(at=SLOT, held=anchor(SLOT - HOUR))
    assert found.due == (due_run(),)
    assert found.anchors == (anchor(SLOT),)
    assert due(at=SLOT - timedelta(microseconds=1), held=anchor(SLOT - HOUR)) == DueChanges(due=(), over=(), anchors=())
    assert due(at=SLOT + HOUR, held=anchor(SLOT)) == DueChanges(due=(), over=(), anchors=())


def test_of_all_that_was_missed_one_run_is_owed_and_says_why() -> None:
    off = Downtime(away=DowntimeCause.OFF, begun=SLOT - timedelta(days=9), ended=NOW - timedelta(minutes=1))
    (debt,) = due(held=anchor(SLOT - timedelta(days=8)), absences=(off,)).due
    assert (debt.slots, debt.newest) == (8, SLOT)
    assert debt.why == (
        "late: the machine was off from 2026-11-11 02:30 to 2026-11-20 12:59; daily at 02:30; "
        "due 2026-11-13 02:30 and 7 more until 2026-11-20 02:30"
    )


def test_what_nobody_can_explain_is_late_all_the_same() -> None:
    (debt,) = due(held=anchor(SLOT - HOUR)).due
    assert debt.why == f"late: noticed at 2026-11-20 13:00; {WHY}"


def test_a_year_of_minutes_is_one_run() -> None:
    minutely = job("photos", "cron * * * * *")
    (debt,) = due(minutely, held=anchor(NOW - timedelta(days=365), "cron * * * * *")).due
    assert (debt.slots, debt.newest) == (MOST, NOW)


# What serves it


@pytest.mark.parametrize(
    ("known", "serves"),
    [
        (run(1, SLOT + HOUR), True),
        (run(1, SLOT), True),
        (run(1, SLOT - HOUR), False),
        (run(1, SLOT + HOUR, Outcome.FAILED), False),
        (run(1, SLOT + HOUR, None), False),
        (run(1, NOW + timedelta(days=900)), False),  # its clock was wrong
    ],
)
def test_a_run_by_hand_after_the_slot_that_ended_well_serves_it(known: PastRun, serves: bool) -> None:
    found = due(held=anchor(SLOT - HOUR), known=past(known))
    assert (found.due == ()) is serves
    assert found.anchors == (anchor(SLOT),)


def test_a_run_by_hand_that_goes_on_may_serve_it_yet() -> None:
    (debt,) = due(held=anchor(SLOT - HOUR), known=past(run(4, SLOT + HOUR, None))).due
    assert debt.after_run == 3
    (debt,) = due(held=anchor(SLOT - HOUR), known=past(run(4, SLOT - HOUR, None))).due
    assert debt.after_run == 4


def test_what_is_owed_is_over_when_a_run_since_ended_well() -> None:
    found = due(held=anchor(SLOT), debt=due_run(), known=past(run(1, SLOT + HOUR), since=0))
    assert [(over.job, over.why) for over in found.over] == [("photos", "run 1 served it")]
    assert found.due == ()


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.REFUSED])
def test_a_run_that_failed_is_over_until_the_next_slot(outcome: Outcome) -> None:
    found = due(held=anchor(SLOT), debt=due_run(), known=past(run(1, SLOT, outcome, WHY, "no room"), since=0))
    assert found.over[0].why == f"run 1 {outcome}: no room"
    by_hand = due(held=anchor(SLOT), debt=due_run(), known=past(run(1, SLOT, outcome), since=0))
    assert by_hand == DueChanges(due=(), over=(), anchors=())


def test_a_run_that_waits_is_tried_again_after_growing_pauses() -> None:
    debt, pauses, ended = due_run(), [], NOW + timedelta(minutes=10)
    for number in range(1, 9):
        tried = run(number, NOW, Outcome.WAITING, debt.why, "the disk is away")
        (debt,) = due(at=ended, held=anchor(SLOT), debt=debt, known=past(tried, since=0)).due
        assert debt.not_before is not None
        pauses.append((debt.not_before - ended) // timedelta(minutes=1))
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert (debt.tries, debt.told) == (8, "the disk is away")
    assert due(at=ended, held=anchor(SLOT), debt=debt, known=past(tried, since=0)) == DueChanges(
        due=(), over=(), anchors=()
    )


def test_what_stop_at_ended_is_over_and_what_was_cut_goes_on() -> None:
    by_clock = run(1, SLOT, Outcome.INTERRUPTED, WHY, "the time window ended at 06:30 (stop-at); the next run goes on")
    assert due(held=anchor(SLOT), debt=due_run(), known=past(by_clock, since=0)).over
    cut = run(1, SLOT, Outcome.INTERRUPTED, WHY, "asked to end (SIGTERM)")
    assert due(held=anchor(SLOT), debt=due_run(), known=past(cut, since=0)).due[0].tries == 1


def test_a_pause_in_a_future_that_was_wrong_is_over_at_once() -> None:
    (debt,) = due(held=anchor(SLOT), debt=due_run(not_before=NOW + timedelta(days=300), tried=1)).due
    assert debt.not_before == NOW


def test_further_slots_join_what_is_owed() -> None:
    debt = due_run(tries=2, not_before=NOW, told="away", tried=3)
    tomorrow = SLOT + timedelta(days=1)
    (found,) = due(at=tomorrow, held=anchor(SLOT), debt=debt, known=past(run(3, SLOT, Outcome.WAITING))).due
    assert (found.scheduled_at, found.newest, found.slots, found.tries, found.after_run) == (SLOT, tomorrow, 2, 2, 3)


def test_what_is_owed_already_stays_as_it_is() -> None:
    debt = due_run(tries=2, tried=3)
    assert due(at=SLOT + timedelta(minutes=1), held=anchor(SLOT), debt=debt).due == (), "nothing of it is new"
    attached, arrived = job("photos", "on attach"), due_run(scheduled_at=NOW, newest=NOW)
    assert due(attached, held=anchor(SLOT, "on attach"), debt=arrived, arrived=NOW).due == (), "the same arrival"


def test_a_slot_while_the_run_for_the_one_before_goes_on_is_owed_anew() -> None:
    tomorrow = SLOT + timedelta(days=1)
    going = past(run(7, SLOT, None, WHY), since=0)
    (found,) = due(at=tomorrow, held=anchor(SLOT), debt=due_run(), known=going).due
    assert (found.scheduled_at, found.slots, found.after_run) == (tomorrow, 1, 7)
    ended = past(run(7, SLOT, Outcome.DONE, WHY), since=7)
    assert due(at=tomorrow, held=anchor(tomorrow), debt=found, known=ended) == DueChanges(due=(), over=(), anchors=())


# Clocks that were set


def test_a_clock_that_was_set_back_a_little_repeats_no_fixed_time() -> None:
    for back in (timedelta(seconds=1), timedelta(hours=2, minutes=59)):
        assert due(at=SLOT - back, held=anchor(SLOT)) == DueChanges(due=(), over=(), anchors=())


def test_a_clock_that_was_set_back_far_leaves_no_gap() -> None:
    years = SLOT + timedelta(days=2000)
    found = due(at=NOW, held=anchor(years))
    assert found == DueChanges(due=(), over=(), anchors=(anchor(NOW),))
    assert due(at=SLOT + timedelta(days=1), held=found.anchors[0]).due


def test_a_schedule_with_a_star_takes_the_new_time_at_once() -> None:
    form = "cron */10 * * * *"
    found = due(job("photos", form), at=NOW, held=anchor(NOW + HOUR, form))
    assert found.anchors == (anchor(NOW, form),)


def test_every_so_often_counts_from_the_last_run() -> None:
    form, quarter = "every 900", timedelta(minutes=15)
    often = job("photos", form)
    first = due(often)
    assert [debt.scheduled_at for debt in first.due] == [NOW]
    for outcome in (Outcome.DONE, Outcome.FAILED, None):
        known = past(run(1, NOW - quarter, outcome))
        (debt,) = due(often, held=anchor(NOW - HOUR, form), known=known).due
        assert (debt.scheduled_at, debt.after_run) == (NOW, 1)
        known = past(run(1, NOW - quarter + timedelta(seconds=1), outcome))
        assert due(often, held=anchor(NOW - HOUR, form), known=known) == DueChanges(due=(), over=(), anchors=())


def test_every_so_often_with_a_run_in_a_future_that_was_wrong() -> None:
    form = "every 900"
    often, known = job("photos", form), past(run(5, NOW + timedelta(days=900)))
    found = due(often, held=anchor(NOW - HOUR, form), known=known)
    assert (found.due, found.anchors) == ((), (anchor(NOW, form, 5),))
    (debt,) = due(often, at=NOW + timedelta(minutes=15), held=found.anchors[0], known=known).due
    assert debt.after_run == 5


# Chains, disks, changes


def chain(*ends: datetime | None) -> dict[str, JobHistory]:
    return {
        name: past(run(number, end - timedelta(minutes=10))) if end else JobHistory()
        for number, (name, end) in enumerate(zip(("mail", "web"), ends, strict=True), start=8)
    }


def test_a_chain_runs_each_time_that_all_before_it_have_ended_well() -> None:
    after = job("photos", None, after=("mail", "web"))
    held, known = anchor(NOW - 9 * HOUR, CHAINED, 7), past(run(7, NOW - 4 * HOUR))
    assert due(after).anchors == (anchor(NOW, CHAINED),)
    assert due(after, held=held, known=known, others=chain(NOW - HOUR, None)).due == ()
    (debt,) = due(after, held=held, known=known, others=chain(NOW - HOUR, NOW - 2 * HOUR)).due
    assert (debt.scheduled_at, debt.after_run) == (NOW - HOUR, 7)
    assert debt.why == "after mail and web; due 2026-11-20 12:00"
    later = past(run(10, NOW - timedelta(minutes=30)))
    assert due(after, held=held, known=later, others=chain(NOW - HOUR, NOW - 2 * HOUR)).due == ()


def test_a_chain_knows_the_order_of_runs_where_a_clock_was_set_back_between_them() -> None:
    after = job("photos", None, after=("mail",))
    known, others = past(run(7, NOW)), {"mail": past(run(8, NOW - 3 * HOUR))}
    assert due(after, held=anchor(NOW - 9 * HOUR, CHAINED), known=known, others=others).due
    others = {"mail": past(run(6, NOW - 3 * HOUR))}
    assert due(after, held=anchor(NOW - 9 * HOUR, CHAINED), known=known, others=others).due == ()


def test_a_disk_that_arrived_is_run_for_but_not_too_often() -> None:
    attached = replace(job("photos", "on attach"), min_interval=Seconds(3600))
    held = anchor(NOW - 9 * HOUR, "on attach")
    assert due(attached, held=held).due == ()
    assert due(attached, held=held, arrived=NOW).due[0].scheduled_at == NOW
    assert due(attached, held=held, arrived=NOW, known=past(run(1, NOW - HOUR / 2))).due == ()
    assert due(attached, held=held, arrived=NOW, known=past(run(1, NOW - HOUR))).due
    assert due(attached, held=held, arrived=NOW - HOUR, known=past(run(1, NOW - HOUR / 2))).due == ()


def test_a_new_schedule_counts_from_now_and_the_old_one_until_now() -> None:
    changed = due(job("photos", "daily 12:00"), held=anchor(SLOT - HOUR))
    assert [debt.newest for debt in changed.due] == [SLOT]
    assert changed.anchors == (anchor(NOW, "daily 12:00"),)
    unchanged = due(job("photos", "daily 12:00"), held=anchor(SLOT))
    assert (unchanged.due, unchanged.anchors) == ((), (anchor(NOW, "daily 12:00"),))


def test_a_job_without_a_schedule_owes_nothing() -> None:
    assert due(job("photos", None)) == DueChanges(due=(), over=(), anchors=())
    assert [over.job for over in due(job("photos", None), debt=due_run()).over] == ["photos"]
