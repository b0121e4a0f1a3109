"""Permits of jobs on removable disks: who has to wait for one waits last, and no host waits for what it holds itself."""

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, STDOUT

import pytest

from orchestrator.app import run_jobs
from orchestrator.app.disk_scan import scan_disks
from orchestrator.app.settings import Settings
from orchestrator.domain.permit import DeclaredLimit, PermitRequest
from orchestrator.domain.run import Outcome
from orchestrator.fleet.connection import open_centre
from orchestrator.fleet.credentials import keep_identity
from orchestrator.fleet.permits import SESSION_LIMITS, ask_permit, declare_limit, list_permits, release_permit
from orchestrator.planners.identify_disk import VisitOutcome
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
        held = ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False)
        assert held.granted
        assert held.permit is not None
        try:
            until = time.monotonic() + 60
            while "waits for the permit wan" not in drawer.run("status").out:
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < until, ended_runs(drawer)
            meanwhile = ended_runs(drawer)
            release_permit(other, held.permit, within=30)
            said, _ = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode == 0, said
    assert meanwhile == [*[("plain", "done")] * len(disks), ("photos", None)], said
    last = [("photos", "done"), ("follows", "done")] * len(disks)
    assert ended_runs(drawer) == [*[("plain", "done")] * len(disks), *last], said
    with centre.administrator() as session:
        assert list_permits(session) == ()


def test_a_disk_is_let_go_when_the_patience_of_its_visit_is_over(
    drawer: LoopDisks, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_jobs, "VISIT_PATIENCE_S", 0.0)
    settings = Settings(config=str(drawer.ferry.config), state=str(drawer.ferry.state))
    with open_centre(centre.options, centre.join("nas"), purpose="permit", limits=SESSION_LIMITS) as other:
        assert ask_permit(other, "mail", PermitRequest(limits=("wan",)), taken=False).granted
        (visit,) = scan_disks(settings).visits
    assert (visit.safe, visit.ending, [each.outcome for each in visit.reports]) == (
        True,
        VisitOutcome.INCOMPLETE,
        [Outcome.WAITING],
    )
    assert "photos: waits for the permit wan" in visit.why
    assert not drawer.mounted("red")
