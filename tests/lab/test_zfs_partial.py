"""A copy that lacks a dataset, or a point of one, is called whole by nobody, and a restore of it says what is missing."""

from typing import Any

import pytest

from tests.lab.common import Machine
from tests.lab.pools import guids, rebuild, restore
from tests.lab.usb_disks import datasets
from tests.lab.virtual import VirtualMachine
from tests.whole.house import wait_until

pytestmark = pytest.mark.long
JOB = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n'
PLACES = '[place.vault]\ndataset = "vault/copies"\n[place.other]\ndataset = "other/copies"\n'
WRITE = "zfs set readonly=off {0}; mkdir -p /mnt/w; mount -t zfs -o zfsutil {0} /mnt/w; date >/mnt/w/mine; umount /mnt/w; zpool sync"
SUB = "tank/photos/sub"


def set_up(master: Machine, *pools: str) -> None:
    for pool in ("tank", *pools):
        master.pool(pool, "300M")
    master.sh(f"""set -e; for p in {" ".join(pools)}; do zfs create $p/copies; done
        zfs create tank/photos; zfs create {SUB}; echo one >/tank/photos/one; echo one >/tank/photos/sub/one""")
    master.job("photos", JOB, targets=PLACES)
    master.kitted("photos", "second", at=("vault", "other"))


def verified(master: Machine, place: str = "vault") -> dict[str, bool]:
    """By name, which points at a place are called verified."""
    found = master.poolferry("points", "list", "photos", "--json").json["points"]
    return {each["point"]: each["verified_at"] is not None for each in found if each["place"] == place}


def planned(master: Machine, job: str = "photos") -> Any:
    return master.poolferry("restore", "plan", job, "--json").json


def test_a_point_that_lacks_a_dataset_is_not_whole_and_a_whole_one_is_preferred(master: Machine) -> None:
    set_up(master, "vault", "other")
    master.job("second", JOB.replace("vault", "other"))
    master.sh("zfs snapshot -r tank/photos@a")
    for name in ("photos", "second"):
        assert master.poolferry("run", name, "--json").code == 0
    master.sh(WRITE.format("vault/copies/photos/sub"))
    master.sh("echo two >/tank/photos/two; echo two >/tank/photos/sub/two; zfs snapshot -r tank/photos@c")
    ran = master.poolferry("run", "photos", "--json").json
    assert (ran["outcome"], ran["points"]) == ("failed", []), ran
    assert verified(master) == {"a": True, "c": False}
    found = planned(master)
    assert (found["chosen"]["point"], found["copies"][0]["not_whole"]) == ("a", {"c": [SUB]}), found
    for command in ("verify", "drill"):
        ended = master.poolferry(command, "photos", "--json", seconds=300).json
        assert ended["outcome"] == "failed", ended
        assert verified(master)["c"] is False
    assert "point c is not whole: 1 dataset of the source lacks it" in ended["why"], ended
    found = [
        each for each in master.poolferry("points", "list", "photos", "--json").json["points"] if each["point"] == "c"
    ]
    assert not [each for each in found if each["sound"]], found
    assert master.poolferry("run", "second", "--json").json["outcome"] == "done"
    found = planned(master)
    assert (found["chosen"]["place"], found["chosen"]["point"]) == ("other", "c"), found

    rebuild(master)
    plan = master.poolferry("restore", "plan", "photos", "--to", "tank/photos", "--json").json
    (line,) = [each for each in plan["warnings"] if SUB in each]
    told = (
        f"a is the newest point that every dataset has. c is newer and partial, 1 dataset lacks it: {SUB}. To restore"
    )
    assert line.startswith(told), line
    ended = restore(master)
    assert (ended["outcome"], line in ended["warnings"]) == ("done", True), ended
    assert ended["why"].startswith("tank/photos is back as of a, the newest whole point"), ended
    assert guids(master, "tank/photos").keys() == {"@a", "/sub@a"}
    ran = master.poolferry("run", "photos", "--json").json
    assert (ran["outcome"], "has 1 snapshot of its own since @a" in ran["warnings"][0]) == ("nothing-to-do", True), ran

    rebuild(master)
    assert line.endswith(": poolferry restore run photos --to tank/photos --point c"), line
    plan = master.poolferry("restore", "plan", "photos", "--to", "tank/photos", "--point", "c", "--json").json
    assert len([each for each in plan["warnings"] if "/sub " in each]) == 1, plan["warnings"]
    for said in ("", " already"):
        ended = restore(master, "--point", "c")
        assert (ended["outcome"], ended["evidence"]) == ("failed", [f"{SUB} is as of @a"]), ended
        assert ended["why"].startswith(f"tank/photos is back{said}"), ended
    assert guids(master, SUB).keys() == {"@a"}
    ran = master.poolferry("run", "photos", "--json").json
    assert ran["outcome"] == "nothing-to-do", ran
    assert verified(master)["c"] is False, "the source shows no more that the copy lacks something"
    # What is missing, from the whole copy.
    ended = master.poolferry(
        "restore", "run", "second", "--path", "sub", "--to", SUB, "--aside", "--json", seconds=300
    ).json
    assert ended["outcome"] in ("done", "waiting"), ended
    assert guids(master, SUB).keys() == {"@a", "@c"}


