"""Rows of histories at the centre: each row once and as it is last, through cuts, restored copies and clocks that disagree."""

import shutil
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator.domain.errors import CentreRefused
from orchestrator.domain.ledger import SUBJECTS
from orchestrator.domain.run import Outcome
from orchestrator.fleet.credentials import keep_identity
from orchestrator.fleet.schema import upgrade_schema
from orchestrator.history.outbox import OutboxHistory
from tests.fleet.centres import Centre
from tests.fleet.hosts import FleetHost
from tests.history.populated import populate
from tests.history.records import NOON, begin, report

RUNS = "SELECT incarnation, id, job, outcome, removed FROM poolferry.runs ORDER BY incarnation, id"

SHOWN = {
    "step": "action copy", "point": "place backup", "verdict": "", "drill": "outcome done", "problem": "", "disk": "name red",
    "visit": "outcome done", "notice": "channel mail",
}  # fmt: skip


@pytest.fixture
def host(tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch) -> FleetHost:
    """A host that has joined, without a past."""
    return FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch)


def runs(centre: Centre) -> list[tuple[object, ...]]:
    """All runs at the centre."""
    with centre.administrator() as session:
        return [tuple(row.values()) for row in session.rows(RUNS)]


def test_a_row_of_each_kind_arrives_once(host: FleetHost, centre: Centre) -> None:
    populate(host.history_file)
    sent = host.send()
    assert (sent.host, sent.waiting, sent.unfit) == ("web-1", 0, ())
    with centre.administrator() as session:
        told = {
            row["subject"]: row["body"]
            for row in session.rows("SELECT subject, body FROM poolferry.records ORDER BY key")
        }
        count = session.first(
            "SELECT (SELECT count(*) FROM poolferry.records) + (SELECT count(*) FROM poolferry.runs) AS n"
        )
    assert {*told, "run"} == {*SUBJECTS}
    assert told["point"]["place"] == "backup"
    assert told["drill"]["outcome"] == "done"
    assert told["step"]["action"] == "copy"
    assert count == {"n": sent.rows}
    assert host.send().rows == 0
    shown = {
        subject: host.ferry.run("fleet", "records", subject, "--centre", centre.server.url(centre.database)).out
        for subject in SUBJECTS
        if subject != "run"
    }
    for subject, words in SHOWN.items():
        assert words in shown[subject], shown
        assert "web-1" in shown[subject], shown
    assert shown.keys() == SHOWN.keys(), "of each kind something is seen"
    assert host.ferry.run("fleet", "records", "disk", "--host", "nobody").out == "nothing was told of that\n"


def test_a_run_is_told_as_it_is_last(host: FleetHost, centre: Centre) -> None:
    with host.history() as history:
        run = begin(history)
    host.send()
    assert runs(centre) == [(1, run, "photos", None, False)]
    with host.history() as history:
        history.ended(run, report(run, outcome=Outcome.FAILED), NOON)
        waits = [begin(history, "mail") for _ in range(3)]
        for each in waits:
            history.ended(each, report(each, "mail", Outcome.WAITING, why="away"), NOON)
    host.send()
    with host.history() as history:
        history.fold_waits(report(waits[2], "mail", Outcome.WAITING, why="away"))
    assert host.send().rows == 1
    assert runs(centre) == [
        (1, run, "photos", "failed", False),
        (1, waits[0], "mail", "waiting", False), (1, waits[1], "mail", "waiting", True), (1, waits[2], "mail", "waiting", False),
    ]  # fmt: skip


def test_what_was_before_a_host_joined_is_told_too(
    tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch)
    host.record(count=2500)
    assert host.send().rows == 2500
    host.record()
    assert host.send().rows == 1
    assert len(runs(centre)) == 2501


