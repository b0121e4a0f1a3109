"""The centre's own look: silent hosts, two owners of one target, one disk at two hosts, and old rows; once each, with notices."""

import contextlib
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator import compose
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.rotation import DiskRecord, DiskState
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import Bytes
from orchestrator.fleet.enrolment import change_quota
from tests.ferry import Ferry
from tests.fleet.centres import Centre
from tests.fleet.hosts import FleetHost
from tests.history.records import NOON, finish

_NOTICES = """
[notice.admin]
kind = "webhook"
url = "http://127.0.0.1:9/nobody-listens"
"""
RED = DiskRecord(
    disk="", name="red", set="offsite", identity="uuid-1", content="ext4", size=9, serial="", model="", wwn="", generation=1, written=1,
    enrolled=NOON, standing=DiskState.ACTIVE,
)  # fmt: skip


def _age(centre: Centre, span: str) -> None:
    """Make all that hosts told older, by the centre's own clock."""
    with centre.administrator() as session:
        session.change("ALTER TABLE poolferry.beats DISABLE TRIGGER USER")
        session.change("UPDATE poolferry.beats SET seen_at = seen_at - %s::interval", (span,))
        session.change("ALTER TABLE poolferry.beats ENABLE TRIGGER USER")


def test_a_silent_host_is_named_once_and_its_return_too(
    tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch, ferry: Ferry
) -> None:
    hosts = [FleetHost(tmp_path / name, centre, name, monkeypatch) for name in ("web-1", "web-2")]
    for host in hosts:
        host.ferry.job()
        host.send()
    watch = ("fleet", "watch", "--centre", centre.server.url(centre.database))
    (ferry.config / "poolferry.toml").write_text(_NOTICES)
    quiet = ferry.run(*watch)
    assert (quiet.code, quiet.out) == (0, "2 hosts, none is silent\n"), quiet.err
    _age(centre, "1 hour")
    hosts[1].send()
    seen = ferry.run(*watch)
    assert (seen.code, "host web-1: it has been silent for 1 h" in seen.out) == (4, True), seen
    assert "web-2" not in seen.out
    ferry.run(*watch)
    hosts[0].send()
    assert ferry.run(*watch).code == 0
    told = [each["subject"] for each in ferry.run("notices", "list", "--json").value["notices"]]
    assert len(told) == 2, told
    assert "host web-1: well again" in told[0] or "host web-1: well again" in told[1]


def test_on_the_worst_day_people_read_what_it_means_and_not_ten_thousand_names(centre: Centre, ferry: Ferry) -> None:
    with centre.administrator() as session:
        session.change(
            "INSERT INTO poolferry.hosts (name, role, machine, joined_at) SELECT 'web-' || n, 'poolferry_w' || n, 'm', now() - interval '9 days'"
            " FROM generate_series(1, 3000) AS n"
        )
        session.change(
            "INSERT INTO poolferry.beats (host, seen_at, host_at, every_s, version)"
            " SELECT id, now() - interval '3 days', now() - interval '3 days', 300, '1' FROM poolferry.hosts"
        )
    words = ("--centre", centre.server.url(centre.database))
    (ferry.config / "poolferry.toml").write_text(_NOTICES)
    seen, status = ferry.run("fleet", "watch", *words), ferry.run("fleet", "status", *words)
    for said in (seen.out, status.out):
        assert "3000 of 3000 hosts are silent at once: look first at the centre" in said
        assert "and 2950 more" in said
        assert said.count("\n") < 120
    with contextlib.closing(sqlite3.connect(ferry.state / "history.sqlite")) as history:
        ((subject, body, facts),) = history.execute("SELECT subject, body, facts FROM messages").fetchall()
    assert subject.endswith(" and 2995 more: needs a person")
    assert "3000 of 3000 hosts are silent at once" in body
    assert (len(subject) < 200, len(body) < 20_000, len(facts) < 40_000) == (True, True, True)


def test_two_owners_of_one_target_and_a_disk_at_two_hosts_are_named(
    tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch, ferry: Ferry
) -> None:
    for name, target in (
        ("web-1", "ssh://root@nas:22/srv/photos"),
        ("web-2", "ssh://nas/srv/photos"),
        ("nas", "/srv/mail"),
    ):
        host = FleetHost(tmp_path / name, centre, name, monkeypatch)
        host.ferry.job()
        with host.history() as history:
            finish(history, Outcome.DONE, target=target)
            state = DiskState.LOST if name == "nas" else DiskState.ACTIVE
            history.disks.keep(replace(RED, disk=f"red-{name}", standing=state))
        host.send()
    with centre.administrator() as session:
        session.change("INSERT INTO poolferry.orders (host, verb, job, asked_by, asked_at, deadline, state)"
                       " SELECT id, 'run', 'photos', 'ann', now() - interval '3 years', now(), 'done' FROM poolferry.hosts")  # fmt: skip
    seen = ferry.run("fleet", "watch", "--centre", centre.server.url(centre.database))
    assert seen.code == 4, seen.err
    assert "target nas/srv/photos: web-1 photos and web-2 photos copy to the same place" in seen.out
    assert "disk uuid-1: web-1 (red) and web-2 (red) count the same disk as theirs" in seen.out
    assert "3 old rows removed" in seen.out
    assert "mail" not in seen.out


def test_the_weekly_letter_is_about_all_hosts_and_sent_once_a_week(
    tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch, ferry: Ferry
) -> None:
    for name in ("web-1", "web-2"):
        host = FleetHost(tmp_path / name, centre, name, monkeypatch)
        host.ferry.job()
        host.record(outcome=Outcome.FAILED if name == "web-2" else Outcome.DONE, now=compose.now() - timedelta(hours=1))
        host.send()
    with centre.administrator() as session:
        change_quota(session, "web-1", Bytes(100))
    watch = ("fleet", "watch", "--centre", centre.server.url(centre.database))
    (ferry.config / "poolferry.toml").write_text(_NOTICES)
    seen = ferry.run(*watch)
    assert (seen.code, "quota of web-1: it told" in seen.out) == (4, True), seen
    with contextlib.closing(sqlite3.connect(ferry.state / "history.sqlite")) as history, history:
        assert history.execute("UPDATE digests SET day = date(day, '-7 days')").rowcount == 1
    for _ in range(2):
        assert ferry.run(*watch).code == 4
    (letter,) = [each for each in ferry.run("notices", "list", "--json").value["notices"] if each["kind"] == "digest"]
    assert "hosts: 2 heard; 0 jobs late or failing" in letter["subject"]
    with contextlib.closing(sqlite3.connect(ferry.state / "history.sqlite")) as history:
        ((shown,),) = history.execute("SELECT body FROM messages WHERE kind = 'digest'").fetchall()
    for words in (
        "2 hosts: 2 heard",
        "1 run well, 1 badly",
        "web-2: 1 run badly",
        "quota of web-1: it told",
        "sent each week",
    ):
        assert words in shown, shown
