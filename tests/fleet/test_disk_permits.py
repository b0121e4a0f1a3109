"""Permits of jobs on removable disks: who has to wait for one waits last, and no host waits for what it holds itself."""

import subprocess
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest

from orchestrator import compose
from orchestrator.app import run_jobs
from orchestrator.app.disk_scan import VisitEnd, scan_disks
from orchestrator.app.disk_visits import DiskVisits
from orchestrator.app.permits import CentrePermits
from orchestrator.app.run_jobs import waits_for_permit
from orchestrator.app.session import Session, open_session
from orchestrator.app.settings import Settings
from orchestrator.compose import Directories
from orchestrator.disks import disk as medium
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.domain.permit import DeclaredLimit, PermitRecord, PermitRequest
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import Seconds
from orchestrator.fleet.connection import open_centre
from orchestrator.fleet.credentials import keep_identity
from orchestrator.fleet.permits import SESSION_LIMITS, ask_permit, declare_limit, list_permits, release_permit
from orchestrator.planners.identify_disk import VisitOutcome
from orchestrator.runner.disk import visit
from orchestrator.runner.locks import lock_names
from tests.daemon.daemon_world import until
from tests.ferry import COMMAND
from tests.fleet.centres import Centre
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")


@pytest.fixture
def drawer(tmp_path: Path, centre: Centre) -> Iterator[LoopDisks]:
    """A drawer with one disk, of a host that has joined: its job photos needs the one slot of the limit wan."""
    made = LoopDisks(tmp_path)
    try:
        (made.ferry.config / "poolferry.toml").write_text(f'[fleet]\ncentre = "{centre.address}"\n')
        made.ferry.state.mkdir(mode=0o700, exist_ok=True)
        keep_identity(str(made.ferry.state), centre.join("web-1"))
        made.job("photos", 'permits = ["wan"]\npermit-away = "wait 10m"\n')
        made.enrolled("red")
        with centre.administrator() as session:
            declare_limit(session, DeclaredLimit(name="wan", slots=1))
        yield made
    finally:
        made.close()


def ended_runs(drawer: LoopDisks) -> list[tuple[str, str]]:
    """Return job and outcome of each run, the oldest first."""
    runs = drawer.run("history", "--json").value["runs"]
    return [(run["job"], run["outcome"]) for run in sorted(runs, key=lambda run: run["run"])]


def test_a_host_never_waits_for_a_permit_that_it_holds_itself(drawer: LoopDisks, centre: Centre) -> None:
    """Seen: the visit of the disk held the permit of its job to the end of the whole command, and the next job waited for it."""
    targets = drawer.ferry.config / "targets.toml"
    targets.write_text(f'{targets.read_text()}\n[place.nas]\npath = "{drawer.root / "nas"}"\n')
    mail = f'engine = "rsync"\nsource = "{drawer.source}"\ntarget = "nas"\npermits = ["wan"]\n'
    (drawer.ferry.config / "jobs" / "mail.toml").write_text(mail)
    ended = drawer.run("run", "photos", "mail")
    assert ended.code == 0, ended
    assert set(ended_runs(drawer)) >= {("photos", "done"), ("mail", "done")}
    with centre.administrator() as session:
        assert list_permits(session) == ()


@pytest.mark.parametrize(
    "words", [("disks", "scan"), ("run", "photos", "follows", "plain"), ("run", "--scheduled", "photos")]
)
@pytest.mark.sample(1)
def test_who_must_wait_for_a_permit_waits_last_and_holds_up_no_other_job_or_disk(
    drawer: LoopDisks, centre: Centre, words: tuple[str, ...]
) -> None:
    """Beside another host that holds the one slot: follows comes after photos, wherever that stands in the queue."""
    disks = ["red", *(["blue"] if words[0] == "disks" else [])]
    drawer.job("plain")
    drawer.job("follows", 'after = ["photos"]\n')
    for name in disks[1:]:
        drawer.enrolled(name)
    drawer.pull("red")  # it was said to be safe to remove
    drawer.plug("red")
    with (
        open_centre(centre.options, centre.join("nas"), purpose="permit", limits=SESSION_LIMITS) as other,
        subprocess.Popen(
            [*COMMAND, *words], env=drawer.ferry.variables(), stdout=PIPE, stderr=STDOUT, text=True
        ) as process,
    ):
        lent = ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False)
        assert lent.granted
        assert lent.permit is not None
        try:
            until = time.monotonic() + 60
            while "waits for the permit wan" not in (shown := drawer.run("status").out):
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < until, ended_runs(drawer)
            meanwhile, held = ended_runs(drawer), drawer.mounted(disks[0])
            release_permit(other, lent.permit, within=30)
            said, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 0, said
    plain, last = [("plain", "done")] * len(disks), [("photos", "done"), ("follows", "done")] * len(disks)
    if words[1] == "--scheduled":  # it alone is asked for, and nobody needs the disk before
        assert (meanwhile, held) == ([*plain[:0], ("photos", None)], False), said
        assert "; its disk is attached afterwards" in shown
        assert ended_runs(drawer) == [*last, *plain], said
    else:
        assert (meanwhile, held) == ([*plain, ("photos", None)], True), said
        assert f"; disk {drawer.full(disks[0])} stays attached meanwhile" in shown
        assert ended_runs(drawer) == [*plain, *last], said
    with centre.administrator() as session:
        assert list_permits(session) == ()


