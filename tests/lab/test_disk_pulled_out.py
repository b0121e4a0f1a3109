"""A disk of a set that is pulled out while a restore, or a reading, uses it: that ends, names the disk, and goes on once it is back."""

import pytest

from tests.lab.common import Ended
from tests.lab.pools import guids, rebuild
from tests.lab.usb_disks import UsbDisks, datasets, trees
from tests.lab.virtual import VirtualMachine

pytestmark = [pytest.mark.virtual, pytest.mark.timeout(900)]
STOP = "pkill -STOP -f '[o]rchestrator (verify|restore)'"


def pulled_out(drawer: UsbDisks, *words: str, begins: str) -> Ended:
    """Pull the disk out in the middle of a command, which stands still for that, once a look finds what it does; it blames no disk."""
    running = drawer.machine.popen(["poolferry", *words, "--json"])
    running.until(lambda: drawer.machine.sh(f"{begins} && {STOP}", check=False).code == 0, 120)
    drawer.machine.yank(drawer.red)
    drawer.machine.sh("pkill -CONT -f '[o]rchestrator '")
    ended = running.wait(120)
    assert (ended.json["outcome"], ended.json["why"]) == ("interrupted", "disk red was pulled out"), ended
    assert "smartctl" not in ended.complaint + ended.text
    waits = drawer.machine.poolferry(*words, "--json", seconds=200)
    assert (waits.code, "lug in disk red" in waits.text) == (75, True), waits
    return ended


def goes_on(drawer: UsbDisks, *words: str) -> Ended:
    """Plug it in again, and say the same once more."""
    drawer.replug(drawer.red)
    again = drawer.machine.poolferry(*words, "--json", seconds=300)
    assert (again.code, again.json["outcome"]) == (0, "done"), again
    return again


def test_a_restore_of_datasets(master: VirtualMachine) -> None:
    """Seen: it waited for ever, without a word, for a program that hung in its pool."""
    drawer = datasets(master)
    master.sh("head -c 24M /dev/urandom >/tank/photos/large && zfs snapshot tank/photos@two")
    drawer.has_one_copy("--content", "zfs")
    before = guids(master, "tank/photos")
    drawer.replug(drawer.red)
    rebuild(master)
    master.sh(f"printf '\\n[pipe]\\nrate-limit = \"2M\"\\n' >> {master.config}/jobs/photos.toml")
    command = ("restore", "run", "photos", "--to", "tank/photos")
    pulled_out(drawer, *command, begins="pgrep -x mbuffer")
    master.sh(f"sed -i /rate-limit/d {master.config}/jobs/photos.toml")
    goes_on(drawer, *command)
    assert guids(master, "tank/photos") == before


def test_a_reading_and_a_restore_of_files(master: VirtualMachine) -> None:
    """Seen: the reading said that the disk could not be read, and to look at its health; the job was failing."""
    drawer = trees(master)
    master.sh(
        "head -c 100M /dev/urandom >/srv/photos/large; cd /srv/photos && mkdir many && cd many && seq 3000 | xargs touch"
    )
    drawer.has_one_copy()
    drawer.replug(drawer.red)
    pulled_out(
        drawer,
        "verify",
        "photos",
        begins="poolferry show last | grep 'reading point' && echo 3 > /proc/sys/vm/drop_caches",
    )
    told = master.poolferry("status", "--json").json["jobs"][0]
    assert told["problems"] == [], told
    goes_on(drawer, "verify", "photos")
    drawer.replug(drawer.red)
    command = ("restore", "run", "photos", "--to", "/srv/back")
    pulled_out(drawer, *command, begins="ls /srv/back/many")
    goes_on(drawer, *command)
    assert not master.sh("diff -r /srv/photos /srv/back").text
