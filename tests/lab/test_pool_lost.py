"""The day the pool is lost, with everything else going on: nights before its restore, another name, a rescue system's folder."""

import re
from typing import Any

import pytest

from tests.lab.common import ENCRYPTED, GIVE_KEY, Machine
from tests.lab.pools import guids, restore, restore_pool, step_states
from tests.lab.usb_disks import UsbDisks
from tests.lab.virtual import VirtualMachine
from tests.whole.house import wait_until

TARGETS = '[place.vault]\ndataset = "vault/copies"\n'
NIGHTLY = 'engine = "zfs"\nsource = "tank"\ntarget = "vault"\n[snapshots]\nhourly = 3\n'
KEPT = "mountpoint,canmount,readonly,quota,refquota,compression,user:note,sharenfs"
CREATE = "zpool create -f"
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def copied(master: Machine, job: str = NIGHTLY) -> None:
    """Files in the pool's own dataset, and datasets below it; all of it is copied, with a kit."""
    master.pool("tank", "300M")
    master.pool("vault", "300M")
    master.sh("""set -e; zfs create vault/copies; zfs set compression=lz4 user:note='a b' tank; echo one >/tank/one
        zfs create -o quota=90M tank/photos; zfs create -o mountpoint=/srv/sub tank/photos/sub; zfs create -V 8M tank/disk
        head -c 2M /dev/urandom >/tank/photos/two; echo three >/srv/sub/three; zfs snapshot -r tank@a""")
    master.job("photos", job, targets=TARGETS)
    ran = master.poolferry("run", "photos", "--json", seconds=300)
    assert ran.code == 0, ran


def values(master: Machine, pool: str = "tank") -> list[str]:
    told = master.sh(["zfs", "get", "-Hpr", "-t", "filesystem,volume", "-o", "name,property,value", KEPT, pool])
    return [line.removeprefix(pool) for line in told.lines]


def source_state(master: Machine) -> Any:
    (job,) = master.poolferry("status", "--json").json["jobs"]
    return job["source_state"]


def test_nights_before_the_restore_are_no_obstacle_and_another_name_keeps_every_chain(master: Machine) -> None:
    copied(master)
    before, held, copy = values(master), guids(master, "tank"), guids(master, "vault/copies/tank")
    disk = master.lies_on("tank").removesuffix("-part1")
    master.sh(
        f"zpool destroy -f tank; {CREATE} tank {disk}; zfs snapshot tank@autosnap_by_another; zfs create tank/new"
    )
    for _ in range(2):
        ran = master.poolferry("run", "photos", "--json").json
        assert (ran["outcome"], "was made anew since the last run" in ran["why"]) == ("refused", True), ran
        assert "restore it first: poolferry restore run photos --to tank" in ran["hint"], ran
        assert "aside" not in ran["hint"], ran
    assert source_state(master)["state"] == "made anew"
    assert list(guids(master, "tank")) == ["@autosnap_by_another"], "none of ours was taken"
    master.sh("zfs snapshot tank@autosnap_again; zfs destroy tank/new")
    code, told = restore_pool(master)
    assert (code, told["differences"]) == (0, []), told
    assert (values(master), guids(master, "tank"), guids(master, "vault/copies/tank")) == (before, held, copy)
    master.sh("echo new >/tank/photos/new; zfs snapshot -r tank@b")
    ran = master.poolferry("run", "photos", "--json").json
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    assert source_state(master) is None

    # And again, under another name.
    held, files = guids(master, "tank"), "cd /tank && find . /srv/sub -type f | sort | xargs md5sum"
    contents = master.sh(files).text
    master.sh("zpool destroy -f tank")
    code, told = restore_pool(master, "--as", "lake")
    assert (code, [state for _, state in step_states(told)][1:]) == (75, ["your turn"]), told
    (create,) = told["next"]
    assert "-O mountpoint=/tank" in create, create
    assert " lake " in create, create
    master.sh(create.replace("zpool create", CREATE))
    code, told = restore_pool(master, "--as", "lake")
    assert (code, told["differences"], told["steps"][-1]["state"]) == (0, [], "written"), told
    assert (guids(master, "lake"), master.sh(files).text) == (held, contents)
    assert 'source = "lake"' in master.read("/etc/poolferry/jobs/photos.toml").decode()
    assert master.poolferry("check", "--json").code == 0
    master.sh("echo more >/tank/photos/more; zfs snapshot -r lake@c")
    ran = master.poolferry("run", "photos", "--json").json
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    assert guids(master, "vault/copies/tank") == guids(master, "lake")


