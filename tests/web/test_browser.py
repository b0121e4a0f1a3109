"""The pages in a real Chromium: they open, a keyboard reaches all, axe-core finds nothing, and a real run is seen live."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from orchestrator.app.control import DaemonControl
from orchestrator.domain.run import Outcome
from orchestrator.history.store import open_history
from orchestrator.web.pages import Pages
from orchestrator.web.site import Site
from tests.ferry import ROOT, Ferry
from tests.history.records import begin, report
from tests.web.aria_text import axe_findings
from tests.web.pictures import FOLDER, PICTURES, SCHEMES, make_pictures
from tests.web.sites import settings_of
from tests.web.states import long_names, made_state, served, standing_clock, three_hundred_sources
from tests.whole.house import wait_until

RUN = "the newest run of the mail"
POINT = "the newest point of the photos"
VERSIONS = "a photo in all points"
PAGES = (
    "/",
    "/jobs/music",
    "/jobs/archive",
    "/runs",
    RUN,
    POINT,
    "/disks",
    "/pools",
    "/acts",
    "/reading",
    "/report",
    VERSIONS,
    "/nothing",
)
# What has the focus, whether a line around it shows that, and whether nothing covers it.
FOCUSED = """(() => {
    const found = document.activeElement, style = getComputedStyle(found), box = found.getClientRects()[0];
    const top = document.elementFromPoint(box.left + box.width / 2, box.top + Math.min(box.height / 2, 20));
    return [found.outerHTML, style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2, found.contains(top)];
})()"""
REACHABLE = """[...document.querySelectorAll('a[href], button, summary, select, input, [tabindex="0"]')]
    .filter((each) => each.checkVisibility()).map((each) => each.outerHTML)"""


def open_page(context: BrowserContext, address: str) -> Page:
    """Open a page that must say nothing to the console."""
    page = context.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    if address.endswith(RUN):
        page.goto(address.replace(RUN, "/runs?job=mail"))
        page.get_by_role("cell").get_by_role("link").first.click()
    elif address.endswith(POINT):
        page.goto(address.replace(POINT, "/jobs/photos"))
        page.get_by_role("link", name="look into the newest").click()
        page.get_by_role("checkbox").first.check()
        page.get_by_role("button", name="Show how").click()
    elif address.endswith(VERSIONS):
        page.goto(address.replace(VERSIONS, "/jobs/photos"))
        page.get_by_role("link", name="look into the newest").click()
        page.get_by_role("link", name="2026/").click()
        page.get_by_role("link", name="03/").click()
        page.get_by_role("link", name="in all points").first.click()
    else:
        page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert [line for line in said if "404 (Not Found)" not in line] == []
    return page


# The regions of a page that is just opened in which something lies where no scroll comes to.
LOST = """() => [...document.querySelectorAll(".scroll, .wide")].filter(region => {
    const seen = region.getBoundingClientRect(), room = region.scrollWidth - region.clientWidth;
    const backwards = getComputedStyle(region).direction === "rtl";
    const [left, right] = backwards ? [seen.left - room, seen.right] : [seen.left, seen.right + room];
    return [...region.querySelectorAll("svg, table")].some(each => {
        const lies = each.getBoundingClientRect();
        return lies.width && (lies.left < left - 1 || lies.right > right + 1);
    });
}).map(region => region.getAttribute("aria-label"))"""


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.long)])
def test_each_page_opens_is_accessible_and_fits(demo: tuple[str, BrowserContext], scheme: str) -> None:
    address, context = demo
    for path in PAGES if scheme == "light" else ("/", "/jobs/music", RUN, POINT):
        page = open_page(context, address + path)
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert axe_findings(page) == [], path
        for width in (360, 1280, 2560):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, width)
            assert page.evaluate(LOST) == [], (path, width)
        page.close()


def test_no_name_is_too_long_for_a_page(browser: Browser, tmp_path: Path) -> None:
    """Of 255 letters without a place to break, and from right to left."""
    site, pages = long_names(tmp_path)
    page = browser.new_page(viewport={"width": 360, "height": 800})
    with served(site) as address:
        for path in pages:
            page.goto(address + path)
            for width in (360, 1280):
                page.set_viewport_size({"width": width, "height": 800})
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (path, width)
                assert page.evaluate(LOST) == [], (path, width)
    page.close()


def test_a_keyboard_reaches_all_in_order_and_shows_where_it_is(demo: tuple[str, BrowserContext]) -> None:
    address, context = demo
    for path in ("/jobs/music", "/disks", RUN, POINT, VERSIONS):
        page = open_page(context, address + path)
        page.set_viewport_size({"width": 1000, "height": 600})  # little room: what the focus comes to is scrolled to
        wanted, reached = page.evaluate(REACHABLE), []
        for _ in range(len(wanted)):
            page.keyboard.press("Tab")
            where, outlined, uncovered = page.evaluate(FOCUSED)
            reached.append(where)
            assert (outlined, uncovered) == (True, True), (path, where)
        assert reached == wanted, path
        page.reload()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        page.close()


def test_the_button_for_what_is_ticked_stays_in_view_and_says_how_many_that_are(
    demo: tuple[str, BrowserContext],
) -> None:
    address, context = demo
    page = open_page(context, address + POINT)
    page.goto(page.url.partition("?")[0] + "/2026/03?take=2019")
    page.set_viewport_size({"width": 1280, "height": 500})
    assert page.evaluate(HEIGHT) > 1000, "a folder that is longer than the window"
    show = page.get_by_role("button", name="Show how")
    expect(page.locator("#ticked")).to_have_text("1 ticked")
    page.get_by_role("checkbox").nth(1).check()
    expect(show).to_be_in_viewport(ratio=1)
    page.get_by_role("checkbox").last.check()
    expect(page.locator("#ticked")).to_have_text("3 ticked")
    show.click()
    expect(page.get_by_role("heading", name="To bring them back")).to_be_visible()
    expect(page.locator("#ticked")).to_have_text("3 ticked")
    page.close()


def test_enter_and_space_do_what_a_click_does(demo: tuple[str, BrowserContext]) -> None:
    address, context = demo
    page = open_page(context, f"{address}/jobs/archive")
    opened = page.locator("details", has=page.get_by_text("as a table")).first
    for key, state in (("Enter", ""), ("Space", None), ("Space", "")):
        opened.locator("summary").press(key)
        assert opened.get_attribute("open") == state
    page.get_by_role("combobox").press("3")  # for 3 days, by its letters or its arrows
    page.get_by_role("combobox").press("ArrowDown")
    page.get_by_role("button", name="Pause").press("Space")
    expect(page.locator("#asked")).to_contain_text("pause archive for")
    page.get_by_role("button", name="Resume").press("Enter")
    expect(page.locator("#asked")).to_contain_text("runs again at its times")
    page.get_by_role("link", name="look into the newest").first.press("Enter")
    page.get_by_label("Name", exact=True).press_sequentially("dsc-0300")
    page.keyboard.press("Enter")
    expect(page.get_by_role("row").filter(has_text="dsc-0300").first).to_contain_text("in ")
    page.get_by_role("checkbox").first.press("Space")
    expect(page.get_by_role("checkbox").first).to_be_checked()
    page.get_by_role("button", name="Show how").press("Space")
    page.get_by_role("button", name="Restore it aside now").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("restore aside from archive")
    page.close()


def test_without_scripts_the_pages_say_the_same(browser: Browser, demo: tuple[str, BrowserContext]) -> None:
    address, entered = demo
    context = browser.new_context(java_script_enabled=False)
    context.add_cookies(entered.cookies())  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{address}/")
    expect(page.get_by_role("heading", name="Running now")).to_be_visible()
    page.get_by_role("link", name="music").first.click()
    page.get_by_text("as a table").click()
    expect(page.get_by_role("cell", name="damaged, or without a manifest")).to_be_visible()
    page.get_by_role("link", name="look into the newest").click()
    page.get_by_role("link", name="2026/").click()
    page.get_by_role("link", name="03/").click()
    page.get_by_role("link", name="in all points").first.click()
    folded = page.get_by_role("row").filter(has_text="points, unchanged").first
    expect(folded.get_by_role("link")).to_have_count(0)
    folded.locator("summary").click()
    expect(folded.get_by_role("link").first).to_be_visible()
    page.goto(f"{address}/runs")
    page.get_by_label("Job").select_option("mail")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Runs of mail")
    page.get_by_role("link", name="Older").click()
    expect(page.get_by_role("link", name="Newest")).to_be_visible()
    page.goto(f"{address}/jobs/documents")
    page.get_by_role("combobox").select_option("3d")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#asked")).to_contain_text("pause documents for 3d")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#asked")).to_contain_text("runs again at its times")
    context.close()


def test_the_pictures_of_the_pages_are_of_these_pages(demo: tuple[str, BrowserContext], tmp_path: Path) -> None:
    """`make pictures` makes them; here one is made, and those that are kept have its form and are small."""
    address, context = demo
    (made, _) = make_pictures(context, address, tmp_path, ("front",))
    shown = {
        path
        for page in (ROOT / "README.md", ROOT / "jobs" / "web.md")
        for path in re.findall(r"\w+-\w+\.webp", page.read_text())
    }
    assert shown == {f"{name}-{scheme}.webp" for name in PICTURES for scheme in SCHEMES}
    for name in shown:
        kept = (FOLDER / name).read_bytes()
        assert kept[:16] == made.read_bytes()[:4] + kept[4:8] + made.read_bytes()[8:16], "the same kind of file"
        assert len(kept) < 80_000


def test_the_report_of_a_month_is_a_page_or_two_of_paper(demo: tuple[str, BrowserContext]) -> None:
    address, context = demo
    page = open_page(context, f"{address}/report")
    printed = page.pdf(prefer_css_page_size=True)
    assert printed.startswith(b"%PDF-")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 2
    page.emulate_media(media="print")
    expect(page.get_by_text("Seen on")).to_be_visible()
    expect(page.get_by_role("navigation").first).not_to_be_visible()
    on_paper = [page.locator(".soft").first.evaluate("(each) => getComputedStyle(each).color")]
    page.emulate_media(media="print", color_scheme="dark")
    on_paper.append(page.locator(".soft").first.evaluate("(each) => getComputedStyle(each).color"))
    assert on_paper[0] == on_paper[1], "paper is white for who likes it dark, too"
    page.close()


OFF_PAPER = """() => [...document.querySelectorAll("main *")].filter(
    (each) => each.getBoundingClientRect().right > innerWidth + 1 && !each.closest(".visually-hidden, svg")).map((each) => each.outerHTML)"""


@pytest.mark.long
def test_nothing_that_is_printed_is_cut_at_the_edge_of_the_paper(browser: Browser, tmp_path: Path) -> None:
    """A4 has room for 1,032 pixels within its margins, and for 703 where a printer turns it."""
    long, pages = long_names(tmp_path / "long")
    (tmp_path / "worst").mkdir()
    with standing_clock():
        worst = made_state("worst-day", tmp_path / "worst")
        page = browser.new_page()
        for site, paths in ((long, pages), (worst, ["/report", "/jobs/mail", "/disks", "/reading"])):
            with served(site) as address:
                for path in paths:
                    page.goto(address + path)
                    page.emulate_media(media="print")
                    for opened in page.locator("details table").all():
                        expect(opened).to_be_visible()
                    for width in (1032, 703):
                        page.set_viewport_size({"width": width, "height": 720})
                        assert page.evaluate(OFF_PAPER) == [], (path, width)
                    page.emulate_media(media="null")
        page.close()


@pytest.mark.long
def test_one_line_of_three_hundred_is_sent_when_one_changed_and_the_focus_stays(
    browser: Browser, tmp_path: Path
) -> None:
    ferry = three_hundred_sources(tmp_path)
    settings, sent, now = settings_of(ferry), list[int](), datetime.now(UTC)
    page = browser.new_page()
    with (
        served(Site(Pages(settings, DaemonControl(settings)))) as address,
        open_history(str(ferry.state / "history.sqlite")) as history,
    ):
        told = page.context.new_cdp_session(page)
        told.on("Network.eventSourceMessageReceived", lambda event: sent.append(len(event["data"])))
        told.send("Network.enable")
        page.goto(address)
        expect(page.locator("#live")).to_have_text("live")
        page.evaluate("document.getElementById('source-j8').dataset.kept = 'yes'")
        line = page.locator("#source-j7")
        line.get_by_role("link", name="j7").focus()
        run = begin(history, "j7", now=now)
        history.ended(run, report(run, "j7", Outcome.FAILED, why="no room"), now)
        expect(page.get_by_role("article").filter(has_text="no room")).to_be_visible(timeout=20_000)
        run = begin(history, "j7", now=now)
        history.ended(run, report(run, "j7"), now)
        expect(page.get_by_role("article").filter(has_text="no room")).to_have_count(0, timeout=20_000)
        history.point_made("j7", "p7", "2026-11-25T023000Z", run, entries=1, bytes=1, taken=now, now=now)
        history.point_verified("j7", "p7", "2026-11-25T023000Z", run, now)
        expect(line).to_contain_text("2 points", timeout=20_000)
        expect(page.get_by_role("listitem").filter(has_text="/srv/").last).to_have_id("source-j7")
        expect(line.get_by_role("link", name="j7")).to_be_focused()
        expect(page.locator("#source-j8")).to_have_attribute("data-kept", "yes")
    assert len(sent) >= 3
    assert max(sent) < 30_000, "all of it is 300,000"
    page.close()


HEIGHT = "document.documentElement.scrollHeight"


def test_a_page_of_three_hundred_sources_is_as_long_as_it_turns_out_to_be(browser: Browser, tmp_path: Path) -> None:
    """Lines far below are laid out when they come near: a page that grows by that jumps under who scrolls."""
    settings, page = settings_of(three_hundred_sources(tmp_path)), browser.new_page(bypass_csp=True)
    with served(Site(Pages(settings, DaemonControl(settings)))) as address:
        for width in (360, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(address)
            expect(page.locator("#live")).to_have_text("live")
            told = page.evaluate(HEIGHT)
            page.add_style_tag(content=".many > .source { content-visibility: visible !important; }")
            assert page.evaluate(HEIGHT) == pytest.approx(told, rel=0.1), width
    page.close()


def test_three_hundred_sources_are_painted_soon(browser: Browser, tmp_path: Path) -> None:
    """In the processor's time of the page's own thread, as other work on the machine is none of ours; the better of two."""
    settings, took, nodes = settings_of(three_hundred_sources(tmp_path)), list[float](), list[float]()
    with served(Site(Pages(settings, DaemonControl(settings)))) as address:
        for _ in range(2):
            page = browser.new_page()
            measured = page.context.new_cdp_session(page)
            measured.send("Performance.enable", {"timeDomain": "threadTicks"})
            page.goto(address)
            expect(page.get_by_role("listitem").filter(has_text="/srv/299 ")).to_be_visible()
            expect(page.locator("#live")).to_have_text("live")
            assert page.evaluate("performance.getEntriesByName('first-contentful-paint').length") == 1
            told = measured.send("Performance.getMetrics")["metrics"]
            took.append(next(each["value"] for each in told if each["name"] == "TaskDuration"))
            nodes.append(next(each["value"] for each in told if each["name"] == "Nodes"))
            page.close()
    assert min(took) < 0.4, took
    assert min(nodes) < 12_000, "one page of 300 sources has 9,500; drawn twice it has twice as many"


SEEN = """(seen) => {
    Object.defineProperty(document, "hidden", { value: !seen, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_tab_that_nobody_sees_holds_no_stream_and_says_what_is_when_it_is_seen_again(
    browser: Browser, ferry: Ferry
) -> None:
    """A browser opens six connections to one address: of more open tabs the next would get no page."""
    ferry.job()
    settings = settings_of(ferry)
    site, context = Site(Pages(settings, DaemonControl(settings))), browser.new_context()
    with served(site) as address:
        tabs = [context.new_page() for _ in range(8)]
        for page in tabs:
            page.goto(address)
            expect(page.locator("#live")).to_have_text("live")
            if page is not tabs[-1]:
                page.evaluate(SEEN, False)
        wait_until(lambda: site.streams._open == 1)
        now = datetime.now(UTC)
        with open_history(str(ferry.state / "history.sqlite")) as history:
            run = begin(history, now=now, target=str(ferry.target()))
            history.ended(run, report(run, outcome=Outcome.FAILED, why="no room"), now)
        expect(tabs[-1].get_by_role("article").filter(has_text="no room")).to_be_visible(timeout=20_000)
        assert tabs[0].get_by_text("no room").count() == 0
        tabs[0].evaluate(SEEN, True)
        expect(tabs[0].get_by_role("article").filter(has_text="no room")).to_be_visible(timeout=20_000)
        tabs[0].evaluate(SEEN, False)
        tabs[0].evaluate(SEEN, True)
        wait_until(lambda: site.streams._open == 2)
    context.close()
