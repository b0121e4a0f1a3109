"""Permits: never more than the slots, in the order of asking, free again when a holder dies, and no run broken by the centre."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator import compose
from orchestrator.app import permits, worker
from orchestrator.app.config_check import check_config
from orchestrator.app.settings import Settings
from orchestrator.domain.due import DueRun
from orchestrator.domain.errors import CentreRefused
from orchestrator.domain.permit import DeclaredLimit, PermitRequest, describe_wait
from orchestrator.domain.units import Seconds
from orchestrator.fleet.permits import (
    declare_limit,
    list_limits,
    list_permits,
    remove_limit,
)
from orchestrator.process.stop import StopRequest
from orchestrator.runner.locks import lock_names
from orchestrator.runner.progress_note import waiting_processes
from tests.daemon.daemon_world import daemon, until
from tests.ferry import COMMAND, ROOT, Ferry
from tests.fleet.askers import Heard, PermitHost, until_granted
from tests.fleet.centres import Centre
from tests.fleet.contenders import declare_host
from tests.history.records import NOON


def test_slots_are_lent_in_the_order_of_asking_and_a_heavy_run_is_not_passed_by(asker: PermitHost) -> None:
    first, second = asker.ask("a", "link"), asker.ask("b", "link")
    assert (first.granted, second.granted) == (True, True)
    heavy = asker.ask("heavy", "link", weight=2)
    light = asker.ask("light", "link")
    assert (heavy.granted, heavy.place, light.granted, light.place) == (False, 1, False, 2)
    assert describe_wait(light) == "waits for the permit link: 2 of 2 slots lent; number 2 in the queue"
    asker.give_back("a", first)
    assert not asker.ask("light", "link").granted  # there is room for it, but somebody came before
    assert not asker.ask("heavy", "link", weight=2).granted
    asker.give_back("b", second)
    assert not asker.ask("light", "link").granted
    assert asker.ask("heavy", "link", weight=2).granted
    assert not asker.ask("light", "link").granted


def test_two_runs_of_one_job_that_ask_at_once_share_no_place_and_no_permit(asker: PermitHost) -> None:
    """Seen: both were lent the one permit, and the one that then found the job running gave it back for both."""
    held = asker.ask("holder", "link", weight=2)
    twin = PermitHost(asker._centre, asker._identity, asker._sessions)
    first, other = asker.ask("photos", "link"), twin.ask("photos", "link")
    assert (first.place, first.busy, other.busy, other.granted) == (1, False, True, False)
    asker.give_back("holder", held)
    assert [twin.ask("photos", "link").granted, asker.ask("photos", "link").granted] == [False, True]
    assert twin.ask("photos", "link").busy


def test_a_permit_is_given_back_between_two_attempts_and_waited_for_again(
    centre: Centre, asker: PermitHost, tmp_path: Path
) -> None:
    """Seen: who waited for a quarter of an hour to try again kept all others waiting meanwhile."""
    where = declare_host(tmp_path, centre.address, centre.join("nas"))
    lender, voice, stop, request = (
        permits.CentrePermits(where),
        Heard(),
        StopRequest(),
        PermitRequest(limits=("link",), weight=2, patience=Seconds(60)),
    )

    def hear(line: str) -> None:
        voice.lines.append(line)
        if line.startswith("waits"):
            asker.give_back("photos", lent)

    voice.say = hear
    with lender.hold("mail", request, voice, stop):
        assert not asker.ask("photos", "link").granted
        with lender.give_back_meanwhile("mail", request, voice, stop):
            until_granted(asker, "photos")  # nobody waits for a run that rests
            lent = asker.ask("photos", "link")
        assert not asker.ask("letters", "link").granted, "it has it again"
        stopped = StopRequest()
        with lender.give_back_meanwhile("mail", request, voice, stopped):
            until_granted(asker, "letters")
            stopped.request("Ctrl-C")
    assert voice.lines == [
        "gives back the permit link until the next attempt",
        "waits for the permit link: 1 of 2 slots lent; number 1 in the queue",
        "gives back the permit link until the next attempt",
    ]


def test_two_limits_are_had_together_or_not_at_all(asker: PermitHost) -> None:
    links = [asker.ask(f"link-{number}", "link") for number in range(2)]
    both, other = asker.ask("both", "lab", "link"), asker.ask("other", "lab")
    assert (both.granted, both.limit, other.granted) == (False, "link", False)  # or both would wait for ever
    asker.give_back("link-0", links[0])
    assert asker.ask("both", "link", "lab").granted
    assert asker.ask("other", "lab").granted


def test_a_closed_limit_lends_nothing_and_holds_nobody_up_elsewhere(centre: Centre, asker: PermitHost) -> None:
    with centre.administrator() as session:
        row = session.first("SELECT to_char(clock_timestamp() AT TIME ZONE 'Asia/Tokyo' + interval '2 hours', 'HH24:MI') AS soon,"
                            " to_char(clock_timestamp() AT TIME ZONE 'Asia/Tokyo' + interval '3 hours', 'HH24:MI') AS later")  # fmt: skip
        assert row
        declare_limit(session, DeclaredLimit(name="lab", slots=1, between=f"{row['soon']}-{row['later']}", zone="Asia/Tokyo"))  # fmt: skip
    asleep = asker.ask("asleep", "lab", "link")
    assert describe_wait(asleep) == f"waits for the permit lab, which is closed until {row['soon']} (Asia/Tokyo); number 1 in the queue"  # fmt: skip
    assert asker.ask("other", "link", weight=2).granted
    with centre.administrator() as session:
        declare_limit(session, DeclaredLimit(name="lab", slots=1, between=f"{row['later']}-{row['soon']}", zone="Asia/Tokyo"))  # fmt: skip
    assert asker.ask("asleep", "lab", "link").limit == "link"


def test_a_name_that_nobody_knows_and_a_weight_that_is_too_much_are_said(centre: Centre, asker: PermitHost) -> None:
    asked = asker.ask("photos", "lnk", "link", weight=5)
    assert (asked.granted, asked.unknown, asked.clamped) == (True, ("lnk",), ("link",))
    with centre.administrator() as session:
        remove_limit(session, "lab")
        with pytest.raises(CentreRefused, match="knows no limit lab, only link"):
            remove_limit(session, "lab")
        with pytest.raises(CentreRefused, match="no time zone Mars/Base"):
            declare_limit(session, DeclaredLimit(name="lab", slots=1, zone="Mars/Base"))


def test_a_holder_that_is_gone_frees_its_slots_after_its_lease_and_the_queue_forgets_the_dead(
    centre: Centre, asker: PermitHost
) -> None:
    other = PermitHost(centre, centre.join("web-2"), asker._sessions)
    held = asker.ask("photos", "link", weight=2)
    assert held.granted
    assert other.ask("dead", "link").place == 1
    assert other.ask("waits", "link").place == 2
    asker.lines["photos"].close()
    other.lines["dead"].close()
    until_granted(other, "waits")
    with centre.administrator() as session:
        assert [(each.host, each.job, each.held) for each in list_permits(session)] == [("web-2", "waits", True)]
        assert [(each.name, each.lent) for each in list_limits(session)] == [("lab", 0), ("link", 1)]


def test_a_place_is_kept_for_who_comes_again_and_a_killed_runs_successor_does_not_wait_for_its_lease(
    asker: PermitHost,
) -> None:
    held = asker.ask("holder", "link", weight=2)
    asker.ask("first", "link", weight=2)
    asker.ask("second", "link")
    asker.lines["first"].close()
    until(lambda: not asker.ask("first", "link", weight=2, anew=True).busy, "its session has ended there", str)
    assert asker.ask("first", "link", weight=2).place == 1
    asker.give_back("holder", held)
    assert asker.ask("first", "link", weight=2).granted
    twin = PermitHost(asker._centre, asker._identity, asker._sessions)
    assert twin.ask("first", "link", weight=2).busy
    for line in asker.lines.values():
        line.close()
    until_granted(twin, "third", lease_s=60)
    twin.lines["third"].close()
    time.sleep(0.1)
    assert twin.ask("third", "link", lease_s=60, anew=True).granted


def test_a_host_sees_and_changes_nothing_of_others_and_cannot_lend_itself_more(
    centre: Centre, asker: PermitHost
) -> None:
    assert asker.ask("photos", "link", weight=2).granted
    stranger = centre.join("web-2")
    with centre.session(stranger) as session:
        for statement in (
            "SELECT * FROM poolferry.permits", "SELECT * FROM poolferry.permits_now", "UPDATE poolferry.limits SET slots = 9",
            "INSERT INTO poolferry.permits (host, job, weight, lease) VALUES (1, 'x', 1, '1h')", "SELECT poolferry.living_permits()",
        ):  # fmt: skip
            with pytest.raises(CentreRefused, match="does not allow"):
                session.change(statement)
        with centre.administrator() as administrator:
            (held,) = list_permits(administrator)
            number = administrator.first("SELECT id FROM poolferry.permits")
            assert number
            assert held.host == "web-1"
        session.rows("SELECT poolferry.release_permit(%s)", (number["id"],))
        with centre.administrator() as administrator:
            assert len(list_permits(administrator)) == 1
        asker.lines["photos"].close()
        with pytest.raises(CentreRefused, match="does not allow"):  # or it would keep the permit of another alive
            session.rows("SELECT pg_advisory_lock(28780, %s)", (number["id"],))
        until_granted(asker, "mail")


# The commands, and a run that waits.


def test_a_run_that_waits_says_so_and_holds_no_lock_meanwhile(
    centre: Centre, sessions: ExitStack, ferry: Ferry
) -> None:
    """Here and below by a job that has patience with its centre: on a busy machine one that goes on would not wait."""
    administrator = centre.server.url(centre.database)
    made = ferry.run("fleet", "limit", "lab", "--slots", "1", "--centre", administrator)
    assert (made.code, made.out) == (0, "lab: 0 of 1 slot lent\n"), made.err
    ferry.job("photos", 'permits = ["lab"]\npermit-away = "wait 5m"\n')
    declare_host(ferry.root, centre.address, centre.join("web-1"))
    ferry.run("run", "photos")
    other = PermitHost(centre, centre.join("nas"), sessions)
    held = other.ask("mail", "lab")
    assert held.granted
    process = subprocess.Popen([*COMMAND, "run", "photos"], env=ferry.variables(), stderr=subprocess.PIPE, text=True)
    waits = "waits for the permit lab: 1 of 1 slot lent; number 1 in the queue"
    until = time.monotonic() + 30
    while waits not in ferry.run("status").out:
        assert time.monotonic() < until, ferry.run("status").out
    with lock_names(("photos",), str(ferry.state)):
        pass  # nobody holds it
    seen = ferry.run("fleet", "permits", "--centre", administrator)
    assert re.sub(r"for [\d.]+ \w+", "for a while", seen.out).splitlines() == [
        "lab: 1 of 1 slot lent; 1 waiting", "  nas mail holds lab for a while", "  web-1 photos waits for lab for a while",
    ]  # fmt: skip
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, waits in said) == (1, True)
    shown = ferry.run("show", "last").out
    assert "interrupted" in shown
    assert waits in shown
    assert ferry.run("fleet", "permits", "--json", "--centre", administrator).value["limits"][0]["waiting"] == 0
    due = ferry.run("fleet", "limit", "lab", "--remove", "--centre", administrator)
    assert (due.code, due.out) == (0, "lab: is no limit any more\n")
    ended = ferry.run("run", "photos")
    assert ended.code == 0, ended.err
    assert "the centre knows no limit lab" in ended.err


def test_a_run_whose_place_is_taken_asks_for_no_permit(centre: Centre, ferry: Ferry) -> None:
    """Seen: it was lent one, and waited with it for another run of its own host, while others waited for both."""
    ferry.job("photos", 'permits = ["lab"]\npermit-away = "wait 5m"\n')
    declare_host(ferry.root, centre.address, centre.join("web-1"))
    assert ferry.run("run", "photos").code == 0
    with centre.administrator() as session:
        declare_limit(session, DeclaredLimit(name="lab", slots=1))
        last = session.first("SELECT last_value AS number FROM poolferry.permits_id_seq")
        with lock_names(("photos",), str(ferry.state)):
            waited = ferry.run("run", "photos")
        assert (waited.code, "another run of photos" in waited.out) == (75, True), waited
        assert session.first("SELECT last_value AS number FROM poolferry.permits_id_seq") == last
    assert ferry.run("run", "photos").code == 0


def test_a_run_without_a_centre_goes_on_and_says_so(ferry: Ferry) -> None:
    ferry.job("photos", 'permits = ["lab"]\n')
    ended = ferry.run("run", "photos")
    assert (ended.code, "goes on without the permit lab: this host has joined no centre" in ended.err) == (0, True), (
        ended.err
    )


def test_a_run_without_the_library_goes_on_and_check_warns_of_it_before(
    centre: Centre, ferry: Ferry, monkeypatch: pytest.MonkeyPatch
) -> None:
    ferry.job("photos", 'permits = ["lab"]\npermit-away = "wait 5m"\n')
    settings = Settings(config=str(ferry.config), state=str(ferry.state))

    def advice() -> list[str]:
        (checked,) = check_config(settings, NOON, system=False).jobs
        return [f"{each.subject}: {each.text}" for each in checked.advice]

    assert [each.partition("; ")[0] for each in advice()] == ["permits lab: its runs go on without a permit: this host has joined no centre"]  # fmt: skip
    where = declare_host(ferry.root, centre.address, centre.join("web-1"))
    assert advice() == []
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "psycopg is not installed: pip install" in advice()[0]
    voice = Heard()
    with permits.CentrePermits(where).hold(
        "photos", PermitRequest(limits=("lab",), patience=Seconds(300)), voice, StopRequest()
    ):
        assert (
            "goes on without the permit lab: a fleet needs psycopg, which is not installed; pip install"
            in voice.lines[0]
        )


def test_a_run_that_waits_for_a_permit_keeps_no_other_job_waiting(
    centre: Centre, sessions: ExitStack, ferry: Ferry
) -> None:
    with centre.administrator() as session:
        declare_limit(session, DeclaredLimit(name="lab", slots=1))
    assert PermitHost(centre, centre.join("nas"), sessions).ask("mail", "lab").granted
    declare_host(ferry.root, centre.address, centre.join("web-1"))
    with (ferry.config / "poolferry.toml").open("a") as file:
        file.write("[clock]\nparallel = 1\n")
    ferry.job("first", 'every = "1h"\npriority = 10\npermits = ["lab"]\npermit-away = "wait 5m"\n')
    ferry.job("second", 'every = "1h"\n')
    with daemon(ferry) as clock:
        clock.says("first: waits for the permit lab")
        clock.says("second: done: ")
        assert clock.end() == 0
        assert "first: interrupted" in clock.log


def test_a_run_that_waits_is_not_taken_for_a_stuck_one(
    centre: Centre, sessions: ExitStack, ferry: Ferry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "silence_limit", lambda _: Seconds(1))
    with centre.administrator() as session:
        declare_limit(session, DeclaredLimit(name="lab", slots=1))
    assert PermitHost(centre, centre.join("nas"), sessions).ask("mail", "lab").granted
    where = declare_host(ferry.root, centre.address, centre.join("web-1"))
    ferry.job("photos", 'permits = ["lab"]\npermit-away = "wait 5m"\n')
    job, said = compose.read_configuration(where).job("photos"), list[str]()
    due_run = DueRun(job="photos", scheduled_at=NOON, newest=NOON, slots=1, why="due", noted=NOON, after_run=0)
    run = worker.RunProcess(job, due_run, where, {**os.environ, "PYTHONPATH": str(ROOT)})
    run.begin(said.append, said.clear)
    try:
        until(lambda: run.waits, "it waits", lambda: "\n".join(said))
        (process,) = waiting_processes(where.state, compose.now())
        os.kill(process, signal.SIGSTOP)  # so that it shows no other sign of life
        time.sleep(3)
        assert (run.stuck, run.waits) == (False, True)
        assert not waiting_processes(where.state, compose.now() + timedelta(minutes=6))  # but not for ever
        os.kill(process, signal.SIGCONT)
    finally:
        run.end("the test is over")
        assert run.wait(30)
