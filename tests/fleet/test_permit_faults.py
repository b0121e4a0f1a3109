"""Permits beside killed holders, a centre that crashes, fails over or falls silent, and machines that sleep: no run is broken."""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from orchestrator import compose
from orchestrator.app import permits
from orchestrator.app.session import open_session
from orchestrator.app.settings import Settings
from orchestrator.domain.errors import CentreUnreachable, NotNow
from orchestrator.domain.fleet import FleetIdentity
from orchestrator.domain.machine import FleetOptions
from orchestrator.domain.permit import SEEN_SOON, DeclaredLimit, PermitAnswer, PermitRequest
from orchestrator.domain.run import RunType
from orchestrator.domain.units import Seconds
from orchestrator.fleet.connection import open_centre
from orchestrator.fleet.permits import (
    SESSION_LIMITS,
    ask_permit,
    declare_limit,
    list_permits,
)
from orchestrator.process.stop import StopRequest
from tests.daemon.daemon_world import until
from tests.ferry import Ferry
from tests.fleet.askers import Contest, Heard, PermitHost, contenders, most_at_once, until_granted
from tests.fleet.centres import Centre
from tests.fleet.contenders import declare_host
from tests.fleet.lines import SilentLine
from tests.fleet.postgres import PostgresServer
from tests.history.records import NOON


def test_two_dozen_contend_and_killed_holders_never_let_more_in(
    centre: Centre, asker: PermitHost, tmp_path: Path
) -> None:
    contest = Contest(tmp_path, contenders(centre, 24, patience=60), rounds=1, hold_s=0.1)
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


def sleeps_too_long(centre: Centre, pid: int, other: PermitHost) -> PermitAnswer:
    """Freeze a process as a machine that sleeps is, until its session is gone, its lease is over and somebody else has what it had."""
    os.kill(pid, signal.SIGSTOP)
    found: list[PermitAnswer] = []

    def lends_it_to_another() -> bool:
        with centre.administrator() as session:
            session.change("SELECT pg_terminate_backend(backend, 30000) FROM poolferry.permits WHERE job <> 'mail'")
            session.change("UPDATE poolferry.permits SET seen_at = seen_at - interval '1 hour' WHERE job <> 'mail'")
        found.append(other.ask("mail", "link", weight=2, lease_s=60))
        return found[-1].granted

    until(lends_it_to_another, "the lease is over", lambda: str(found))
    os.kill(pid, signal.SIGCONT)
    return found[-1]


def test_what_was_lent_before_a_machine_slept_is_asked_for_again(
    centre: Centre, asker: PermitHost, sessions: ExitStack, tmp_path: Path
) -> None:
    other = PermitHost(centre, centre.join("nas"), sessions)
    contest = Contest(tmp_path, contenders(centre, 1, patience=60, early=True), rounds=1, hold_s=0)
    contest.wait_for("lent", 1)
    lent = sleeps_too_long(centre, contest.events()[0][1], other)
    (tmp_path / "begin").touch()
    until(
        lambda: "waits for the permit link: 2 of 2 slots lent" in str(contest.events()),
        "it waits",
        lambda: str(contest.events()),
    )
    other.give_back("mail", lent)
    contest.end()
    assert list(dict.fromkeys(event[3] for event in contest.events())) == ["lent", "says", "+", "-", "over"]


def test_a_run_whose_machine_slept_goes_on_and_says_that_others_could_have_its_permit(
    centre: Centre, asker: PermitHost, sessions: ExitStack, tmp_path: Path
) -> None:
    other = PermitHost(centre, centre.join("nas"), sessions)
    contest = Contest(tmp_path, contenders(centre, 1, patience=60, long=True), rounds=1, hold_s=0)
    contest.wait_for("+", 1)
    sleeps_too_long(centre, contest.events()[0][1], other)
    contest.wait_for("warns", 1)
    assert "it gave up its permit link, and others could have it" in str(contest.events())
    with centre.administrator() as session:
        assert [(each.job, each.taken) for each in list_permits(session)] == [("mail", False), ("job-0", True)]
    (tmp_path / "end").touch()
    contest.end()