@pytest.mark.parametrize("stops", [True, False])
@pytest.mark.parametrize("command", [("run", "--scheduled", "photos"), ("disks", "scan")], ids=["run", "scan"])
@pytest.mark.sample(2)
def test_a_disk_can_be_pulled_out_while_its_job_waits(
    drawer: LoopDisks, centre: Centre, command: tuple[str, ...], *, stops: bool
) -> None:
    """Seen: a scan attached its disk first, and then waited hours for the permit with it."""
    drawer.pull("red")  # it was said to be safe to remove
    drawer.plug("red")
    words = [*COMMAND, *command]
    with (
        open_centre(centre.options, centre.join("nas"), purpose="permit", limits=SESSION_LIMITS) as other,
        subprocess.Popen(words, env=drawer.ferry.variables(), stdout=PIPE, stderr=STDOUT, text=True) as process,
    ):
        lent = ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False)
        assert lent.permit is not None
        try:
            until(lambda: "its disk is attached afterwards" in drawer.run("status").out, "it waits", str)
            assert not drawer.mounted("red")
            drawer.pull("red")
            if stops:
                process.terminate()
            else:
                release_permit(other, lent.permit, within=30)
            said, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    ((job, outcome),) = ended_runs(drawer)
    assert (job, outcome) == ("photos", "interrupted" if stops else "waiting"), said
    shown = drawer.run("show", "last").out
    assert ("SIGTERM" if stops else "no disk of the set offsite is here") in shown, shown
    with centre.administrator() as session:
        assert [each.job for each in list_permits(session)] == (["mail"] if stops else [])


def test_a_disk_is_let_go_when_the_patience_of_its_visit_is_over(
    drawer: LoopDisks, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_jobs, "VISIT_PATIENCE_S", 0.0)
    drawer.job("plain")  # it runs first, so the disk is attached
    settings = Settings(config=str(drawer.ferry.config), state=str(drawer.ferry.state))
    with open_centre(centre.options, centre.join("nas"), purpose="permit", limits=SESSION_LIMITS) as other:
        assert ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False).granted
        (visit,) = scan_disks(settings).visits
    assert (visit.safe, visit.ending, [each.outcome for each in visit.reports]) == (
        True,
        VisitOutcome.INCOMPLETE,
        [Outcome.DONE, Outcome.WAITING],
    )
    assert "photos: waits for the permit wan" in visit.why
    assert not drawer.mounted("red")


def test_a_disk_whose_jobs_waited_in_vain_was_never_attached(
    drawer: LoopDisks, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_jobs, "VISIT_PATIENCE_S", 0.0)
    settings = Settings(config=str(drawer.ferry.config), state=str(drawer.ferry.state))
    with settings.views() as views:
        before = views.disks.last_visits()
    with open_centre(centre.options, centre.join("nas"), purpose="permit", limits=SESSION_LIMITS) as other:
        held = ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False).permit
        assert held is not None
        (visit,) = scan_disks(settings).visits
        with settings.views() as views:
            assert views.disks.last_visits() == before
        assert (visit.safe, visit.ending) == (True, VisitOutcome.INCOMPLETE)
        assert "photos: waits for the permit wan" in visit.why
        release_permit(other, held, within=30)
    (visit,) = scan_disks(settings).visits
    assert [each.outcome for each in visit.reports] == [Outcome.DONE]


