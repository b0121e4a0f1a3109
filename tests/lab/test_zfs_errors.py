"""Test what real failures are called, what they leave, and that the next run goes on once their cause is gone."""

from pathlib import Path

import pytest

from orchestrator.engines.zfs.system_check import RECEIVING, SENDING
from tests.lab.common import Machine
from tests.lab.frail import FrailPool
from tests.lab.laboratory import Pair
from tests.lab.rows import DONE, FAILED, REFUSED, WAITING, Row, Table, Turn
from tests.lab.virtual import POOLS, VirtualMachine

PLACES = {
    "vault": "vault/copies", "tight": "vault/tight", "small": "small/copies", "away": "away/copies",
}  # fmt: skip
_BIG = "zfs create $s; head -c {0}M /dev/urandom >/$s/big; zfs snapshot $s@one"
_NO_ROOM = r"the target has not enough space: \d+.\d MiB are to be sent, and \d+.\d MiB are free in {}"
_ALLOWED = frozenset({"target-room"})
# Somebody else's receive, which keeps nothing when it is cut.
_RECEIVING = """begin; grow $s two
(setsid sh -c "(zfs send -i @one $s@two | head -c 600000; exec sleep 900) | exec zfs receive -u $c" >/dev/null 2>&1 &)
until zfs list -Ho name "$c/%recv" >/dev/null 2>&1; do sleep 0.1; done
"""
ROWS = (
    Row(name="quota", alone=True, place="tight", turns=(
        Turn(action="zfs create -o quota=4M vault/tight; " + _BIG.format(8), outcome=REFUSED, says=(_NO_ROOM.format("vault/tight"),)),
        Turn(outcome=FAILED, says=("a quota on the target is reached", "what arrived is kept"), allow=_ALLOWED),
        Turn(action="zfs set quota=none vault/tight", resumed=True, sends=("$s @one, the rest",)),
    )),
    Row(name="full", alone=True, place="small", turns=(
        Turn(action="head -c 20M /dev/urandom >/small/junk; zpool sync small; " + _BIG.format(24), outcome=REFUSED,
             says=(_NO_ROOM.format("small/copies"),)),
        Turn(outcome=FAILED, says=("the target pool has no space left .*MiB were free before", "what arrived is kept"),
             allow=_ALLOWED),
        Turn(action="rm /small/junk; zpool sync small", resumed=True, sends=("$s @one, the rest",)),
    )),
    Row(name="held", alone=True, options='may-destroy = ["rollback"]', turns=(
        Turn(action="begin; zfs snapshot $c@own; zfs hold keep $c@own; grow $s two", outcome=FAILED, attempts=3,
             says=("something still uses a dataset: a receive, a mount or a hold", "zfs holds")),
        Turn(action="zfs release keep $c@own", sends=("$s @one → @two, incremental",), loses=True),
    )),
    Row(name="receiving", alone=True, turns=(
        Turn(action=_RECEIVING, outcome=FAILED, attempts=3, says=("something still uses a dataset",)),
        Turn(action="pkill -f '[z]fs receive -u $c'; while zfs list '$c/%recv' >/dev/null 2>&1; do sleep 0.1; done",
             sends=("$s @one → @two, incremental",)),
    )),
    Row(name="away", alone=True, place="away", turns=(
        Turn(action="zfs create $s; grow $s one", outcome=REFUSED,
             says=("the pool away of the target away/copies/away is not imported", "zpool import away")),
    )),
    Row(name="nowhere", alone=True, source="nowhere/photos", turns=(
        Turn(outcome=REFUSED, says=("the source nowhere/photos is not there", "import its pool")),
    )),
)  # fmt: skip


@pytest.mark.timeout(900)
@pytest.mark.long
def test_each_failure_by_its_name_and_the_run_after_it(master: Machine, tmp_path: Path) -> None:
    for name, size in (("tank", "1G"), ("vault", "1G"), ("small", "96M")):
        master.pool(name, size)
    master.sh("zfs create vault/copies; zfs create small/copies")
    Table(master, tmp_path, places=PLACES).play(ROWS)


def _allow(dataset: str, rights: tuple[str, ...], but: str = "") -> str:
    return f"zfs allow ferry {','.join(right for right in rights if right != but)} {dataset}"


