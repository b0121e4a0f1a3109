"""Each address that there is, attacked: a new route is in these tests by itself, and fails them until its parts have a good value here."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlencode

import pytest
from starlette.routing import Route

from orchestrator import compose
from orchestrator.app.control import DaemonControl
from orchestrator.domain.act import ActVerb
from orchestrator.domain.run import Outcome
from orchestrator.history.store import open_history
from orchestrator.web.guard import HEADERS, EntryKey
from orchestrator.web.live import MOST_STREAMS
from orchestrator.web.pages import Pages
from orchestrator.web.site import Site
from tests.ferry import Ferry
from tests.history.records import begin, report
from tests.web.sites import ODD, OURS, exactly, settings_of

GOOD = {"name": "photos", "job": "photos", "number": "1", "path": "deep/a.txt", "topic": "promises"}
OTHER = {
    "/runs/{number}": {"number": "2"},
    "/static/{name}": {"name": "app.css"},
    "/points/{job}/{point}/{path:path}": {"path": "deep"},
}
ASKED = ("year", "before", "job", "q", "first", "take", "key", "token", "act", "anything")
BARE = re.compile(r"<script>alert|\u202e|root:|Traceback|1787569")  # {{1337*1337}}
STREAM, ENTRY = "/live/{topic:path}", "/enter"
HOSTILE = (
    "..", "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "..%2f..%2fetc%2fpasswd", "/etc/passwd", "deep/../../x", "x%00y", "%ff%fe", "%0d%0aSet-Cookie:%20a=b",
    "-rf", "photos%20--all", "9" * 40, "-1", "1e3", "%D9%A1", "{{1337*1337}}", "%7B%7B1337*1337%7D%7D", "$(id)", "a" * 4000, "CON", "*",
    quote(ODD, safe="", errors="surrogateescape"),
    "runs/1/../../x", "jobs/" + quote("<script>alert(1)</script>"), "acts/0", "runs/99999999999999999999", "'%20OR%201=1--",
)  # fmt: skip


class Machine:
    """A machine in whose history every text is as odd as can be, and who asks its pages."""

    def __init__(self, ferry: Ferry) -> None:
        ferry.job()
        assert ferry.run("run", "photos").code == 0
        targets = ferry.config / "targets.toml"
        targets.write_text(targets.read_text() + "[set.offsite]\n")
        self.settings, now = settings_of(ferry), datetime.now(UTC)
        with open_history(str(ferry.state / "history.sqlite")) as history:
            self.run = begin(history, now=now - timedelta(hours=1), source=f"/srv/{ODD}", why=ODD)
            history.said(self.run, now, "warning", ODD)
            told = report(self.run, outcome=Outcome.FAILED, why=ODD, hint=ODD, warnings=(ODD,), evidence=(ODD,))
            history.ended(self.run, told, now)
            act = history.acts.asked(ActVerb.VERIFY, "photos", ODD, ODD, now)
            history.acts.ended(act, well=False, said=ODD, now=now)
            folders = [ODD.encode("utf-8", "surrogateescape").hex()]
            seen = {"datasets": [ODD], "folders": folders, "trouble": ODD, "at": now.isoformat()}
            history.remember("", "uncovered", json.dumps(seen))
        self.point = (ferry.target() / "latest").readlink().name

    def site(self, key: EntryKey | None = None) -> Site:
        """Return the pages."""
        return Site(Pages(self.settings, DaemonControl(self.settings)), key=key)


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return Machine(Ferry(tmp_path_factory.mktemp("odd")))


@pytest.fixture
def site(machine: Machine) -> Site:
    return machine.site()


def address(route: Route, machine: Machine, **other: str) -> str:
    """Return an address of a route. `other`: values of its parts, as they stand in an address."""
    month = compose.now().astimezone().strftime("%Y-%m")
    values = {**GOOD, "point": machine.point, "month": month, **OTHER.get(route.path, {}), **other}
    return re.sub(r"\{(\w+)(?::\w+)?\}", lambda part: values[part[1]], route.path)


def addresses(site: Site, machine: Machine) -> Iterator[tuple[str, str]]:
    """Yield each route that shows something, and a good address of it."""
    for route in site.routes:
        if "GET" in (route.methods or ()) and route.path != STREAM:
            yield route.path, address(route, machine)


def test_odd_names_are_text_on_every_page(site: Site, machine: Machine) -> None:
    shown = set()
    for path, good in addresses(site, machine):
        status, headers, text = exactly(site, good)
        assert status in ((403,) if path == ENTRY else (200, 301)), (good, text[:300])
        assert not BARE.search(text), good
        shown |= {path} if "&lt;script&gt;alert" in text else set()
        for name, value in HEADERS:
            assert headers[name.decode()] == value.decode(), good
    assert shown >= {
        "/",
        "/jobs/{name}",
        "/runs",
        "/runs/{number}",
        "/acts",
        "/acts/{number}",
        "/report",
        "/report/{month}",
    }


def test_no_part_of_any_address_leads_elsewhere(site: Site, machine: Machine) -> None:
    for route in site.routes:
        for name in re.findall(r"\{(\w+)", route.path):
            for value in HOSTILE:
                status, headers, text = exactly(site, address(route, machine, **{name: value}))
                assert status in (404, 414), (route.path, name, value, status)
                assert not BARE.search(text), (route.path, value)
                assert "set-cookie" not in headers


def test_no_question_disturbs_any_page(site: Site, machine: Machine) -> None:
    for path, good in addresses(site, machine):
        for value in HOSTILE:
            status, _, text = exactly(site, f"{good}?{'&'.join(f'{name}={value}' for name in ASKED)}"[:8000])
            assert status in (200, 301, 403, 404, 414), (path, value, status)
            assert not BARE.search(text), (path, value)


def test_every_address_is_closed_to_other_pages_names_and_people(machine: Machine) -> None:
    site, closed = machine.site(), machine.site(EntryKey())
    for route in site.routes:
        good = address(route, machine)
        assert exactly(site, good, sent={"Host": "evil.example"})[0] == 421, good
        assert exactly(site, good + "?" + "a" * 1_000_000)[0] == 414, good
        assert exactly(closed, good)[0] == (200 if route.path.startswith("/static/") else 403), good
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            for sent in ({}, {"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
                assert exactly(site, good, method=method, sent=sent)[0] == 403, (method, good)
            status = exactly(site, good, method=method, sent=OURS, body=urlencode({"act": "run"}).encode())[0]
            assert status == (400 if (method, route.path) == ("POST", "/acts") else 405), (method, good)


# An image, a stream, a frame of another page, and one of another port of this machine.
TAKEN = (
    ("cross-site", "no-cors", "image"), ("cross-site", "cors", "empty"), ("cross-site", "navigate", "iframe"), ("same-site", "no-cors", "script"),
)  # fmt: skip


def test_no_other_page_takes_anything_into_itself_but_may_lead_here(site: Site, machine: Machine) -> None:
    names = ("Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest")
    for route in site.routes:
        good = address(route, machine)
        for sent in TAKEN:
            assert exactly(site, good, sent=dict(zip(names, sent, strict=True)))[0] == 403, (good, sent)
    for sent in (
        ("cross-site", "navigate", "document"),
        ("same-origin", "cors", "empty"),
        ("none", "navigate", "document"),
    ):
        assert exactly(site, "/", sent=dict(zip(names, sent, strict=True)))[0] == 200, sent


def test_streams_are_bounded(site: Site) -> None:
    site.streams._open = MOST_STREAMS
    status, headers, _ = exactly(site, "/live/promises")
    assert (status, headers["retry-after"]) == (503, "60")
