"""A lost pool comes back whatever happens meanwhile: between two commands and within them, with the daemon running.

Each round loses the pool, restores it from the place or from the disk, and types what the restore says. It ends with all as
it was: contents, guids, properties, rights, holds and bookmarks; and both chains go on with what is new alone.
More rounds: POOLFERRY_CHAOS_ROUNDS is how many, POOLFERRY_CHAOS_SEED the first one.
"""

import os
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.lab.common import Ended, LabError, Running
from tests.lab.laboratory import Pair
from tests.lab.pools import guids, rebuild
from tests.lab.usb_disks import UsbDisks
from tests.lab.virtual import VirtualMachine

# Read here: each test has an environment of its own.
ROUNDS = int(os.environ.get("POOLFERRY_CHAOS_ROUNDS", "30"))
SEED = int(os.environ.get("POOLFERRY_CHAOS_SEED", "0"))
ROUND_SECONDS = 1200
TARGETS = '[place.vault]\ndataset = "vault/copies"\n[set.offsite]\n'
PHOTOS = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\nevery = "2m"\n'
OFFSITE = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "offsite"\non = "attach"\n'
KEY = "file:///root/key"
MADE = f"""set -e; useradd anna; echo 1 >/sys/module/zfs/parameters/zfs_txg_timeout; head -c 32 /dev/urandom >/root/key
zfs create -o compression=lz4 -o quota=300M -o user:note='a b' tank/photos
zfs create -o mountpoint=/srv/sub -o refquota=100M -o atime=off 'tank/photos/a b'
zfs create -o encryption=on -o keyformat=raw -o keylocation={KEY} tank/photos/safe; echo secret >/tank/photos/safe/three
head -c 3M /dev/urandom >/tank/photos/one; head -c 1M /dev/urandom >/srv/sub/two; chown 1234:4321 /srv/sub/two; chmod 4750 /srv/sub/two
setfattr -n user.color -v blue /srv/sub/two; zfs snapshot -r tank/photos@a
zfs bookmark tank/photos@a tank/photos#mine; zfs hold keep 'tank/photos/a b@a'
zfs allow -l anna snapshot,hold tank/photos; zfs allow -d everyone userprop 'tank/photos/a b'"""
KEPT = "mountpoint,canmount,readonly,quota,refquota,compression,atime,user:note,encryptionroot,keylocation,mounted"
RIGHTS = """for d in tank/photos 'tank/photos/a b' tank/photos/safe; do zfs allow "$d"; done
zfs holds -rH tank/photos | cut -f 1,2 | grep -v poolferry; zfs list -Hr -t bookmark -o name,guid tank | grep -v poolferry || :"""
# Without the times of folders: to mount a dataset makes a folder in what it lies in.
FILES = """cd /tank/photos && find . /srv/sub -type d -printf '%p %U %G %m\\n' -o -printf '%p %y %U %G %m %T@ %s\\n' | sort
find . /srv/sub -type f -print0 | sort -z | xargs -0 md5sum; getfattr -d -m - -R --absolute-names /srv/sub"""
SYNCED = "sync -f /etc/poolferry; sync -f /var/lib/poolferry; zpool sync"
# Takes all the space that there is, at once.
FILL = "zfs create -o refreservation=$(($(zfs get -Hpo value available tank) - 1000000)) tank/fill"
SSHD = "lab-sshd.service"
VICTIMS = ("zfs receive", "zfs send", "mbuffer")
COPIES = {"photos": "vault/copies/photos", "offsite": "poolferry-red/offsite/photos"}

Fault = Callable[[Running | None], None]

pytestmark = pytest.mark.virtual


