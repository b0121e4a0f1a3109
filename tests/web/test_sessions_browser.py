"""Pages that are older than what they show, in a real Chromium: the server started again, a form that was sent, a way back."""

import socket
from pathlib import Path

from playwright.sync_api import Browser, expect

from orchestrator.app.acts import list_acts
from orchestrator.app.demo import DemoControl
from orchestrator.web.pages import Pages
from orchestrator.web.site import Site
from tests.daemon.daemon_world import daemon, until
from tests.ferry import Ferry
from tests.web.sites import link_in, serving, settings_of
from tests.web.states import served


def test_a_page_of_a_server_that_was_started_again_does_nothing_and_says_how_to_go_on(
    browser: Browser, ferry: Ferry
) -> None:
    ferry.job()
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    context, settings = browser.new_context(), settings_of(ferry)
    with daemon(ferry) as clock:
        until((ferry.state / "control.sock").exists, "it listens", lambda: clock.log)
        with serving(ferry, "--listen", listen) as (_, said):
            page = context.new_page()
            page.goto(link_in(said))
            expect(page.locator("#live")).to_have_text("live")
        expect(page.locator("#live")).to_have_text("connecting …")
        with serving(ferry, "--listen", listen) as (_, said):
            expect(page.locator("#live")).to_have_text("not live: reload this page", timeout=20_000)
            page.get_by_role("button", name="Run now").click()
            expect(page.get_by_text("open the link that poolferry web printed")).to_be_visible()
            page.goto(link_in(said))
            expect(page.get_by_role("button", name="Run now")).to_be_visible()
            assert list_acts(settings, 9) == ()
    context.close()


def test_a_form_that_was_sent_is_sent_again_neither_by_a_reload_nor_by_the_way_back(
    browser: Browser, tmp_path: Path
) -> None:
    ferry = Ferry(tmp_path)
    ferry.job()
    settings = settings_of(ferry)
    page = browser.new_page()
    with served(Site(Pages(settings, DemoControl(settings)))) as address:
        page.goto(f"{address}/jobs/photos")
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        page.reload()
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        page.goto(f"{address}/runs")
        page.go_back()
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        page.go_back()
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        expect(page.get_by_role("button", name="Pause")).to_have_count(0)
        assert [each.subject for each in list_acts(settings, 9)] == ["photos"]
    page.close()
