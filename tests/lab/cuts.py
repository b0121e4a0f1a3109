"""A first copy from machine to machine that gets cut: what is copied, how far it is, what ends it, and what must hold afterwards."""

import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator import compose
from orchestrator.views.run_history import run_details_value
from tests.lab.common import Ended, Machine, Running
from tests.lab.frail import FrailPool
from tests.lab.laboratory import Pair
from tests.lab.virtual import VirtualMachine
from tests.whole.house import wait_until

PATIENCE = 200.0  # seconds for what takes ten on a quiet machine
SOURCE, COPY = "tank/photos", "vault/photos"
_JOB = """engine = "zfs"
source = "{source}"
target = "vault"
schedule = "manual"
[pipe]
buffer = "2M"
stall-after = "{stall_after}"
ssh-options = ["-oServerAliveInterval=1", "-oServerAliveCountMax=4"]
{rate}
[retry]
attempts = {attempts}
wait = "1s"
wait-at-most = "2s"
"""
# As root, a program may have pipes as wide as it likes; with narrow ones, as with little room in the sockets, a small stream
# stands for a large one: what lies in them is lost with a cut.
_NARROW = ("setpriv", "--bounding-set", "-sys_resource", "--")
_TIGHT = (
    """sysctl -qw fs.pipe-max-size=65536 net.ipv4.tcp_wmem='4096 65536 131072' net.ipv4.tcp_rmem='4096 65536 131072'"""
)
# The same with mbuffer's room: this one takes a tenth of the least that is asked of it.
_SMALL_BUFFER = """#!/bin/bash
exec -a mbuffer /usr/bin/mbuffer "$@" -s 16k -m 256k
"""
# A pool writes out what it received each second, not each fifth.
PROMPT = "echo 1 > /sys/module/zfs/parameters/zfs_txg_timeout"
# What the card carried without the headers of Ethernet, IP and TCP, so without bare acknowledgements too.
_CARRIED = """n=/sys/class/net/eth0/statistics
carried() { read -r b <$n/$1_bytes; read -r p <$n/$1_packets; c=$((b - 66 * p)); }
"""
_DIGEST = """set -e
d=$(mktemp -d); mount -t zfs {snapshot} "$d"
( cd "$d" && find . -type f -print0 | sort -z | xargs -0 md5sum )
umount "$d"; rmdir "$d"
"""
_OURS = "ps -eo pid=,args= | grep -E '(^| )([^ ]*/)?(zfs|mbuffer|ssh|poolferry) |orchestrator|@notty' | grep -v -e 'grep -E' -e 'zfs get'"
_paced: list[int] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The snapshots of the source, each with what it adds, in MiB."""

    a: int = 6
    b: int = 1
    c: int = 1


class Copying:
    """A job that carries tank/photos of one machine to vault on the other; `at`: the machine that runs it."""

    def __init__(
        self, sender: VirtualMachine, receiver: VirtualMachine, *, pulls: bool = False, chain: Chain = Chain(),
        attempts: int = 1, rate: str = "", transport: str = "ssh", stall_after: str = "60s", frail: bool = False,
        disks: bool = False, metered_there: bool = False,
    ) -> None:  # fmt: skip
        self.sender, self.receiver, self.rate = sender, receiver, rate
        self.at = receiver if pulls else sender
        for machine in {sender, receiver}:
            machine.sh(f"{_TIGHT}; {PROMPT}")
            machine.write("/usr/local/bin/mbuffer", _SMALL_BUFFER, mode=0o755)
        sender.pool("tank", disk=disks)
        self.vault = FrailPool(receiver, "vault", "1G") if frail else receiver.pool("vault", disk=disks)
        made = (f"head -c {size}M /dev/urandom > /tank/photos/{name} && zfs snapshot {SOURCE}@{name}"
                for name, size in (("a", chain.a), ("b", chain.b), ("c", chain.c)))  # fmt: skip
        sent = f"zfs send -pLce {SOURCE}@a | wc -c; zfs send -pLce -I @a {SOURCE}@c | wc -c"
        sender.sh(f"zfs create {SOURCE} && mkdir '/tank/photos/in a folder' && date > '/tank/photos/in a folder/small'")
        self.stream = sum(map(int, sender.sh(f"{' && '.join(made)}; {sent}").lines))
        self._meter = (receiver, "rx") if metered_there else (sender, "tx")
        self._before = 0
        self._before = self.carried()
        far = sender is not receiver
        source = f"ssh://root@{sender.name}/{SOURCE}" if far and pulls else SOURCE
        place = "vault" if pulls or not far else f"ssh://root@{receiver.name}/vault"
        limit = f'transport = "{transport}"\n' + (f'rate-limit = "{rate}"' if rate else "")
        text = _JOB.format(source=source, attempts=attempts, rate=limit, stall_after=stall_after)
        self.at.job("photos", text, targets=f'[place.vault]\ndataset = "{place}"\n')
        self.at.kitted("photos")  # a kit's bytes are not the stream's
        self.at.sh("sync -f /etc/poolferry")  # what is written only now would be empty after a power cut

    def begin(self) -> Running:
        """Begins a run."""
        return self.at.popen([*_NARROW, "poolferry", "run", "photos", "--json"])

    def run(self) -> dict[str, Any]:
        """A whole run, and what it said."""
        told: dict[str, Any] = answer(self.begin().wait(PATIENCE))
        return told

    def moved(self, *runs: int) -> float:
        """Return how often the stream was sent, by the history of these runs."""
        return sum(story["moved_bytes"] or 0 for story in self.stories(*runs)) / self.stream

    # How far it is.

    def carried(self) -> int:
        """The bytes within TCP that have passed the wire towards the copy since the beginning."""
        machine, way = self._meter
        return int(machine.sh(f"{_CARRIED} carried {way}; echo $c").text) - self._before

    def wait_for(self, part: float) -> None:
        """Until so much of the stream has passed the wire."""
        machine, way = self._meter
        enough = self._before + int(self.stream * part)
        machine.sh(f"{_CARRIED} while carried {way}; [ $c -lt {enough} ]; do sleep 0.3; done", seconds=PATIENCE)

    def wait_for_snapshot(self, name: str) -> None:
        """Until the copy has that snapshot."""
        script = f"until zfs list {COPY}@{name} > /dev/null 2>&1; do sleep 0.3; done"
        self.receiver.sh(script, seconds=PATIENCE)

    def wait_for_used(self, part: float) -> None:
        """Until the copy holds so much of the stream on its pool."""
        script = f"until [ $(zfs get -Hpo value used {COPY} 2> /dev/null || echo 0) -ge {int(self.stream * part)} ]; do sleep 0.3; done"
        self.receiver.sh(script, seconds=PATIENCE)

    def wait_for_token(self) -> None:
        """Until what was received so far could be gone on from."""
        script = f"until zfs get -Hpo value receive_resume_token {COPY} 2> /dev/null | grep -q 1-; do sleep 0.5; done"
        self.receiver.sh(script, seconds=PATIENCE)

    # What must hold afterwards.

    def story(self, run: int) -> Mapping[str, Any]:
        """Return what history knows of one run."""
        return self.stories(run)[0]

    def stories(self, *runs: int) -> list[Mapping[str, Any]]:
        """Return what history knows of some runs, read here: under emulation a look at each takes a second."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "history.sqlite").write_bytes(self.at.read(f"{self.at.state}/history.sqlite"))
            with compose.open_history_reader(compose.Directories(config=folder, state=folder)) as views:
                found = [views.run(run) for run in runs]
        return [run_details_value(story) for story in found if story is not None]

    def guids(self, machine: Machine, dataset: str) -> tuple[str, ...]:
        """Name and guid of each snapshot, the oldest first."""
        words = f"zfs list -Hp -d 1 -t snapshot -s createtxg -o name,guid {dataset}"
        return tuple(line.partition("@")[2] for line in machine.sh(words).lines)

    def require_equal(self, *names: str) -> None:
        """All snapshots by guid, these and no others, and the contents of the newest, read on both sides."""
        here, there = self.guids(self.sender, SOURCE), self.guids(self.receiver, COPY)
        assert here == there
        assert [line.split("\t")[0] for line in here] == list(names or ("a", "b", "c"))
        reading = [
            machine.popen(_DIGEST.format(snapshot=f"{dataset}@c"))
            for machine, dataset in ((self.sender, SOURCE), (self.receiver, COPY))
        ]
        ours, copied = (running.wait(PATIENCE) for running in reading)
        assert ours.code == copied.code == 0, (ours.complaint, copied.complaint)
        assert len(ours.lines) == 4
        assert ours.text == copied.text

    def require_nothing_left(self) -> None:
        """No process of ours, no hold, one bookmark."""
        for machine in {self.sender, self.receiver}:
            wait_until(partial(_quiet, machine), 30, pause=0.3)
        held = f"zfs list -H -o name -t snapshot -r {SOURCE} | xargs zfs holds -H"
        assert self.sender.sh(held).text == ""
        (kept,) = self.sender.sh(f"zfs list -Hp -t bookmark -o name,guid -r {SOURCE}").lines
        newest = self.guids(self.sender, SOURCE)[-1].split("\t")[1]
        assert kept.split("\t")[1] == newest


