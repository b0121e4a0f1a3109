"""Test that what is recorded comes back the same, and costs no more transactions than promised."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from orchestrator.domain.errors import HistoryError
from orchestrator.domain.point import Finding, Verdict
from orchestrator.domain.run import Outcome
from orchestrator.history.store import MOST_FINDINGS, MOST_OUTPUT, WHOLE, History, open_history
from orchestrator.history.values import PointRecord
from tests.history.records import EVIDENCE, NOON, ODD, begin, finish, later, reading, report

POINT = "2026-03-29T120000Z"


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "state" / "history.sqlite")) as opened:
        yield opened


def only_point(history: History) -> PointRecord:
    (point,) = history.views.points("photos")
    return point


def test_a_whole_run_comes_back_as_it_was_told(history: History) -> None:
    run = begin(history, source="/srv/" + ODD, why=ODD)
    history.attempt_begun(run, 1, later(seconds=1))
    history.planned(run, 1, json.dumps({"summary": ODD}))
    step = history.step_begun(
        run, 1, 0, action="copy " + ODD, why="new", worker=ODD, commands=("rsync " + ODD,), expected=None, now=NOON
    )
    history.step_ended(
        step, now=later(seconds=2), moved=7, confirmed=False, exits=(0, None, -13), last_output=(ODD, ""), error=ODD
    )
    history.attempt_ended(run, 1, later(seconds=3), "it broke " + ODD, EVIDENCE)
    history.attempt_begun(run, 2, later(seconds=4))
    history.refused(run, 2, '{"why": "too much"}')
    history.attempt_ended(run, 2, later(seconds=5), None, None)
    history.said(run, later(seconds=6), "warning", ODD)
    history.hook_called(run, "failed", ("/hooks/mail", ODD), None, 0.5, ODD, later(seconds=7))
    ending = report(run, outcome=Outcome.REFUSED, resumed=True, points=(POINT,), warnings=(ODD,), evidence=(ODD, "b"))
    history.ended(run, ending, later(seconds=8))

    story = history.views.run(run)
    assert story is not None
    assert (story.run.source, story.run.begun_why, story.run.begun_at) == ("/srv/" + ODD, ODD, NOON)
    assert (story.run.pid, story.run.process_started, story.run.boot, story.run.host) == (4711, 98765, "a-b-c", "here")
    assert (story.run.outcome, story.run.why, story.run.ended_at) == (Outcome.REFUSED, ending.why, later(seconds=8))
    assert (story.run.moved_bytes, story.run.took_s, story.run.attempts) == (3000, 1.5, 1)
    assert story.run.resumed is True
    assert (story.run.points, story.run.warnings, story.run.evidence) == ((POINT,), (ODD,), (ODD, "b"))
    first, second = story.attempts
    assert (first.plan, first.why, first.evidence) == (json.dumps({"summary": ODD}), "it broke " + ODD, EVIDENCE)
    assert (first.begun_at, first.ended_at, first.refusal) == (later(seconds=1), later(seconds=3), None)
    assert (second.refusal, second.why, second.evidence, second.steps) == ('{"why": "too much"}', None, None, ())
    (done,) = first.steps
    assert (done.action, done.worker, done.commands, done.error) == ("copy " + ODD, ODD, ("rsync " + ODD,), ODD)
    assert (done.exits, done.last_output, done.moved, done.expected) == ((0, None, -13), (ODD, ""), 7, None)
    assert done.confirmed is False
    (said,), (hook,) = story.events, story.hooks
    assert (said.level, said.text, said.said_at) == ("warning", ODD, later(seconds=6))
    assert (hook.event, hook.argv, hook.exit, hook.took_s) == ("failed", ("/hooks/mail", ODD), None, 0.5)
    assert (hook.output, hook.called_at) == (ODD, later(seconds=7))


def test_an_open_run_is_open_and_an_unknown_one_is_none(history: History) -> None:
    run = begin(history)
    story = history.views.run(run)
    assert story is not None
    assert (story.run.outcome, story.run.moved_bytes, story.run.resumed, story.run.points) == (None, None, None, ())
    assert history.views.run(run + 1) is None


def test_healing_asks_for_each_open_run_and_ends_those_whose_process_is_gone(history: History) -> None:
    finish(history, Outcome.DONE)
    dead = begin(history, pid=1, process_started=10, boot="old")
    living = begin(history, pid=2, process_started=20, boot="new")
    requested: list[tuple[int, int, str]] = []

    def alive(pid: int, started: int, boot: str) -> bool:
        requested.append((pid, started, boot))
        return boot == "new"

    assert history.heal(alive, later(hours=1)) == (dead,)
    assert requested == [(1, 10, "old"), (2, 20, "new")]
    story = history.views.run(dead)
    assert story is not None
    assert (story.run.outcome, story.run.why, story.run.took_s) == (
        Outcome.INTERRUPTED,
        "the process ended without a record",
        None,
    )
    assert history.heal(alive, later(hours=2)) == ()
    assert [run.id for run in history.views.runs(None, 10) if run.outcome is None] == [living]


def test_a_run_that_ends_while_we_heal_keeps_its_own_end(history: History) -> None:
    run = begin(history)

    def ends_now(*_: object) -> bool:
        history.ended(run, report(run), NOON)
        return False

    assert history.heal(ends_now, later(hours=1)) == ()
    assert history.views.runs(None, 1)[0].outcome is Outcome.DONE


def test_together_is_all_or_nothing_also_when_nested(history: History) -> None:
    run = begin(history)

    def told_and_stopped() -> None:
        with history.together():
            history.said(run, NOON, "info", "one")
            with history.together():
                history.said(run, NOON, "info", "two")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        told_and_stopped()
    history.said(run, NOON, "info", "three")
    story = history.views.run(run)
    assert story is not None
    assert [event.text for event in story.events] == ["three"]


def test_threads_may_share_it(history: History) -> None:
    run = begin(history)
    failures: list[BaseException] = []

    def worker(name: str) -> None:
        try:
            for number in range(20):
                with history.together():
                    history.said(run, NOON, "info", f"{name} {number} begins")
                    history.said(run, NOON, "info", f"{name} {number} ends")
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=worker, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    story = history.views.run(run)
    assert story is not None
    assert failures == []
    said = [event.text.removesuffix(" begins").removesuffix(" ends") for event in story.events]
    assert len(said) == 80
    assert said[::2] == said[1::2]  # no other lane's word stands inside a pair


@pytest.mark.parametrize("action", ["attempt_ended", "planned", "refused", "ended", "step_ended", "step_begun", "said"])
def test_a_record_of_something_unknown_is_refused(history: History, action: str) -> None:
    begin(history)
    actions: dict[str, Callable[[], object]] = {
        "attempt_ended": lambda: history.attempt_ended(1, 1, NOON, None, None),
        "planned": lambda: history.planned(1, 1, "{}"),
        "refused": lambda: history.refused(1, 1, "{}"),
        "ended": lambda: history.ended(2, report(2), NOON),
        "step_ended": lambda: history.step_ended(
            9, now=NOON, moved=0, confirmed=True, exits=(), last_output=(), error=None
        ),
        "step_begun": lambda: history.step_begun(
            1, 1, 0, action="", why="", worker="", commands=(), expected=None, now=NOON
        ),
        "said": lambda: history.said(2, NOON, "info", "x"),
    }
    with pytest.raises(HistoryError, match=r"history\.sqlite"):
        actions[action]()


def test_an_instant_without_a_zone_is_refused(history: History) -> None:
    with pytest.raises(ValueError, match="time zone"):
        begin(history, now=datetime(2026, 1, 1))  # noqa: DTZ001
    assert history.views.runs(None, 10) == ()


def test_the_end_of_a_long_output_is_kept_from_a_whole_character(history: History) -> None:
    run = begin(history)
    history.hook_called(run, "done", ("h",), 0, 0.1, b"gone" + "ä".encode() * MOST_OUTPUT + b"!", NOON)
    story = history.views.run(run)
    assert story is not None
    output = story.hooks[0].output
    assert output == "ä" * (MOST_OUTPUT // 2 - 1) + "!"


def test_a_point_is_made_proved_confirmed_and_goes(history: History) -> None:
    run = begin(history)
    history.point_made("photos", "backup", POINT, run, entries=5, bytes=500, taken=NOON, now=later(minutes=1))
    made = only_point(history)
    assert (made.run, made.entries, made.bytes, made.taken_at, made.made_at) == (run, 5, 500, NOON, later(minutes=1))
    assert (made.verified_at, made.confirmed_at, made.sound, made.reading) == (None, None, None, None)
    history.point_verified("photos", "backup", POINT, run, later(minutes=2))
    history.point_current("photos", "backup", POINT, run, later(days=2))
    history.point_current(
        "photos", "backup", POINT, run, later(days=1)
    )  # the clock was wrong before: the later word counts
    there = only_point(history)
    assert (there.verified_at, there.confirmed_at) == (later(minutes=2), later(days=1))
    history.point_gone("photos", "backup", POINT, later(days=3))
    assert history.views.points("photos") == ()


def test_a_point_made_again_after_it_went_is_another(history: History) -> None:
    run = begin(history)
    history.point_made("photos", "backup", POINT, run, entries=5, bytes=500, taken=NOON, now=NOON)
    history.point_verified("photos", "backup", POINT, run, NOON)
    history.verified("photos", "backup", POINT, reading=reading(rotten=1), now=NOON, scope=WHOLE)
    history.point_gone("photos", "backup", POINT, NOON)
    history.point_made("photos", "backup", POINT, run, entries=6, bytes=600, taken=NOON, now=NOON)
    again = only_point(history)
    assert (again.entries, again.verified_at, again.sound, again.whole_at) == (6, None, None, None)


def test_a_point_proved_before_it_is_told_as_made_stays_proved(history: History) -> None:
    run = begin(history)
    history.point_verified("photos", "backup", POINT, run, NOON)
    history.point_made("photos", "backup", POINT, run, entries=5, bytes=500, taken=NOON, now=NOON)
    assert (only_point(history).verified_at, only_point(history).entries) == (NOON, 5)


def test_what_a_place_holds_is_taken_as_it_is(history: History) -> None:
    run = begin(history)
    names = ("2026-01-02T000000Z", "2026-01-03T000000Z", "by hand " + ODD)
    for name in ("2026-01-01T000000Z", "2026-01-02T000000Z"):
        history.point_made("photos", "backup", name, run, entries=1, bytes=1, taken=NOON, now=NOON)
    history.point_verified("photos", "backup", "2026-01-01T000000Z", run, NOON)
    history.point_made("photos", "other", "2026-01-01T000000Z", run, entries=1, bytes=1, taken=NOON, now=NOON)
    history.points_seen("photos", "backup", dict.fromkeys(names), NOON)
    found = {point.name: point for point in history.views.points("photos") if point.place == "backup"}
    assert set(found) == {"2026-01-02T000000Z", "2026-01-03T000000Z", "by hand " + ODD}
    seen = found["2026-01-03T000000Z"]
    assert seen.taken_at is not None
    assert (seen.taken_at.day, seen.made_at, seen.run, seen.verified_at) == (3, None, None, None)
    assert found["by hand " + ODD].taken_at is None
    history.points_seen("photos", "backup", dict.fromkeys(names) | {"by hand " + ODD: NOON}, NOON)
    assert next(point.taken_at for point in history.views.points("photos") if point.name == "by hand " + ODD) == NOON
    history.points_seen(
        "photos", "backup", {"2026-01-01T000000Z": None}, NOON
    )  # it comes back with what is known of it
    (back,) = (point for point in history.views.points("photos") if point.place == "backup")
    assert back.verified_at == NOON
    assert len(history.views.points("photos")) == 2  # the other place was not looked at
    assert history.was_named("photos", "backup", "2026-01-02T000000Z"), (
        "gone, and it may come back: no other is named so"
    )
    assert not history.was_named("photos", "backup", "2026-01-04T000000Z")


def test_a_reading_is_kept_with_its_findings(history: History) -> None:
    found = tuple(
        Finding(path=bytes([number]) + b"\xe9/\n", verdict=Verdict.ROTTEN, detail=ODD) for number in range(1, 256)
    )
    history.verified("photos", "backup", POINT, reading=reading(*found), now=NOON, scope=WHOLE)
    kept = only_point(history).reading
    assert kept is not None
    assert (kept.read_at, kept.scope, kept.entries, kept.files_read, kept.bytes_read) == (NOON, WHOLE, 10, 8, 800)
    assert (kept.took_s, kept.sound, kept.counts, kept.left_out) == (0.25, False, ((Verdict.ROTTEN, 255),), 0)
    assert history.views.findings(kept.id) == found


def test_only_the_first_findings_are_kept_and_all_are_counted(history: History) -> None:
    found = tuple(Finding(path=b"a", verdict=Verdict.EXTRA, detail="") for _ in range(MOST_FINDINGS + 5))
    history.verified("photos", "backup", POINT, reading=reading(*found, missing=2), now=NOON, scope=WHOLE)
    kept = only_point(history).reading
    assert kept is not None
    assert kept.left_out == 7
    assert len(history.views.findings(kept.id)) == MOST_FINDINGS


def test_only_a_whole_good_reading_makes_a_point_sound_again(history: History) -> None:
    run = begin(history)
    history.point_made("photos", "backup", POINT, run, entries=1, bytes=1, taken=NOON, now=NOON)
    history.verified("photos", "backup", POINT, reading=reading(), now=later(hours=1), scope="sample")
    point = only_point(history)
    assert (point.sound, point.whole_at, point.verified_at) == (True, None, None)
    history.verified("photos", "backup", POINT, reading=reading(missing=1), now=later(hours=2), scope="sample")
    assert only_point(history).sound is False
    history.verified("photos", "backup", POINT, reading=reading(unproved=3), now=later(hours=3), scope="sample")
    point = only_point(history)
    assert point.sound is False
    assert point.reading is not None
    assert point.reading.sound is True  # the last reading was good; it was not of the whole
    history.verified("photos", "backup", POINT, reading=reading(), now=later(hours=4), scope=WHOLE)
    point = only_point(history)
    assert (point.sound, point.whole_at, point.verified_at) == (True, later(hours=4), later(hours=4))


def test_what_a_wrong_clock_dated_counts_for_no_reading(history: History) -> None:
    """A reading of a year ahead hid for that year that its copy was not read within its promise."""
    run = begin(history)
    for name, made, read in (
        ("one", NOON, later(days=365)),
        ("two", later(days=365), None),
        ("three", NOON, later(days=2)),
    ):
        history.point_made("photos", "backup", name, run, entries=1, bytes=10, taken=NOON, now=made)
        if read is not None:
            history.verified("photos", "backup", name, reading=reading(), now=read, scope=WHOLE)
    ((place, totals),) = history.views.read_totals({"photos": later(days=1)}, later(days=3))["photos"]
    assert place == "backup"
    assert (totals.points, totals.read, totals.oldest, totals.undated) == (3, 1, NOON, 0)
    assert (totals.fresh, totals.fresh_bytes) == (1, 10)
    ((_, then),) = history.views.read_totals({"photos": later(days=1)}, later(days=366))["photos"]
    assert (then.read, then.oldest, then.fresh) == (2, later(days=2), 2)


def test_small_facts_are_remembered_per_job(history: History) -> None:
    history.remember("photos", "device", "1")
    history.remember("photos", "device", ODD)
    history.remember("mail", "device", "3")
    assert history.recall("photos", "device") == ODD
    assert history.recall("mail", "device") == "3"
    assert history.recall("photos", ODD) is None
