"""A screen reader gets of each page, on the first day, an ordinary one and the worst, the text that is kept."""

import itertools
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.web.aria_text import FOLDER, FRAME, HEADINGS, as_text, axe_findings, told_pages
from tests.web.states import STATES, standing_clock

LOOKED_AT = ("/", "/disks", "/report")  # with axe; the ordinary ones are, all of them, in test_browser.py


@pytest.mark.parametrize("state", STATES)
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
    kept = (FOLDER / f"{state}.txt").read_text()
    assert as_text(parts) == kept, "python -m tests.web.aria_text writes it anew; read the difference"
