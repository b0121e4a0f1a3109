"""(b) Commands and seconds of a run with nothing to do, and with one new snapshot of each dataset, next to others.

With hundreds of datasets some of the others take hours: one that has cost several times what ours did can be stopped
there, and its row is the most that the ratio can be.
"""

import sys
from collections.abc import Iterator, Sequence

from tests.bench.rows import Row
from tests.bench.zfs_guest import Cost, cost
from tests.bench.zfs_pools import copy_pool, make_trees, snapshot, tree
from tests.bench.zfs_tools import FERRY, PEERS, Tool, held_by, pools
from tests.lab.laboratory import Lab
from tests.lab.peers import give_peers
from tests.lab.virtual import VirtualMachine

NEW, NOTHING = "one new snapshot each", "nothing to do"
_MANY = 100  # a turn of four tools takes long then
_AT_LEAST, _AT_MOST = 300, 7200  # seconds
# The lab's machines keep 96 MiB of what they read. Hundreds of datasets need more than that just to be open, and ZFS would
# do little else than evict what it needs again.
_ROOM, _KEPT = "4096M", 2 << 30
Costs = dict[tuple[str, str], list[Cost]]


def running(
    lab: Lab, *, sizes: Sequence[int], snapshots: int, rounds: int, enough: float = 0, peers: Sequence[Tool] = PEERS
) -> Iterator[Row]:
    """Rows for each size, each case, each of the others. `enough`: stop these after so many times our seconds; 0: never."""
    machine = lab.machine()
    try:
        if max(sizes) > _MANY:
            machine.power_cut()
            machine.boot_again(room=_ROOM)
            machine.sh(f"echo {_KEPT} > /sys/module/zfs/parameters/zfs_arc_max")
        machine.keep_tree()  # as theirs are the machine's own: each module over 9p costs a few milliseconds
        give_peers(lab, machine)
        make_trees(machine, sizes, snapshots)
        copy_pool(machine, pools((FERRY, *peers)))
        _say("the trees and their copies are made")
        for count in sizes:
            often = rounds if count < _MANY else max(1, rounds // 2) if count == _MANY else 1
            took = _turns(machine, (FERRY, *peers), count, snapshots, often, enough)
            for case in (NOTHING, NEW):
                for peer in peers:
                    yield from measured_rows(f"{case}, {count} datasets × {snapshots} snapshots", case, peer, took)
    finally:
        lab.give_back(machine)


def _turns(
    machine: VirtualMachine, tools: Sequence[Tool], count: int, snapshots: int, rounds: int, enough: float
) -> Costs:
    took: Costs = {(tool.name, case): [] for tool in tools for case in (NOTHING, NEW)}
    for tool in tools:
        tool.prepare(machine, count)
        if tool.remembers:
            _say(f"{count}: the first run: {tool.name}: {cost(machine, tool.command(count))}")
    for turn in range(rounds):
        name = snapshot(count, snapshots + turn)
        for case in (NOTHING, NEW):
            if case == NEW:
                machine.sh(["zfs", "snapshot", "-r", f"{tree(count)}@{name}"], seconds=600)
            for tool in tools if turn % 2 == 0 or enough else tools[::-1]:
                patience = (
                    max(_AT_LEAST, enough * took[FERRY.name, case][-1].seconds)
                    if enough and tool != FERRY
                    else _AT_MOST
                )
                took[tool.name, case].append(cost(machine, tool.command(count), enough=patience))
                _say(f"{count}: {case}: {tool.name}: {took[tool.name, case][-1]}")
        for tool in tools:
            held = held_by(machine, tool.pool, count, name)
            _say(f"{count}: {tool.name} brought {name} to {held} datasets")
            if held != count and took[tool.name, NEW][-1].whole:
                raise RuntimeError(f"{tool.name} brought {name} to {held} of {count} datasets")
    return took


def _say(text: str) -> None:
    """With hundreds of datasets it takes hours: each step is told as it ends."""
    print(text, file=sys.stderr, flush=True)


def measured_rows(what: str, case: str, peer: Tool, took: Costs) -> Iterator[Row]:
    """Two rows: commands and seconds, ours over theirs, turn by turn."""
    ours, theirs = took[FERRY.name, case], took[peer.name, case]
    together = list(zip(ours, theirs, strict=True))
    less = 0.99 if peer.expected else None  # fewer and faster; for the others, no slower
    stopped = "" if all(one.whole for one in theirs) else ", then stopped: the most that the ratio can be"
    note = f"{ours[-1].zfs} : {theirs[-1].zfs} zfs and zpool commands{stopped}"
    commands = tuple(our.zfs / their.zfs for our, their in together)
    yield Row(part="b", what=f"commands: {what}, to {peer.name}", values=commands, most=less, note=note)
    seconds = tuple(our.seconds / their.seconds for our, their in together)
    note = f"{_middle([one.seconds for one in ours]):.1f} s : {_middle([one.seconds for one in theirs]):.1f} s; {_used(ours, theirs)}{stopped}"
    yield Row(part="b", what=f"seconds: {what}, to {peer.name}", values=seconds, most=less or 1.0, note=note)


def _used(ours: Sequence[Cost], theirs: Sequence[Cost]) -> str:
    one, other = _middle([cost.processor for cost in ours]), _middle([cost.processor for cost in theirs])
    return f"processor {one:.1f} s : {other:.1f} s = {one / other:.2f}"


def _middle(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 2]
