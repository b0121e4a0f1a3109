"""The pages over all hosts: the same as `fleet status` and `fleet runs`, with filters, only where they were asked for."""

import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from starlette.testclient import TestClient

from orchestrator.app.control import DaemonControl
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.order import OrderState
from orchestrator.domain.permit import DeclaredLimit
from orchestrator.domain.run import Outcome
from orchestrator.fleet.overview import survey_fleet
from orchestrator.fleet.permits import declare_limit
from orchestrator.views.fleet import fleet_lines
from orchestrator.web.fleet_pages import FleetPages
from orchestrator.web.pages import Pages
from orchestrator.web.site import Site
from tests.ferry import Ferry
from tests.fleet.centres import Centre
from tests.fleet.hosts import HOUR, FleetHost, beat, told
from tests.web.aria_text import axe_findings, check_kept, page_text
from tests.web.sites import HOST, ODD, client, settings_of, text_of
from tests.web.states import served


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
    assert "All hosts are well" in text_of(front.text)
    assert "Hosts: 2 heard. Jobs: 2 new." in text_of(front.text)
    assert '<a href="/fleet" aria-current="page">Fleet</a>' in front.text
    assert "web-1" not in text_of(asked.get("/fleet?name=db").text)
    assert "No host fits" in text_of(asked.get("/fleet?state=silent").text)
    runs = asked.get("/fleet/runs")
    assert "&lt;b&gt;web-1&lt;/b&gt;" in runs.text
    assert "<b>" not in runs.text
    failed = text_of(asked.get("/fleet/runs?outcome=failed").text)
    assert ("db-1" in failed, "web-1" in failed) == (True, False)
    assert "No run fits" in text_of(asked.get("/fleet/runs?host=nobody&outcome=strange").text)
    assert "No job of engine" in text_of(asked.get("/fleet/pools?host=web-1").text)
    centre.server.drop_database(centre.database)
    away = asked.get("/fleet")
    assert (away.status_code, f"createdb {centre.database}" in text_of(away.text)) == (503, True), text_of(away.text)


# A chip is a few words: what is long stands below it.
_FITS = "document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll('.chip')].every(each => each.offsetWidth < 270)"
FLEET_PAGES = (
    "/fleet",
    "/fleet?state=silent",
    "/fleet/runs",
    "/fleet/runs?outcome=failed",
    "/fleet/runs?host=nobody",
    "/fleet/pools",
    "/fleet/orders",
    "/fleet/permits",
)


