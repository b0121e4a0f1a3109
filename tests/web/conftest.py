"""One browser for all tests of a file, and a demonstration.

Why not one for the session: where it lives, its loop goes on in the tests' own thread, and no test there may run another.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.ferry import Ferry
from tests.web.sites import link_in, serving

CHROMIUM = "/usr/bin/chromium"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def demo(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, BrowserContext]]:
    """The demonstration, entered: its address, and the context that has the cookie."""
    ferry = Ferry(tmp_path_factory.mktemp("demo"))
    with serving(ferry, "--demo", "--listen", "127.0.0.1:0") as (_, said):
        context = browser.new_context(bypass_csp=True, viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.goto(link_in(said))
        expect(page.get_by_role("heading", level=1)).to_have_text("2 of 11 jobs need you")
        page.close()
        yield link_in(said).partition("/enter")[0], context
        context.close()
