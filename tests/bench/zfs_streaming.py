"""(a) How fast a stream flows, against the bare programs joined by pipes; within one machine and between two. Changes things."""

import json
import time
from collections.abc import Callable, Iterator
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
    """Rows for both ways."""
    machine = lab.machine()
    try:
        _data(machine, local)
        machine.pool("vault", "4G", disk=True)
        bare = f"zfs send -Lce tank/data@a | {_BUFFER} | zfs receive -s -u vault/bare"
        took = _turns(machine, machine, "vault/ours", bare, rounds)
        yield from _rows(f"{show_size(local)} within one machine", "send, mbuffer, receive", took)
    finally:
        lab.give_back(machine)
    pair = lab.pair()
    try:
        _data(pair.master, far)
        pair.backup.pool("vault", "4G", disk=True)
        pair.master.sh(f"{_SHARED} true")  # ours has made its connection by then, too
        there = f"'{_BUFFER} | zfs receive -s -u vault/bare'"
        bare = f"zfs send -Lce tank/data@a | {_BUFFER} | {_SHARED} {there}"
        took = _turns(pair.master, pair.backup, "ssh://root@backup/vault/ours", bare, rounds)
        yield from _rows(f"{show_size(far)} over ssh", "send, mbuffer, ssh, mbuffer, receive", took)
    finally:
        lab.give_back(*pair)


def _data(machine: Machine, size: int) -> None:
    """A dataset of bytes that cannot be compressed."""
    machine.pool("tank", "4G", disk=True)
    machine.sh(
        f"zfs create tank/data && head -c {size} /dev/urandom > /tank/data/file && zfs snapshot tank/data@a",
        seconds=1800,
    )


def _turns(here: Machine, there: Machine, place: str, bare: str, rounds: int) -> tuple[Seconds, Seconds, Seconds]:
    """Seconds of our stream, of our whole run, of the bare programs."""
    here.job("stream", _JOB, targets=f'[place.vault]\ndataset = "{place}"\n')
    streams, runs, others = Seconds(), Seconds(), Seconds()

    def ours() -> None:
        told, took = _timed(lambda: here.poolferry("run", "stream", "--json", check=True, seconds=3600))
        value: dict[str, Any] = json.loads(told.out)
        streams.append(sum(step["took_s"] for step in value["steps"] if step["moved_bytes"]))
        runs.append(took)

    def theirs() -> None:
        others.append(_timed(lambda: here.sh(bare, seconds=3600))[1])

    for turn in range(rounds):
        for deed in (ours, theirs) if turn % 2 == 0 else (theirs, ours):
            deed()
            there.sh("for one in vault/ours vault/bare; do ! zfs list $one 2>/dev/null || zfs destroy -r $one; done; zpool sync vault; "
                     "zpool wait -t free vault", seconds=600)  # fmt: skip
            here.sh("rm -rf /var/lib/poolferry/*")
    return streams, runs, others


def _timed(deed: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    made = deed()
    return made, time.perf_counter() - began


def _rows(what: str, bare: str, took: tuple[Seconds, Seconds, Seconds]) -> Iterator[Row]:
    streams, runs, others = took
    yield ratios(
        "a",
        f"the stream of a first copy, {what}, to the bare pipe ({bare})",
        (streams, others),
        most=_MOST,
        note="0.95 of its throughput",
    )
    yield ratios(
        "a",
        f"the whole run with it, {what}, to the same",
        (runs, others),
        most=None,
        note="start, looks, records, proof",
    )
