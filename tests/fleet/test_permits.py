"""Permits: never more than the slots, in the order of asking, free again when a holder dies, and no run broken by the centre."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator import compose
from orchestrator.app import permits, worker
from orchestrator.app.config_check import check_config
from orchestrator.app.settings import Settings
from orchestrator.domain.due import DueRun
from orchestrator.domain.errors import CentreRefused, CentreUnreachable
from orchestrator.domain.fleet import FleetIdentity
from orchestrator.domain.machine import FleetOptions
from orchestrator.domain.permit import DeclaredLimit, PermitAnswer, PermitRequest, describe_wait
from orchestrator.domain.units import Seconds
from orchestrator.fleet.connection import CentreSession, open_centre
from orchestrator.fleet.permits import (
    SESSION_LIMITS,
    ask_permit,
    declare_limit,
    list_limits,
    list_permits,
    release_permit,
    remove_limit,
)
from orchestrator.fleet.schema import upgrade_schema
from orchestrator.process.stop import StopRequest
from orchestrator.runner.locks import lock_names
from orchestrator.runner.progress_note import waiting_processes
from tests.daemon.daemon_world import daemon, until
from tests.ferry import COMMAND, ROOT, Ferry
from tests.fleet.centres import Centre
from tests.fleet.contenders import declare_host
from tests.fleet.postgres import PostgresServer
from tests.history.records import NOON

# Each grant is counted again by the database itself: a limit that is exceeded ends the statement that exceeds it.
_COUNT = """
CREATE FUNCTION public.count_grants() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF EXISTS (SELECT FROM poolferry.limits l JOIN poolferry.permit_parts d ON d.in_limit = l.id JOIN poolferry.permits p ON p.id = d.permit
        WHERE p.granted_at IS NOT NULL AND NOT NEW.taken AND l.id IN (SELECT in_limit FROM poolferry.permit_parts WHERE permit = NEW.id)
        GROUP BY l.id HAVING sum(d.weight) > l.slots) THEN
        RAISE EXCEPTION 'more is lent than there is';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER counted AFTER UPDATE OF granted_at ON poolferry.permits DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.granted_at IS NULL AND NEW.granted_at IS NOT NULL) EXECUTE FUNCTION public.count_grants();
CREATE CONSTRAINT TRIGGER made AFTER INSERT ON poolferry.permits DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.granted_at IS NOT NULL) EXECUTE FUNCTION public.count_grants();
"""


class Host:
    """A host that asks; each of its jobs on a session of its own, as runs do."""

    def __init__(self, centre: Centre, identity: FleetIdentity, sessions: ExitStack) -> None:
        self._centre, self._identity, self._sessions = centre, identity, sessions
        self.lines: dict[str, CentreSession] = {}

    def ask(
        self, job: str, *limits: str, weight: int = 1, taken: bool = False, lease_s: int = 1, anew: bool = False
    ) -> PermitAnswer:
        """Ask once."""
        if anew or job not in self.lines:
            self.lines[job] = self._sessions.enter_context(self._centre.session(self._identity))
        return ask_permit(
            self.lines[job], job, PermitRequest(limits=limits, weight=weight), taken=taken, lease_s=lease_s
        )

    def give_back(self, job: str, answer: PermitAnswer) -> None:
        """End the hold of a job's permit."""
        assert answer.permit is not None
        release_permit(self.lines[job], answer.permit, within=5)


class Heard:
    """A run's record, as a list of lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warn = self.say = self.lines.append

    def waits(self, text: str) -> None:
        """Its wait, which is left out."""


def until_granted(host: Host, job: str, *, lease_s: int = 1) -> None:
    """Ask for a slot of the link until it is lent."""
    until = time.monotonic() + 10
    while not (answer := host.ask(job, "link", lease_s=lease_s)).granted:
        assert time.monotonic() < until, answer
        time.sleep(0.05)


@pytest.fixture
def sessions() -> Iterator[ExitStack]:
    """Sessions that end with the test."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def host(centre: Centre, sessions: ExitStack) -> Host:
    """A host, and the limits link (2 slots) and lab (3)."""
    with centre.administrator() as session:
        session.change(_COUNT)
        declare_limit(session, DeclaredLimit(name="link", slots=2))
        declare_limit(session, DeclaredLimit(name="lab", slots=3))
    return Host(centre, centre.join("web-1"), sessions)