def test_the_outbox_names_each_row_once_however_long_the_centre_is_away(host: FleetHost) -> None:
    host.send()
    with host.history() as history:
        run = begin(history)
        for number in range(50):
            history.said(run, NOON, "info", "still going")
            history.point_current("photos", "backup", "2026-03-29T100000Z", run, NOON + timedelta(days=number))
        assert history.outbox.count() == 2


def test_a_host_that_was_put_back_to_an_older_copy_loses_nothing(
    host: FleetHost, centre: Centre, tmp_path: Path
) -> None:
    host.record("photos", count=3)
    with host.history() as history:
        going_on = begin(history, "photos")
        history.points_seen("photos", "backup", {"2026-03-29T100000Z": NOON}, NOON)
    host.send()
    copy = tmp_path / "copy"
    shutil.copy(host.history_file, copy)
    with host.history() as history:
        history.ended(going_on, report(going_on, outcome=Outcome.DONE), NOON)
        history.point_gone("photos", "backup", "2026-03-29T100000Z", NOON)
    host.record("lost", count=4, now=NOON + timedelta(days=1))
    host.send()
    before = runs(centre)
    assert len(before) == 8

    shutil.copy(copy, host.history_file)
    with host.history() as history:
        assert history.heal(lambda *_: False, NOON + timedelta(days=2)) == (going_on,)
    host.record("again", count=2, now=NOON + timedelta(days=2))
    host.send()
    assert runs(centre) == [*before, (2, 5, "again", "done", False), (2, 6, "again", "done", False)]
    assert before[3] == (1, going_on, "photos", "done", False)
    with centre.administrator() as session:
        points = session.rows("SELECT body ->> 'gone_at' AS gone FROM poolferry.records WHERE subject = 'point'")
    assert [row["gone"] is not None for row in points] == [True]
    host.record("again", count=3, now=NOON + timedelta(days=3))
    host.send()
    assert host.send().rows == 0
    assert [row[:3] for row in runs(centre)[8:]] == [(2, number, "again") for number in (5, 6, 7, 8, 9)]


def test_a_machine_made_anew_goes_on_under_its_name(host: FleetHost, centre: Centre) -> None:
    host.record("old", count=3)
    host.send()
    host.history_file.unlink()
    host.record("new", count=2, now=NOON + timedelta(days=9))
    host.send()
    assert [row[:3] for row in runs(centre)] == [
        (1, 1, "old"),
        (1, 2, "old"),
        (1, 3, "old"),
        (2, 1, "new"),
        (2, 2, "new"),
    ]


def test_a_centre_that_was_put_back_is_told_again(host: FleetHost, centre: Centre) -> None:
    with host.history() as history:
        run = begin(history)
    host.send()
    with centre.administrator() as session:
        session.change("CREATE TABLE public.was AS TABLE poolferry.runs")
        session.change("CREATE TABLE public.told AS TABLE poolferry.progress")
    with host.history() as history:
        history.ended(run, report(run), NOON)
    host.record(count=2)
    host.send()
    before = runs(centre)
    with centre.administrator() as session:
        session.change("TRUNCATE poolferry.runs, poolferry.progress")
        session.change("INSERT INTO poolferry.runs TABLE public.was")
        session.change("INSERT INTO poolferry.progress TABLE public.told")
    host.send()
    assert runs(centre) == before
    assert host.send().rows == 0