def test_a_rescue_system_has_the_pools_below_a_folder_of_its_own(master: Machine) -> None:
    """Both sides are imported with an altroot, which is never taken for a part of a mountpoint."""
    copied(master, NIGHTLY.partition("[")[0])
    before, held = values(master), guids(master, "tank")
    disk, where = master.lies_on("tank").removesuffix("-part1"), master.lies_on("vault").rpartition("/")[0]
    master.sh(f"""set -e; zpool destroy -f tank; zpool export vault; zpool import -d {where} -R /run/rose -N vault
        mkdir -p /mnt/sys; {CREATE} -R /mnt/sys tank {disk}""")
    look = "while sleep 0.05; do zfs get -Hr -o value mountpoint tank >>/run/seen 2>/dev/null; done"
    looking = master.popen(look)
    ended = restore(master, to="tank")
    looking.kill(9)
    assert ended["outcome"] == "done", ended
    seen = set(master.sh("sort -u /run/seen").lines)
    assert not [place for place in seen if "/run/rose" in place], seen
    assert master.sh("cat /mnt/sys/tank/one /mnt/sys/srv/sub/three").lines == ("one", "three")
    ran = master.poolferry("run", "photos", "--json").json
    assert ran["outcome"] == "nothing-to-do", ran
    master.sh(
        f"zpool export tank; zpool export vault; zpool import -d {where} vault; zpool import -d {disk.rpartition('/')[0]} tank"
    )
    assert (values(master), guids(master, "tank")) == (before, held)
    assert master.sh("cat /tank/one /srv/sub/three").lines == ("one", "three")


