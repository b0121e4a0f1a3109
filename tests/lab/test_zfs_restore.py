"""Datasets come back on real pools: whole trees by guid with what they were, cut and resumed, and every chain goes on."""

import re

import pytest

from tests.lab.common import ENCRYPTED, GIVE_KEY, Machine
from tests.lab.cuts import PROMPT
from tests.lab.laboratory import Pair
from tests.lab.pools import guids, rebuild, restore
from tests.lab.virtual import POOLS
from tests.whole.house import wait_until

BOTH = pytest.mark.flavours("trixie", long=["bookworm"])
JOB = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n'
PLACE = '[place.vault]\ndataset = "vault/copies"\n'
# The fewest rounds that ZFS allows: each key is made of its passphrase in a second here, not in four.
PASSPHRASE = "zfs create -o encryption=on -o keyformat=passphrase -o keylocation=prompt -o pbkdf2iters=100000"
COPY = "vault/copies/photos"
KEPT = "mountpoint,canmount,readonly,quota,refquota,reservation,refreservation,compression,recordsize,user:note,volsize,atime"


def set_up(master: Machine, *, kit: bool = False) -> None:
    """A tree of three filesystems, a volume and a clone, with values of their own, copied. `kit`: with a recovery kit."""
    master.pool("tank", "400M")
    master.pool("vault", "400M")
    master.sh("""set -e
        zfs create vault/copies; zfs create -o compression=lz4 -o quota=200M -o user:note='a b' tank/photos
        zfs create -o mountpoint=/srv/sub -o refquota=100M -o atime=off tank/photos/sub
        zfs create -o canmount=noauto -o readonly=on -o recordsize=16K 'tank/photos/a b'
        zfs create -V 8M tank/photos/disk
        head -c 2M /dev/urandom >/tank/photos/one; head -c 1M /dev/urandom >/srv/sub/two; chown 1234:4321 /srv/sub/two
        setfacl -m u:77:r /tank/photos/one 2>/dev/null || :
        dd if=/dev/urandom of=/dev/zvol/tank/photos/disk bs=1M count=2 status=none
        zfs snapshot -r tank/photos@a
        zfs clone tank/photos/sub@a tank/photos/clone; echo more >/tank/photos/clone/more; zfs set quota=50M tank/photos/clone
        echo three >/tank/photos/three; zfs snapshot -r tank/photos@b""")
    master.job("photos", JOB, targets=PLACE)
    if not kit:
        master.kitted("photos")
    ran = master.poolferry("run", "photos", "--json")
    assert ran.code == 0, ran


def values(master: Machine, root: str) -> dict[str, str]:
    """The properties that must return, by dataset and name."""
    told = master.sh(
        ["zfs", "get", "-Hp", "-r", "-t", "filesystem,volume", "-o", "name,property,value", KEPT, root]
    ).lines
    return {key: value for key, _, value in (line.removeprefix(root).rpartition("\t") for line in told)}


def contents(master: Machine) -> str:
    """Every file of the mounted tree, with its owner and mode."""
    return master.sh("""cd /tank/photos && find . /srv/sub -xdev -type f -printf '%p %U %G %m\\n' | sort
        find /tank/photos /srv/sub -type f | sort | xargs md5sum; md5sum </dev/zvol/tank/photos/disk""").text


