"""Two machines with one name, one password and one machine-id, as a virtual machine that was copied: one of them speaks for the host."""

import contextlib
import errno
import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator.app.fleet_orders import list_orders
from orchestrator.app.fleet_watch import watch_once
from orchestrator.config.this_machine import machine_id_hash
from orchestrator.domain.errors import CentreUnreachable, HistoryError
from orchestrator.domain.order import OrderState
from orchestrator.fleet import tickets
from orchestrator.fleet.credentials import keep_identity, read_identity
from orchestrator.fleet.orders import report_order
from orchestrator.fleet.tickets import NameInUse, show_ticket, take_order
from tests.ferry import Ferry
from tests.fleet.centres import Centre
from tests.fleet.hosts import MACHINE, FleetHost
from tests.fleet.order_host import Ordering, fetch_by
from tests.history.records import NOON

JOBS = "SELECT job FROM poolferry.runs WHERE NOT removed ORDER BY job"
SILENT = "UPDATE poolferry.tickets SET shown_at = shown_at - interval '16 minutes'"


@pytest.fixture
def host(tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch) -> FleetHost:
    """A host that has joined and told of a run."""
    made = FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch, machine=machine_id_hash())
    made.ferry.job()
    made.record("before")
    made.send()
    return made


def copy_of(host: FleetHost, name: str) -> FleetHost:
    """The same machine once more, as it is at this moment."""
    root = host.ferry.root.parent / name
    root.mkdir()
    copy = object.__new__(FleetHost)
    copy.__dict__.update(host.__dict__)
    copy.ferry = Ferry(root)
    shutil.copytree(host.ferry.root, root, dirs_exist_ok=True)
    return copy


def jobs(centre: Centre) -> list[str]:
    """The jobs of all runs at the centre, however often each is there."""
    with centre.administrator() as session:
        return [row["job"] for row in session.rows(JOBS)]


def show(host: FleetHost, *, renew: bool = True) -> str:
    """Show the ticket of a host."""
    with host.centre.session(host.identity) as session:
        return show_ticket(session, str(host.ferry.state), name=host.name, machine=host.machine, renew=renew)