def test_a_run_that_is_killed_after_the_root_leaves_no_point_that_is_called_verified(master: Machine) -> None:
    set_up(master, "vault")
    master.sh("head -c 12M /dev/urandom >/tank/photos/sub/large; zfs snapshot -r tank/photos@a", seconds=120)
    master.job("photos", JOB + '[pipe]\nrate-limit = "900k"\nbuffer = "2M"\n')
    running = master.popen(["poolferry", "run", "photos"])
    arrived = "zfs list -Ho name vault/copies/photos@a vault/copies/photos/sub"
    running.until(lambda: master.sh(f"{arrived} 2>/dev/null", check=False).code == 0, 120)
    running.kill(9)
    running.wait(30)
    master.sh("pkill -9 -x mbuffer; pkill -9 -x zfs", check=False)
    wait_until(lambda: master.sh("pgrep -x zfs", check=False).code != 0, 60, pause=0.2)
    assert list(guids(master, "vault/copies/photos")) == ["@a"], "the root has arrived, and nothing else"
    assert not verified(master)
    (job,) = master.poolferry("status", "--json").json["jobs"]
    assert job["newest_verified"] is None, job
    assert planned(master)["chosen"] is None
    ended = restore(master, to="tank/back")
    assert ended["outcome"] == "failed", ended
    master.job("photos", JOB)
    ran = master.poolferry("run", "photos", "--json", seconds=300).json
    assert (ran["outcome"], verified(master)) == ("done", {"a": True}), ran


@pytest.mark.virtual
@pytest.mark.timeout(900)
def test_a_disk_that_was_used_elsewhere_is_no_whole_copy(master: VirtualMachine) -> None:
    drawer = datasets(master)
    master.sh("zfs create tank/photos/sub; echo one >/tank/photos/sub/one; zfs snapshot -r tank/photos@a")
    disks = {name: drawer.enroll(name, "--content", "zfs") for name in ("blue", "red")}
    for name, disk in disks.items():
        drawer.replug(disk)
        assert drawer.scan()[name]["ending"] == "done"
        if name == "blue":
            master.yank(disk)
    drawer.replug(disks["red"])
    drawer.ferry("disks", "attach", "red")
    copy = master.sh("zfs list -Ho name -r poolferry-red | grep /photos/photos$").text
    master.sh(f"set -e; zfs destroy -r {copy}/sub; {WRITE.format(copy)}; zfs destroy {copy}@a")
    drawer.ferry("disks", "eject", "red")
    drawer.replug(disks["red"])
    visit = drawer.scan(code=1)["red"]
    assert (visit["ending"], visit["safe"]) == ("incomplete", True), visit
    (told,) = drawer.ferry("disks")["sets"]
    assert {each["disk"]: each["newest"] is not None for each in told["disks"]} == {"blue": True, "red": False}, told
    (job,) = master.poolferry("status", "--json").json["jobs"]
    assert job["newest_verified"]["place"] == "blue", job
    assert (verified(master, "blue")["a"], verified(master, "red")) == (True, {"one": False})
    found = planned(master)
    assert (found["chosen"], [each["place"] for each in found["elsewhere"]]) == (None, ["blue"]), found