@BOTH
@pytest.mark.long
def test_a_pool_is_lost_and_everything_comes_back(master: Machine, flavour: str) -> None:
    set_up(master, kit=True)
    before, held, told = values(master, "tank/photos"), guids(master, "tank/photos"), contents(master)
    rebuild(master)
    plan = master.poolferry("restore", "plan", "photos", "--to", "tank/photos", "--json").json
    assert plan.get("decision") == "plan", plan
    lines = [line for stage in plan["stages"] for step in stage for line in step["commands"]]
    assert any("zfs send -PLceb" in line for line in lines)
    assert not any("receive" in line and " -F" in line for line in lines)
    assert any("inherit -S quota" in line for line in lines)
    assert master.sh("zfs list -H -o name -r tank").lines == ("tank",)
    ended = restore(master, "--content")
    assert ended["outcome"] == "done", ended
    assert guids(master, "tank/photos") == held
    assert values(master, "tank/photos") == before
    wait_until(lambda: master.sh("test -e /dev/zvol/tank/photos/disk", check=False).code == 0, 20)
    assert contents(master) == told
    assert master.sh("zfs get -H -o value origin tank/photos/clone").text == "tank/photos/sub@a"
    ours = master.sh(
        "zfs get -Hr -o property -s local all tank/photos vault/copies/photos | grep poolferry", check=False
    )
    assert set(ours.lines) == {"poolferry:flags"}  # the copy's own
    assert "poolferry" not in master.sh("zfs get -Hr -o property -s local all tank/photos").text
    assert master.sh("zfs list -Hr -o name -t bookmark vault; zfs holds -rH vault/copies/photos@a").text == ""
    (newest, *_) = master.poolferry("history", "photos", "--json").json["runs"]
    assert (newest["requested"], newest["outcome"]) == ("restore to tank/photos", "done")
    # And on, as if nothing had happened.
    assert [(link["target"], link["base"], link["seen"]) for link in ended["chains"]] == [("vault", "b", True)]
    master.sh("echo new >/tank/photos/new; zfs snapshot -r tank/photos@c")
    ran = master.poolferry("run", "photos", "--json").json
    assert ran["outcome"] == "done", ran
    assert ran["moved_bytes"] < 1 << 20, "only what is new"
    # What reads contents is the same on both, and was done once above.
    more = ("--content",) if flavour == "trixie" else ()
    assert master.poolferry("verify", "photos", *more, "--json").json["outcome"] == "done"


SLOW = '[pipe]\nrate-limit = "600k"\nbuffer = "2M"\n'


def test_a_restore_that_is_killed_goes_on_and_no_run_harms_the_copy_meanwhile(master: Machine) -> None:
    set_up(master)
    master.job("photos", JOB + '[zfs]\nmay-destroy = ["rollback"]\n' + SLOW)
    before, held = values(master, "tank/photos"), guids(master, "tank/photos")
    rebuild(master)
    running = master.popen(["poolferry", "restore", "run", "photos", "--to", "tank/photos", "--json"])
    token = "zfs get -Hpo value receive_resume_token tank/photos 2>&1 | grep -q ^1-"
    master.sh(f"{PROMPT}; until pgrep -x zfs >/dev/null && {token}; do sleep 0.5; done", seconds=300)
    running.kill(9)
    running.wait(30)
    master.sh("pkill -9 -x mbuffer; pkill -9 -x zfs", check=False)
    wait_until(lambda: master.sh("pgrep -x zfs", check=False).code != 0, 60, pause=0.2)
    assert master.sh("zfs get -Hpo value,source poolferry:flags tank/photos").text == "Lceb\tlocal"
    assert master.sh("zfs get -Ho value mounted,canmount,readonly tank/photos").lines == ("no", "noauto", "on")
    copied = guids(master, COPY)
    ran = master.poolferry("run", "photos", "--json")
    assert (ran.code, "is being brought back" in ran.json["why"] or "no snapshot" in ran.json["why"]) == (3, True), ran
    assert guids(master, COPY) == copied
    master.job("photos", JOB, targets=PLACE)
    ended = restore(master)
    assert (ended["outcome"], ended["resumed"]) == ("done", True), ended
    assert guids(master, "tank/photos") == held
    assert values(master, "tank/photos") == before
    assert master.sh(f"zfs holds -rH {COPY}@a; zfs list -Hr -o name -t bookmark vault").text == ""


