"""The model's two pools and the job between them, on real OpenZFS: the same words for the same happenings.

A run is the engine's own: look, decide, do each step, prove. It is cut in the middle of a stream, by kill -9 of one of its
programs where chance will have it, by a link that dies, or before a step.
"""

import itertools
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from orchestrator.domain.command_line import pipeline_line
from orchestrator.domain.errors import Stalled
from orchestrator.domain.job import RetryRules
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect, Pipeline, Refusal, Step
from orchestrator.domain.units import Seconds
from orchestrator.engines.contract.engine import RunRequest, StageResults
from orchestrator.engines.zfs import ENGINE
from orchestrator.engines.zfs.model import ActionPlan, Bookmark, Snapshot
from orchestrator.engines.zfs.plan import steps
from orchestrator.engines.zfs.plan.plan import decide_actions
from orchestrator.engines.zfs.survey.survey import survey
from orchestrator.planners.retry import RetryAfter, decide_retry
from orchestrator.process.pipeline import pipeline_failure
from tests.engines.zfs.model_run import Cut, Ferry, Mishap, requested, unharmed
from tests.engines.zfs.sides import job
from tests.lab.common import ENCRYPTED, Machine
from tests.lab.guest_writer import GuestWriter
from tests.lab.laboratory import Pair
from tests.world import Node, Pool, ZfsError

UNIT = 48 << 10  # bytes of a real stream for one of the model's
# Passes so many bytes on; then a program is killed, and the stream ends.
_CUT = 'head -c "$1"; [ "$2" = nobody ] || pkill -9 -f "^$2"; :'
# Passes so many bytes on, and then nothing for ever.
_DEAD = 'head -c "$1" | tee /run/passed; : >/run/reached; exec sleep 900 <&-'
_GOT = "cat /sys/class/net/eth0/statistics/rx_bytes"
BLOCK = 128 << 10  # mbuffer passes nothing smaller on before the end
SHARED = ("-oControlMaster=auto", "-oControlPath=/run/%C", "-oControlPersist=600")
# As often as a job does by itself, and as long as a machine of the lab takes to end a receive.
PATIENT = RetryRules(wait=Seconds(1), wait_at_most=Seconds(4))
VICTIMS = ("nobody", "zfs send", "zfs receive", "mbuffer")


@dataclass
class RealPool(Pool):
    """A pool in a machine; `nodes` is what the last look found there."""

    machine: Machine = field(kw_only=True)

    def look(self) -> None:
        """Reads what is there."""
        kinds, marks = "filesystem,volume,snapshot,bookmark", dict[str, tuple[list[Snapshot], list[Bookmark]]]()
        listing = self.machine.sh(
            ["zfs", "list", "-Hp", "-r", "-t", kinds, "-o", "name,guid,createtxg,origin", self.name]
        )
        nodes: dict[str, Node] = {}
        for line in listing.lines:
            whole, guid, txg, origin = line.split("\t")
            name, at, mark = whole.partition("@") if "@" in whole else whole.partition("#")
            if not at:
                nodes[name] = Node(guid=int(guid), txg=int(txg), origin=None if origin == "-" else origin)
            found = marks.setdefault(name, ([], []))
            if at == "@":
                found[0].append(Snapshot(name=mark, guid=int(guid), createtxg=int(txg)))
            elif at:
                found[1].append(Bookmark(name=mark, guid=int(guid), createtxg=int(txg)))
        for name, (snapshots, bookmarks) in marks.items():
            snapshots.sort(key=lambda one: one.createtxg)
            node = nodes[name]
            nodes[name] = Node(
                guid=node.guid, txg=node.txg, origin=node.origin, snapshots=tuple(snapshots), bookmarks=tuple(bookmarks)
            )
        self.nodes = nodes

    def do(self, script: str) -> None:
        """Raises: ZfsError when zfs refuses."""
        ended = self.machine.sh(f"set -e\n{script}", check=False, seconds=300)
        self.look()
        if ended.code:
            raise ZfsError(ended.complaint)

    def create(self, name: str, **more: object) -> None:
        self.do(f"zfs create {name}")

    def snapshot(self, name: str, mark: str) -> Snapshot:
        self.do(f"head -c 300K /dev/urandom >/{name}/{mark} || :\nzfs snapshot {name}@{mark}")
        return self.nodes[name].snapshots[-1]

    def destroy_snapshot(self, name: str, guid: int) -> None:
        self.do(f"zfs destroy {name}@{self._mark(name, guid)}")

    def rename_snapshot(self, name: str, guid: int, mark: str) -> None:
        self.do(f"zfs rename {name}@{self._mark(name, guid)} {name}@{mark}")

    def destroy(self, name: str) -> None:
        self.do(f"zfs destroy -r {name}")

    def rename(self, name: str, to: str) -> None:
        self.do(f"zfs rename {name} {to}")

    def clone(self, name: str, guid: int, to: str) -> None:
        self.do(f"zfs clone {name}@{self._mark(name, guid)} {to}")

    def promote(self, name: str) -> None:
        self.do(f"zfs promote {name}")

    def write(self, name: str) -> None:
        """As an administrator would do it, by mistake."""
        self.do(f"""zfs set readonly=off {name}; mkdir -p /mnt/w; mount -t zfs -o zfsutil {name} /mnt/w
            date >>/mnt/w/written; umount /mnt/w; zfs set readonly=on {name}; zpool sync {self.name}""")

    def _mark(self, name: str, guid: int) -> str:
        return next(one.name for one in self.node(name).snapshots if one.guid == guid)