def test_slots_are_lent_in_the_order_of_asking_and_a_heavy_run_is_not_passed_by(host: Host) -> None:
    first, second = host.ask("a", "link"), host.ask("b", "link")
    assert (first.granted, second.granted) == (True, True)
    heavy = host.ask("heavy", "link", weight=2)
    light = host.ask("light", "link")
    assert (heavy.granted, heavy.place, light.granted, light.place) == (False, 1, False, 2)
    assert describe_wait(light) == "waits for the permit link: 2 of 2 slots are lent; number 2 in the queue"
    host.give_back("a", first)
    assert not host.ask("light", "link").granted  # there is room for it, but somebody came before
    assert not host.ask("heavy", "link", weight=2).granted
    host.give_back("b", second)
    assert not host.ask("light", "link").granted
    assert host.ask("heavy", "link", weight=2).granted
    assert not host.ask("light", "link").granted


def test_two_limits_are_had_together_or_not_at_all(host: Host) -> None:
    links = [host.ask(f"link-{number}", "link") for number in range(2)]
    both, other = host.ask("both", "lab", "link"), host.ask("other", "lab")
    assert (both.granted, both.limit, other.granted) == (False, "link", False)  # or both would wait for ever
    host.give_back("link-0", links[0])
    assert host.ask("both", "link", "lab").granted
    assert host.ask("other", "lab").granted


def test_a_closed_limit_lends_nothing_and_holds_nobody_up_elsewhere(centre: Centre, host: Host) -> None:
    with centre.administrator() as session:
        row = session.first("SELECT to_char(clock_timestamp() AT TIME ZONE 'Asia/Tokyo' + interval '2 hours', 'HH24:MI') AS soon,"
                            " to_char(clock_timestamp() AT TIME ZONE 'Asia/Tokyo' + interval '3 hours', 'HH24:MI') AS later")  # fmt: skip
        assert row
        declare_limit(session, DeclaredLimit(name="lab", slots=1, between=f"{row['soon']}-{row['later']}", zone="Asia/Tokyo"))  # fmt: skip
    asleep = host.ask("asleep", "lab", "link")
    assert describe_wait(asleep) == f"waits for the permit lab, which is closed until {row['soon']} (Asia/Tokyo); number 1 in the queue"  # fmt: skip
    assert host.ask("other", "link", weight=2).granted
    with centre.administrator() as session:
        declare_limit(session, DeclaredLimit(name="lab", slots=1, between=f"{row['later']}-{row['soon']}", zone="Asia/Tokyo"))  # fmt: skip
    assert host.ask("asleep", "lab", "link").limit == "link"


def test_a_name_that_nobody_knows_and_a_weight_that_is_too_much_are_said(centre: Centre, host: Host) -> None:
    asked = host.ask("photos", "lnk", "link", weight=5)
    assert (asked.granted, asked.unknown, asked.clamped) == (True, ("lnk",), ("link",))
    with centre.administrator() as session:
        remove_limit(session, "lab")
        with pytest.raises(CentreRefused, match="knows no limit lab, only link"):
            remove_limit(session, "lab")
        with pytest.raises(CentreRefused, match="no time zone Mars/Base"):
            declare_limit(session, DeclaredLimit(name="lab", slots=1, zone="Mars/Base"))


def test_a_holder_that_is_gone_frees_its_slots_after_its_lease_and_the_queue_forgets_the_dead(
    centre: Centre, host: Host
) -> None:
    other = Host(centre, centre.join("web-2"), host._sessions)
    held = host.ask("photos", "link", weight=2)
    assert held.granted
    assert other.ask("dead", "link").place == 1
    assert other.ask("waits", "link").place == 2
    host.lines["photos"].close()
    other.lines["dead"].close()
    until_granted(other, "waits")
    with centre.administrator() as session:
        assert [(each.host, each.job, each.held) for each in list_permits(session)] == [("web-2", "waits", True)]
        assert [(each.name, each.lent) for each in list_limits(session)] == [("lab", 0), ("link", 1)]