class LostPool:
    """A machine whose pool gets lost, and all that happens to it while it comes back."""

    def __init__(self, machine: VirtualMachine, *, disk: bool = False, wire: Pair | None = None) -> None:
        """`disk`: the second target; `wire`: the place is the other machine's, behind it."""
        self.machine, self.told, self.wire = machine, list[str](), wire
        self.command, self.back = tuple[str, ...](), False
        self.keeper = wire.backup if wire else machine
        self.jobs = ("photos", "offsite") if disk else ("photos",)
        self.drawer = UsbDisks(machine)
        for where, name in ((machine, "tank"), (self.keeper, "vault")):
            where.pool(name, "400M", disk=True)
        self.keeper.sh("zfs create vault/copies")
        machine.sh(MADE)
        machine.job(
            "photos", PHOTOS, targets=TARGETS.replace('"vault', '"ssh://root@backup/vault') if wire else TARGETS
        )
        if disk:
            machine.job("offsite", OFFSITE)
            self.drawer.enroll("red", "--content", "zfs")
        self.daemon = self.start_daemon()
        for job in self.jobs:
            self.copy(job)

    def start_daemon(self) -> Running:
        return self.machine.popen(["poolferry", "daemon"])

    def say(self, line: str) -> None:
        self.told.append(f"{time.strftime('%H:%M:%S')} {line}")

    def call(self, *words: str) -> Ended:
        """A command to its end, which is never a mistake of ours."""
        return self.heard(words, self.machine.poolferry(*words, seconds=300))

    def heard(self, words: tuple[str, ...], ended: Ended) -> Ended:
        assert not re.search("Traceback|internal error|mistake in poolferry", ended.complaint), ended.complaint
        self.back = self.back or (words == self.command and ended.code == 0)
        with suppress(ValueError, KeyError):
            told = ended.json
            self.say(
                f"{' '.join(words)}: {told.get('outcome')}: {told.get('why') or told.get('error')}; {told.get('hint')}"
            )
        return ended

    # As it is

    def state(self) -> dict[str, Any]:
        """Everything that must be the same afterwards."""
        sh = self.machine.sh
        return {
            "guids": guids(self.machine, "tank/photos"),
            "values": sh(["zfs", "get", "-Hpr", "-t", "filesystem", "-o", "name,property,value", KEPT, "tank/photos"]).lines,
            "rights": sh(RIGHTS).lines,
            "files": sh(FILES).lines,
        }  # fmt: skip

    def copy(self, job: str) -> None:
        """Carries what is there to the target of a job: by us, or meanwhile by the daemon."""
        first = self.newest_run()
        for _ in range(8):
            if job == "offsite":
                self.drawer.replug(self.drawer.red)
                self.call("disks", "scan", "--json")
            else:
                self.call("run", job, "--json")
            runs = self.machine.poolferry("history", job, "--json").json["runs"]
            if any(run["run"] > first and run["outcome"] in ("done", "nothing-to-do") for run in runs):
                return
            time.sleep(3)
        raise AssertionError(f"{job} does not come to hold what the source has")

    def newest_run(self) -> int:
        return max((run["run"] for run in self.machine.poolferry("history", "--json").json["runs"]), default=0)

    # What happens

    def kill(self, running: Running | None) -> None:
        """kill -9: of the restore itself with all that it started, or of one program of its pipe."""
        victim = self.chance.choice(("all", *VICTIMS))
        self.say(f"kill -9 {victim}")
        if victim == "all" and running:
            running.kill(9)
        for where in {self.machine, self.keeper}:
            where.sh(["pkill", "-9", "-f", f"^{victim}"], check=False)

    def power(self, _: Running | None) -> None:
        """The power is cut, and comes back."""
        self.say("power cut")
        self.machine.power_cut()
        self.machine.boot_again()
        self.daemon = self.start_daemon()

    def visit(self, _: Running | None) -> None:
        """A disk's visit."""
        self.call("disks", "scan", "--json")

    def night(self, _: Running | None) -> None:
        """The nightly run, and what is due."""
        self.call("run", "photos", "--json")

    def fill(self, _: Running | None) -> None:
        """Somebody takes all the space of the pool."""
        ended = self.machine.sh(FILL, check=False)
        self.say(f"the pool is full ({ended.code})")

    def again(self, _: Running | None) -> None:
        """A second person types the same command."""
        self.call(*self.command)

    def export(self, _: Running | None) -> None:
        """The pool with the copy goes away, at the first moment in which it can."""
        pool = COPIES[self.command[2]].partition("/")[0]
        where = self.machine if pool != "vault" else self.keeper
        ended = where.sh(
            f"n=0; until zpool export {pool}; do n=$((n+1)); [ $n -lt 40 ] || exit 1; sleep 0.1; done", check=False
        )
        self.say(f"export of {pool} ({ended.code})")

    def cut(self, _: Running | None) -> None:
        """The link dies, and is there again before the patience of ssh ends, or after it."""
        assert self.wire is not None
        self.wire.cut()
        time.sleep(self.chance.choice((5, 60)))
        self.wire.mend()
        self.say("the link was dead")

    def kill_sshd(self, _: Running | None) -> None:
        """The other machine's sshd dies with all its sessions, and is started again."""
        self.say("sshd is killed")
        self.keeper.sh(
            f"systemctl stop {SSHD}; pkill -9 '^sshd'; sleep {self.chance.choice((0, 20))}; systemctl start {SSHD}"
        )

    def far_power(self, _: Running | None) -> None:
        """The power of the other machine is cut, and comes back."""
        self.say("power cut of the other machine")
        self.keeper.power_cut()
        self.keeper.boot_again()

    def mend(self) -> None:
        """A person brings back what others took away."""
        self.machine.sh("zfs destroy tank/fill", check=False)
        self.keeper.sh("zpool list vault || zpool import -d /dev/disk/by-id vault", check=False)

    def bring_in(self) -> None:
        """Waits until no visit of the disk goes on, neither the daemon's: pulled out in one, its pool holds up every zfs command."""
        self.machine.sh(
            "n=0; m=0; while [ $n -lt 4 ] && [ $m -lt 90 ]; do n=$((n+1)) m=$((m+1)); sleep 1\n"
            "! zpool list poolferry-red || { n=0; zpool export poolferry-red; }; done; [ $n -ge 4 ]",
            seconds=200,
        )

    # A round

    def round(self, seed: int, *faults: Fault) -> None:
        """Loses the pool, and brings it back from one of the targets; with these faults, or with some by chance."""
        self.chance = random.Random(seed)
        job = self.jobs[seed % len(self.jobs)]
        before, self.back = self.state(), False
        self.command = ("restore", "run", job, "--to", "tank/photos", "--json")
        self.bring_in()
        if job == "offsite":
            self.drawer.replug(self.drawer.red)
        rebuild(self.machine)
        self.machine.sh(SYNCED)
        self.say(f"round {seed}: the pool is lost; back from {job}")
        for fault in faults or self.some_faults():
            if fault != self.again and self.chance.random() < 0.3:
                fault(None)
            else:
                self.disturbed(fault)
            self.mend()
        self.brought_back()
        assert self.state() == before
        self.goes_on(seed)

    def some_faults(self) -> list[Fault]:
        """Return two to four faults in any order; one of them is always a second restore."""
        others = [self.kill, self.power, self.visit, self.night, self.fill, self.export]
        others += [self.cut, self.cut, self.kill_sshd, self.far_power] if self.wire else []
        faults = [self.again, *self.chance.sample(others, self.chance.randint(1, 3))]
        return self.chance.sample(faults, len(faults))

    def disturbed(self, fault: Fault) -> None:
        """The restore with something in the middle of it; what it asks for at its end is done."""
        running = self.machine.popen(["poolferry", *self.command])
        time.sleep(self.chance.uniform(0.5, 25))
        fault(running)
        with suppress(LabError):  # its machine went away
            self.type_hints(self.heard(self.command, running.wait(300)))

    def brought_back(self) -> None:
        """The restore, until it has ended well and lists nothing any more; once a copy goes on, it overwrites nothing."""
        tries, until = 0, time.monotonic() + ROUND_SECONDS
        while tries < 8 and time.monotonic() < until:
            ended = self.call(*self.command)
            typed = self.type_hints(ended)
            why = str(ended.json.get("why"))
            if self.back and "a restore overwrites nothing" in why:
                self.machine.sh("zfs mount -al")  # as after each restart: it was back before the power went
                return
            if ended.code == 0 and not typed:
                return
            tries += (
                "is going on" not in why
            )  # the daemon's run has its own patience with a machine that lost its power
            time.sleep(2)
        raise AssertionError("it does not come back")

    def type_hints(self, ended: Ended) -> bool:
        """Types each command that a restore lists, as it stands there; whether there was one."""
        if not ended.out:
            return False
        told = ended.json
        lines = list(commands_of(told))
        for line in lines:
            self.say(f"typed: {line}")
            self.machine.sh(line)
        return bool(lines)

    def goes_on(self, seed: int) -> None:
        """Something new arrives at each target, and nothing but that."""
        first = self.newest_run()
        self.machine.sh(f"echo {seed} >/tank/photos/new; zfs snapshot -r tank/photos@round{seed}; {SYNCED}")
        for job in self.jobs:
            self.copy(job)
        assert guids(self.keeper, COPIES["photos"]) == guids(self.machine, "tank/photos")
        runs = [run for run in self.machine.poolferry("history", "--json").json["runs"] if run["run"] > first]
        assert sum(run["moved_bytes"] or 0 for run in runs) < 1 << 20, runs


