"""Requests that get a page: who may ask, under which name, from where; and what no address reaches."""

import re

import pytest
from starlette.testclient import TestClient

from orchestrator.app.control import DaemonControl
from orchestrator.web.guard import HEADERS, EntryKey, connected_user
from orchestrator.web.pages import Pages
from orchestrator.web.site import Site
from tests.ferry import Ferry
from tests.web.sites import HOST, client, exactly, settings_of

PAGES = [
    "/",
    "/runs",
    "/disks",
    "/pools",
    "/jobs/photos",
    "/live/promises",
    "/static/app.css",
    "/enter?key=x",
    "/nothing",
]


@pytest.fixture
def site(ferry: Ferry) -> TestClient:
    ferry.job()
    return client(settings_of(ferry))


def test_a_foreign_name_gets_no_page(site: TestClient) -> None:
    for page in PAGES:
        for host in (
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:9743",
            "",
            "localhost:x",
            "localhost@evil.example",
        ):
            told = site.get(page, headers={"Host": host})
            assert told.status_code == 421, (page, host)
            assert "photos" not in told.text


def test_names_of_this_machine_get_one(site: TestClient) -> None:
    for host in ("localhost", "127.0.0.1:1", "[::1]:9743", "LOCALHOST:80"):
        assert site.get("/", headers={"Host": host}).status_code == 200, host


def test_a_name_that_was_given_gets_one(ferry: Ferry) -> None:
    ferry.job()
    site = client(settings_of(ferry), names=("Backup.example",))
    assert site.get("/", headers={"Host": "backup.example"}).status_code == 200
    assert site.get("/", headers={"Host": "other.example"}).status_code == 421


FOREIGN: tuple[dict[str, str], ...] = (
    {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:9744"}, {}, {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-origin", "Origin": "https://evil.example"}, {"Origin": f"{HOST}.evil.example"},
)  # fmt: skip


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_what_another_page_sends_is_refused(site: TestClient, method: str) -> None:
    for page in ("/", "/runs", "/static/app.css", "/live/promises", "/nothing"):
        for sent in FOREIGN:
            assert site.request(method, page, headers=sent).status_code == 403, (page, sent)


def test_an_origin_that_comes_twice_is_none(ferry: Ferry) -> None:
    ferry.job()
    program = Site(Pages(settings_of(ferry), DaemonControl(settings_of(ferry)))).program
    told = TestClient(program, base_url=HOST).post(
        "/acts", headers=[("Origin", HOST), ("Origin", "https://evil.example"), ("Sec-Fetch-Site", "same-origin")]
    )
    assert told.status_code == 403


def test_what_our_own_page_sends_changes_nothing_yet(site: TestClient) -> None:
    assert site.post("/runs", headers={"Origin": HOST}).status_code == 405


def test_each_answer_forbids_what_a_browser_might_do(site: TestClient) -> None:
    for page in PAGES:
        if page.startswith("/live/"):
            continue  # a stream: tests/web/test_server.py reads one
        told = site.get(page)
        for name, value in HEADERS:
            assert told.headers[name.decode()] == value.decode(), page
        policy = told.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "http" not in policy
        if "html" in told.headers["content-type"]:
            assert told.headers["cache-control"] == "no-store"
            assert not re.search(r"<script(?![^>]* src=\"/static/)|\son\w+=|\sstyle=|javascript:|<style", told.text), (
                page
            )
            assert not re.search(r"(?:src|href)=\"(?:https?:)?//", told.text), "nothing comes from elsewhere"


