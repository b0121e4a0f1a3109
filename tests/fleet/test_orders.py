"""Orders: fetched by the host, checked against its own files, carried out once by its daemon, and told back."""

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator import __version__
from orchestrator.app.fleet_orders import list_orders
from orchestrator.app.settings import WrongRequest
from orchestrator.compose import open_history
from orchestrator.config.this_machine import machine_id_hash
from orchestrator.domain import order
from orchestrator.domain.act import ENDED_WITH_DAEMON, ActVerb
from orchestrator.domain.errors import CentreRefused, CentreUnreachable, OrchestratorError
from orchestrator.domain.order import OrderState, order_request
from orchestrator.fleet import orders
from tests.daemon.daemon_world import Daemon, runs, until
from tests.fleet.centres import Centre
from tests.fleet.hosts import MACHINE, FleetHost
from tests.fleet.lines import SilentLine
from tests.fleet.order_host import Ordering, fetch, fetch_by, listening


@pytest.fixture
def ordering(tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch) -> Ordering:
    """A host with the job photos, that has joined."""
    host = FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch, machine=machine_id_hash())
    host.ferry.job()
    return Ordering(host, centre)


MOUNTS_FROM = """import builtins
opened = builtins.open
builtins.open = lambda file, *given, **more: opened({table!r} if file == "/proc/self/mounts" else file, *given, **more)
"""


@pytest.fixture
def mounted(ordering: Ordering) -> str:
    """The PYTHONPATH of a machine without ZFS whose processes see the sources of photos and mail as datasets of tank, and all else on rpool."""
    ferry = ordering.host.ferry
    (ferry.root / "mounts").write_text(
        "rpool/root / zfs rw 0 0\nproc /proc proc rw 0 0\n"
        + "".join(f"tank/{name} {ferry.root}/{name}-source zfs rw 0 0\n" for name in ("photos", "mail"))
    )
    (ferry.root / "stand-in").mkdir()
    (ferry.root / "stand-in" / "sitecustomize.py").write_text(MOUNTS_FROM.format(table=str(ferry.root / "mounts")))
    return f"{ferry.root}/stand-in:{ferry.variables()['PYTHONPATH']}"


@pytest.fixture
def clock(ordering: Ordering) -> Iterator[Daemon]:
    """Its daemon."""
    with listening(ordering) as running:
        yield running


def test_orders_are_carried_out_once_by_the_daemon_and_their_outcome_comes_back(
    ordering: Ordering, clock: Daemon
) -> None:
    run, pause = ordering.order("run"), ordering.order("pause", span="3d")
    strange, drill = ordering.order("run", "letters"), ordering.order("drill")
    fetchers = [threading.Thread(target=fetch, args=(ordering.host,)) for _ in range(3)]
    for each in fetchers:
        each.start()
    for each in fetchers:
        each.join()
    done = ordering.carried_on(run)
    assert (done.state, done.attempt, "moved" in done.said) == (OrderState.DONE, 1, True), done
    assert ordering.carried_on(pause).said.startswith("rests until")
    assert (ordering.carried_on(strange).state, ordering.record(strange).said) == (OrderState.REFUSED, "there is no job of this name")  # fmt: skip
    assert ordering.carried_on(drill).state in (OrderState.DONE, OrderState.FAILED)
    with ordering.host.settings.views() as views:
        acts = views.acts.newest(9)
        begun = [(each.kind.value, each.begun_why) for each in views.runs("photos", 9)]
    assert begun.count(("run", "ordered by ann at the centre")) == 1
    assert sorted((each.verb.value, each.who) for each in acts) == [
        ("drill", "ann by the centre"), ("pause", "ann by the centre"), ("run", "ann by the centre"),
    ]  # fmt: skip
    shown = ordering.host.ferry.run("fleet", "orders", "--centre", ordering.administrator)
    assert f"{run} web-1: run photos, by ann: done" in shown.out


def declare_datasets(host: FleetHost) -> None:
    """Declare two jobs of datasets of tank: one whose copy would lie there, too, and one that no machine without ZFS can run."""
    targets = host.ferry.config / "targets.toml"
    targets.write_text(
        targets.read_text() + '[place.own]\ndataset = "tank/copies"\n[place.lake]\ndataset = "lake/copies"\n'
    )
    for name, place in (("aside", "own"), ("letters", "lake")):
        text = f'engine = "zfs"\nsource = "tank/{name}"\ntarget = "{place}"\n[retry]\nattempts = 1\n'
        (host.ferry.config / "jobs" / f"{name}.toml").write_text(text)