def test_a_job_that_another_run_keeps_busy_asks_for_no_permit(
    drawer: LoopDisks, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, its permit was lent while its disk was not attached yet, and it waited with it for the other run of its own host."""
    monkeypatch.setattr(Session, "must_wait", lambda *_: True)
    settings = Settings(config=str(drawer.ferry.config), state=str(drawer.ferry.state))
    with centre.administrator() as session:
        last = session.first("SELECT last_value, is_called FROM poolferry.permits_id_seq")
        with lock_names(("photos",), str(drawer.ferry.state)):
            (visit,) = scan_disks(settings).visits
        assert session.first("SELECT last_value, is_called FROM poolferry.permits_id_seq") == last
    assert "another run of photos" in visit.why
    assert not drawer.mounted("red")


def test_a_job_that_waited_in_vain_is_told_of_by_a_visit_in_which_others_ran(
    drawer: LoopDisks, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_jobs, "VISIT_PATIENCE_S", 0.0)
    drawer.job("follows", 'after = ["photos"]\n')
    settings = Settings(config=str(drawer.ferry.config), state=str(drawer.ferry.state))
    with open_centre(centre.options, centre.join("nas"), purpose="permit", limits=SESSION_LIMITS) as other:
        assert ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False).granted
        (visit,) = scan_disks(settings).visits
    assert [(each.job, each.outcome) for each in visit.reports] == [
        ("photos", Outcome.WAITING),
        ("follows", Outcome.DONE),
    ]
    assert (visit.safe, visit.ending) == (True, VisitOutcome.INCOMPLETE)


def test_a_disk_that_cannot_be_attached_after_its_job_waited_ends_one_visit(
    drawer: LoopDisks, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OrchestratorError("the disk cannot be mounted")

    monkeypatch.setattr(medium, "attach", fails)
    monkeypatch.setattr(Session, "must_wait", lambda *_: True)
    (visit,) = scan_disks(Settings(config=str(drawer.ferry.config), state=str(drawer.ferry.state))).visits
    assert "the disk cannot be mounted" in visit.why


@pytest.mark.parametrize("scans", [True, False])
def test_what_was_lent_for_a_run_that_cannot_begin_is_given_back_before_the_next_one(
    drawer: LoopDisks, centre: Centre, monkeypatch: pytest.MonkeyPatch, scans: bool
) -> None:
    """Seen: a disk was pulled out after its job was lent a permit, and the copies read again for hours held up the whole fleet."""

    def fails(*_: object) -> None:
        raise OrchestratorError("the disk takes no folder")

    held: list[tuple[PermitRecord, ...]] = []

    def hears(_: object) -> None:
        with centre.administrator() as session:
            held.append(list_permits(session))

    monkeypatch.setattr(medium, "prepare", fails)
    settings = Settings(config=str(drawer.ferry.config), state=str(drawer.ferry.state))
    if scans:
        scan_disks(settings, hears=hears)
    else:
        drawer.job("plain")
        run_jobs.run_jobs(settings, ["photos", "plain"], why="test", hears=hears)
    assert held
    assert set(held) == {()}


class Bystander:
    """A person who does something to this host between the end of the visit of one disk and the jobs of the next."""

    def __init__(self, drawer: LoopDisks) -> None:
        self.settings = Settings(config=str(drawer.ferry.config), state=str(drawer.ferry.state))
        self.done: list[str] = []
        self._drawer = drawer

    def ends_it(self, _: VisitEnd) -> None:
        """Fail."""
        raise RuntimeError("nobody expected this")

    def pauses(self, _: VisitEnd) -> None:
        """Pause the job."""
        self.done.append(self._drawer.run("pause", "photos", "--why", "test").out)

    def unmounts(self, ended: VisitEnd) -> None:
        """Take away the other disk's mount."""
        for name in ("red", "blue"):
            if self._drawer.mounted(name) and not ended.visit.disk.name.startswith(name):
                subprocess.run(["umount", str(self._drawer.mountpoint(name))], check=True)


@pytest.fixture
def bystander(drawer: LoopDisks, centre: Centre, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bystander]:
    """Someone beside a host with two disks whose jobs wait, as another host holds the slot; no visit has patience."""
    drawer.enrolled("blue")
    drawer.job("plain")
    monkeypatch.setattr(run_jobs, "VISIT_PATIENCE_S", 0.0)
    monkeypatch.setattr(visit, "_FRESH", timedelta(0))
    with open_centre(centre.options, centre.join("nas"), purpose="permit", limits=SESSION_LIMITS) as other:
        assert ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False).granted
        yield Bystander(drawer)


def test_no_disk_stays_attached_when_something_unexpected_ends_a_scan(drawer: LoopDisks, bystander: Bystander) -> None:
    with pytest.raises(RuntimeError, match="nobody expected this"):
        scan_disks(bystander.settings, hears=bystander.ends_it)
    assert [drawer.mounted(name) for name in ("red", "blue")] == [False, False]
    with bystander.settings.views() as views:
        ended = {(each.outcome, each.why) for each in views.disks.last_visits().values()}
    assert ("incomplete", "the scan ended before all jobs had run") in ended, ended


def test_a_job_that_waited_is_not_run_once_it_is_paused(bystander: Bystander) -> None:
    visits = scan_disks(bystander.settings, hears=bystander.pauses).visits
    ended = [[each.outcome for each in visit.reports] for visit in visits]
    assert ended == [[Outcome.DONE, Outcome.WAITING], [Outcome.DONE]], bystander.done


