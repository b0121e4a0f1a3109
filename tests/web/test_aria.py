"""A screen reader gets of each page, on the first day, an ordinary one and the worst, the text that is kept."""

import itertools
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.web.aria_text import FRAME, HEADINGS, axe_findings, check_kept, page_text, told_pages
from tests.web.states import STATES, UNREADABLE, served, standing_clock, unreadable

LOOKED_AT = ("/", "/disks", "/report")  # with axe; the ordinary ones are, all of them, in test_browser.py


@pytest.mark.parametrize(
    "state", [pytest.param(each, marks=[pytest.mark.long] * (each == "ordinary")) for each in STATES]
)
@pytest.mark.sample(1)
def test_a_screen_reader_is_told_what_is_kept(browser: Browser, tmp_path: Path, state: str) -> None:
    parts = []
    with standing_clock():
        for name, told, page in told_pages(browser, state, tmp_path):
            parts.append((name, told))
            levels = page.evaluate(HEADINGS)
            assert levels.count(1) == 1, (name, levels)
            assert all(below <= above + 1 for above, below in itertools.pairwise(levels)), (name, levels)
            if name in LOOKED_AT and state != "ordinary":
                assert axe_findings(page) == [], name
    assert parts[0][0] == FRAME
    check_kept(state, parts)


def test_a_screen_reader_is_told_why_a_page_cannot_be_shown(browser: Browser, tmp_path: Path) -> None:
    """Of a history that another process holds, that is away, or is none of ours."""
    parts, page = [], browser.new_page(bypass_csp=True)
    with standing_clock():
        for kind in UNREADABLE:
            with unreadable(kind, tmp_path / kind.replace(" ", "-")) as site, served(site) as address:
                answer = page.goto(address)
                assert (answer and answer.status, axe_findings(page)) == (503, []), kind
                parts.append((kind, page_text(page, tmp_path)))
                assert page.evaluate(HEADINGS) == [1], kind
    page.close()
    check_kept("unreadable", parts)