def test_a_place_is_kept_for_who_comes_again_and_a_killed_runs_successor_does_not_wait_for_its_lease(
    host: Host,
) -> None:
    held = host.ask("holder", "link", weight=2)
    host.ask("first", "link", weight=2)
    host.ask("second", "link")
    host.lines["first"].close()
    assert host.ask("first", "link", weight=2, anew=True).place == 1
    host.give_back("holder", held)
    assert host.ask("first", "link", weight=2).granted
    twin = Host(host._centre, host._identity, host._sessions)
    assert twin.ask("first", "link", weight=2).busy
    for line in host.lines.values():
        line.close()
    until_granted(twin, "third", lease_s=60)
    twin.lines["third"].close()
    time.sleep(0.1)
    assert twin.ask("third", "link", lease_s=60, anew=True).granted


def test_a_host_sees_and_changes_nothing_of_others_and_cannot_lend_itself_more(centre: Centre, host: Host) -> None:
    assert host.ask("photos", "link", weight=2).granted
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
        host.lines["photos"].close()
        with pytest.raises(CentreRefused, match="does not allow"):  # or it would keep the permit of another alive
            session.rows("SELECT pg_advisory_lock(28780, %s)", (number["id"],))
        until_granted(host, "mail")


# Whole processes.


class Contest:
    """Contenders that run, and what they wrote."""

    def __init__(self, folder: Path, contenders: Sequence[dict[str, object]], *, rounds: int, hold_s: float) -> None:
        self.log = folder / "log"
        told = {"contenders": contenders, "rounds": rounds, "hold_s": hold_s, "lease_s": 2}
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fleet.contenders", str(folder)], stdin=subprocess.PIPE, env=environment
        )
        assert self.process.stdin
        self.process.stdin.write(json.dumps(told).encode())
        self.process.stdin.close()

    def events(self) -> list[tuple[float, int, str, str, str]]:
        """All events so far: time, process, name, what, more."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        parts = [line.split("\t") for line in lines]
        return [(float(at), int(pid), name, what, more) for at, pid, name, what, more in parts]

    def wait_for(self, what: str, number: int, *, within: float = 60) -> None:
        """Wait until so many such events were written."""
        until = time.monotonic() + within
        while sum(event[3] == what for event in self.events()) < number:
            assert time.monotonic() < until, self.events()[-20:]
            time.sleep(0.02)

    def end(self, *, within: float = 60) -> None:
        """Wait for the end of all."""
        self.process.wait(within)
        assert [event for event in self.events() if event[3] == "broken"] == []


def most_at_once(events: Sequence[tuple[float, int, str, str, str]], killed: dict[int, float]) -> dict[str, int]:
    """The largest sum of weights that held each limit at one instant. `killed`: the processes that were, and when."""
    changes: list[tuple[float, int, str]] = []
    for index, (at, pid, _, what, more) in enumerate(events):
        if what != "+":
            continue
        limits, weight = json.loads(more)
        end = next((later[0] for later in events[index + 1 :] if later[1] == pid and later[3] == "-"), killed.get(pid, float("inf")))  # fmt: skip
        for limit in limits:
            changes += [(at, weight, limit), (end, -weight, limit)]
    most, now = dict[str, int](), dict[str, int]()
    for _, change, limit in sorted(changes, key=lambda each: (each[0], each[1])):
        now[limit] = now.get(limit, 0) + change
        most[limit] = max(most.get(limit, 0), now[limit])
    return most


def _contenders(centre: Centre, count: int, **more: object) -> list[dict[str, object]]:
    hosts = [centre.join(f"host-{number}") for number in range(3)]
    mixed = (["link"], ["lab"], ["link", "lab"], ["lab", "link"])
    return [
        {
            "name": f"job-{number}", "host": identity.host, "role": identity.role, "password": identity.password,
            "centre": centre.address, "limits": mixed[number % 4], "weight": 1 + (number % 8 == 3), **more,
        }
        for number in range(count)
        for identity in (hosts[number % 3],)
    ]  # fmt: skip


def test_two_dozen_contend_and_killed_holders_never_let_more_in(centre: Centre, host: Host, tmp_path: Path) -> None:
    contest = Contest(tmp_path, _contenders(centre, 24, patience=60), rounds=1, hold_s=0.1)
    killed = dict[int, float]()
    while len(killed) < 3:  # whoever holds one at this moment
        contest.wait_for("+", 4 * len(killed) + 2)
        holding = dict[int, str]()
        for _, pid, _, what, _ in contest.events():
            holding[pid] = what
        victim = next((pid for pid, what in holding.items() if what == "+" and pid not in killed), None)
        if victim is not None:
            killed[victim] = time.monotonic()
            os.kill(victim, signal.SIGKILL)
    contest.end()
    events = contest.events()
    assert sum(event[3] == "over" for event in events) == 21
    assert [event for event in events if event[3] == "warns"] == []
    most = most_at_once(events, killed)
    assert most["link"] == 2
    assert most["lab"] in (2, 3)


@pytest.fixture
def own_centre() -> Iterator[Centre]:
    """A centre on a server of its own, which the test stops."""
    server = PostgresServer(synchronous_commit="on")  # what it said that it stored is there after a crash
    try:
        server.start()
        name = server.make_database()
        with open_centre(FleetOptions(centre=server.url(name)), None, purpose="test") as session:
            upgrade_schema(session)
            session.change(_COUNT)
            declare_limit(session, DeclaredLimit(name="link", slots=2))
            declare_limit(session, DeclaredLimit(name="lab", slots=3))
        yield Centre(server, name)
    finally:
        server.remove()


def test_a_crash_of_the_centre_breaks_no_run_and_lends_nothing_twice(own_centre: Centre, tmp_path: Path) -> None:
    contest = Contest(tmp_path, _contenders(own_centre, 6, patience=60), rounds=1, hold_s=3)
    contest.wait_for("+", 2)
    own_centre.server.stop("immediate")
    time.sleep(1)
    own_centre.server.start()
    contest.end()
    events = contest.events()
    assert sum(event[3] == "over" for event in events) == 6
    assert [event[4] for event in events if event[3] == "warns"] == []
    most = most_at_once(events, {})
    assert most["link"] <= 2
    assert most["lab"] <= 3


def test_what_was_lent_is_there_after_a_crash_in_the_same_moment(own_centre: Centre) -> None:
    """The session of a run lends without waiting for the disk, so that others are not held up; it believes only what is there."""
    web = own_centre.join("web-1")
    for turn in range(3):
        with open_centre(own_centre.options, web, purpose="permit", limits=SESSION_LIMITS) as line:
            assert ask_permit(line, f"job-{turn}", PermitRequest(limits=("lab",)), taken=False).granted
            own_centre.server.stop("immediate")
        own_centre.server.start()
        with own_centre.administrator() as session:
            assert [each.job for each in list_permits(session)] == [f"job-{n}" for n in range(turn + 1)]


def test_a_centre_that_cannot_settle_lends_all_the_same(centre: Centre, host: Host) -> None:
    with centre.administrator() as session:
        session.change("DROP FUNCTION poolferry.settle_permit")
    assert host.ask("photos", "link").granted


def test_after_a_crash_of_the_centre_holders_have_the_time_of_their_lease_to_come_again(
    own_centre: Centre, sessions: ExitStack
) -> None:
    host = Host(own_centre, own_centre.join("web-1"), sessions)
    assert host.ask("photos", "link", weight=2, lease_s=20).granted
    with own_centre.administrator() as session:
        session.change("UPDATE poolferry.permits SET seen_at = seen_at - interval '1 hour'")  # as long as it is away
    own_centre.server.stop("immediate")
    own_centre.server.start()
    assert not host.ask("mail", "link").granted
    again = host.ask("photos", "link", weight=2, lease_s=20, taken=True, anew=True)
    with own_centre.administrator() as session:
        assert [(each.job, each.held, each.taken) for each in list_permits(session)] == [("photos", True, False), ("mail", False, False)]  # fmt: skip
    host.give_back("photos", again)
    assert host.ask("mail", "link").granted


def test_where_the_centre_is_away_a_run_is_delayed_by_a_second_at_most_and_the_next_ones_by_nothing(
    own_centre: Centre, tmp_path: Path
) -> None:
    contenders = _contenders(own_centre, 1)
    own_centre.server.stop("fast")
    begun = time.monotonic()
    contest = Contest(tmp_path, contenders, rounds=2, hold_s=0.1)
    contest.end()
    assert begun < contest.events()[0][0]
    warned = [event for event in contest.events() if event[3] == "warns"]
    assert len(warned) == 2
    assert "goes on without the permit link" in warned[0][4]
    assert "was away" in warned[1][4]


class SilentCentre:
    """A centre that takes all and answers nothing, by a clock of its own: who waits for it lets that clock go on."""

    def __init__(self, *, connects: bool) -> None:
        self.now, self.connects, self.ends_with = 1000.0, connects, 0.0

    def connect(self, _: object, __: object, seconds: float) -> "SilentCentre":
        """Connect within so long."""
        if not self.connects:
            self.within(seconds)
        return self

    def within(self, seconds: float) -> None:
        """Ask within so long."""
        self.now += seconds
        raise CentreUnreachable("silent", hint="")

    def close(self) -> None:
        """End the session."""


@pytest.mark.parametrize("connects", [False, True])
def test_all_that_a_run_waits_for_a_silent_centre_is_less_than_a_second(
    centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, connects: bool
) -> None:
    """Here by the waits that are asked for: no clock of a machine that is busy is looked at."""
    where = declare_host(tmp_path, centre.address, centre.join("web-1"))
    silent, voice, ends = SilentCentre(connects=connects), Heard(), list[float]()
    monkeypatch.setattr(compose, "monotonic", lambda: silent.now)
    monkeypatch.setattr(permits, "_connect_within", silent.connect)
    monkeypatch.setattr(permits._LeaseThread, "end", lambda _, seconds: ends.append(seconds))
    with permits.CentrePermits(where).hold("photos", PermitRequest(limits=("lab",)), voice, StopRequest()):
        assert "goes on without the permit lab: silent" in voice.lines[0]
    assert 0.5 < silent.now - 1000 + sum(ends) < 1
    with permits.CentrePermits(where).hold("photos", PermitRequest(limits=("lab",)), voice, StopRequest()):
        assert "was away" in voice.lines[1]
    assert silent.now - 1000 < 1


def test_the_end_of_a_run_waits_for_no_centre_that_was_away_when_it_was_last_asked(
    centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = declare_host(tmp_path, centre.address, centre.join("web-1"))
    with centre.administrator() as session:
        declare_limit(session, DeclaredLimit(name="lab", slots=1))
    asked, joined = threading.Event(), list[float | None]()
    with permits.CentrePermits(where, lease_s=1).hold(
        "photos", PermitRequest(limits=("lab",), patience=Seconds(60)), Heard(), StopRequest()
    ):

        def fail(*_: object, **__: object) -> None:
            asked.set()
            raise CentreUnreachable("silent", hint="")

        monkeypatch.setattr(permits._PermitLine, "ask", fail)
        join = threading.Thread.join

        def wait(thread: threading.Thread, seconds: float | None = None) -> None:
            joined.append(seconds)
            join(thread, seconds)

        monkeypatch.setattr(threading.Thread, "join", wait)
        assert asked.wait(30)
        until(lambda: any(each.name == "permit" and each._failures for each in threading.enumerate()), "it failed", str)  # type: ignore[attr-defined]
    assert joined == [0.0]


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
    other = Host(centre, centre.join("nas"), sessions)
    held = other.ask("mail", "lab")
    assert held.granted
    process = subprocess.Popen([*COMMAND, "run", "photos"], env=ferry.variables(), stderr=subprocess.PIPE, text=True)
    waits = "waits for the permit lab: 1 of 1 slots are lent; number 1 in the queue"
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
    assert Host(centre, centre.join("nas"), sessions).ask("mail", "lab").granted
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
    assert Host(centre, centre.join("nas"), sessions).ask("mail", "lab").granted
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