@pytest.mark.long
def test_a_part_as_of_a_point_under_another_name(master: Machine) -> None:
    set_up(master)
    ended = restore(master, "--path", "sub", "--point", "a", to="tank/old-sub")
    assert ended["outcome"] == "done", ended
    assert [*guids(master, "tank/old-sub")] == ["@a"]
    assert master.sh("zfs get -Hpo value mountpoint,mounted,refquota tank/old-sub").lines == (
        "/tank/old-sub",
        "yes",
        str(100 << 20),
    )
    assert any("zfs inherit -S mountpoint tank/old-sub" in warning for warning in ended["warnings"]), ended
    assert master.sh("zfs get -Ho value mounted tank/photos/sub").text == "yes"  # the living one is where it was
    again = restore(master, "--path", "sub", "--point", "a", to="tank/old-sub")
    assert (again["outcome"], again["why"]) == ("done", "tank/old-sub is back already"), again
    assert restore(master, to="tank/none/x")["outcome"] == "refused"


@pytest.mark.long
def test_what_lives_is_set_aside_and_its_place_is_waited_for(master: Machine) -> None:
    set_up(master)
    master.sh("echo mine >/tank/photos/mine")
    refused = restore(master)
    assert (refused["outcome"], refused["why"]) == ("refused", "tank/photos is there; a restore overwrites nothing")
    ended = restore(master, "--aside")
    assert (ended["outcome"], ended["evidence"][0]) == ("waiting", "tank/photos"), ended
    (aside,) = [line for line in master.sh("zfs list -H -o name -d 1 tank").lines if "aside" in line]
    assert any(f"{aside} has /tank/photos: unmount that" in warning for warning in ended["warnings"]), ended
    assert master.sh("cat /tank/photos/mine").text == "mine"
    ran = master.poolferry("run", "photos", "--json").json
    assert (ran["outcome"], "restored, and each waits" in str(ran["warnings"])) == ("nothing-to-do", True), ran
    master.sh(
        f"zfs list -Hr -t filesystem -o name {aside} | xargs -n 1 zfs set canmount=noauto; zfs unmount -f {aside}/sub; zfs unmount -f {aside}"
    )
    ended = restore(master, "--aside")
    (told,) = ended["warnings"]
    assert (ended["outcome"], told.startswith("--aside sets nothing aside")) == ("done", True), ended
    assert master.sh("test ! -e /tank/photos/mine && cat /tank/photos/three").text == "three"
    assert master.sh(f"zfs get -Hpo value mounted {aside}").text == "no"
    assert master.poolferry("run", "photos", "--json").json["outcome"] == "nothing-to-do"


@BOTH
@pytest.mark.long
def test_what_is_encrypted_returns_with_its_keys(master: Machine) -> None:
    master.pool("tank", "400M")
    master.pool("vault", "400M")
    master.sh(f"""set -e; zfs create vault/copies; echo 12345678 | {PASSPHRASE} tank/photos
        zfs create tank/photos/x; echo 87654321 | {PASSPHRASE} tank/photos/own
        zfs create tank/photos/x/y; for d in photos photos/x photos/own photos/x/y; do echo $d >/tank/$d/file; done
        zfs snapshot -r tank/photos@a; date >/tank/photos/x/more; zfs snapshot -r tank/photos@b""")
    master.job("photos", JOB, targets=PLACE)
    master.kitted("photos")
    assert master.poolferry("run", "photos", "--json").code == 0
    rebuild(master)
    ended = restore(master)
    assert ended["outcome"] == "waiting", ended
    assert master.poolferry("run", "photos", "--json").json["outcome"] == "nothing-to-do"
    # The hint as it stands, with each passphrase typed where it is asked for.
    (loads,) = re.findall(r"(for each in .*?; done);", ended["hint"])
    typed = 'case "$each" in */own) echo 87654321 ;; *) echo 12345678 ;; esac | zfs load-key'
    master.sh(loads.replace("zfs load-key", typed))
    ended = restore(master)
    assert (ended["outcome"], ended["warnings"]) == ("done", []), ended
    roots = master.sh("zfs get -Hr -t filesystem -o value encryptionroot tank/photos").lines
    assert sorted(roots) == ["tank/photos", "tank/photos", "tank/photos", "tank/photos/own"]
    assert master.sh("cat /tank/photos/file /tank/photos/x/y/file /tank/photos/own/file").lines == (
        "photos", "photos/x/y", "photos/own",
    )  # fmt: skip
    master.sh("echo new >/tank/photos/x/y/new; echo new >/tank/photos/new; zfs snapshot -r tank/photos@c")
    ran = master.poolferry("run", "photos", "--json").json
    assert ran["outcome"] == "done", ran
    assert ran["moved_bytes"] < 1 << 20
    assert guids(master, "tank/photos") == guids(master, COPY)