def test_a_pool_is_evacuated_by_the_jobs_of_its_host_and_each_of_them_is_told_of(
    ordering: Ordering, mounted: str
) -> None:
    ferry = ordering.host.ferry
    ferry.job("music")
    declare_datasets(ordering.host)
    with listening(ordering, mounted) as running:
        evacuated, strange = ordering.order("evacuate", "tank"), ordering.order("evacuate", "lake")
        told, refused = ordering.carried_on(evacuated), ordering.carried_on(strange)
        for name in ("aside", "letters"):
            (ferry.config / "jobs" / f"{name}.toml").unlink()
        running.process.send_signal(signal.SIGHUP)
        running.says("etc: 2 jobs, ")
        whole = ordering.carried_on(ordering.order("evacuate", "tank"))
        other = ordering.carried_on(ordering.order("evacuate", "tank", guid="7"))
    assert (other.state, other.about) == (OrderState.FAILED, "guid 7"), other
    assert other.said.startswith(
        "refused: the pool tank cannot be asked for its guid, and not 7: it is another pool of that name"
    ), other
    assert (told.state, whole.state, refused.state) == (OrderState.FAILED, OrderState.DONE, OrderState.REFUSED), (
        told,
        whole.said,
    )
    assert refused.said == "no job's source lies on a pool lake of this machine; sources lie on: rpool, tank"
    photos, aside, letters, more, summary = told.said.splitlines()
    assert photos.startswith(f"photos (of {ferry.root}/photos-source): whole at photos-copies: "), told.said
    assert "2 files" in photos
    assert aside == "aside (of tank/aside): NOT whole at own: there is no other place: its copy lies on this very pool"
    assert letters.startswith("letters (of tank/letters): NOT whole at lake: "), told.said
    assert "poolferry restore pool tank --plan" in more
    assert summary == "1 of 3 jobs of tank is whole elsewhere; nothing was removed but by the jobs' own rules"
    assert whole.said.splitlines()[-1].startswith("1 of 1 job of tank is whole elsewhere; "), whole.said
    with ordering.host.settings.views() as views:
        evacuations = [each for each in views.acts.newest(9) if not each.about]
        acts = [(each.verb.value, each.subject, each.who) for each in evacuations]
        page = [
            [(found.run.job, found.run.kind.value) for found in map(views.run, each.runs) if found]
            for each in evacuations
        ]
        begun = [(each.kind.value, each.begun_why) for each in views.runs("photos", 9)]
        others = [each.job for name in ("music", "aside") for each in views.runs(name, 9)]
    assert acts == [("evacuate", "tank", "ann by the centre")] * 2
    assert begun == [("verify", "ordered by ann at the centre"), ("run", "ordered by ann at the centre")] * 2
    assert others == [], "no other job ran"
    assert page[0] == [("photos", "verify"), ("photos", "run")]
    assert {job for job, _ in page[1]} == {"photos", "letters"}, "the page of an act shows the runs of all its jobs"
    shown = ferry.run("fleet", "orders", "--centre", ordering.administrator).out
    assert f"{evacuated} web-1: evacuate tank, by ann: failed: {summary}\n    photos (of " in shown


def test_a_host_that_does_not_know_the_order_refuses_it_and_the_centre_says_why(
    ordering: Ordering, monkeypatch: pytest.MonkeyPatch
) -> None:
    ordering.host.send()
    number = ordering.order("evacuate", "tank")
    with monkeypatch.context() as of_before:
        of_before.setattr(order, "ORDERED", tuple(each for each in order.ORDERED if each.value != "evacuate"))
        fetch_by(ordering.host)
    shown = ordering.host.ferry.run("fleet", "orders", "--centre", ordering.administrator).out
    refused = f"{number} web-1: evacuate tank, by ann: refused by the host: "
    assert f"{refused}its poolferry {__version__} does not know evacuate; upgrade it there\n" in shown


@pytest.mark.parametrize(
    "pool", ["-x", "../etc", "tank\n", "$(id)", "tänk", "t" * (1 << 20)], ids=lambda each: each[:9]
)
@pytest.mark.sample(2)
def test_a_centre_that_was_taken_over_gets_nothing_done_by_a_pools_name(
    ordering: Ordering, centre: Centre, pool: str
) -> None:
    with pytest.raises(WrongRequest, match=r"pool: not a name|longer line"):
        ordering.order("evacuate", pool)
    with centre.administrator() as session:
        session.change("ALTER TABLE poolferry.orders DROP CONSTRAINT orders_job_check")
        session.change(
            "INSERT INTO poolferry.orders (host, verb, job, asked_by, deadline)"
            " SELECT id, 'evacuate', %s, 'ann', now() + interval '1h' FROM poolferry.hosts", (pool,)
        )  # fmt: skip
    fetch_by(ordering.host)
    (found,) = list_orders(ordering.host.settings, 5, centre=ordering.administrator)
    assert found.state is OrderState.REFUSED
    assert re.match(r"not understood: (pool: not a name|a longer line)", found.said), found.said
    assert not found.unknown_there