def test_a_disk_is_looked_at_again_before_a_job_that_waited(bystander: Bystander) -> None:
    """Seen: its pool was suspended for hours while its first job waited, and the job was begun on it all the same."""
    _, second = scan_disks(bystander.settings, hears=bystander.unmounts).visits
    assert [each.job for each in second.reports] == ["plain"]
    assert second.why.partition(" is ")[2] == "not attached any more: somebody else let it go"


def test_a_visit_waits_for_a_centre_that_is_away_no_longer_than_it_has_patience(
    drawer: LoopDisks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen: each job of a disk waited for the centre as long as its job file allows, one after the other."""
    (drawer.ferry.config / "poolferry.toml").write_text('[fleet]\ncentre = "postgresql://127.0.0.1:1/x"\n')
    monkeypatch.setattr(run_jobs, "VISIT_PATIENCE_S", 0.0)
    begun = time.monotonic()
    (ended,) = scan_disks(Settings(config=str(drawer.ferry.config), state=str(drawer.ferry.state))).visits
    assert [each.outcome for each in ended.reports] == [Outcome.DONE]
    assert time.monotonic() - begun < 300, "the job would wait ten minutes"


def test_a_centre_that_was_found_away_is_not_asked_again_for_the_next_job(drawer: LoopDisks, centre: Centre) -> None:
    machine = drawer.ferry.config / "poolferry.toml"
    where = Directories(config=str(drawer.ferry.config), state=str(drawer.ferry.state))
    patient = PermitRequest(limits=("wan",), patience=Seconds(600.0))
    machine.write_text('[fleet]\ncentre = "postgresql://127.0.0.1:1/x"\n')
    assert not CentrePermits(where).lends_at_once("photos", patient)
    machine.write_text(f'[fleet]\ncentre = "{centre.address}"\n')
    assert not CentrePermits(where).lends_at_once("mail", patient)
    with centre.administrator() as session:
        assert list_permits(session) == ()


def test_the_patience_of_a_visit_counts_waits_and_no_copies(drawer: LoopDisks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seen: a first copy of 15 hours left the next job of the disk no patience at all."""
    settings = Settings(config=str(drawer.ferry.config), state=str(drawer.ferry.state))
    job = settings.configuration().job("photos")
    clock = [100.0]
    monkeypatch.setattr(compose, "monotonic", lambda: clock[0])
    with open_session(settings) as session:
        patience, left = run_jobs.QueuePatience(session), []
        for waited_s in (0.0, 3600.0, 20 * 3600.0, 0.0):
            with patience.of(job):
                left.append(session.queue_patience_s)
                clock[0] += 15 * 3600.0
                session.waited_s += waited_s
    assert left == [12 * 3600.0, 12 * 3600.0, 11 * 3600.0, 0.0]


def test_what_is_due_after_a_run_that_waited_runs_in_the_same_call(
    drawer: LoopDisks, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the other jobs of a disk that only such a run visits: once it was let go, nothing automatic touches it."""
    targets = drawer.ferry.config / "targets.toml"
    places = "".join(f'[place.{name}]\npath = "{drawer.root / name}"\n' for name in ("a", "b"))
    targets.write_text(f"{targets.read_text()}\n{places}")
    copies = f'engine = "rsync"\nsource = "{drawer.source}"\nevery = "1h"\n'
    (drawer.ferry.config / "jobs" / "mail.toml").write_text(copies + 'target = "a"\npermits = ["wan"]\n')
    (drawer.ferry.config / "jobs" / "news.toml").write_text(copies + 'target = "b"\nafter = ["mail"]\n')
    drawer.job("photos", 'after = ["news"]\npermits = ["wan"]\npermit-away = "wait 10m"\n')
    drawer.job("zoo")
    drawer.pull("red")  # it was said to be safe to remove
    drawer.plug("red")
    asked: list[tuple[str, bool]] = []
    with open_centre(centre.options, centre.join("nas"), purpose="permit", limits=SESSION_LIMITS) as other:
        held = ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False).permit
        assert held is not None

        def asks(job: Job, waiting: Sequence[Job], session: Session, visits: DiskVisits | None) -> bool:
            """Ask, and free the slot for who has to wait."""
            waits = waits_for_permit(job, waiting, session, visits)
            asked.append((job.name, waits))
            if waits:
                release_permit(other, held, within=30)
            return waits

        monkeypatch.setattr(run_jobs, "waits_for_permit", asks)
        run_jobs.run_jobs(
            Settings(config=str(drawer.ferry.config), state=str(drawer.ferry.state)), (), why="", only_due=True
        )
    assert asked == [("mail", True), ("news", False), ("photos", False), ("zoo", False)]
    assert ended_runs(drawer) == [(name, "done") for name in ("mail", "news", "photos", "zoo")]
