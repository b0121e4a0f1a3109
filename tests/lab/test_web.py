"""The status page on a real systemd: begun by its socket, in its sandbox, and one act from the button to the copy."""

import re
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.lab.common import Machine
from tests.lab.service import PLACES, QUICK, install, outcomes, until
from tests.lab.status_page import SOCKET, ask, install_page
from tests.lab.tunnel import tunnel
from tests.lab.usb_disks import trees
from tests.lab.virtual import VirtualMachine

pytestmark = pytest.mark.virtual

PATIENCE_MS = 120_000  # an emulated machine on a busy host


@pytest.mark.flavours("trixie")
@pytest.mark.long
def test_a_button_of_the_page_runs_a_job_on_a_real_systemd(master: Machine) -> None:
    master.job("quick", QUICK.format(when=""), targets=PLACES)
    install(master)
    install_page(master)
    last = master.sh("systemd-analyze security poolferry-web.service | tail -1").text
    assert float(last.split(": ")[1].split()[0]) <= 1.5, last
    assert master.sh("systemctl is-active poolferry-web.service", check=False).text.strip() == "inactive"
    assert master.sh("stat -c '%a %U %G' /run/poolferry/control.sock").text.strip() == "660 root poolferry"

    page = ask(master, "/jobs/quick")
    assert master.sh("systemctl is-active poolferry-web.service").text.strip() == "active", "its socket began it"
    found = re.findall(r'name="token" value="([^"]+)"', page)
    assert found, page
    form = urlencode({"token": found[0], "act": "run", "job": "quick"})
    answer = ask(master, "/acts", form)
    assert answer.startswith("303 /jobs/quick#asked"), answer
    until(master, lambda: outcomes(master, "quick")[:1] == ["done"])
    listed = ask(master, "/acts")
    assert "run quick" in listed
    assert re.search(r"poolferry-web \(uid \d+\)|uid \d+", listed), "who asked is the page's own user"
    assert "uid 0" not in listed
    pid = master.sh("systemctl show -P MainPID poolferry-web.service").text.strip()
    assert "CapEff:\t0000000000000004" in master.sh(f"cat /proc/{pid}/status").text
    master.sh("systemctl stop poolferry")
    assert "the daemon is not running" in ask(master, "/acts", form)


@pytest.mark.long
@pytest.mark.flavours("trixie")
def test_a_disk_that_is_pulled_out_and_one_that_may_be_are_seen_live(
    master: VirtualMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a real Chromium, without a reload: udev begins the visits."""
    drawer = trees(master)
    with_rate = master.read("/etc/poolferry/jobs/photos.toml").decode() + '[pipe]\nrate-limit = "400K"\n'
    master.write("/etc/poolferry/jobs/photos.toml", with_rate)
    red = drawer.enroll("red")
    install(master)
    install_page(master)
    # The browser makes a socket in a folder of its own below this one, and a socket's path has 108 bytes at most.
    monkeypatch.setenv("TMPDIR", "/tmp")
    with tunnel(master, SOCKET) as port, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page.goto(f"http://localhost:{port}/disks")
        expect(page.locator("#live")).to_have_text("live")
        drawer.replug(red)
        status = page.get_by_role("status")
        expect(status.filter(has_text="DO NOT REMOVE red")).to_be_visible()
        until(master, lambda: master.sh("find /run/poolferry/disks/red -size +200k -type f", check=False).text)
        master.yank(red)
        expect(status.filter(has_text="red WAS PULLED OUT")).to_be_visible()
        expect(page.get_by_role("article")).to_contain_text("nothing older on it was damaged")
        expect(page.get_by_text("SAFE TO REMOVE")).not_to_be_visible()
        master.write("/etc/poolferry/jobs/photos.toml", with_rate.partition("[pipe]")[0])
        drawer.replug(red)
        expect(status.filter(has_text="SAFE TO REMOVE")).to_contain_text("red")
        master.wait_for_device(red, there=False)
        expect(page.get_by_role("article")).to_contain_text("in transit")
        browser.close()