def test_a_dataset_that_has_the_name_of_one_that_returns_is_kept(master: Machine) -> None:
    """The hint of the refusal, as it stands, ends the trouble."""
    master.pool("tank", "200M")
    master.pool("vault", "200M")
    master.sh(
        """set -e; zfs create vault/copies; zfs create tank/photos; echo one >/tank/photos/one; zfs snapshot tank/photos@a"""
    )
    master.job("photos", 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n', targets=TARGETS)
    assert master.poolferry("run", "photos", "--json").code == 0
    disk = master.lies_on("tank").removesuffix("-part1")
    master.sh(f"zpool destroy -f tank; {CREATE} tank {disk}; zfs create tank/photos; echo mine >/tank/photos/mine")
    code, told = restore_pool(master)
    assert (code, "use --aside" in str(told["steps"])) == (1, True), told
    code, told = restore_pool(master, "--aside")
    assert code == 75, told
    free = (
        next(line for line in told["steps"][2]["lines"] if "unmount that (" in line).partition("(")[2].partition(")")[0]
    )
    master.sh(free)
    code, told = restore_pool(master)
    assert (code, told["differences"]) == (0, []), told
    (aside,) = [line for line in master.sh("zfs list -H -o name -d 1 tank").lines if "aside" in line]
    assert master.sh(f"cat /tank/photos/one; mount -t zfs -o zfsutil {aside} /mnt; cat /mnt/mine").lines == (
        "one",
        "mine",
    )


# What may be asked on that day; the pool's own plan asks for no snapshot, and so for no key.
ASKED = (
    ("status",),
    ("plan", "photos"),
    ("run", "photos"),
    ("verify", "photos"),
    ("check", "--system"),
    ("restore", "pool", "tank", "--plan"),
)
RESTORE = "poolferry restore run photos --to tank"


def ask_all(master: Machine, *, lost: bool) -> dict[str, str]:
    """Everything is asked; while the source is lost, each answer that judges it says what brings it back, and none what harms its copy."""
    said = {}
    for words in ASKED:
        ended = master.poolferry(*words, seconds=300)
        said[words[0]] = f"{ended.text}\n{ended.complaint}"
        assert "Traceback" not in ended.complaint
        assert "mistake in poolferry" not in ended.complaint, ended
        if lost:
            assert not re.search(
                "--aside|zfs destroy|zfs rollback|changed the copy|zfs snapshot|stale", said[words[0]]
            ), (words, ended)
            assert ended.code != 0 or words[0] in ("restore", "status"), (words, ended)
            assert RESTORE in said[words[0]] or words[0] == "restore", (words, ended)
    return said


def test_each_answer_in_each_state_leads_back(master: Machine) -> None:
    """Gone, made anew, cut in its restore, back but for a key, back: the first hint of each is typed as it stands."""
    copied(master, NIGHTLY)
    master.sh(f"{ENCRYPTED} tank/safe; echo four >/tank/safe/four; zfs snapshot -r tank@b")
    assert master.poolferry("run", "photos", "--json", seconds=300).code == 0
    before, held, copy = values(master), guids(master, "tank"), guids(master, "vault/copies/tank")
    disk = master.lies_on("tank").removesuffix("-part1")
    master.sh("zpool destroy -f tank")
    master.poolferry("run", "photos")
    ask_all(master, lost=True)
    master.sh(f"{CREATE} tank {disk}")
    ask_all(master, lost=True)
    assert guids(master, "tank") == {}, "nothing is taken of what is new and empty"
    running = master.popen(RESTORE.split())
    running.until(lambda: master.sh("zfs list tank/photos", check=False).code == 0, 200)
    running.kill(9)
    running.wait(30)
    master.sh("pkill -9 -f '^zfs (send|receive)'; while pgrep -x zfs; do sleep 0.2; done", check=False)
    ask_all(master, lost=True)
    ended = master.poolferry(*RESTORE.split()[1:], "--json", seconds=300)
    assert (ended.code, ended.json["outcome"]) == (75, "waiting"), ended
    ask_all(master, lost=False)
    load = re.search(r"zfs load-key [^;]*", ended.json["hint"])
    assert load, ended
    master.sh(f"{GIVE_KEY} | {load[0].strip()}")
    ended = master.poolferry(*RESTORE.split()[1:], "--json", seconds=300)
    assert (ended.code, ended.json["outcome"]) == (0, "done"), ended
    now = guids(master, "tank")
    assert held.items() <= now.items()
    assert copy.items() <= guids(master, "vault/copies/tank").items()
    assert values(master) == before
    assert master.sh("cat /tank/one /srv/sub/three /tank/safe/four").lines == ("one", "three", "four")
    assert master.poolferry("run", "photos", "--json", seconds=300).code == 0
    assert source_state(master) is None, "the mode ends by itself"
    assert master.poolferry("verify", "photos").code == 0


@pytest.mark.virtual
def test_an_old_disk_that_is_plugged_in_is_left_on_for_the_restore_that_waits_for_it(master: VirtualMachine) -> None:
    """udev, nights and a person in a hurry: nobody switches it off, and nothing is taken of the new, empty pool."""
    master.pool("tank", "256M")
    master.sh("zfs create tank/photos; head -c 1M /dev/urandom >/tank/photos/one; zfs snapshot -r tank@a")
    job = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "offsite"\non = "attach"\n[snapshots]\nhourly = 3\n'
    master.job("photos", job, targets="[set.offsite]\n")
    drawer = UsbDisks(master)
    red = drawer.enroll("red", "--content", "zfs")
    drawer.replug(red)
    assert drawer.scan()["red"]["ending"] == "done"
    master.yank(red)
    drawer.ferry("setup", "systemd")
    held, disk = guids(master, "tank/photos"), master.lies_on("tank").removesuffix("-part1")
    master.sh(f"zpool destroy -f tank; {CREATE} tank {disk}")
    code, told = restore_pool(master)
    assert (code, told["steps"][2]["lines"][0]) == (75, "disk red: it is not plugged in"), told
    visits = len(drawer.ferry("disks", "show", "red")["history"])
    master.plug(red)
    looks = "systemctl list-units -a --plain --no-legend 'poolferry-disk@*'"
    wait_until(lambda: master.sh(f"{looks} | grep -c .", check=False).text != "0", 60)
    wait_until(
        lambda: master.sh(f"{looks} --state=activating,active | grep -c .", check=False).text == "0", 120, pause=1
    )
    assert len(drawer.ferry("disks", "show", "red")["history"]) == visits, "no visit began"
    assert "restore pool tank" in master.poolferry("disks").text
    master.wait_for_device(red)
    visit = drawer.scan(code=1)["red"]
    (ran,) = visit["runs"]
    assert (ran["outcome"], "restore it first: poolferry restore" in ran["hint"]) == ("refused", True), ran
    assert not guids(master, "tank")
    code, told = restore_pool(master)
    assert (code, told["differences"]) == (0, []), told
    assert guids(master, "tank/photos") == held
