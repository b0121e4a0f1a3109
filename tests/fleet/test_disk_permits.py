"""Permits of jobs on a removable disk: each run asks for its own, and gives it back before the next one asks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.permit import DeclaredLimit
from orchestrator.fleet.credentials import keep_identity
from orchestrator.fleet.permits import declare_limit, list_permits
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


def test_a_host_never_waits_for_a_permit_that_it_holds_itself(drawer: LoopDisks, centre: Centre) -> None:
    """Seen: the visit of the disk held the permit of its job to the end of the whole command, and the next job waited for it."""
    targets = drawer.ferry.config / "targets.toml"
    targets.write_text(f'{targets.read_text()}\n[place.nas]\npath = "{drawer.root / "nas"}"\n')
    mail = f'engine = "rsync"\nsource = "{drawer.source}"\ntarget = "nas"\npermits = ["wan"]\n'
    (drawer.ferry.config / "jobs" / "mail.toml").write_text(mail)
    ended = drawer.run("run", "photos", "mail")
    assert ended.code == 0, ended
    runs = drawer.run("history", "--json").value["runs"]
    assert {(run["job"], run["outcome"]) for run in runs} >= {("photos", "done"), ("mail", "done")}
    with centre.administrator() as session:
        assert list_permits(session) == ()