@pytest.mark.parametrize(("verb", "subject", "again"), [("run", "mail", True), ("evacuate", "tank", False)])
def test_what_the_daemons_death_cut_is_tried_once_more_where_that_does_no_harm(
    ordering: Ordering, mounted: str, verb: str, subject: str, *, again: bool
) -> None:
    waits = ordering.host.ferry.root / "waits"
    waits.write_text(f"#!/bin/sh\ntest -e {waits}.twice && exit 0\ntouch {waits}.once\nexec sleep 600\n")
    waits.chmod(0o755)
    ordering.host.ferry.job("mail", f'[hooks]\nbefore = ["{waits}"]\n')
    number = ordering.order(verb, subject)
    with listening(ordering, mounted) as first:
        fetch(ordering.host)
        until(lambda: Path(f"{waits}.once").exists(), "the run waits", lambda: first.log)
        until(lambda: ordering.record(number).state is OrderState.BEGUN, "the centre knows", lambda: first.log)
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait(10)
    Path(f"{waits}.twice").touch()
    with listening(ordering, mounted):
        done = ordering.carried_on(number)
    assert (done.state, done.attempt, done.unknown_end) == (
        (OrderState.DONE, 2, False) if again else (OrderState.FAILED, 1, True)
    ), done


def test_an_order_whose_end_nobody_knows_is_told_until_it_is_given_again(ordering: Ordering) -> None:
    """Seen: a pause that a daemon's death cut came once more, after a person there had resumed the job."""
    number, rests = ordering.order("pause", span="3d"), ordering.order("resume")
    with open_history(ordering.host.settings.where) as history:
        with ordering._centre.administrator() as session:
            rows = session.rows("SELECT key::text, verb FROM poolferry.orders ORDER BY id")
            session.change("UPDATE poolferry.orders SET state = 'begun', attempt = 1")
        for row in rows:
            history.acts.asked(
                ActVerb(row["verb"]), "photos", "", "ann by the centre", datetime.now(UTC), order=f"{row['key']}.1"
            )
        history.acts.end_open(ENDED_WITH_DAEMON, datetime.now(UTC))  # as the next daemon does first
    fetch_by(ordering.host)
    found = [ordering.record(each) for each in (number, rests)]
    assert [(each.state, each.attempt, each.unknown_end) for each in found] == [(OrderState.FAILED, 1, True)] * 2, found
    ferry, words = ordering.host.ferry, ("--centre", ordering.administrator)
    shown = ferry.run("fleet", "orders", *words).out
    assert (
        f"{number} web-1: pause photos for 3d, by ann: failed: the daemon there ended meanwhile, so it is not known what became of it"
        in shown
    )
    assert "see `poolferry schedule photos` on that host, then order it again if it is still wanted" in shown
    seen = ferry.run("fleet", "watch", *words)
    assert (seen.code, f"order {number} to web-1" in seen.out) == (4, True), seen
    again = "poolferry fleet order pause photos --host web-1 --for 3d"
    assert f"`{again}`" in seen.out
    ferry.run(*again.split()[1:], *words)
    seen = ferry.run("fleet", "watch", *words)
    assert (f"order {number} to web-1" in seen.out, f"order {rests} to web-1" in seen.out) == (False, True)


def test_a_second_attempt_is_known_at_the_centre_before_it_begins(ordering: Ordering) -> None:
    """Else a centre that is away meanwhile is told of a first attempt that came too late, while the second one goes on."""
    ordering.host.ferry.job("mail", '[hooks]\nbefore = ["/bin/sleep 60"]\n')
    number = ordering.order("run", "mail")
    with listening(ordering) as first:
        fetch(ordering.host)
        until(lambda: ordering.record(number).state is OrderState.BEGUN, "the centre knows", lambda: first.log)
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait(10)
    with open_history(ordering.host.settings.where) as history:
        history.acts.end_open(ENDED_WITH_DAEMON, datetime.now(UTC))  # as the next daemon does first
    with pytest.raises(OrchestratorError):  # which ends before it can be asked
        fetch_by(ordering.host)
    found = ordering.record(number)
    assert (found.state, found.attempt) == (OrderState.TAKEN, 2), found


