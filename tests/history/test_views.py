"""The views answer from indexes, and health is told from what was verified."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.domain.run import Outcome, RunType
from orchestrator.history.database import load_queries
from orchestrator.history.store import WHOLE, History, open_history
from orchestrator.history.views import HistoryReader, open_reader
from tests.history.records import NOON, begin, finish, later, reading

SOURCES = Path(__file__).resolve().parents[2] / "orchestrator" / "history"
# Statements that read a table from its end or by a partial index: SQLite calls that a scan as well.
IN_ORDER = {
    "runs": "SCAN runs",
    "open_runs": "SCAN runs USING INDEX runs_open",
    **dict.fromkeys(("open_runs_of_jobs", "processes_of_job"), "SCAN runs USING INDEX runs_open"),
    "points_there": "SCAN points USING INDEX points_there",
    "read_totals": "SCAN points USING INDEX points_there",
    "newest_acts": "SCAN acts",
    **dict.fromkeys(("end_open_acts", "end_acts_by_runs"), "SCAN acts USING INDEX acts_open"),
    "messages": "SCAN messages",
    "totals": "SCAN runs USING INDEX runs_ended",
    "owed": "SCAN owed",
    "anchors": "SCAN anchors",
    "pauses": "SCAN pauses",
    "snoozes": "SCAN snoozes",
    "last_beat": "SCAN beats",
    "facts_of_jobs": "SCAN memory",
    "last_to_thin": "SCAN attempts USING INDEX sqlite_autoindex_attempts_1",
    "try_at_once": "SCAN owed",
    "rename_in_told": "SCAN told",
    "rename_in_messages": "SCAN messages",
    "renamed_visits": "SCAN visits",
    "renamed_rebuilds": "SCAN rebuilds",
    "going_on": "SCAN runs USING INDEX runs_open",
    **dict.fromkeys(("thin_attempts", "thin_events", "thin_hooks"), "SCAN runs USING INDEX runs_open"),
    **dict.fromkeys(("disks", "last_visits", "last_healths", "disks_are_at"), "SCAN disks"),
    # Few rows, or all rows of a history that is told anew.
    **dict.fromkeys(("fleet", "fleet_sending", "fleet_stored"), "SCAN fleet"),
    **dict.fromkeys(("newest_copies", "point_counts"), "SCAN places"),  # of the jobs that are named
    "outbox_count": "SCAN outbox USING INDEX sqlite_autoindex_outbox_1",
    "incarnations": "SCAN incarnations",
    "births_run": "SCAN runs",
    "births_step": "SCAN steps",
    "births_point": "SCAN points",
    "births_verdict": "SCAN readings",
    "births_drill": "SCAN drills",
    "births_problem": "SCAN problems",
    "births_visit": "SCAN visits",
    "births_notice": "SCAN messages",
    "births_disk": "SCAN disks",
    "messages_queued": "SCAN messages USING INDEX messages_due",
}


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


def test_every_statement_is_used_and_answers_from_an_index(history: History) -> None:
    code = "".join(path.read_text() for path in SOURCES.glob("*.py"))
    assert [name for name in load_queries() if f'"{name}"' not in code] == []
    for name, text in load_queries().items():
        values = dict.fromkeys(re.findall(r":(\w+)", text), 1)
        rows = history._database._connection.execute(f"EXPLAIN QUERY PLAN {text}", values).fetchall()
        plan = [detail for *_, detail in rows]
        scans = [
            line.replace(" COVERING", "") for line in plan if line.startswith("SCAN") and "VIRTUAL TABLE" not in line
        ]
        assert (name, [line for line in scans if line != IN_ORDER.get(name)]) == (
            name,
            [],
        )  # SQLites name it differently
        assert (name, [line for line in plan if "TEMP B-TREE" in line]) == (name, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    "look",
    [
        lambda views: views.health_facts("job 3"),
        lambda views: views.health_facts("fails"),
        lambda views: views.runs("job 3", 20),
        lambda views: views.runs(None, 20),
        lambda views: views.run(5000),
        lambda views: views.points("job 3"),
        lambda views: views.points(None),
    ],
)
def test_looks_at_ten_thousand_runs_take_few_steps(many: str, look: Callable[[HistoryReader], object]) -> None:
    with open_reader(many) as views:
        hundreds: list[int] = []
        views._database._connection.set_progress_handler(lambda: hundreds.append(1), 100)
        assert look(views)
    assert len(hundreds) < 100  # 10,000 steps of SQLite's machine; to go through the runs takes more than 50,000


def test_status_of_three_years_of_points_looks_at_few_of_them(history: History) -> None:
    """For a page of 300 jobs each look is made 300 times, after every write."""
    with history.together():
        run = begin(history)
        for day in range(1_095):
            at = later(days=day)
            history.point_made(
                "photos", "red" if day % 2 else "blue", f"{day:04}", run, entries=1, bytes=1, taken=at, now=at
            )
            history.point_verified("photos", "red" if day % 2 else "blue", f"{day:04}", run, at)
        history.verified("photos", "red", "0001", reading=reading(rotten=1), now=later(days=1_100), scope=WHOLE)
        history.verified("photos", "blue", "0002", reading=reading(), now=later(days=1_101), scope=WHOLE)
    tens: list[int] = []
    history._database._connection.set_progress_handler(lambda: tens.append(1), 10)
    facts, looked = history.views.health_facts("photos", latest=later(days=1_200)), len(tens)
    counts = history.views.point_counts("photos")
    history._database._connection.set_progress_handler(None, 0)
    assert looked < 60, "steps of SQLite's machine, in tens; to go through the points takes thousands"
    assert len(tens) - looked < 500, "counted, and not read"
    assert [(copy.place, copy.name) for copy in facts.copies] == [("blue", "1094"), ("red", "1093")]
    assert facts.broken
    assert (counts.number, counts.newest, counts.unsound, counts.whole_at) == (1_095, "1094", 1, later(days=1_101))


@pytest.mark.slow
def test_the_first_run_into_a_place_is_looked_for_only_where_there_is_no_copy(many: str) -> None:
    """Or else `status` goes through all runs of a job whose target was changed."""
    with open_reader(many) as views:
        requested: list[str] = []
        views._database._connection.set_trace_callback(requested.append)
        assert views.health_facts("job 3", at=("backup", "/moved/here")).copies
        assert not [statement for statement in requested if "target =" in statement]
        facts = views.health_facts("job 3", at=("red", "/srv/copies"))
        assert [statement for statement in requested if "target =" in statement]
    assert (facts.copies, facts.first_begun) == ((), None)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> str:
    """10,000 ended runs of 11 jobs, each of which made a point; all but the newest few points are gone."""
    path = str(tmp_path_factory.mktemp("many") / "history.sqlite")
    with open_history(path) as history, history.together():
        for number in range(10_000):
            job = f"job {number % 10}" if number % 11 else "fails"
            run = finish(history, Outcome.DONE if number % 11 else Outcome.FAILED, job, now=later(hours=number))
            told = {"entries": 1, "bytes": 1, "taken": later(hours=number), "now": later(hours=number)}
            history.point_made(job, "backup", str(number), run, **told)  # type: ignore[arg-type]
            history.point_verified(job, "backup", str(number), run, later(hours=number))
            if number < 9_900:
                history.point_gone(job, "backup", str(number), later(hours=number))
    return path


def test_runs_come_newest_first_of_one_job_or_all(history: History) -> None:
    runs = [finish(history, Outcome.DONE, job) for job in ("photos", "mail", "photos")]
    assert [run.id for run in history.views.runs(None, 10)] == runs[::-1]
    assert [run.id for run in history.views.runs("photos", 10)] == [runs[2], runs[0]]
    assert [run.id for run in history.views.runs("photos", 1)] == [runs[2]]
    assert history.views.runs("none", 10) == ()


def test_the_newest_copy_is_the_newest_proved_one_that_is_there(history: History) -> None:
    run = begin(history)

    def made(place: str, name: str, day: int) -> None:
        taken = later(days=day)
        history.point_made("photos", place, name, run, entries=1, bytes=1, taken=taken, now=later(days=day, hours=1))

    made("red", "a", 1)
    assert history.views.health_facts("photos").copies == ()  # not verified
    history.point_verified("photos", "red", "a", run, later(days=1, hours=2))
    assert history.views.health_facts("photos").newest_copy == later(days=1)
    made("red", "b", 2)
    assert history.views.health_facts("photos").newest_copy == later(days=1)
    history.point_verified("photos", "red", "b", run, later(days=2))
    made("blue", "c", 1)
    history.point_verified("photos", "blue", "c", run, later(days=2))
    history.point_current("photos", "blue", "c", run, later(days=5))
    found = [(copy.place, copy.name, copy.current_at) for copy in history.views.health_facts("photos").copies]
    assert found == [("blue", "c", later(days=5)), ("red", "b", later(days=2))]
    history.verified("photos", "blue", "c", reading=reading(rotten=1), now=later(days=6), scope=WHOLE)
    assert history.views.health_facts("photos").newest_copy == later(days=2)  # a rotten copy is no verified one
    history.point_gone("photos", "red", "b", later(days=7))
    assert history.views.health_facts("photos").newest_copy == later(days=1)
    assert history.views.health_facts("mail").newest_copy is None


def test_a_copy_that_a_wrong_clock_dated_counts_only_where_there_is_no_other(history: History) -> None:
    run = begin(history)
    for name, day in (("now", 1), ("ahead", 30)):
        at = later(days=day)
        history.point_made("photos", "red", name, run, entries=1, bytes=1, taken=at, now=at)
        history.point_verified("photos", "red", name, run, at)
    newest = [
        [(copy.name, copy.current_at) for copy in history.views.health_facts("photos", latest=latest).copies]
        for latest in (None, later(days=2), later(hours=1))
    ]
    ahead = [("ahead", later(days=30))]
    assert newest == [ahead, [("now", later(days=1))], ahead]
    history.point_current("photos", "red", "ahead", run, later(days=2))
    facts = history.views.health_facts("photos", latest=later(days=3))
    assert facts.newest_copy == later(days=2), "a run that found it current says when"


def test_a_point_whose_instant_is_unknown_counts_once_it_is_confirmed(history: History) -> None:
    run = begin(history)
    history.points_seen("photos", "red", {"by hand": None}, NOON)
    history.verified("photos", "red", "by hand", reading=reading(), now=later(days=1), scope=WHOLE)
    assert history.views.health_facts("photos").newest_copy is None
    history.point_current("photos", "red", "by hand", run, later(days=2))
    assert history.views.health_facts("photos").newest_copy == later(days=2)


def test_failures_in_a_row_are_counted_since_the_last_good_run(history: History) -> None:
    assert history.views.health_facts("photos").failures == 0
    finish(history, Outcome.FAILED)
    well = finish(history, Outcome.NOTHING)
    for outcome in (Outcome.FAILED, Outcome.WAITING, Outcome.REFUSED, Outcome.INTERRUPTED):
        finish(history, outcome)
    finish(history, Outcome.FAILED, "mail")
    going_on = begin(history)
    facts = history.views.health_facts("photos", limit=3)
    assert facts.failures == 3
    assert facts.last_well is not None
    assert facts.last_well.id == well
    assert facts.going_on is not None
    assert facts.going_on.id == going_on
    assert [run.outcome for run in facts.last] == [None, Outcome.INTERRUPTED, Outcome.REFUSED]


@pytest.mark.parametrize(
    ("runs", "failed"),
    [
        ([], None),
        ([(Outcome.FAILED, RunType.RUN), (Outcome.WAITING, RunType.RUN), (Outcome.INTERRUPTED, RunType.RUN)], 0),
        ([(Outcome.FAILED, RunType.RUN), (Outcome.REFUSED, RunType.RUN), (Outcome.WAITING, RunType.RUN)], 1),
        ([(Outcome.INTERRUPTED, RunType.RUN), (Outcome.WAITING, RunType.RUN)], None),
        ([(Outcome.FAILED, RunType.RUN), (Outcome.NOTHING, RunType.RUN), (Outcome.WAITING, RunType.RUN)], None),
        ([(Outcome.FAILED, RunType.RUN), (Outcome.DONE, RunType.VERIFY)], 0),
        ([(Outcome.FAILED, RunType.VERIFY), (Outcome.WAITING, RunType.RUN)], 0),
        ([(Outcome.FAILED, RunType.VERIFY), (Outcome.DONE, RunType.VERIFY)], None),
        ([(Outcome.FAILED, RunType.VERIFY), (Outcome.DONE, RunType.RESTORE)], 0),
        ([(Outcome.FAILED, RunType.VERIFY), (Outcome.DONE, RunType.RUN)], None),
        ([(Outcome.FAILED, RunType.RUN), (Outcome.FAILED, RunType.VERIFY), (Outcome.DONE, RunType.VERIFY)], 0),
        ([(Outcome.FAILED, RunType.RESTORE), (Outcome.WAITING, RunType.RUN)], None),
    ],
)
def test_a_failure_stays_until_it_is_made_good(
    history: History, runs: list[tuple[Outcome, RunType]], failed: int | None
) -> None:
    finish(history, Outcome.DONE)
    finish(history, Outcome.FAILED, "mail")
    ids = [finish(history, outcome, kind=kind) for outcome, kind in runs]
    found = history.views.health_facts("photos").last_failed
    assert (found.id if found else None) == (None if failed is None else ids[failed])


def test_every_outcome_is_well_badly_or_neither() -> None:
    told = {name: set(re.findall(r"'([a-z-]+)'", load_queries()[name])) for name in ("last_well", "badly_since")}
    outcomes = (told["last_well"] | told["badly_since"]) - set(RunType)
    assert outcomes | {Outcome.WAITING} == set(Outcome)


def test_bringing_back_and_exporting_say_nothing_of_how_a_job_stands(history: History) -> None:
    first = finish(history, Outcome.NOTHING)
    finish(history, Outcome.REFUSED, kind=RunType.RESTORE)
    finish(history, Outcome.FAILED, kind=RunType.VERIFY)
    finish(history, Outcome.DONE, kind=RunType.EXPORT)
    facts = history.views.health_facts("photos")
    assert facts.last_well is not None
    assert (facts.last_well.id, facts.failures) == (first, 1)
    assert [run.kind for run in facts.last] == [RunType.EXPORT, RunType.VERIFY, RunType.RESTORE, RunType.RUN]
    assert facts.first_begun == facts.last[-1].begun_at


def test_points_come_by_job_place_and_name(history: History) -> None:
    for job, place, name in (("b", "x", "1"), ("a", "y", "1"), ("a", "x", "2"), ("a", "x", "1")):
        there = [p.name for p in history.views.points(job) if p.place == place]
        history.points_seen(job, place, dict.fromkeys([*there, name]), NOON)
    found = [(point.job, point.place, point.name) for point in history.views.points(None)]
    assert found == [("a", "x", "1"), ("a", "x", "2"), ("a", "y", "1"), ("b", "x", "1")]
    assert [(point.place, point.name) for point in history.views.points("a")] == [("x", "1"), ("x", "2"), ("y", "1")]