def test_the_pages_are_accessible_fit_and_answer_to_keys(
    ferry: Ferry, browser: Browser, centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst day of a fleet, in a real Chromium: silent, late, a clock that is wrong, and a host that tells markup."""
    settings, pictures, parts = settings_of(ferry), os.environ.get("PICTURES", ""), list[tuple[str, str]]()
    pages = Pages(settings, DaemonControl(settings), fleet=True)
    site = Site(pages, fleet=FleetPages(pages, settings, centre.server.url(centre.database)))
    with served(site) as address:
        page = browser.new_page(bypass_csp=True)
        page.goto(f"{address}/fleet")
        expect(page.get_by_role("heading", level=1)).to_have_text("No host was invited yet")
        expect(page.get_by_label("How a host joins")).to_contain_text("poolferry fleet invite HOST")
        now = datetime.now(UTC)
        late = told("<b>photos</b>", copied=now - 9 * HOUR)
        beat(centre, "web-1", late, told("mail", copied=now - 30 * HOUR, state="failing"), clock=3 * HOUR, mistakes=2)
        tank = replace(told("tank", copied=None, late_after=None), engine="pool", source="<b>tank</b>")
        beat(centre, "db-1", told("databases", copied=now), tank)
        centre.join("new-1")
        with centre.administrator() as session:
            session.change(
                "ALTER TABLE poolferry.beats DISABLE TRIGGER USER"
            )  # which stamps a sign of life with the centre's clock
            session.change(
                "UPDATE poolferry.beats SET seen_at = seen_at - interval '1 day' FROM poolferry.hosts "
                "WHERE hosts.id = beats.host AND hosts.name = 'db-1'"
            )
            status = fleet_lines(survey_fleet(session), datetime.now(UTC), lambda text, _: text)
        host = FleetHost(tmp_path / "nas-1", centre, "nas-1", monkeypatch)
        host.record(ODD[:60].replace("\n", " "), Outcome.FAILED)
        host.send()
        order_and_lend(centre, "web-1")
        for path in FLEET_PAGES:
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                page.goto(address + path)
                assert axe_findings(page) == [], path
                for width in (360, 1280, 2560):
                    page.set_viewport_size({"width": width, "height": 900})
                    assert page.evaluate(_FITS), (path, width)
                    if pictures:
                        page.screenshot(
                            path=f"{pictures}/fleet{FLEET_PAGES.index(path)}-{width}-{scheme}.png", full_page=True
                        )
            parts.append((path, _without_ages(page_text(page, tmp_path))))
        page.goto(f"{address}/fleet")
        shown = _without_ages(text_of(page.content()).replace(" :", ":"))
        assert len(status) == 10
        for line in status[2:]:
            assert all(_without_ages(part) in shown for part in re.split(r"  +|: ", line.strip())), line
        page.get_by_label("Host", exact=True).press_sequentially("db")
        page.keyboard.press("Enter")
        expect(page.locator("tbody").get_by_role("link")).to_have_text("db-1")
        page.get_by_label("State").press("n")
        page.get_by_role("button", name="Show").press("Space")
        expect(page.get_by_text("No host fits")).to_be_visible()
        centre.server.drop_database(centre.database)
        page.goto(f"{address}/fleet")
        parts.append(("a centre that gives no answer", _without_ages(page_text(page, tmp_path))))
        page.close()
    check_kept("fleet", parts)


def order_and_lend(centre: Centre, host: str) -> None:
    """Make orders in each state, and permits of each kind, with what a host and a person may write into each column."""
    odd = ODD.encode("utf-8", "replace").decode() + "w" * 60
    with centre.administrator() as session:
        for state in OrderState:
            said = "a (of <b>/srv</b>): whole\n" + odd if state is OrderState.FAILED else odd
            session.change(
                "INSERT INTO poolferry.orders (host, verb, job, asked_by, asked_at, deadline, state, said, attempt)"
                " SELECT id, %s, %s, %s, '2026-01-02 12:00Z', '2030-01-01 12:00Z', %s, %s, 2 FROM poolferry.hosts WHERE name = %s",
                ("evacuate" if state is OrderState.FAILED else "run", odd, odd, state.value, said, host),
            )
        declare_limit(session, DeclaredLimit(name="link", slots=2))
        declare_limit(
            session,
            DeclaredLimit(name="l" * 100, slots=100_000, between="18:00-07:00", zone="America/Argentina/Buenos_Aires"),
        )
        session.change(
            "INSERT INTO poolferry.permits (host, job, weight, lease, granted_at, taken) SELECT h.id, %s || n, 1, '1h', now(), n > 1"
            " FROM poolferry.hosts h, generate_series(1, 2) n WHERE h.name = %s", (odd, host)
        )  # fmt: skip
        session.change(
            "INSERT INTO poolferry.permit_parts SELECT p.id, l.id, 1 FROM poolferry.permits p, poolferry.limits l"
        )


def test_the_pages_of_300_hosts_say_how_many_are_shown_and_fit(ferry: Ferry, browser: Browser, centre: Centre) -> None:
    settings = settings_of(ferry)
    pages = Pages(settings, DaemonControl(settings), fleet=True)
    site = Site(pages, fleet=FleetPages(pages, settings, centre.server.url(centre.database)))
    with centre.administrator() as session:
        session.change(
            "INSERT INTO poolferry.hosts (name, role, machine, joined_at) SELECT 'web-' || n || repeat('w', 50), 'poolferry_w' || n, 'm',"
            " now() - interval '9 days' FROM generate_series(1, 300) AS n"
        )
        session.change(
            "INSERT INTO poolferry.orders (host, verb, job, asked_by, deadline) SELECT id, 'run', 'photos', 'ann', now() FROM poolferry.hosts"
        )
        declare_limit(session, DeclaredLimit(name="link", slots=2))
        session.change(
            "INSERT INTO poolferry.permits (host, job, weight, lease, granted_at) SELECT id, 'photos', 1, '1h', now() FROM poolferry.hosts"
        )
        session.change(
            "INSERT INTO poolferry.permit_parts SELECT p.id, l.id, 1 FROM poolferry.permits p, poolferry.limits l"
        )
    with served(site) as address:
        page = browser.new_page(bypass_csp=True, viewport={"width": 360, "height": 900})
        for path, said in (
            ("/fleet", "The first 200 are shown; name the others above."),
            ("/fleet/orders", "The newest 100; poolferry fleet orders --limit lists more."),
            ("/fleet/permits", "The first 200 of 300; poolferry fleet permits lists all."),
        ):
            page.goto(address + path)
            expect(page.get_by_text(said)).to_be_visible()
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert axe_findings(page) == []
        page.close()


def _without_ages(text: str) -> str:
    """Return the text of a page without what is another one each time: the centre judges by its own clock, which cannot stand."""
    text = re.sub(r"the centre postgresql:\S+ (.*): connection failed: [^\n]*", r'the centre ADDRESS \1"', text)
    text = re.sub(r"createdb fleet_\w+", "createdb NAME", text)
    return re.sub(r"\b\d+(\.\d+)? (d|h|min|s)( \d+ (h|min|s))?\b", "AGE", text)


def test_a_page_of_one_host_has_none_of_it(ferry: Ferry) -> None:
    ferry.job()
    asked = client(settings_of(ferry))
    assert asked.get("/fleet").status_code == 404
    assert 'href="/fleet' not in asked.get("/").text
    told = ferry.run("web", "--fleet", "--listen", "127.0.0.1:0")
    assert (told.code, "no centre is declared" in told.err) == (2, True)
