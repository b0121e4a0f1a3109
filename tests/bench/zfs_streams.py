"""(a) How fast a stream flows, against the bare programs joined by pipes; within one machine and between two. (d) And back."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.domain.units import show_size
from tests.bench.rows import Row, ratios
from tests.lab.common import Machine
from tests.lab.laboratory import Lab

_BUFFER = "mbuffer -q -s 128k -m 64M"
_SHARED = "ssh -oBatchMode=yes -oControlMaster=auto -oControlPath=/root/bare-%C -oControlPersist=600 backup"
_MOST = 1 / 0.95
_JOB = 'engine = "zfs"\nsource = "tank/data"\ntarget = "vault"\nschedule = "manual"\n'
Seconds = list[float]


def streaming(lab: Lab, *, local: int, far: int, rounds: int) -> Iterator[Row]:
    """Rows for both ways of a first copy."""
    yield from _both_ways(lab, _COPIES, local=local, far=far, rounds=rounds)


def restoring(lab: Lab, *, local: int, far: int, rounds: int) -> Iterator[Row]:
    """Rows for both ways of bringing such a copy back beside what it was made of."""
    yield from _both_ways(lab, _RESTORES, local=local, far=far, rounds=rounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One timed pair: our command and the bare programs, within one machine and between two.

    `made`: what the two leave on a machine, the first ours; `back`: from the copy to here, so the copy has to be there first.
    `keeps`: what we know from one turn to the next.
    """

    part: str
    what: str
    ours: Sequence[str]
    local: str
    far: str
    programs: tuple[str, str]
    made: tuple[str, str]
    back: bool = False
    keeps: bool = False


_COPIES = Turn(
    part="a",
    what="a first copy",
    ours=("run", "stream", "--json"),
    local=f"zfs send -Lce tank/data@a | {_BUFFER} | zfs receive -s -u vault/bare",
    far=f"zfs send -Lce tank/data@a | {_BUFFER} | {_SHARED} '{_BUFFER} | zfs receive -s -u vault/bare'",
    programs=("send, mbuffer, receive", "send, mbuffer, ssh, mbuffer, receive"),
    made=("vault/ours", "vault/bare"),
)
_RESTORES = Turn(
    part="d",
    what="a restore",
    ours=("restore", "run", "stream", "--to", "tank/back", "--json"),
    local=f"zfs send -Lce vault/ours/data@a | {_BUFFER} | zfs receive -s -u tank/bare",
    far=f"{_SHARED} 'zfs send -Lce vault/ours/data@a | {_BUFFER}' | {_BUFFER} | zfs receive -s -u tank/bare",
    programs=("send, mbuffer, receive", "ssh, send, mbuffer, mbuffer, receive"),
    made=("tank/back", "tank/bare"),
    back=True,
    keeps=True,
)


def _both_ways(lab: Lab, turn: Turn, *, local: int, far: int, rounds: int) -> Iterator[Row]:
    machine = lab.machine()
    try:
        _data(machine, local)
        machine.pool("vault", "4G", disk=True)
        took = _turns(turn, machine, machine, "vault/ours", turn.local, rounds)
        yield from _rows(turn, f"{show_size(local)} within one machine", turn.programs[0], took)
    finally:
        lab.give_back(machine)
    pair = lab.pair()
    try:
        _data(pair.master, far)
        pair.backup.pool("vault", "4G", disk=True)
        pair.master.sh(f"{_SHARED} true")  # ours has made its connection by then, too
        took = _turns(turn, pair.master, pair.backup, "ssh://root@backup/vault/ours", turn.far, rounds)
        yield from _rows(turn, f"{show_size(far)} over ssh", turn.programs[1], took)
    finally:
        lab.give_back(*pair)


def _data(machine: Machine, size: int) -> None:
    """A dataset of bytes that cannot be compressed."""
    machine.pool("tank", "4G", disk=True)
    machine.sh(
        f"zfs create tank/data && head -c {size} /dev/urandom > /tank/data/file && zfs snapshot tank/data@a",
        seconds=1800,
    )


def _turns(
    turn: Turn, here: Machine, there: Machine, place: str, bare: str, rounds: int
) -> tuple[Seconds, Seconds, Seconds]:
    """Seconds of our stream, of our whole command, of the bare programs."""
    here.job("stream", _JOB, targets=f'[place.vault]\ndataset = "{place}"\n')
    if turn.back:
        here.poolferry("run", "stream", "--json", check=True, seconds=3600)
    streams, wholes, others = Seconds(), Seconds(), Seconds()

    def ours() -> None:
        told, took = _timed(lambda: here.poolferry(*turn.ours, check=True, seconds=3600))
        value: dict[str, Any] = json.loads(told.out)
        streams.append(sum(step["took_s"] for step in value["steps"] if step["moved_bytes"]))
        wholes.append(took)

    def theirs() -> None:
        others.append(_timed(lambda: here.sh(bare, seconds=3600))[1])

    for number in range(rounds):
        for action in (ours, theirs) if number % 2 == 0 else (theirs, ours):
            action()
            _cleared(here if turn.back else there, turn.made)
            if not turn.keeps:
                here.sh("rm -rf /var/lib/poolferry/*")
    return streams, wholes, others


def _cleared(machine: Machine, made: Sequence[str]) -> None:
    """Takes away what a turn made, and waits until its room is free."""
    pool = made[0].partition("/")[0]
    machine.sh(f"for one in {' '.join(made)}; do ! zfs list $one 2>/dev/null || zfs destroy -r $one; done; zpool sync {pool}; "
               f"zpool wait -t free {pool}", seconds=600)  # fmt: skip


def _timed(action: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    made = action()
    return made, time.perf_counter() - began


def _rows(turn: Turn, what: str, bare: str, took: tuple[Seconds, Seconds, Seconds]) -> Iterator[Row]:
    streams, wholes, others = took
    whole = "the whole run with it" if not turn.back else "the whole command with it"
    yield ratios(
        turn.part,
        f"the stream of {turn.what}, {what}, to the bare pipe ({bare})",
        (streams, others),
        most=_MOST,
        note="0.95 of its throughput",
    )
    yield ratios(
        turn.part,
        f"{whole}, {what}, to the same",
        (wholes, others),
        most=None,
        note="start, looks, records, confirmation" + (", properties, mounts" if turn.back else ""),
    )