class RealFerry(Ferry):
    """A job between two real pools, named as the model's: of one machine, or of two with a wire between them."""

    def __init__(
        self, machine: Machine, chance: random.Random, *, encrypted: bool, sealed: bool, wire: Pair | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        there: Machine = wire.backup if wire else machine
        made = {
            "tank/photos": f"{ENCRYPTED} tank/photos" if encrypted else "zfs create tank/photos",
            "vault/copies": f"{ENCRYPTED} vault/copies" if sealed else "zfs create vault/copies",
        }
        pools = [
            _pool_anew(where, name, made[root])
            for where, name, root in ((machine, "tank", "tank/photos"), (there, "vault", "vault/copies"))
        ]
        place = Host(name=there.name, user="root") if wire else None
        super().__init__(source=pools[0], target=pools[1], job=job(place=place, **options))
        self.hands = GuestWriter(machine, ssh_options=SHARED)
        self.told: list[str] = []
        self.link_dies = False
        self.on_wait: Callable[[], object] = lambda: None
        self._chance, self._machine, self._wire = chance, machine, wire
        self._look()

    def _look(self) -> None:
        for pool in (self.source, self.target):
            assert isinstance(pool, RealPool)
            pool.look()

    def decide(self, wants: RunRequest | None = None) -> ActionPlan | Refusal:
        self._wants = wants or requested()
        self._world = survey(self.job, self._wants, self.hands)
        return decide_actions(self.job, self._world, self._wants)

    def run(self, wants: RunRequest | None = None, mishap: Mishap = unharmed) -> ActionPlan | Refusal:
        """As above; and what something else still uses is waited for, as a run waits: a receive ends when its link is dead."""
        for fruitless in itertools.count(1):
            try:
                return super().run(wants, mishap)
            except Stalled as error:
                again = decide_retry(
                    error, attempt=fruitless, fruitless=fruitless, rules=PATIENT, jitter=0, repeats=fruitless - 1,
                    least=Seconds(0),
                )  # fmt: skip
                if not isinstance(again, RetryAfter):
                    raise
                self.told.append(f"{error.why}: {again.why}")
                self.on_wait()
                time.sleep(again.wait)
        raise AssertionError("it waits again and again")

    def carry_out(self, decided: ActionPlan, mishap: Mishap = unharmed) -> None:
        """Raises: Cut; OrchestratorError for what fails without having been cut."""
        try:
            for stage in steps.build_steps(self.job, self._world, decided, self._wants):
                for step in stage:
                    self._step(step, mishap(step))
                confirmations = tuple(step.confirmation for step in stage if step.confirmation is not None)
                ENGINE.confirm(StageResults(confirmations=confirmations), self.hands)
        finally:
            self._look()

    def _step(self, step: Step, cut: int | None) -> None:
        assert isinstance(step.work, Pipeline)
        self.told.append(step.action if cut is None else f"{step.action} (cut)")
        if cut is not None and not step.copies:
            raise Cut(f"before {step.action}")
        if cut is not None:
            (self._die if self.link_dies else self._cut)(step.work, cut * UNIT)
            raise Cut(f"in {step.action}")
        result = self.hands.stream(step.work)
        if not result.well:
            raise ENGINE.explain(pipeline_failure(step.work, result))

    def _cut(self, work: Pipeline, after: int) -> None:
        """Sends so much and no more."""
        victim = self._chance.choice(VICTIMS)
        self.told.append(f"  {after} bytes, then: {victim}")
        cutter = Command(argv=("sh", "-c", _CUT, "sh", str(after), victim), effect=Effect.WRITES)
        first, *rest = work.stages
        self.hands.stream(Pipeline(stages=(first, cutter, *rest)))

    def _die(self, work: Pipeline, after: int) -> None:
        """Sends so much; then the link is dead, and the sender gives up. Without a link, the receiving process waits on."""
        self.told.append(f"  {after} bytes, then the link is dead")
        cutter = Command(argv=("sh", "-c", _DEAD, "sh", str(after)), effect=Effect.WRITES)
        first, *rest = work.stages
        line = pipeline_line(Pipeline(stages=(first, cutter, *rest)), SHARED)
        self._machine.sh("rm -f /run/reached")
        before = int(self._wire.backup.sh(_GOT).text) if self._wire else 0
        running = self._machine.popen(["bash", "-c", line])
        passed = self._machine.sh("until [ -e /run/reached ]; do sleep 0.05; done; wc -c </run/passed").text
        if self._wire is None:
            return
        there = before + int(passed) // BLOCK * BLOCK
        self._wire.backup.sh(f"until [ $({_GOT}) -ge {there} ]; do sleep 0.1; done")
        self._wire.cut()
        self._machine.sh("ss -K dst 10.99.0.0/24 >/dev/null")  # so that no last word comes through after all
        running.kill(9)
        running.wait(30)
        self._wire.mend()


def _pool_anew(machine: Machine, name: str, made: str) -> RealPool:
    """The pool of that name, empty again but for what `made` makes; who still receives into the old one goes with it."""
    path = machine.lies_on(name)
    machine.sh(
        f"""pkill -9 -f '^(zfs receive|sleep 900)' || :
        set -e; zpool destroy -f {name}; zpool create -f {name} {path.removesuffix("-part1")}; {made}""",
        seconds=300,
    )
    return RealPool(name=name, guid=int(machine.sh(f"zpool get -Hpo value guid {name}").text), machine=machine)