USERS = (
    Row(name="right", alone=True, place="right", turns=(
        Turn(action=f"zfs create vault/right; zfs create $s; grow $s one; {_allow('$s', SENDING)}; "
             f"{_allow('vault/right', RECEIVING)}", sends=("$s @one, the whole",)),
        Turn(action="grow $s two", sends=("$s @one → @two, incremental",)),
    )),
    *(
        Row(name=f"no-{right}", alone=True, place=f"no-{right}", turns=(
            Turn(action=f"zfs create vault/no-{right}; zfs create $s; grow $s one; {_allow('$s', SENDING, right)}; "
                 f"{_allow(f'vault/no-{right}', RECEIVING, right)}", outcome=FAILED,
                 says=("this user may not do that with this dataset", "permission denied", f"it lacks `{right}`")),
        ))
        for right in ("bookmark", "hold", "send", "receive")
    ),
    Row(name="sudo", alone=True, place="sudo", options="sudo = true", turns=(
        Turn(action="zfs create vault/sudo; zfs create $s; grow $s one", sends=("$s @one, the whole",)),
    )),
)  # fmt: skip


@pytest.mark.timeout(900)
@pytest.mark.long
def test_an_ordinary_user_is_told_which_right_is_missing(master: Machine, tmp_path: Path) -> None:
    master.pool("tank")
    master.pool("vault")
    master.write("/etc/sudoers.d/ferry", "ferry ALL=(root) NOPASSWD: /usr/sbin/zfs, /usr/bin/kill\n", mode=0o440)
    places = {row.place: f"vault/{row.place}" for row in USERS}
    Table(master, tmp_path, places=places, user="ferry").play(USERS)
    # The program itself, and what it advises.
    home = "/home/ferry/poolferry"
    for name in ("right", "no-hold"):
        master.write(f"{home}/jobs/{name}.toml", f'engine = "zfs"\nsource = "tank/{name}"\ntarget = "{name}"\n')
    told = "".join(f'[place.{name}]\ndataset = "vault/{name}"\n' for name in ("right", "no-hold"))
    master.write(f"{home}/targets.toml", told)
    master.sh(f"chown -R ferry {home}; zfs snapshot tank/right@three")
    place = ("--config", home, "--state", "/home/ferry/state")
    ran = master.poolferry("run", "right", "--json", *place, user="ferry", seconds=300)
    assert (ran.code, ran.json["outcome"]) == (0, DONE), ran
    checked = master.poolferry("check", "--system", "--json", *place, user="ferry", seconds=300)
    assert "zfs allow ferry hold tank/no-hold" in checked.text, checked


@pytest.mark.virtual
@pytest.mark.timeout(900)
def test_what_the_far_side_lacks(pair: Pair, tmp_path: Path) -> None:
    master, backup = pair
    master.pool("tank")
    backup.pool("vault")
    master.sh("zfs create tank/photos; head -c 1M /dev/urandom >/tank/photos/a; zfs snapshot tank/photos@one")
    shared = ("-oControlMaster=auto", "-oControlPath=/run/%C", "-oControlPersist=120")
    table = Table(master, tmp_path, places={"far": "ssh://root@backup/vault/copies"}, ssh_options=shared)
    turn = Turn(source="tank/photos", place="far", options="")
    backup.sh("mv /usr/bin/mbuffer /usr/bin/mbuffer.away")
    assert table.run("photos", turn)["outcome"] == DONE
    master.sh("zfs snapshot tank/photos@two")
    backup.sh("mv /usr/sbin/zfs /usr/sbin/zfs.away")
    told = table.run("photos", turn)
    assert told["outcome"] == FAILED, told
    assert "a program is not installed there" in told["why"], told
    assert told["hint"].startswith("apt install zfsutils-linux mbuffer"), told
    backup.sh("mv /usr/sbin/zfs.away /usr/sbin/zfs; zpool export vault")
    told = table.run("photos", turn)
    assert told["outcome"] == REFUSED, told
    assert "the pool vault of the target ssh://root@backup/vault/copies/photos is not imported" in told["why"], told
    backup.sh(f"zpool import -d {POOLS} vault")
    assert table.run("photos", turn)["outcome"] == DONE