class TestEntry:
    """The link that is good once."""

    @pytest.fixture
    def key(self) -> EntryKey:
        return EntryKey(lambda _: 1000)

    @pytest.fixture
    def closed(self, ferry: Ferry, key: EntryKey) -> TestClient:
        ferry.job()
        return client(settings_of(ferry), key=key)

    def test_nothing_is_shown_without_a_cookie(self, closed: TestClient) -> None:
        for page in ("/", "/runs", "/live/promises", "/jobs/photos", "/nothing"):
            for cookie in ("", "poolferry=", "poolferry=x", "poolferry=\xe4", 'poolferry="', "other=1"):
                told = closed.get(page, headers={b"Cookie": cookie.encode("latin-1")})
                assert told.status_code == 403, (page, cookie)
                assert "photos" not in told.text

    def test_a_link_is_good_once(self, closed: TestClient, key: EntryKey) -> None:
        entered = closed.get(f"/enter?key={key.link}")
        assert entered.status_code == 303
        cookie = entered.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in cookie.split(";")}
        assert key.link not in cookie
        assert closed.get("/").status_code == 200
        closed.cookies.clear()
        assert closed.get(f"/enter?key={key.link}").status_code == 403
        assert closed.get("/").status_code == 403

    def test_a_guess_enters_nowhere_and_uses_nothing_up(self, closed: TestClient, key: EntryKey) -> None:
        for guess in ("", "x", "%ff", key.link[:-1], key.link + "x"):
            assert closed.get(f"/enter?key={guess}").status_code == 403
        assert closed.get(f"/enter?key={key.link}").status_code == 303

    def test_who_only_looks_where_the_link_leads_does_not_use_it_up(self, closed: TestClient, key: EntryKey) -> None:
        told = closed.head(f"/enter?key={key.link}")
        assert (told.status_code, "set-cookie" in told.headers) == (200, False)
        assert closed.get(f"/enter?key={key.link}").status_code == 303

    def test_the_cookie_is_not_known_before_the_entry(self, key: EntryKey) -> None:
        assert key.enter("x", {}) is None
        assert not key.admits("", {})

    def test_the_kernel_is_asked_only_who_has_a_secret(self, ferry: Ferry) -> None:
        """Its tables are long, and anybody on this machine can ask for pages."""
        asked = list[object]()

        def find_user(scope: object) -> int:
            asked.append(scope)
            return 1000

        key = EntryKey(find_user)
        ferry.job()
        site = client(settings_of(ferry), key=key)
        for page in ("/", "/enter?key=x", "/enter"):
            assert site.get(page, headers={"Cookie": "poolferry=x"}).status_code == 403
        assert asked == []
        assert (site.get(f"/enter?key={key.link}").status_code, len(asked)) == (303, 1)
        assert (site.get(f"/enter?key={key.link}").status_code, len(asked)) == (403, 1)
        assert (site.get("/").status_code, len(asked)) == (200, 2)

    def test_who_cannot_be_told_gets_no_cookie_and_uses_nothing_up(self, ferry: Ferry) -> None:
        users = [None, 1000, None, 1000]
        key = EntryKey(lambda _: users.pop(0))
        ferry.job()
        site = client(settings_of(ferry), key=key)
        told = site.get(f"/enter?key={key.link}")
        assert (told.status_code, "does not tell which user" in told.text, "set-cookie" in told.headers) == (
            403,
            True,
            False,
        )
        assert site.get(f"/enter?key={key.link}").status_code == 303
        assert [site.get("/").status_code, site.get("/").status_code] == [403, 200]

    def test_tables_that_cannot_be_read_tell_nobody(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(path: str, **_: object) -> None:
            raise PermissionError(path)

        monkeypatch.setattr("builtins.open", refuse)
        found = connected_user({"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)})
        monkeypatch.undo()
        assert found is None


NOTHING = (
    "/static/../site.py", "/static/..%2fsite.py", "/static/%2e%2e/site.py", "/static/app.css/", "/static/", "/static//etc/passwd",
    "/jobs/..%2f..%2fetc%2fpasswd", "/jobs/photos%00", "/jobs/photos/../../x", "/jobs/", "/jobs/-x", "/live/", "/live/runs/",
    "/live/runs/x", "/live/runs/1/2", "/runs/0x1", "/runs/-1", "/runs/1.5", "/runs/%D9%A1", "/runs/" + "9" * 40,
    "/runs/9223372036854775807", "/runs/999999999999999999", "/runs?job=..%2fx", "/runs?job=nobody", "/jobs/%ff", "/%ff", "/..%2f",
    "//evil.example/",
)  # fmt: skip


def test_an_address_that_names_nothing_reaches_nothing(site: TestClient) -> None:
    for page in NOTHING:
        told = site.get(HOST + page)
        assert told.status_code == 404, page
        assert "Traceback" not in told.text
        assert "root:" not in told.text


def test_nonsense_in_a_question_is_the_usual_page(site: TestClient) -> None:
    questions = (
        "/runs?before=x",
        "/runs?before=-1",
        f"/runs?before={'9' * 30}",
        "/jobs/photos?year=99999",
        "/jobs/photos?year=x",
    )
    for page in questions:
        assert site.get(page).status_code == 200, page


def test_a_question_of_a_megabyte_is_refused(ferry: Ferry) -> None:
    ferry.job()
    site = Site(Pages(settings_of(ferry), DaemonControl(settings_of(ferry))))
    assert exactly(site, "/?" + "a" * 1_000_000)[0] == 414
    assert exactly(site, "/jobs/" + "a" * 100_000)[0] == 414
    assert exactly(site, "/?" + "a" * 1_000)[0] == 200