@pytest.mark.long
def test_what_waits_for_a_key_waits_alone_and_a_lost_key_is_said(master: Machine) -> None:
    """A child that shared its parent's key, mountpoints made in the parent, a key file that is gone, and one that is lost."""
    master.pool("tank", "400M")
    master.pool("vault", "400M")
    raw = "zfs create -o encryption=on -o keyformat=raw -o keylocation=file:///root"
    master.sh(f"""set -e; zfs create vault/copies; for k in key other; do head -c 32 /dev/urandom >/root/$k; done
        zfs create tank/photos; {raw}/key tank/photos/sealed; zfs create tank/photos/sealed/x; {raw}/other tank/photos/own
        zfs create tank/photos/open; for d in sealed sealed/x own open; do echo $d >/tank/photos/$d/file; done
        zfs snapshot -r tank/photos@a""")
    master.job("photos", JOB, targets=PLACE)
    master.kitted("photos")
    assert master.poolferry("run", "photos", "--json").code == 0
    rebuild(master)
    master.sh("mv /root/key /root/away; mv /root/other /root/gone")
    ended = restore(master)
    assert ended["outcome"] == "waiting", ended
    assert "file:///root/key" in ended["hint"], ended
    assert "are not there: bring that back first" in ended["hint"], ended
    assert master.sh("cat /tank/photos/open/file").text == "open"
    master.sh("echo new >/tank/photos/open/new; zfs snapshot -r tank/photos@b")
    ran = master.poolferry("run", "photos", "--json").json
    assert (ran["outcome"], guids(master, COPY)) == ("done", guids(master, "tank/photos")), ran
    again = restore(master)
    assert (again["outcome"], again["hint"]) == ("waiting", ended["hint"]), again
    master.sh("mv /root/away /root/key")
    (loads,) = re.findall(r"(for each in [^;]*; do zfs load-key -L file:///root/key .*?; done);", ended["hint"])
    master.sh(loads)
    ended = restore(master)
    assert (ended["outcome"], ended["evidence"]) == ("waiting", ["tank/photos/own"]), ended
    assert master.sh("cat /tank/photos/sealed/file /tank/photos/sealed/x/file").lines == ("sealed", "sealed/x")
    assert master.sh("zfs get -Ho value encryptionroot tank/photos/sealed/x").text == "tank/photos/sealed"
    (lost,) = re.findall(r"--lost-key \S+", ended["hint"])
    ended = restore(master, *lost.split())
    assert (ended["outcome"], "nothing is destroyed" in str(ended["warnings"])) == ("done", True), ended
    assert restore(master)["why"] == "tank/photos is back already"
    assert "poolferry" not in master.sh("zfs get -Hr -o property -s local all tank").text
    assert master.poolferry("run", "photos", "--json").json["outcome"] == "nothing-to-do"
    found = "zfs load-key -L file:///root/gone tank/photos/own && zfs inherit -S canmount tank/photos/own"
    assert master.sh(f"{found} && zfs mount tank/photos/own && cat /tank/photos/own/file").text == "own"