def commands_of(told: dict[str, Any]) -> Iterator[str]:
    """The commands in what a restore says: for keys, and for what no stream brings."""
    yield from re.findall(r"(zfs load-key [^;]*|for each in [^;]*; do zfs load-key [^;]*; done);", told.get("hint", ""))
    for line in told.get("warnings", ()):
        if "not delegated" in line or "not there" in line:
            yield line.partition(": ")[2].partition(": ")[2]
        if "as after a restart" in line:
            yield line.partition(": ")[2]


def play(lost: LostPool, seed: int, *faults: Fault) -> None:
    try:
        lost.round(seed, *faults)
    except BaseException as error:
        error.add_note(f"seed {seed}:\n" + "\n".join(lost.told))
        raise


@pytest.mark.timeout(600)
@pytest.mark.long
def test_it_is_killed_in_the_middle(master: VirtualMachine) -> None:
    lost = LostPool(master)
    play(lost, SEED, lost.kill)


@pytest.mark.long
@pytest.mark.timeout(ROUNDS * ROUND_SECONDS + 600)
def test_more_and_more_rounds_from_a_place_and_a_disk(master: VirtualMachine) -> None:
    lost = LostPool(master, disk=True)
    for seed in range(SEED, SEED + ROUNDS):
        play(lost, seed)
        print(f"round {seed}: equal", flush=True)


@pytest.mark.long
@pytest.mark.timeout(ROUNDS * ROUND_SECONDS + 600)
def test_more_and_more_rounds_from_another_machine(pair: Pair) -> None:
    lost = LostPool(pair.master, wire=pair)
    for seed in range(SEED, SEED + (ROUNDS + 1) // 2):  # half as many, and never none
        play(lost, seed)
        print(f"round {seed}: equal", flush=True)
