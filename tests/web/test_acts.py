"""Buttons: what a page of ours asks for is done by a real daemon and seen; what anybody else sends is not."""

import asyncio
import re
import shlex
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from orchestrator.app.acts import list_acts
from orchestrator.domain.act import MOST_PATHS
from orchestrator.web.act_forms import LONGEST_FORM
from orchestrator.web.guard import EntryKey
from tests.daemon.daemon_world import Daemon, daemon, runs, until
from tests.ferry import Ferry
from tests.web.sites import HOST, ODD, OURS, client, form, settings_of, token_in


@pytest.fixture
def clock(ferry: Ferry) -> Iterator[Daemon]:
    ferry.job()
    (ferry.root / "diaries").mkdir()
    (ferry.config / "poolferry.toml").write_text(f'[web]\nrestore-below = "{ferry.root}"\n')
    with daemon(ferry) as clock:
        until((ferry.state / "control.sock").exists, "it listens", lambda: clock.log)
        yield clock


def press(site: TestClient, page: str, act: str) -> str:
    """Press the button of an act on a page, with exactly the fields that its form has; return where it leads."""
    forms = re.findall(r'<form class="act".*?</form>', site.get(page).text, re.DOTALL)
    (found,) = [each for each in forms if f'name="act" value="{act}"' in each]
    fields = [(n, unescape(v)) for n, v in re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', found)]
    fields += [("span", v) for v in re.findall(r'<option value="(\w*)" selected', found)]
    told = site.post("/acts", content=urlencode(fields), headers=OURS)
    assert told.status_code == 303, told.text
    return str(told.headers["location"])


def test_each_button_is_done_and_seen(ferry: Ferry, clock: Daemon) -> None:
    site, settings = client(settings_of(ferry)), settings_of(ferry)

    def over() -> bool:
        return all(each.ended for each in list_acts(settings, 9))

    until(lambda: f"{ferry.root}/diaries" in site.get("/").text, "it is said what no job copies", lambda: clock.log)
    assert press(site, "/jobs/photos", "run") == "/jobs/photos#asked"
    until(over, "the run ends", lambda: clock.log)
    assert runs(ferry)[0]["outcome"] == "done"
    press(site, "/jobs/photos", "plan")
    until(over, "the plan ends", lambda: clock.log)
    page = site.get("/jobs/photos").text
    plan = re.findall(r'<pre class="output"[^>]*>([^<]+)</pre>', page)[0]
    assert unescape(plan).split("\n")[0].removeprefix("photos: ") in ferry.run("plan", "photos").out, (
        "as the command says it"
    )
    assert 'href="/runs/1">run 1</a>' in page
    assert press(site, "/jobs/photos", "pause") == "/jobs/photos#asked"
    page = site.get("/jobs/photos").text
    assert "rests until" in page
    assert 'value="pause"' not in page
    assert press(site, "/", "resume") == "/#asked"
    press(site, "/jobs/photos", "verify")
    until(over, "the verification ends", lambda: clock.log)
    point = re.findall(r'href="(/points/photos/[^"]+)"', site.get("/jobs/photos").text)[0]
    act = press(site, f"{point}?take=deep&take=b.bin", "restore")
    until(over, "the restore ends", lambda: clock.log)
    told = site.get(act).text
    assert told.count("restore of photos") == 2
    (folder,) = ferry.root.glob("poolferry-restored-*")
    assert (folder / "deep" / "a.txt").exists()
    listed = site.get("/acts").text
    for words in ("run photos", "pause photos for 7d", "resume photos", "verify photos", "restore aside from photos"):
        assert words in listed
    assert {each.well for each in list_acts(settings, 9)} == {True}


HOSTILE: tuple[dict[str, str], ...] = (
    {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:9744"}, {"Sec-Fetch-Site": "cross-site"}, {},
    {"Origin": HOST, "Host": "evil.example"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": HOST, "Content-Type": "text/plain"},
    {"Origin": HOST, "Content-Encoding": "gzip", "Content-Type": "application/x-www-form-urlencoded+gzip"},
    {"Origin": HOST, "Content-Type": "multipart/form-data; boundary=x"}, {"Origin": HOST, "Content-Type": "application/json"},
)  # fmt: skip


def test_what_no_page_of_ours_sent_does_nothing(ferry: Ferry, clock: Daemon) -> None:
    site = client(settings_of(ferry))
    good = urlencode(form(site, "pause", job="photos", span="3d"))
    for sent in HOSTILE:
        headers = {"Content-Type": OURS["Content-Type"], **sent}
        assert site.post("/acts", content=good, headers=headers).status_code in (403, 413, 421), sent
    assert site.get(f"/acts?{good}").status_code == 200, "a question is a question"
    for method in ("PUT", "DELETE", "PATCH"):
        assert site.request(method, "/acts", content=good, headers=OURS).status_code == 405
    forged = urlencode(form(site, "pause", job="photos", span="3d") | {"token": "0" * 32})
    told = site.post("/acts", content=forged, headers=OURS)
    assert (told.status_code, "while the status page was started again" in told.text) == (400, True), told.text
    key = EntryKey()
    closed = client(settings_of(ferry), key=key)
    assert closed.post("/acts", content=good, headers=OURS).status_code == 403, "no cookie"
    assert list_acts(settings_of(ferry), 9) == ()
    assert clock.process.poll() is None


BAD: tuple[dict[str, str], ...] = (
    {"act": "prune", "job": "photos"}, {"act": "destroy", "job": "photos"}, {"act": "enroll", "disk": "red"}, {"act": ODD}, {"act": ""},
    {"act": "run"}, {"act": "run", "job": ODD}, {"act": "run", "job": "../photos"}, {"act": "run", "job": "photos --all"},
    {"act": "run", "job": "photos", "span": "3d"}, {"act": "pause", "job": "photos", "span": "1s; reboot"}, {"act": "eject", "disk": "/dev/sda"},
    {"act": "restore", "job": "photos", "point": "latest", "path": "deep"},
    {"act": "restore", "job": "photos", "point": "2026-01-01T000000Z", "path": "../x"},
    {"act": "restore", "job": "photos", "point": "2026-01-01T000000Z"}, {"act": "run", "job": "photos", "token": "x"},
    {"act": "run", "job": "photos", "token": ""},
)  # fmt: skip


def test_forms_that_ask_for_something_else_are_refused(ferry: Ferry, clock: Daemon) -> None:
    site = client(settings_of(ferry))
    token = token_in(site.get("/jobs/photos").text)
    for fields in BAD:
        told = site.post("/acts", content=urlencode({"token": token, **fields}, errors="replace"), headers=OURS)
        assert told.status_code == 400, (fields, told.text)
        assert "<script>alert" not in told.text
    unknown = {"act": "run", "job": "nobody"}, {"act": "snooze", "disk": "red", "span": "3d"}
    for fields in unknown:
        told = site.post("/acts", content=urlencode({"token": token, **fields}), headers=OURS)
        assert (told.status_code, "of this name" in told.text) == (409, True), fields
    many = [("token", token), ("act", "restore"), ("job", "photos"), ("point", "2026-01-01T000000Z")]
    many += [("path", f"f{number}") for number in range(MOST_PATHS + 1)]
    assert site.post("/acts", content=urlencode(many), headers=OURS).status_code == 400
    for body in (b"", b"\xff", b"&" * 999, b"token", b"a=1&" * 500):
        assert site.post("/acts", content=body, headers=OURS).status_code == 400, body[:9]
    assert site.post("/acts", content=b"a" * (LONGEST_FORM + 1), headers=OURS).status_code == 413
    assert list_acts(settings_of(ferry), 9) == ()
    assert clock.process.poll() is None


def test_two_hundred_at_once_are_answered_and_few_are_done(ferry: Ferry, clock: Daemon) -> None:
    site = client(settings_of(ferry))
    body, codes = urlencode(form(site, "verify", job="photos")), list[int]()

    def send() -> None:
        codes.append(site.post("/acts", content=body, headers=OURS).status_code)

    threads = [threading.Thread(target=send) for _ in range(200)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert set(codes) <= {303, 409, 503}
    assert len(codes) == 200
    assert 1 <= len(list_acts(settings_of(ferry), 999)) <= 60
    assert site.get("/").status_code == 200
    assert clock.process.poll() is None


def test_without_a_daemon_it_says_which_command_starts_one_and_that_works(ferry: Ferry) -> None:
    ferry.job()
    site = client(settings_of(ferry))
    page = site.get("/jobs/photos").text
    assert 'action="/acts"' not in page
    hint = f"poolferry --config {ferry.config} --state {ferry.state} daemon"
    assert "the daemon is not running" in page
    found = [unescape(each) for each in re.findall(r"<code>(poolferry daemon[^<]*)</code>", page)]
    assert found, page
    assert sorted(found[0].split()) == sorted(hint.split())
    token = next(iter(re.findall(r'value="([^"]{32})"', page)), "")
    assert token == "", "a page without buttons has no token"
    with daemon(ferry) as clock:
        until((ferry.state / "control.sock").exists, "it listens", lambda: clock.log)
        fresh = client(settings_of(ferry))
        assert 'action="/acts"' in fresh.get("/jobs/photos").text
        asked = [form(fresh, act, job="photos") for act in ("acknowledge", "run", "plan", "verify", "pause", "resume")]
        asked[4]["span"] = "3d"
        clock.end()
        told = [fresh.post("/acts", content=urlencode(body), headers=OURS) for body in asked]
        point = {**asked[0], "act": "restore", "point": "2026-01-01T000000Z", "path": "deep"}
        restored = fresh.post("/acts", content=urlencode(point), headers=OURS)
    for answer in (*told, restored):
        assert answer.status_code == 503
        assert "the daemon is not running, so nothing was asked for" in answer.text
        assert "/jobs/photos" in answer.text or "/points/photos/2026-01-01T000000Z?take=deep" in answer.text, (
            "the way back"
        )
    typed = [command_in(answer.text) for answer in (*told, restored)]
    assert typed[0] == ""
    assert "restore run photos --point 2026-01-01T000000Z --path=deep --to" in typed.pop()
    for each in typed[1:]:
        ended = ferry.run(*shlex.split(each)[1:])
        assert ended.code == 0, (each, ended.err)


def command_in(page: str) -> str:
    """The command by which the page says that it is done without a daemon; empty: there is none."""
    _, _, rest = page.partition("it needs no daemon</span>")
    return unescape(re.findall(r"<code>([^<]+)</code>", rest)[0]) if rest else ""


def test_what_is_pressed_in_a_second_tab_is_done_once_and_leads_back(ferry: Ferry, clock: Daemon) -> None:
    site = client(settings_of(ferry))
    body = urlencode(form(site, "run", job="photos"))
    with ThreadPoolExecutor(8) as tabs:
        told = list(tabs.map(lambda _: site.post("/acts", content=body, headers=OURS), range(8)))
    later = [each for each in told if each.status_code == 409]
    assert {each.status_code for each in told} <= {303, 409}
    for each in later:
        assert "run of photos was asked for, and goes on" in each.text
        assert '<a href="/jobs/photos">Back to the page' in each.text
    gone = form(site, "restore", job="photos", point="2026-01-01T000000Z", path="deep")
    told = [site.post("/acts", content=urlencode(gone), headers=OURS)]
    assert "history knows no such point" in told[0].text
    hint = unescape(re.findall(r"<code>(poolferry points photos[^<]*)</code>", told[0].text)[0])
    assert ferry.run(*shlex.split(hint)[1:]).code == 0
    assert '<a href="/jobs/photos">Back' in told[0].text
    until(lambda: all(each.ended for each in list_acts(settings_of(ferry), 9)), "it ends", lambda: clock.log)
    assert 1 <= len(runs(ferry)) == 8 - len(later)


def test_a_demonstration_records_and_starts_nothing(ferry: Ferry) -> None:
    ferry.job()
    site = client(settings_of(ferry), demo=True)
    press(site, "/jobs/photos", "pause")
    press(site, "/", "resume")
    press(site, "/jobs/photos", "run")
    assert "this is a demonstration: nothing is copied" in site.get("/jobs/photos").text
    assert runs(ferry) == []


def test_a_body_that_never_ends_is_given_up(ferry: Ferry, monkeypatch: pytest.MonkeyPatch) -> None:
    from orchestrator.web import site as site_module

    ferry.job()
    monkeypatch.setattr(site_module, "_PATIENCE_S", 0.2)
    program, sent = client(settings_of(ferry)).app, list[dict[str, object]]()
    pieces = [{"type": "http.request", "body": b"token=x", "more_body": True}]

    async def receive() -> dict[str, object]:
        if pieces:
            return pieces.pop()
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost:9743"), *((n.lower().encode(), v.encode()) for n, v in OURS.items())]
    scope = {
        "type": "http", "method": "POST", "path": "/acts", "raw_path": b"/acts", "query_string": b"", "headers": headers,
        "http_version": "1.1", "scheme": "http", "root_path": "", "server": ("localhost", 9743), "client": None,
    }  # fmt: skip
    asyncio.run(asyncio.wait_for(program(scope, receive, send), 20))  # type: ignore[arg-type]
    assert sent[0]["status"] == 413
