"""The pages over all hosts: the same as `fleet status` and `fleet runs`, with filters, only where they were asked for."""

import re
from html import unescape
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from orchestrator.app.control import DaemonControl
from orchestrator.domain.run import Outcome
from orchestrator.web.fleet_pages import FleetPages
from orchestrator.web.pages import Pages
from orchestrator.web.site import Site
from tests.ferry import Ferry
from tests.fleet.centres import Centre
from tests.fleet.hosts import FleetHost
from tests.web.sites import HOST, client, settings_of


def words(page: str) -> str:
    """The words of a page, without its marks."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def test_hosts_and_runs_of_all_hosts_are_shown(
    ferry: Ferry, centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("web-1", "db-1"):
        host = FleetHost(tmp_path / name, centre, name, monkeypatch)
        host.ferry.job()
        host.record(f"<b>{name}</b>", Outcome.FAILED if name == "db-1" else Outcome.DONE)
        host.send()
    settings = settings_of(ferry)
    pages = Pages(settings, DaemonControl(settings), fleet=True)
    site = Site(pages, fleet=FleetPages(pages, settings, centre.server.url(centre.database)))
    asked = TestClient(site.program, base_url=HOST)
    front = asked.get("/fleet")
    assert front.status_code == 200
    assert "All hosts are well" in words(front.text)
    assert "Hosts: 2 heard. Jobs: 2 new." in words(front.text)
    assert '<a href="/fleet" aria-current="page">Fleet</a>' in front.text
    assert "web-1" not in words(asked.get("/fleet?name=db").text)
    assert "No host fits" in words(asked.get("/fleet?state=silent").text)
    runs = asked.get("/fleet/runs")
    assert "&lt;b&gt;web-1&lt;/b&gt;" in runs.text
    assert "<b>" not in runs.text
    failed = words(asked.get("/fleet/runs?outcome=failed").text)
    assert ("db-1" in failed, "web-1" in failed) == (True, False)
    assert "No run fits" in words(asked.get("/fleet/runs?host=nobody&outcome=strange").text)
    centre.server.drop_database(centre.database)
    away = asked.get("/fleet")
    assert (away.status_code, "poolferry fleet invite" in away.text or "gives no answer" in words(away.text)) == (
        503,
        True,
    )


def test_a_page_of_one_host_has_none_of_it(ferry: Ferry) -> None:
    ferry.job()
    asked = client(settings_of(ferry))
    assert asked.get("/fleet").status_code == 404
    assert 'href="/fleet' not in asked.get("/").text
    told = ferry.run("web", "--fleet", "--listen", "127.0.0.1:0")
    assert (told.code, "no centre is declared" in told.err) == (2, True)