@pytest.mark.virtual
@pytest.mark.timeout(900)
@pytest.mark.long
def test_a_suspended_pool_ends_the_run_and_hangs_nothing(master: VirtualMachine) -> None:
    """The disk fails in the middle of a receive, and the pool waits for it."""
    master.pool("tank")
    master.pool("sound")
    vault = FrailPool(master, "vault")
    master.sh("""zfs create tank/photos; head -c 24M /dev/urandom >/tank/photos/a; zfs snapshot tank/photos@one
        echo 1 >/sys/module/zfs/parameters/zfs_txg_timeout  # so that there is a token long before the end
        zfs create tank/mail; zfs snapshot tank/mail@one""")
    job = 'engine = "zfs"\nsource = "tank/{}"\ntarget = "{}"\n[retry]\nattempts = 2\nwait = "1s"\n'
    pipe = '[pipe]\nstall-after = "6s"\nbuffer = "2M"\nrate-limit = "400K"\n'
    places = "".join(f'[place.{name}]\ndataset = "{name}/copies"\n' for name in ("vault", "sound"))
    master.job("photos", job.format("photos", "vault") + pipe, targets=places)
    master.job("mail", job.format("mail", "sound"))
    master.kitted("photos", "mail", at=("vault", "sound"))
    running = master.popen(["poolferry", "run", "photos", "--json"])
    begun = "zfs get -Hpo value receive_resume_token vault/copies/photos 2>/dev/null | grep -q 1-"
    master.sh(f"until {begun}; do sleep 0.1; done")
    vault.fail()
    ended = running.wait(150)
    assert (ended.code, ended.json["outcome"]) == (1, FAILED), ended
    assert "pool vault is suspended" in ended.json["why"] or "nothing moved for too long" in ended.json["why"], (
        ended.json
    )
    assert "zpool status" in ended.json["hint"]
    # The next ones: the receiver cannot be killed while its pool waits, and keeps the lock; a look tells the cause at once.
    looked = master.poolferry("plan", "photos", seconds=150)
    assert (looked.code, "the pool vault is suspended" in looked.complaint) == (1, True), looked
    assert "zpool clear vault" in looked.complaint
    photos, mail = master.poolferry("run", "photos", "mail", "--json", seconds=150).json["runs"]
    assert photos["outcome"] == WAITING, photos
    (hanging,) = master.sh("pgrep -f '^zfs receive'").lines
    assert "a program of it waits in the kernel and cannot be ended: `zfs receive " in photos["why"], photos
    assert f"vault/copies/photos` (process {hanging}, since 20" in photos["why"], photos
    assert "bring its disk back and `zpool clear`" in photos["hint"]
    assert mail["outcome"] == DONE, mail
    told = master.poolferry("status", "--json", seconds=60).json["jobs"]  # it does not hang
    assert {one["job"]: one["state"] for one in told}["mail"] == "up", told
    # With the disk back, that very receive comes to its end, and the next run goes on from there, as fast as it can.
    vault.mend()
    master.job("photos", job.format("photos", "vault"))
    master.sh("while pgrep -f '^zfs receive'; do sleep 0.1; done")
    last = master.poolferry("run", "photos", "--json", seconds=150).json
    assert (last["outcome"], last["resumed"]) == (DONE, True), last


@pytest.mark.long
def test_a_target_pool_that_is_imported_read_only_is_named_at_once(master: Machine) -> None:
    master.pool("tank")
    master.pool("vault")
    master.sh(
        "zfs create tank/photos && zfs create vault/copies && head -c 80M /dev/urandom >/tank/photos/big && "  # more than buffers hold
        f"zfs snapshot tank/photos@a && zpool export vault && zpool import -d {POOLS} -o readonly=on vault"
    )
    master.job(
        "photos",
        'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n',
        targets='[place.vault]\ndataset = "vault/copies"\n',
    )
    checked = master.poolferry("check", "--system")
    assert (checked.code != 0, "pool vault here: is imported read-only" in " ".join(checked.text.split())) == (
        True,
        True,
    ), checked
    ran = master.poolferry("run", "photos", "--json").json
    assert (ran["outcome"], "imported read-only" in ran["why"]) == ("failed", True), ran
    assert "mbuffer" not in ran["why"], ran
    assert master.poolferry("history", "photos", "--json").json["runs"][0]["attempts"] == 1
    master.sh(f"zpool export vault && zpool import -d {POOLS} vault")
    assert master.poolferry("run", "photos", "--json").json["outcome"] == "done"
