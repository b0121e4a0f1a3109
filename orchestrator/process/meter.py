"""Silence: whether anything still moves in the processes of a pipeline."""

import os
from collections.abc import Callable, Collection

from orchestrator.domain.fast_dataclass import dataclass

# ssh's keepalives move bytes although the far side sleeps: measured, 80 each, so 5 a second at our interval of 15 s and
# 80 at the shortest. Less than this a second is silence.
NOISE = 128
_SHORTEST, _LONGEST = 0.1, 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A process of a pipeline, children of its stages included. `state`: the kernel's letter, Z for a dead one."""

    pid: int
    state: str
    processor_ticks: int

    @property
    def moved(self) -> int | None:
        """Bytes it has read and written in its life; None where we may not know (it runs as somebody else)."""
        try:
            with open(f"/proc/{self.pid}/io", "rb") as file:
                lines = file.read().split()
        except OSError:
            return None
        return int(lines[1]) + int(lines[3])


def members(groups: Collection[int]) -> tuple[Member, ...]:
    """Every process whose process group or session is one of the groups."""
    found = (_member(name, groups) for name in os.listdir("/proc") if name.isdigit())
    return tuple(member for member in found if member)


def living(groups: Collection[int]) -> tuple[Member, ...]:
    """Those of them that still run."""
    return tuple(member for member in members(groups) if member.state not in "ZX")


def _member(pid: str, groups: Collection[int]) -> Member | None:
    """Source: proc_pid_stat(5). The program's name may hold spaces and brackets: counting begins after the last one."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
    except OSError:
        return None
    if int(fields[2]) not in groups and int(fields[3]) not in groups:
        return None
    return Member(pid=int(pid), state=fields[0].decode(), processor_ticks=int(fields[11]) + int(fields[12]))


class Silence:
    """Decides whether nothing has moved for `after` seconds: no byte of ours, and no bytes of any member.

    `seen`: the bytes that went through our own hands so far.
    Why: looking into /proc is left for when our own hands are still, and then a few times within `after`.
    """

    def __init__(self, groups: Collection[int], after: float, seen: Callable[[], int], now: float) -> None:
        self._groups = groups
        self._after = after
        self._seen = seen
        self._every = min(max(after / 8, _SHORTEST), _LONGEST)
        self._ours = seen()
        self._theirs = self._look()
        self._looked = self._moved = now

    def next_look(self) -> float:
        """When to ask again, on the caller's clock."""
        return self._looked + self._every

    def lasts(self, now: float) -> bool:
        """True once the silence has lasted long enough."""
        ours = self._seen()
        if ours != self._ours:
            self._ours, self._moved = ours, now
        if now >= self.next_look():
            theirs = self._look()
            if _movement(self._theirs, theirs) > NOISE * (now - self._looked):
                self._moved = now
            self._theirs, self._looked = theirs, now
        return now - self._moved >= self._after

    def _look(self) -> dict[int, tuple[int | None, int]]:
        return {member.pid: (member.moved, member.processor_ticks) for member in members(self._groups)}


def _movement(before: dict[int, tuple[int | None, int]], after: dict[int, tuple[int | None, int]]) -> float:
    """Bytes moved between two looks. Where bytes may not be known, work of the processor counts as movement."""
    total = 0.0
    for pid, (moved, ticks) in after.items():
        earlier, ticks_earlier = before.get(pid, (0, 0))
        if moved is not None:
            total += max(0, moved - (earlier or 0))
        elif ticks != ticks_earlier:
            return float("inf")
    return total
