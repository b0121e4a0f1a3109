"""Seen live in a real Chromium, without a reload: runs, a restore, a run that is cut and goes on, and a disk that is let go."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.daemon.daemon_world import Daemon, daemon, until
from tests.ferry import COMMAND, Ferry
from tests.web.sites import link_in, serving
from tests.whole.loop_disks import LoopDisks, missing

SLOW = '[pipe]\nrate-limit = "400K"\n[retry]\nattempts = 1\n'


@contextmanager
def watched(browser: Browser, ferry: Ferry, path: str = os.environ["PATH"]) -> Iterator[tuple[Page, Daemon]]:
    """The front page of a configuration, entered, and the daemon that listens to it."""
    context = browser.new_context()
    with serving(ferry, "--listen", "127.0.0.1:0") as (_, said), daemon(ferry, PATH=path) as clock:
        until((ferry.state / "control.sock").exists, "it listens", lambda: clock.log)
        page = context.new_page()
        page.goto(link_in(said))
        expect(page.locator("#live")).to_have_text("live")
        yield page, clock
    context.close()


def test_a_run_that_is_asked_for_here_is_seen_from_its_begin_to_its_end(browser: Browser, ferry: Ferry) -> None:
    source = ferry.job(more=SLOW)
    (source / "big").write_bytes(os.urandom(1_600_000))
    with watched(browser, ferry) as (page, clock):
        expect(page.get_by_role("heading", level=1)).to_have_text("History knows no run yet")
        job = page.context.new_page()
        job.goto(f"{page.url}jobs/photos")
        expect(job.locator("#job-head .chip")).to_have_text("new")
        expect(job.get_by_text("History knows of no point yet.")).to_be_visible()
        page.get_by_role("button", name="Run now").click()
        expect(page.get_by_role("heading", name="Asked for")).to_be_visible()
        expect(page.get_by_role("heading", name="Running now")).to_be_visible(timeout=20_000)
        other = page.context.new_page()
        other.goto(page.url.partition("#")[0] + "runs/1")
        expect(other.locator("#progress")).to_contain_text("iB/s", timeout=20_000)
        expect(other.locator(".chip").first).to_have_text("done", timeout=30_000)
        expect(other.locator("#live")).to_have_text("ended")
        expect(other.get_by_text("You may close this page")).not_to_be_visible()
        expect(page.get_by_role("heading", name="Running now")).not_to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_text("All promises are kept")
        expect(page.locator("#asked .chip")).to_have_text("done")
        expect(job.locator("#job-head .chip")).to_have_text("up", timeout=20_000)
        expect(job.get_by_text("history knows no run")).to_have_count(0)
        expect(job.get_by_role("table", name="newest runs").get_by_role("row")).to_have_count(2)
        expect(job.get_by_role("table", name="newest runs")).to_contain_text("done")
        expect(job.get_by_text("1 day with points, as a table (1 point in all)")).to_be_visible()
        expect(job.get_by_role("img", name="duration of the newest runs")).to_be_visible()
        assert clock.end() == 0


def test_a_run_that_is_cut_is_seen_as_cut_and_the_next_goes_on_from_there(browser: Browser, ferry: Ferry) -> None:
    source = ferry.job(more=SLOW)
    (source / "big").write_bytes(os.urandom(3_000_000))
    with watched(browser, ferry) as (page, clock):
        run = subprocess.Popen(
            [*COMMAND, "run", "photos"],
            env=ferry.variables(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        page.get_by_role("region", name="Running now").get_by_role("link").click(timeout=20_000)
        expect(page.locator("#progress")).to_contain_text("1.", timeout=20_000)  # MiB
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        expect(page.locator(".chip").first).to_have_text("interrupted")
        expect(page.get_by_text("its process is gone")).to_be_visible()
        page.get_by_role("link", name="photos").click()
        page.get_by_role("button", name="Run now").click()
        page.get_by_role("link", name="Watch run 2").click(timeout=20_000)
        expect(page.get_by_text("went on from an earlier run")).to_be_visible(timeout=30_000)
        expect(page.locator(".chip").first).to_have_text("done")
        assert clock.end() == 0


def test_a_restore_is_seen_from_its_button_to_its_end(browser: Browser, ferry: Ferry) -> None:
    source = ferry.job()
    (source / "big").write_bytes(os.urandom(1_800_000))
    assert ferry.run("run", "photos").code == 0
    slow = ferry.root / "programs" / "rsync"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\nexec {shutil.which("rsync")} --bwlimit=400 "$@"\n')  # a restore goes as fast as it can
    slow.chmod(0o755)
    (ferry.config / "poolferry.toml").write_text(f'[web]\nrestore-below = "{ferry.root}"\n')
    with watched(browser, ferry, f"{slow.parent}:{os.environ['PATH']}") as (page, clock):
        page.get_by_role("link", name="photos").first.click()
        page.get_by_role("link", name="look into the newest").click()
        page.get_by_role("checkbox", name="big").check()
        page.get_by_role("button", name="Show how").click()
        page.get_by_role("button", name="Restore it aside now").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("restore aside from photos")
        pace = page.locator("#act-run-2 strong")
        first = pace.inner_text(timeout=20_000)
        assert re.match(r"[\d.]+ [KM]iB, [\d.]+ KiB/s", first)
        expect(pace).not_to_have_text(first)
        expect(page.get_by_text("You may close this page")).to_be_visible()
        expect(page.locator("#act-head .chip")).to_have_text("done", timeout=30_000)
        expect(page.locator("#live")).to_have_text("ended")
        (folder,) = ferry.root.glob("poolferry-restored-*")
        expect(page.locator("#act-run-2")).to_contain_text(f"back to {folder}/big: done and verified")
        assert (folder / "big").read_bytes() == (source / "big").read_bytes()
        assert clock.end() == 0


@pytest.mark.root
@pytest.mark.skipif(bool(missing()), reason=missing() or "none")
def test_a_disk_is_let_go_by_its_button_and_may_then_be_taken_out(browser: Browser, tmp_path: Path) -> None:
    drawer = LoopDisks(tmp_path)
    drawer.enrolled("red")
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    drawer.pull("red")
    drawer.plug("red")
    assert drawer.run("disks", "attach", drawer.full("red")).code == 0
    with closing(drawer), watched(browser, drawer.ferry) as (page, clock):
        page.get_by_role("link", name="Disks", exact=True).click()
        expect(page.locator("#live")).to_have_text("live")
        expect(page.get_by_role("status").filter(has_text="DO NOT REMOVE")).to_be_visible()
        assert drawer.mounted("red")
        page.get_by_role("button", name="Eject").click()
        safe = page.get_by_role("status").filter(has_text="SAFE TO REMOVE")
        expect(safe).to_contain_text(drawer.full("red"), timeout=20_000)
        assert not drawer.mounted("red")
        expect(page.get_by_text("DO NOT REMOVE")).not_to_be_visible()
        expect(page.get_by_role("button", name="Eject")).not_to_be_visible()
        expect(page.locator("#asked .chip")).to_have_text("done")
        drawer.pull("red")
        assert clock.end() == 0