def test_who_holds_a_permit_comes_again_within_its_lease_however_long_the_centre_was_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seen: after an hour it came each minute, and a centre that is back lends again after half of that."""
    pauses = list[float]()

    class Patience(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            pauses.append(timeout or 0.0)
            return len(pauses) > 30

    def ask(*_: object, seconds: float, **__: object) -> PermitAnswer:
        pauses[-1] += seconds
        raise CentreUnreachable("away", hint="")

    monkeypatch.setattr(compose, "random_fraction", lambda: 0.999)
    line = permits._PermitLine("photos", PermitRequest(limits=("link",)), FleetOptions(), FleetIdentity(host="web-1", role="x"), 30)  # fmt: skip
    monkeypatch.setattr(line, "ask", ask)
    thread = permits._LeaseThread(line, 10.0, Heard())
    monkeypatch.setattr(thread, "_over", Patience())
    thread.run()
    assert max(pauses) < 30


def test_a_crash_of_the_centre_breaks_no_run_and_lends_nothing_twice(own_centre: Centre, tmp_path: Path) -> None:
    contest = Contest(tmp_path, contenders(own_centre, 6, patience=60), rounds=1, hold_s=3)
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


def test_what_is_left_of_a_run_before_a_power_cut_is_no_other_run(
    centre: Centre, asker: PermitHost, sessions: ExitStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: a run of after the cut ended at once, as "another run of this job holds its permit", until the centre saw the cut within a minute."""
    identity = centre.join("nas")
    where, request = declare_host(tmp_path, centre.address, identity), PermitRequest(limits=("link",), weight=2)
    before, heard, stop, elsewhere = PermitHost(centre, identity, sessions), Heard(), StopRequest(), [False]
    lender = permits.CentrePermits(where, runs_elsewhere=lambda: elsewhere[0])
    assert before.ask("mail", "link", weight=2).granted
    monkeypatch.setattr(permits, "_ENDS_S", 0.0)
    assert not lender.lends_at_once("mail", request), "so that it waits after those that need not"
    lender.patience_s = 0.0
    with pytest.raises(NotNow, match="waits until the centre sees that an earlier line of this job to it was cut"):
        lender.obtain("mail", request, heard, stop)  # as `run --due` does
    lender.patience_s = None
    elsewhere[0] = True
    assert lender.lends_at_once("mail", request), "it ends at once, and says why"
    with pytest.raises(NotNow, match="another run of this job, on this host"):
        lender.obtain("mail", request, heard, stop)
    elsewhere[0] = False
    with monkeypatch.context() as later:
        later.setattr(permits, "_CUT_S", 0.0)
        with pytest.raises(NotNow, match="and on this host none does"):
            lender.obtain("mail", request, heard, stop)
    heard.lines.clear()
    heard.say = lambda line: (heard.lines.append(line), before.lines["mail"].close())  # type: ignore[assignment, func-returns-value]
    with lender.hold("mail", request, heard, stop):
        assert heard.lines == [SEEN_SOON]
        assert not asker.ask("photos", "link").granted, "it has the permit"


def test_a_run_of_another_process_is_known_by_the_history_of_its_host(ferry: Ferry) -> None:
    ferry.job("photos")
    settings = Settings(config=str(ferry.config), state=str(ferry.state))
    (job,) = compose.read_configuration(settings.where).jobs
    with open_session(settings) as session:
        lender = session._permits_of(job)
        assert not lender.runs_elsewhere()
        parent = os.getppid()
        for kind, said in ((RunType.VERIFY, False), (RunType.RUN, True)):
            session.history.begin(
                job="photos", engine="rsync", source="/s", target="/t", now=NOON, pid=parent, process_started=compose._started(parent) or 0,
                boot=compose._boot(), host="here", why="", kind=kind,
            )  # fmt: skip
            assert lender.runs_elsewhere() is said, kind


def test_a_line_that_swallows_all_breaks_no_run_and_keeps_no_slot(
    centre: Centre, asker: PermitHost, line: SilentLine, tmp_path: Path
) -> None:
    where = declare_host(tmp_path, f"postgresql://127.0.0.1:{line.port}/{centre.database}", centre.join("nas"))
    wan, heard = PermitRequest(limits=("link",), weight=2, patience=Seconds(60)), Heard()
    with permits.CentrePermits(where, lease_s=1).hold("mail", wan, heard, StopRequest()):
        line.silence()
        assert not asker.ask("photos", "link").granted
    with centre.administrator() as session:  # as the server does by its keepalives, which this line answers
        session.change("SELECT pg_terminate_backend(backend) FROM poolferry.permits WHERE granted_at IS NOT NULL")
    until_granted(asker, "photos")
    assert heard.lines == []
    prompt = PermitRequest(limits=("link",))
    with permits.CentrePermits(where, lease_s=1).hold("mail", prompt, heard, StopRequest()):
        assert "goes on without the permit link: the centre" in heard.lines[0]


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