@pytest.mark.long
def test_what_its_pool_encrypts_returns_open_with_its_properties(master: Machine) -> None:
    master.pool("tank", "400M")
    master.pool("vault", "400M")
    master.sh(f"""set -e; echo 12345678 | {PASSPHRASE} vault/copies
        zfs create -o quota=200M -o compression=gzip -o user:note='a b' tank/photos; zfs create -o mountpoint=/srv/sub tank/photos/sub
        echo one >/tank/photos/one; zfs snapshot -r tank/photos@a""")
    master.job("photos", JOB, targets=PLACE)
    master.kitted("photos")
    assert master.poolferry("run", "photos", "--json").code == 0
    before, held = values(master, "tank/photos"), guids(master, "tank/photos")
    rebuild(master)
    ended = restore(master)
    assert ended["outcome"] == "done", ended
    assert (values(master, "tank/photos"), guids(master, "tank/photos")) == (before, held)
    assert master.sh("zfs get -Ho value encryption,mounted tank/photos").lines == ("off", "yes")
    assert master.poolferry("run", "photos", "--json").json["outcome"] == "nothing-to-do"


def test_files_out_of_a_copy(master: Machine) -> None:
    set_up(master)
    ended = restore(master, "--path", "sub", to="/root/back")
    assert ended["outcome"] == "done", ended
    assert master.sh("stat -c '%n %u %g' /root/back/*").text == "/root/back/two 1234 4321"
    ended = restore(master, "--path", "three", "--point", "a", to="/root/file")
    assert (ended["outcome"], "holds no" in ended["why"]) == ("refused", True)
    ended = restore(master, "--path", "three", to="/root/file")
    assert (ended["outcome"], master.sh("cat /root/file").text) == ("done", "three"), ended
    ended = restore(master, to="/root/all")
    assert any("clone, sub" in warning for warning in ended["warnings"]), ended
    assert not master.sh("grep @ /proc/self/mounts; ls /run/poolferry/points", check=False).text


@pytest.mark.long
def test_the_page_of_the_kit_brings_everything_back_by_hand(master: Machine) -> None:
    """Nothing of ours is used: only what lies beside the copy."""
    set_up(master, kit=True)
    before, held = values(master, "tank/photos"), guids(master, "tank/photos")
    kit = "/mnt/photos"
    master.sh("mount -t zfs -o ro vault/copies/poolferry-kit /mnt")
    assert master.sh(f"ls {kit} {kit}/configuration/jobs").lines
    page = master.read(f"{kit}/RECOVERY.md").decode()
    expected = master.read(f"{kit}/guids.tsv")
    master.sh("umount /mnt; zpool destroy -f tank")
    blocks = [block.partition("```")[0] for block in page.split("```sh\n")[1:]]
    assert len(blocks) == 6
    for block in blocks:
        ended = master.sh(block.replace("zpool create", "zpool create -f"), check=False, seconds=300)
        assert ended.code == 0, (block, ended)
    assert master.read("/root/poolferry-guids") == expected
    assert guids(master, "tank/photos") == held
    changed = {
        key: (value, values(master, "tank/photos")[key])
        for key, value in before.items()
        if values(master, "tank/photos")[key] != value
    }
    assert changed == {}
    assert master.sh("cat /tank/photos/three").text == "three"
    assert master.poolferry("run", "photos", "--json").json["outcome"] == "nothing-to-do"


