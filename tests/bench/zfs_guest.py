"""Costs of a command in a machine of the lab: its seconds, the machine's processor time, the programs it started."""

import struct
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.lab.common import LabError
from tests.lab.virtual import VirtualMachine
from tests.processes import fields

# The kernel's own accounting sees every process of every tool alike, and costs next to nothing. Source: acct(2), acct(5).
_ACCOUNT = "/var/tmp/account"
_BEGIN = f": > {_ACCOUNT}; python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).acct(b\"{_ACCOUNT}\"))'"
_END = f"python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).acct(None))'; cat {_ACCOUNT}"
_RECORD = struct.Struct("<B47x16s")
_FORKED = 1  # it never became another program
ZFS = ("zfs", "zpool")
_TICKS = 100
_STOPPED = 124  # by timeout(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one command. `programs`: how often each was started, by name; `whole`: it ended by itself."""

    seconds: float
    processor: float
    programs: Counter[str]
    whole: bool = True

    @property
    def zfs(self) -> int:
        """Return how many zfs and zpool commands it took."""
        return sum(self.programs[name] for name in ZFS)


def cost(machine: VirtualMachine, words: Sequence[str], *, enough: float = 7200) -> Cost:
    """Runs it to its end, or for as many seconds as are enough. Raises: LabError when it fails."""
    machine.sh(_BEGIN)
    used, began = processor(machine), time.perf_counter()
    ended = machine.sh(["timeout", str(int(enough)), *words], check=False, seconds=enough + 300)
    took, spent = time.perf_counter() - began, processor(machine) - used
    if ended.code not in {0, _STOPPED}:
        raise LabError(f"{words[0]} ended with {ended.code}: {ended.errors.decode(errors='replace')}")
    started = programs(machine.sh(_END).out)
    return Cost(seconds=took, processor=spent, programs=started, whole=ended.code != _STOPPED)


def programs(account: bytes) -> Counter[str]:
    """Return how often each program was started, by the names in an account."""
    whole = len(account) - len(account) % _RECORD.size
    records = _RECORD.iter_unpack(account[:whole])
    return Counter(name.split(b"\0", 1)[0].decode(errors="replace") for flags, name in records if not flags & _FORKED)


def processor(machine: VirtualMachine) -> float:
    """Seconds of processor time that the machine has used so far."""
    assert machine.pid is not None
    user, kernel = fields(machine.pid)[11:13]
    return (int(user) + int(kernel)) / _TICKS