@pytest.mark.parametrize("older", ["host", "centre"])
def test_a_host_and_its_centre_that_are_put_back_at_once_keep_all_that_either_has(
    host: FleetHost, centre: Centre, tmp_path: Path, older: str
) -> None:
    """As after a fire: each to the newest copy that there is of it, and those are of different days."""
    days = [NOON + timedelta(days=number) for number in range(4)]

    def tell(job: str, day: int) -> None:
        host.record(job, count=2, now=days[day])
        host.send()

    def copy_state() -> None:
        shutil.copytree(host.ferry.state, tmp_path / "copy")

    def copy_centre() -> Centre:
        return Centre(centre.server, centre.server.make_database(template=centre.database))

    tell("first", 0)
    if older == "host":
        copy_state()
    else:
        copy = copy_centre()
    tell("second", 1)
    if older == "host":
        copy = copy_centre()
    else:
        copy_state()
    tell("lost", 2)
    try:
        with copy.administrator() as session:
            upgrade_schema(session)  # rights on a database are no part of its copy
            session.change("UPDATE poolferry.tickets SET life = 'of the server before'")
        shutil.rmtree(host.ferry.state)
        shutil.copytree(tmp_path / "copy", host.ferry.state)
        host.declare(copy.address)
        tell("again", 3)
        assert host.send().rows == 0
        assert [row[:3] for row in runs(copy)] == [
            *((1, number, "first") for number in (1, 2)), *((1, number, "second") for number in (3, 4)),
            *((1, number, "again") for number in (5, 6) if older == "centre"), *((2, number, "again") for number in (3, 4) if older == "host"),
        ]  # fmt: skip
    finally:
        centre.server.drop_database(copy.database)


def test_a_hosts_number_that_an_older_copy_of_the_centre_gives_again_lets_no_host_speak_as_another(
    host: FleetHost, centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Centre(centre.server, centre.server.make_database(template=centre.database))
    later = FleetHost(tmp_path / "web-2", centre, "web-2", monkeypatch)
    later.record(count=2)
    later.send()
    try:
        with copy.administrator() as session:
            upgrade_schema(session)  # rights on a database are no part of its copy
        new = FleetHost(tmp_path / "web-3", copy, "web-3", monkeypatch)
        new.record("mail")
        new.send()
        later.declare(copy.address)
        with pytest.raises(CentreRefused, match="this host is no member at"):
            later.send()
        told = "SELECT h.name, h.id, r.job FROM poolferry.runs r JOIN poolferry.hosts h ON h.id = r.host ORDER BY h.id, r.id"
        with copy.administrator() as session:
            assert [tuple(row.values()) for row in session.rows(told)] == [("web-3", 2, "mail")]
        keep_identity(str(later.ferry.state), copy.join("web-2", machine=later.machine))
        assert later.send().rows == 2
        with copy.administrator() as session:
            known = [tuple(row.values()) for row in session.rows(told)]
        assert known == [("web-3", 2, "mail"), ("web-2", 3, "photos"), ("web-2", 3, "photos")]
    finally:
        centre.server.drop_database(copy.database)


def test_a_batch_whose_answer_was_lost_is_not_told_again(
    host: FleetHost, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.record(count=3)
    with monkeypatch.context() as cut:
        cut.setattr(OutboxHistory, "stored", lambda *_: sys.exit("killed between the centre's commit and ours"))
        with pytest.raises(SystemExit):
            host.send()
    assert len(runs(centre)) == 3
    host.record(now=NOON + timedelta(days=1))
    assert host.send().rows == 1
    assert [row[:2] for row in runs(centre)] == [(1, 1), (1, 2), (1, 3), (1, 4)]


def test_two_machines_with_one_name_are_told_apart(
    host: FleetHost, centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.record()
    host.send()
    copied = shutil.copytree(host.ferry.root, tmp_path / "copied")
    twin = object.__new__(FleetHost)
    twin.__dict__.update(host.__dict__)
    twin.machine = "f" * 32
    assert copied.exists()
    with pytest.raises(CentreRefused, match="another machine joined as web-1"):
        twin.send()


def test_the_centres_own_time_stands_beside_a_hosts(host: FleetHost, centre: Centre) -> None:
    host.record(now=NOON - timedelta(days=1))
    host.send()
    with centre.administrator() as session:
        row = session.first(
            "SELECT begun_at = %s AS told, now() - arrived_at < interval '1 minute' AS own FROM poolferry.runs",
            (NOON - timedelta(days=1),),
        )
    assert row == {"told": True, "own": True}


def history_of(host: FleetHost):  # type: ignore[no-untyped-def]
    return host.history()