@BOTH
@pytest.mark.long
def test_what_no_stream_brings_is_listed_with_the_command_that_makes_it_again(master: Machine) -> None:
    """Rights, holds and bookmarks of users, on datasets above and below each other; each command as it stands, and the list is empty."""
    master.pool("tank", "300M")
    master.pool("vault", "300M")
    master.sh("""set -e; useradd anna; zfs create vault/copies; zfs create tank/photos; zfs create -o quota=90M 'tank/photos/a b'
        zfs create 'tank/photos/a b/c'; zfs snapshot -r tank/photos@a; zfs bookmark tank/photos@a tank/photos#mine
        zfs hold keep 'tank/photos/a b@a'; zfs hold other tank/photos@a; zfs allow anna send tank
        zfs allow -l anna snapshot,hold tank/photos; zfs allow -s @simple create,mount 'tank/photos/a b'
        zfs allow -d -g users @simple 'tank/photos/a b'; zfs allow -c destroy 'tank/photos/a b/c'; zfs allow everyone userprop tank/photos""")
    master.job("photos", JOB, targets=PLACE)
    assert master.poolferry("run", "photos", "--json").code == 0
    listing = """for d in tank/photos 'tank/photos/a b' 'tank/photos/a b/c'; do zfs allow "$d" | grep -v ' on tank -'; done
        zfs holds -rH tank/photos | cut -f 1,2 | grep -v poolferry; zfs list -Hr -t bookmark -o name,guid tank | grep -v poolferry"""
    before = master.sh(listing).text
    assert before.count("simple") >= 3, before
    rebuild(master)
    ended = restore(master)
    assert ended["outcome"] == "done", ended
    commands = [
        line.partition(": ")[2].partition(": ")[2]
        for line in ended["warnings"]
        if "not delegated" in line or "not there" in line
    ]
    assert len(commands) == 8, ended["warnings"]
    assert not [line for line in commands if not line.startswith("zfs ")]
    for line in commands:
        master.sh(line)
    master.sh("zfs allow anna send tank")  # what was set above the source is none of it
    assert master.sh(listing).text == before
    again = restore(master)
    assert not [line for line in again["warnings"] if "not delegated" in line or "not there" in line], again


@pytest.mark.long
def test_a_point_is_tried_written_and_dropped(master: Machine) -> None:
    set_up(master)
    held = guids(master, COPY)
    tried = master.poolferry("try", "photos", "--point", "a", "--for", "1s", "--json", seconds=300).json
    assert tried["outcome"] == "done", tried
    (scratch,) = tried["scratch"]
    place = scratch["mountpoint"]
    assert master.sh(f"ls {place} {place}/sub; test ! -e {place}/three; echo mine >{place}/mine").lines
    assert (
        master.sh(f"dd if=/dev/zero of=/dev/zvol/{scratch['dataset']}/disk bs=64K count=1 status=none; echo well").text
        == "well"
    )
    # Nobody else looks into it, whatever the modes of what came back; and it gains nobody rights.
    assert master.sh(f"setpriv --reuid=65534 --regid=65534 --clear-groups ls {place}", check=False).code != 0
    assert "nosuid,nodev" in master.sh(f"findmnt -no OPTIONS {place}").text
    assert "as of a, at /run/poolferry/try" in master.poolferry("try", "photos", "--list").text
    assert master.poolferry("run", "photos", "--json").json["outcome"] == "nothing-to-do"
    again = master.poolferry("try", "photos", "--json", seconds=300).json
    (other,) = again["scratch"]  # the first one's time was over
    assert other["point"] == "b"
    dropped = master.poolferry("try", "photos", "--drop", other["name"], "--json").json
    assert (dropped["outcome"], dropped["scratch"]) == ("done", []), dropped
    assert master.poolferry("try", "photos", "--drop", "nothing").code == 3
    assert guids(master, COPY) == held
    assert master.sh("zfs list -H -o name -r vault/copies/poolferry-try").text == "vault/copies/poolferry-try"


@pytest.mark.virtual
@pytest.mark.long
def test_from_a_backup_on_another_machine(pair: Pair) -> None:
    master, backup = pair
    master.pool("tank", "200M")
    backup.pool("vault", "200M")
    backup.sh("zfs create vault/copies")
    master.sh(
        "zfs create -o quota=100M tank/photos; head -c 1M /dev/urandom >/tank/photos/one; zfs snapshot tank/photos@a"
    )
    master.job("photos", JOB, targets='[place.vault]\ndataset = "ssh://root@backup/vault/copies"\n')
    assert master.poolferry("run", "photos", "--json").code == 0
    held = guids(master, "tank/photos")
    rebuild(master)
    ended = restore(master)
    assert ended["outcome"] == "done", ended
    assert guids(master, "tank/photos") == held
    assert master.sh("zfs get -Hpo value quota,mounted tank/photos").lines == (str(100 << 20), "yes")
    ended = restore(master, "--path", "one", to="/root/one")
    assert ended["outcome"] == "done", ended
    assert backup.sh("zfs list -H -o name vault/copies/poolferry-kit").code == 0