def test_a_centre_that_cannot_settle_lends_all_the_same(centre: Centre, asker: PermitHost) -> None:
    with centre.administrator() as session:
        session.change("DROP FUNCTION poolferry.settle_permit")
    assert asker.ask("photos", "link").granted


def crash(centre: Centre) -> None:
    """Let the server crash as a whole."""
    centre.server.stop("immediate")
    centre.server.start()


def crash_one(centre: Centre) -> None:
    """Kill one of the server's processes: it ends all others, and recovers without a start."""

    def is_ended() -> bool:
        try:
            witness.rows("SELECT 1")
        except CentreUnreachable:
            return True
        return False

    with centre.administrator() as session, centre.administrator() as witness:
        row = session.first("SELECT pg_backend_pid() AS pid")
        assert row is not None
        os.kill(row["pid"], signal.SIGKILL)
        until(is_ended, "the others are ended", str)
    until(centre.server.answers, "it has recovered", str)


def fail_over(centre: Centre) -> None:
    """Let a standby take over that was started long before."""
    first = centre.server
    standby = PostgresServer(follows=first, wal_level="replica", max_wal_senders="2")
    standby.start()
    with centre.administrator() as session:
        has_all = "SELECT 1 FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()"
        until(lambda: bool(session.rows(has_all)), "it has all", str)
    with open_centre(FleetOptions(centre=standby.url("postgres")), None, purpose="test") as session:
        is_old = "SELECT 1 WHERE now() > pg_postmaster_start_time() + interval '1.5 seconds'"  # longer than the lease
        until(lambda: bool(session.rows(is_old)), "it was started long before", str)
        first.remove()
        session.rows("SELECT pg_promote()")
    centre.server = standby


@pytest.mark.parametrize("fails", [crash, crash_one, fail_over])
@pytest.mark.sample(1)
def test_after_a_crash_of_the_centre_holders_have_the_time_of_their_lease_to_come_again(
    own_centre: Centre, sessions: ExitStack, fails: Callable[[Centre], None]
) -> None:
    asker = PermitHost(own_centre, own_centre.join("web-1"), sessions)
    assert asker.ask("photos", "link", weight=2).granted
    with own_centre.administrator() as session:
        session.change("UPDATE poolferry.permits SET seen_at = seen_at - interval '1 hour'")  # as long as it is away
    fails(own_centre)
    assert not asker.ask("mail", "link").granted
    again = asker.ask("photos", "link", weight=2, taken=True, anew=True)
    with own_centre.administrator() as session:
        assert [(each.job, each.held, each.taken) for each in list_permits(session)] == [("photos", True, False), ("mail", False, False)]  # fmt: skip
    asker.give_back("photos", again)
    assert asker.ask("mail", "link").granted


def test_where_the_centre_is_away_a_run_is_delayed_by_a_second_at_most_and_the_next_ones_by_nothing(
    own_centre: Centre, tmp_path: Path
) -> None:
    known = contenders(own_centre, 1)
    own_centre.server.stop("fast")
    begun = time.monotonic()
    contest = Contest(tmp_path, known, rounds=2, hold_s=0.1)
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


def test_a_centre_that_is_slow_delays_a_run_by_a_second_at_most_by_all_its_answers_together(
    centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of three answers had nine tenths of a second: whether it is lent at once, whether it still is, and its giving back."""
    where, now, ends, voice = (
        declare_host(tmp_path, centre.address, centre.join("web-1")),
        [1000.0],
        list[float](),
        Heard(),
    )

    def answer_slowly(_: object, *, taken: bool, seconds: float) -> PermitAnswer:
        now[0] += min(seconds, 0.6)
        if seconds < 0.6:
            raise CentreUnreachable("slow", hint="")
        return PermitAnswer(permit=1, granted=True)

    monkeypatch.setattr(compose, "monotonic", lambda: now[0])
    monkeypatch.setattr(permits._PermitLine, "ask", answer_slowly)
    monkeypatch.setattr(permits._LeaseThread, "end", lambda _, seconds: ends.append(seconds))
    lender, request = permits.CentrePermits(where), PermitRequest(limits=("lab",))
    assert lender.lends_at_once("photos", request)
    with lender.hold("photos", request, voice, StopRequest()):
        assert voice.lines == ["goes on without the permit lab: slow"]
    assert now[0] - 1000 + sum(ends) < 1
    (tmp_path / "state" / permits._AWAY).unlink()
    now[0], ends[:] = 1000.0, []
    with lender.hold("photos", request, voice, StopRequest()):  # as a run that was not asked for before
        assert len(voice.lines) == 1, "it was lent"
    assert now[0] - 1000 + sum(ends) < 1


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