def test_an_order_that_comes_too_late_is_not_carried_out(ordering: Ordering) -> None:
    never = ordering.order("run", within_s=0.1)
    time.sleep(0.2)
    fetch_by(ordering.host)
    found = ordering.record(never)
    assert (found.state, found.said) == (OrderState.EXPIRED, "its deadline passed before the host asked for orders")
    assert runs(ordering.host.ferry) == []


def test_a_host_fetches_its_own_orders_alone_and_can_place_none(
    tmp_path: Path, ordering: Ordering, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = ordering.order("run")
    other = FleetHost(tmp_path / "web-2", centre, "web-2", monkeypatch)
    monkeypatch.setattr(MACHINE, lambda: other.machine)
    assert fetch_by(other) == 0
    with centre.administrator() as session:
        row = session.first("SELECT key::text FROM poolferry.orders")
        assert row
    with centre.session(other.identity) as session:
        orders.report_order(session, row["key"], OrderState.DONE, attempt=1)
        for statement in ("INSERT INTO {} DEFAULT VALUES", "UPDATE {} SET verb = 'run'", "SELECT * FROM {}"):
            with pytest.raises(CentreRefused, match="does not allow"):
                session.change(statement.format("poolferry.orders"))
    assert ordering.record(number).state is OrderState.ASKED


def test_a_line_that_falls_silent_does_not_hold_the_fetcher(
    ordering: Ordering, centre: Centre, line: SilentLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders, "ANSWER_S", 0.5)
    number = ordering.order("pause")
    ordering.host.declare(f"postgresql://127.0.0.1:{line.port}/{centre.database}")
    with centre.session(ordering.host.identity):
        pass
    assert fetch_with(line, ordering) < 10
    ordering.host.declare(centre.address)
    assert ordering.record(number).state is OrderState.ASKED


def fetch_with(line: SilentLine, ordering: Ordering) -> float:
    """Return how long a fetch takes on a line that falls silent as soon as it stands."""
    from orchestrator.fleet import connection

    opened = connection.open_centre

    def open_and_silence(*given: object, **more: object) -> connection.CentreSession:
        session = opened(*given, **more)  # type: ignore[arg-type]
        line.silence()
        return session

    connection.open_centre = open_and_silence
    began = time.monotonic()
    try:
        with pytest.raises(CentreUnreachable, match="silent for"):
            fetch_by(ordering.host)
    finally:
        connection.open_centre = opened
    return time.monotonic() - began


@pytest.mark.parametrize(
    ("verb", "job"),
    [("restore", "photos"), ("eject", "photos"), ("run", "../etc"), ("run", "--all"), ("prune", "photos")],
)
def test_only_what_the_daemon_takes_can_be_ordered(verb: str, job: str) -> None:
    with pytest.raises(ValueError, match=r"ordered|name that one can have"):
        order_request(verb, job)


def test_the_commands_say_what_is_wrong(ordering: Ordering) -> None:
    ferry, administrator = ordering.host.ferry, ("--centre", ordering.administrator)
    assert ferry.run("fleet", "orders", *administrator).out == "nothing was ordered\n"
    for words, said in (
        (("run", "photos", "--host", "nowhere"), "no host nowhere has joined; there are web-1"),
        (("run", "photos", "--all"), "no host has told that it declares a job photos"),
        (("evacuate", "tank", "--all"), "no host has told of a job whose source is a dataset of a pool tank"),
        (("evacuate", "../tank", "--host", "web-1"), "pool: not a name that one can have"),
        (("evacuate", "tank", "--host", "web-1", "--point", "x"), "evacuate takes guid, pool alone"),
        (("run", "photos"), "expected --host HOST or --all"),
        (("pause", "photos", "--host", "web-1", "--for", "9y"), "span: expected one of"),
        (("cancel", "17"), "there is no order 17 that waits"),
    ):  # fmt: skip
        ended = ferry.run("fleet", "order", *words, *administrator)
        assert (ended.code != 0, said in ended.err) == (True, True), (words, ended)
    declare_datasets(ordering.host)
    ordering.host.send()
    placed = ferry.run("fleet", "order", "run", "photos", "--all", *administrator)
    assert placed.code == 0, placed.err
    assert "web-1: run photos, by " in placed.out
    assert ferry.run("fleet", "order", "cancel", "1", *administrator).out == "order 1: cancelled\n"
    placed = ferry.run("fleet", "order", "evacuate", "tank", "--all", "--json", *administrator)
    assert [(each["host"], each["pool"], each["job"]) for each in placed.value["orders"]] == [("web-1", "tank", "")]
    assert ferry.run("fleet", "order", "evacuate", "tan", "--all", *administrator).code != 0