@BOTH
def test_a_pool_that_was_made_anew_is_restored_before_anything_is_taken_of_it(master: Machine) -> None:
    master.pool("tank", "400M")
    master.pool("vault", "400M")
    master.sh("set -e; zfs create vault/copies; zfs create tank/photos; echo one >/tank/photos/one")
    master.job("photos", f"{JOB}[snapshots]\nhourly = 24\n", targets=PLACE)
    master.kitted("photos")
    assert master.poolferry("run", "photos", "--json").json["outcome"] == "done"
    rebuild(master)
    gone = master.poolferry("run", "photos", "--json").json
    assert gone["outcome"] != "done", gone
    master.sh("zfs create tank/photos")
    rested = master.poolferry("run", "photos", "--json").json
    assert (rested["outcome"], rested["hint"].partition(" (")[0]) == (
        "refused",
        "restore it first: poolferry restore run photos --to tank/photos --aside",
    ), rested
    assert any("no snapshot is taken of it" in warning for warning in rested["warnings"]), rested
    assert not guids(master, "tank/photos")
    command = rested["hint"].partition(": poolferry ")[2].partition(" (")[0]
    ended = master.poolferry(*command.split(), "--json", seconds=300).json
    assert ended["outcome"] == "waiting", "what was set aside has its mountpoint"
    (aside,) = [line for line in master.sh("zfs list -H -o name -d 1 tank").lines if "aside" in line]
    master.sh(f"zfs destroy {aside}")
    assert master.poolferry(*command.split(), "--json", seconds=300).json["outcome"] == "done"
    ran = master.poolferry("run", "photos", "--json").json
    assert ran["outcome"] in ("done", "nothing-to-do"), ran
    assert not any("no snapshot is taken" in warning for warning in ran["warnings"]), ran
    assert master.sh("cat /tank/photos/one").text == "one"


@pytest.mark.long
@BOTH
def test_a_copy_in_a_pool_that_was_imported_read_only_comes_back(master: Machine, flavour: str) -> None:
    set_up(master)
    held = guids(master, "tank/photos")
    master.sh(f"zpool export vault && zpool import -d {POOLS} -o readonly=on vault")
    ended = restore(master, to="tank/back")
    assert ended["outcome"] == "done", ended
    assert "takes no hold" in str(ended["warnings"]), ended
    assert guids(master, "tank/back") == held


def test_aside_of_a_restore_that_is_said_again_sets_nothing_aside_and_says_so(master: Machine) -> None:
    """In the plan and in the restore, while a part of it waits for its key and once all is there; a run ends that."""
    for pool in ("tank", "vault"):
        master.pool(pool, "300M")
    master.sh(f"""set -e; zfs create vault/copies; zfs create tank/photos; {ENCRYPTED} tank/photos/own
        echo one >/tank/photos/one; zfs snapshot -r tank/photos@a""")
    master.job("photos", JOB, targets=PLACE)
    master.kitted("photos")
    assert master.poolferry("run", "photos", "--json").code == 0
    rebuild(master)
    assert restore(master)["outcome"] == "waiting"
    master.sh("echo mine >/tank/photos/mine")
    for key, outcome in ((False, "waiting"), (True, "done"), (True, "done")):
        if key:
            master.sh(
                f"[ $(zfs get -Ho value keystatus tank/photos/own) = available ] || {GIVE_KEY} | zfs load-key tank/photos/own"
            )
        planned = master.poolferry("restore", "plan", "photos", "--to", "tank/photos", "--aside", "--json").json
        ended = restore(master, "--aside")
        assert ended["outcome"] == outcome, ended
        for warnings in (planned["warnings"], ended["warnings"]):
            (line,) = [one for one in warnings if "nothing aside" in one]
            assert line == (
                "--aside sets nothing aside, as what is at tank/photos came back by a restore for which this one is taken, said again; "
                "what was changed there since is still there"
            )
        assert master.sh("cat /tank/photos/mine").text == "mine"
        assert "_aside_" not in master.sh("zfs list -H -o name -r tank").text
    assert master.poolferry("run", "photos", "--json").json["outcome"] == "nothing-to-do"
    planned = master.poolferry("restore", "plan", "photos", "--to", "tank/photos", "--aside", "--json").json
    assert "nothing aside" not in str(planned["warnings"]), "now it is another restore"
    assert "_aside_" in str(planned["stages"])


