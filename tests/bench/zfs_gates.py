"""(f) Runs through a gate, against the same runs by a plain login of ssh: a first copy, and many datasets. In turns, between two machines."""

import shlex
import statistics
import sys
from collections.abc import Iterator
from dataclasses import replace

from tests.bench.rows import Row, ratios
from tests.bench.zfs_guest import Cost, cost, processor
from tests.bench.zfs_pools import snapshot
from tests.lab.laboratory import Lab, Pair

_MOST = 1 / 0.95
_WAYS, _SOURCES = ("gated", "plain"), ("data", "many")
_JOB = 'engine = "zfs"\nsource = "tank/{source}"\ntarget = "{way}"\nschedule = "manual"\n'
_LOGINS = """Host gated
  HostName {address}
  HostKeyAlias backup
  IdentityFile ~/.ssh/gated
  IdentitiesOnly yes
Host plain
  HostName {address}
  HostKeyAlias backup
"""
_DATASETS = """
import ctypes, sys
core = ctypes.CDLL("libzfs_core.so.3")
core.lzc_create.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint]
assert core.libzfs_core_init() == 0
for number in range(int(sys.argv[1])):
    assert not core.lzc_create(f"tank/many/{number:03}".encode(), 2, None, None, 0)
"""
Took = dict[str, list[Cost]]


def gates(lab: Lab, *, far: int, datasets: int, rounds: int) -> Iterator[Row]:
    """Rows of a first copy of so many bytes; then of so many datasets: copied first, with one new snapshot each, with nothing to do."""
    pair = lab.pair()
    try:
        _prepare(pair, far, datasets)
        yield from _rows(f"a first copy of {far >> 20} MiB", _first_copies(pair, "data", rounds))
        yield from _rows(f"a first copy of {datasets} datasets", _first_copies(pair, "many", 1))
        new, nothing = Took(), Took()
        for turn in range(rounds):
            pair.master.sh(["zfs", "snapshot", "-r", f"tank/many@{snapshot(1, turn + 1)}"], seconds=600)
            for took in (new, nothing):
                _turn(pair, "many", took, turn)
        yield from _rows(f"one new snapshot each, {datasets} datasets", new)
        yield from _rows(f"nothing to do, {datasets} datasets", nothing)
    finally:
        lab.give_back(*pair)


def _prepare(pair: Pair, far: int, datasets: int) -> None:
    master, backup = pair
    master.pool("tank", "4G", disk=True)
    backup.pool("vault", "4G", disk=True)
    master.write("/root/make.py", _DATASETS)
    master.sh(
        f"zfs create tank/data && head -c {far} /dev/urandom > /tank/data/file && zfs create tank/many && "
        f"python3 /root/make.py {datasets - 1} && zfs mount -a && zfs snapshot -r tank@{snapshot(1, 0)}",
        seconds=1800,
    )
    address = master.sh("getent ahostsv4 backup").text.split()[0]
    master.sh("ssh-keygen -q -t ed25519 -N '' -f ~/.ssh/gated")
    master.write("/root/.ssh/config", _LOGINS.format(address=address), mode=0o600)
    key = " ".join(master.sh("cat ~/.ssh/gated.pub").text.split()[:2])
    targets = "".join(f'[place.{way}]\ndataset = "ssh://root@{way}/vault/{way}"\n' for way in _WAYS)
    for way in _WAYS:
        backup.sh(f"zfs create -o mountpoint=none vault/{way}")
        for source in _SOURCES:
            master.job(f"{source}-{way}", _JOB.format(source=source, way=way), targets=targets)
    _forget(pair)
    backup.sh(f"poolferry setup gate laptop --receives vault/gated --key {shlex.quote(key)}")


def _forget(pair: Pair) -> None:
    """A history with kits of today alone."""
    pair.master.kitted(*(f"{source}-{way}" for source in _SOURCES for way in _WAYS), at=_WAYS)


def _first_copies(pair: Pair, source: str, rounds: int) -> Took:
    took = Took()
    for turn in range(rounds):
        if turn:
            for way in _WAYS:
                cleared = f"zfs destroy -r vault/{way}/{source}; zpool sync vault; zpool wait -t free vault"
                pair.backup.sh(cleared, seconds=600)
            _forget(pair)
        _turn(pair, source, took, turn)
    return took


def _turn(pair: Pair, source: str, took: Took, turn: int) -> None:
    """Both ways, one after the other; what both machines used counts."""
    for way in _WAYS if turn % 2 == 0 else _WAYS[::-1]:
        before = processor(pair.backup)
        here = cost(pair.master, ("poolferry", "run", f"{source}-{way}", "--json"))
        there = processor(pair.backup) - before
        print(
            f"{source} {way}: {here.seconds:.1f} s, processor {here.processor:.1f} and there {there:.1f} s",
            file=sys.stderr,
            flush=True,
        )
        took.setdefault(way, []).append(replace(here, processor=here.processor + there))


def _rows(what: str, took: Took) -> Iterator[Row]:
    gated, plain = (took[way] for way in _WAYS)
    used = statistics.median(one.processor / other.processor for one, other in zip(gated, plain, strict=True))
    seconds = tuple([one.seconds for one in way] for way in (gated, plain))
    yield ratios("f", f"{what}, through a gate, to a plain login", (seconds[0], seconds[1]), most=_MOST,
                 note=f"processor of both sides {used:.2f}")  # fmt: skip
