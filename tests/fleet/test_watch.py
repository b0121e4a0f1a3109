"""The centre's own look: silent hosts, two owners of one target, one disk at two hosts, and old rows; once each, with notices."""

from pathlib import Path

import pytest

from orchestrator.domain.run import Outcome
from tests.ferry import Ferry
from tests.fleet.centres import Centre
from tests.fleet.hosts import FleetHost
from tests.history.records import finish

_NOTICES = """
[notice.admin]
kind = "webhook"
url = "http://127.0.0.1:9/nobody-listens"
"""


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
        host.send()
    with centre.administrator() as session:
        session.change(
            "INSERT INTO poolferry.records (host, subject, incarnation, key, seq, born, body) SELECT id, 'disk', 1, 'red-' || id, 1, 1,"
            " jsonb_build_object('name', 'red', 'identity', 'uuid-1', 'standing', CASE WHEN name = 'nas' THEN 'lost' ELSE 'active' END)"
            " FROM poolferry.hosts"
        )
        session.change("INSERT INTO poolferry.orders (host, verb, job, asked_by, asked_at, deadline, state)"
                       " SELECT id, 'run', 'photos', 'ann', now() - interval '3 years', now(), 'done' FROM poolferry.hosts")  # fmt: skip
    seen = ferry.run("fleet", "watch", "--centre", centre.server.url(centre.database))
    assert seen.code == 4, seen.err
    assert "target nas/srv/photos: web-1 photos and web-2 photos copy to the same place" in seen.out
    assert "disk uuid-1: web-1 (red) and web-2 (red) count the same disk as theirs" in seen.out
    assert "3 old rows removed" in seen.out
    assert "mail" not in seen.out