def cut_after(master: Machine, dataset: str, *words: str) -> None:
    """A restore that is killed once the first snapshot of a dataset is back, before the next one comes."""
    master.sh(f"sed -i s/100M/1M/ {master.config}/jobs/photos.toml")
    running = master.popen(["poolferry", "restore", "run", "photos", *words])
    running.until(lambda: master.sh(f"zfs list {dataset}@a", check=False).code == 0, 120)
    running.kill(9)
    master.sh("pkill -9 -x mbuffer; until ! pgrep -f '^zfs receive'; do sleep 0.2; done", check=False)
    master.sh(f"sed -i s/1M/100M/ {master.config}/jobs/photos.toml")


def test_nothing_is_taken_of_what_is_half_restored_and_it_goes_on(master: Machine) -> None:
    """Seen: snapshots of a job that only takes them stood in the way of what was still to come, of the whole and of a part."""
    for pool in ("tank", "vault"):
        master.pool(pool, "400M")
    master.sh("""set -e; zfs create vault/copies; zfs create tank/photos; zfs create tank/photos/sub; head -c 3M /dev/urandom >/tank/photos/sub/a
        zfs snapshot -r tank/photos@a; head -c 6M /dev/urandom >/tank/photos/sub/b; zfs snapshot -r tank/photos@b""")
    master.job("photos", JOB + '[pipe]\nrate-limit = "100M"\n', targets=PLACE)
    master.job("snaps", 'engine = "sanoid"\nsource = "tank/photos"\n[snapshots]\nhourly = 2\n')
    master.kitted("photos")
    assert master.poolferry("run", "photos", "--json").code == 0
    held = guids(master, "tank/photos")

    # A part.
    master.sh("zfs destroy -r tank/photos/sub")
    cut_after(master, "tank/photos/sub", "--path", "sub", "--to", "tank/photos/sub")
    told = master.poolferry("run", "snaps", "--json").json
    (line,) = [one for one in told["warnings"] if "left out until that is finished" in one]
    assert (told["outcome"], line.startswith("tank/photos/sub: being restored")) == ("done", True), told
    told = master.poolferry("run", "photos", "--json").json
    assert (told["outcome"], "tank/photos/sub is being brought back" in told["why"]) == ("failed", True), told
    master.sh(re.findall(r"finish that: (poolferry restore [^;]*);", told["hint"])[0], seconds=300)
    assert guids(master, "tank/photos/sub") == {f"@{name}": held[f"/sub@{name}"] for name in "ab"}
    master.sh("zfs snapshot -r tank/photos@c")
    assert master.poolferry("run", "photos", "--json").json["outcome"] == "done"

    # The whole.
    held = guids(master, "tank/photos")
    master.sh("zfs destroy -r tank/photos")
    cut_after(master, "tank/photos/sub", "--to", "tank/photos")
    told = master.poolferry("run", "snaps", "--json").json
    assert (told["outcome"], "is not whole yet" in told["why"]) == ("refused", True), told
    assert "poolferry restore run photos --to tank/photos" in master.poolferry("status").text
    ended = restore(master)
    assert (ended["outcome"], guids(master, "tank/photos")) == ("done", held), ended
    assert master.poolferry("run", "snaps", "--json").json["outcome"] in ("done", "nothing-to-do")
    (job,) = [one for one in master.poolferry("status", "--json").json["jobs"] if one["job"] == "snaps"]
    assert (job["state"], job["source_state"]) == ("up", None), job