def answer(ended: Ended) -> dict[str, Any]:
    """Return what a run said."""
    assert "Traceback" not in ended.complaint, ended.complaint
    told: dict[str, Any] = ended.json
    return told


def ours(machine: Machine) -> Sequence[str]:
    """Processes of ours on a machine, sessions of ssh included."""
    return machine.sh(_OURS, check=False).lines


def kill(machine: Machine, pattern: str) -> None:
    """kill -9 of every process whose command line fits, as soon as there is one."""
    machine.sh(f"until pkill -9 -f {shlex.quote(pattern)}; do sleep 0.05; done", seconds=PATIENCE)


def pace(pair: Pair) -> str:
    """Half of what ssh carries here, per second, so that no buffer fills: what lies in them is lost with a kill."""
    if not _paced:
        shared = "-oControlMaster=auto -oControlPath=/root/pace -oControlPersist=yes"
        line = (
            f"ssh {shared} backup true; s=$(date +%s%N); head -c 2M /dev/zero | ssh {shared} backup 'cat > /dev/null'"
        )
        told = pair.master.sh(f"{line}; e=$(date +%s%N); ssh {shared} -Oexit backup; echo $((2000000000000 / (e - s)))")
        _paced.append(max(150, min(1500, int(told.lines[-1]) // 2)))
    return f"{_paced[0]}k"


def _quiet(machine: Machine) -> bool:
    return not ours(machine)
