"""The text that a screen reader gets of each page, and the text of each that is kept."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from orchestrator import __version__
from tests.web.states import made_state, served

FOLDER = Path(__file__).parent / "aria"
FRAME = "the frame of each page"
RUN, POINT, TICKED, FOUND, FILE = (
    "the newest run of mail",
    "the newest point of photos",
    "two folders ticked",
    "what a search finds",
    "a file in all points",
)
_ASKED = {TICKED: "?take=2019&take=2026/03", FOUND: "?q=dsc-0300"}
# Addresses, or how a person comes to a page whose address is another one each time.
PAGES = {
    "first-day": ("/", "/enter", "/jobs/archive", "/jobs/photos", "/jobs/pool-tank", "/runs", "/disks", "/pools", "/acts", "/reading", "/report", "/nothing"),
    "ordinary": (
        "/", "/jobs/archive", "/jobs/databases", "/jobs/mail?year=2025", "/jobs/music", "/runs", "/runs?job=mail", RUN, POINT, TICKED, FOUND, FILE,
        "/disks", "/pools", "/acts", "/acts/3", "/reading", "/report/2026-10",
    ),
    "worst-day": ("/", "/jobs/photos", "/jobs/www", "/runs", "/runs?job=old-site", RUN, "/disks", "/pools", "/acts", "/acts/2", "/reading", "/report"),
}  # fmt: skip
_ROWS = 3
_SHORTER = f"""for (const body of document.querySelectorAll("tbody")) for (const row of [...body.rows].slice({_ROWS})) row.remove();"""
HEADINGS = """[...document.querySelectorAll("h1, h2, h3, h4, h5, h6")].map((each) => Number(each.tagName[1]))"""


def axe_findings(page: Page) -> list[tuple[str, list[str]]]:
    """Return what axe-core finds in a page, and in which elements; its context must bypass the policy."""
    found = Axe().run(page).response["violations"]
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found]


def come_to(page: Page, address: str, name: str) -> None:
    """Open a page."""
    if name.startswith("/"):
        page.goto(address + name)
    elif name == RUN:
        page.goto(f"{address}/runs?job=mail")
        page.get_by_role("cell").get_by_role("link").first.click()
    else:
        page.goto(f"{address}/jobs/photos")
        point = page.get_by_role("link", name="look into the newest").get_attribute("href")
        page.goto(f"{address}{point}{_ASKED.get(name, '/2026/03')}")
        if name == FILE:
            page.get_by_role("link", name="in all points").first.click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def told_pages(browser: Browser, state: str, folder: Path) -> Iterator[tuple[str, str, Page]]:
    """Yield each page of a state: its name, what is told of it, and the page. Of long tables only the first rows are told."""
    with served(made_state(state, folder)) as address:
        page = browser.new_page(bypass_csp=True)
        for name in PAGES[state]:
            come_to(page, address, name)
            if name == "/":
                yield FRAME, page_text(page, folder, "body").partition("- main:")[0], page
            page.evaluate(_SHORTER)
            yield name, page_text(page, folder), page
        page.close()


def page_text(page: Page, folder: Path, where: str = "main") -> str:
    """Return what a screen reader is told. `folder`: the machine's, which has another name each time."""
    told = page.locator(where).aria_snapshot().replace(str(folder), "/folder").replace(__version__, "VERSION")
    return re.sub(r"process \d+", "process N", re.sub(r"(status: ).*(live|connecting|as of).*", r"\1(live)", told))


def check_kept(name: str, parts: list[tuple[str, str]]) -> None:
    """Compare pages with the text that is kept of them; ARIA=write in the environment writes it anew."""
    kept, told = FOLDER / f"{name}.txt", "\n".join(f"=== {page}\n{text.rstrip()}\n" for page, text in parts)
    if os.environ.get("ARIA") == "write":
        kept.write_text(told)
    assert told == kept.read_text(), "ARIA=write writes it anew; read the difference"