def test_a_copy_that_runs_beside_the_first_is_refused_and_named_and_loses_nothing(
    host: FleetHost, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = copy_of(host, "twin")
    host.record("first")
    twin.record("second", now=NOON + timedelta(hours=1))
    host.send()
    for _ in range(2):
        with pytest.raises(NameInUse, match=r"another machine speaks at the centre as web-1, .*its runs go on"):
            twin.send()
        with pytest.raises(NameInUse):
            fetch_by(twin)
        assert host.send().rows == 0
        fetch_by(host)
    assert jobs(centre) == ["before", "first"]
    address = centre.server.url(centre.database)
    found = {each.about: each for each in watch_once(host.settings, centre=address, keep=timedelta(days=730)).bad}
    assert "two machines visit the centre as web-1" in found["copies of web-1"].why

    with centre.administrator() as session:
        session.change(SILENT)
    assert twin.send().rows > 0, "it is taken in once the other one is silent"
    with pytest.raises(NameInUse):
        host.send()
    host.record("late", now=NOON + timedelta(hours=2))
    with centre.administrator() as session:
        session.change(SILENT)
    host.send()
    assert jobs(centre) == ["before", "first", "late", "second"], "each once, whoever comes after whom"

    left = twin.ferry.run("fleet", "leave")
    assert (left.code, "at the centre web-1 stays a member" in left.err) == (0, True), left
    assert read_identity(str(twin.ferry.state)) is None
    assert host.send().rows == 0, "the first one is a member still"
    keep_identity(str(twin.ferry.state), centre.join("web-2", machine="2" * 32))
    twin.machine = "2" * 32
    twin.send()
    with centre.administrator() as session:
        own = "SELECT job FROM poolferry.runs JOIN poolferry.hosts h ON h.id = host WHERE h.name = 'web-2' ORDER BY job"
        assert [row["job"] for row in session.rows(own)] == ["before", "second"]
    monkeypatch.setattr(MACHINE, lambda: host.machine)


def test_a_copy_with_another_machine_id_leaves_the_first_one_a_member(
    tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FleetHost(tmp_path / "db-1", centre, "db-1", monkeypatch)
    host.send()
    left = copy_of(host, "other").ferry.run("fleet", "leave")  # by the machine-id of this machine, which is another one
    assert (left.code, "another machine joined as db-1" in left.err) == (0, True), left
    assert host.send().rows == 0


def test_a_copy_leaves_alone_also_while_the_first_one_is_silent(host: FleetHost, centre: Centre) -> None:
    """Seen: it was taken in, as the other one was silent, and ended the membership of both."""
    twin = copy_of(host, "twin")
    host.send()
    with centre.administrator() as session:
        session.change(SILENT)
    left = twin.ferry.run("fleet", "leave")
    assert (left.code, "another one went on as that host" in left.err) == (0, True), left
    assert "at the centre web-1 stays a member" in left.err, left
    assert host.send().rows == 0, "the first one is a member still"
    left = host.ferry.run("fleet", "leave")
    assert (left.code, "stays a member" in left.err) == (0, False), left
    with centre.administrator() as session:
        assert session.rows("SELECT name FROM poolferry.hosts WHERE left_at IS NULL") == []
    assert (host.ferry.state / "locks" / "fleet-ticket").read_bytes() == b""


def test_an_order_is_taken_by_one_of_two_copies(host: FleetHost, centre: Centre) -> None:
    ordering = Ordering(host, centre)
    number, taken = ordering.order("run"), ordering.order("plan")
    ticket = show(host)
    with centre.administrator() as session:
        keys = {row["id"]: row["key"] for row in session.rows("SELECT id, key::text AS key FROM poolferry.orders")}
    with centre.session(host.identity) as one, centre.session(host.identity) as other:
        assert take_order(one, keys[number], attempt=1, ticket=ticket)
        assert not take_order(other, keys[number], attempt=1, ticket=ticket), "a copy that was made while it ran"
        newer = show(host)
        assert not take_order(other, keys[taken], attempt=1, ticket=ticket), "nobody begins with an older ticket"
        assert take_order(one, keys[taken], attempt=1, ticket=newer)
        report_order(one, keys[taken], OrderState.DONE, attempt=1)
        assert not take_order(one, keys[taken], attempt=2, ticket=show(host)), "what is over is not begun again"


def test_what_was_taken_by_the_one_that_is_gone_is_not_begun_again(host: FleetHost, centre: Centre) -> None:
    """A host that was put back to yesterday: whether the order was carried out since is told as unknown."""
    ordering, yesterday = Ordering(host, centre), copy_of(host, "yesterday")
    number = ordering.order("run")
    with centre.session(host.identity) as session:
        (key,) = [
            row["key"] for row in session.rows("SELECT key::text FROM poolferry.fetch_orders(%s)", (host.machine,))
        ]
        assert take_order(session, key, attempt=1, ticket=show(host))
    with centre.administrator() as session:
        session.change(SILENT)
    yesterday.send()
    assert fetch_by(yesterday) == 1
    (found,) = list_orders(yesterday.settings, 5, centre=ordering.administrator)
    assert (found.id, found.state, "not known what became of it" in found.said) == (number, OrderState.FAILED, True)


def test_a_host_whose_answers_are_lost_is_no_copy_of_itself(host: FleetHost, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, ask = list[object](), tickets._ask

    def cut_before(*given: object) -> None:
        asked.append(given)
        raise CentreUnreachable("cut before it arrived")

    def cut_after(*given: object) -> None:
        ask(*given)  # type: ignore[arg-type]
        cut_before()

    for cuts in ((cut_after,), (cut_after, cut_before), (cut_before, cut_after), (cut_after, cut_after, cut_before)):
        for cut in cuts:
            with monkeypatch.context() as away, contextlib.suppress(CentreUnreachable):
                away.setattr(tickets, "_ask", cut)
                show(host)
        assert show(host, renew=False)
    assert len(asked) == 8


def test_a_ticket_that_is_lost_or_of_another_centre_is_taken_in_after_a_while(
    host: FleetHost, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    with centre.administrator() as session:  # put back to a copy of yesterday
        session.change("UPDATE poolferry.tickets SET ticket = gen_random_uuid(), shown_at = now() - interval '1 day'")
        assert host.send().waiting == 0
        session.change("UPDATE poolferry.tickets SET ticket = gen_random_uuid(), shown_at = now() + interval '1 day'")
        assert host.send().waiting == 0, "the centre's clock was set back"
        session.change(
            "CREATE TABLE public.was AS SELECT host, gen_random_uuid() AS ticket, shown_at, life FROM poolferry.tickets"
        )
        session.change(
            "UPDATE public.was SET life = replace(life, right(life, 1), 'x')"
        )  # as tables of a moment ago that are put back
        session.change("UPDATE poolferry.tickets t SET ticket = w.ticket, life = w.life FROM public.was w")
        assert host.send().waiting == 0, "a copy of a moment ago was put back, or a standby took over"
        (host.ferry.state / "locks" / "fleet-ticket").write_bytes(b"\0" * 74)
        with pytest.raises(NameInUse):
            host.send()
        session.change(SILENT)
        with monkeypatch.context() as full:
            full.setattr(
                os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device"))
            )
            for _ in range(2):
                assert host.send().waiting == 0, "a disk that takes nothing: the process knows"
        assert host.send().waiting == 0
        with monkeypatch.context() as full:
            full.setattr(
                os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device"))
            )
            assert host.send().waiting == 0
        monkeypatch.setattr(tickets._TicketFile, "_unwritten", {})
        assert host.send().waiting == 0, "the next start knows no ticket but the file's"
        (host.ferry.state / "locks" / "fleet-ticket").unlink()
        (host.ferry.state / "locks" / "fleet-ticket").symlink_to("nowhere")
        with pytest.raises(HistoryError, match=r"cannot be opened: .*fleet-ticket"):
            host.send()
        (host.ferry.state / "locks" / "fleet-ticket").unlink()
        session.change("DROP FUNCTION poolferry.show_ticket")
        assert host.send().waiting == 0, "a centre of before tickets"
