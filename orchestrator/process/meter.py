"""Silence detection and signs of life: the check whether the processes of a pipeline, or a process and its descendants, still do something."""

import os
from collections.abc import Callable, Collection

from orchestrator.domain.events import ProcessActivity
from orchestrator.domain.fast_dataclass import dataclass

# ssh's keepalives move bytes although the other side sleeps: measured, 80 each, so 5 a second at our interval of 15 s and 80 at
# the shortest. Fewer bytes a second than this are silence.
NOISE = 128
_SHORTEST, _LONGEST = 0.1, 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProcess:
    """A process of a pipeline, or a child of its stages. `state`: the kernel's letter, Z for a dead process."""

    pid: int
    state: str
    processor_ticks: int

    @property
    def moved(self) -> int | None:
        """Return the bytes that it read and wrote in its life; None when unknown (it runs as another user)."""
        try:
            with open(f"/proc/{self.pid}/io", "rb") as file:
                lines = file.read().split()
        except OSError:
            return None
        return int(lines[1]) + int(lines[3])


def group_processes(groups: Collection[int]) -> tuple[GroupProcess, ...]:
    """Return every process whose process group or session is one of the groups."""
    found = (_member(name, groups) for name in os.listdir("/proc") if name.isdigit())
    return tuple(member for member in found if member)


def living_processes(groups: Collection[int]) -> tuple[GroupProcess, ...]:
    """Return those processes of the groups that still run."""
    return tuple(member for member in group_processes(groups) if member.state not in "ZX")


def _member(pid: str, groups: Collection[int]) -> GroupProcess | None:
    """Parse a process's stat. Source: proc_pid_stat(5). The name may hold spaces and brackets: count after the last."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
    except OSError:
        return None
    if int(fields[2]) not in groups and int(fields[3]) not in groups:
        return None
    return GroupProcess(pid=int(pid), state=fields[0].decode(), processor_ticks=int(fields[11]) + int(fields[12]))


class StallDetector:
    """Detector of silence: no byte through this process and no bytes of any member for `after` seconds.

    `seen`: the bytes that have passed through this process so far. Why: /proc is read only while no byte passes, and then a few
    times within `after`.
    """

    def __init__(self, groups: Collection[int], after: float, seen: Callable[[], int], now: float) -> None:
        self._groups = groups
        self._after = after
        self._seen = seen
        self._every = min(max(after / 8, _SHORTEST), _LONGEST)
        self._ours = seen()
        # None yet: they began with the pipeline, and /proc holds every process of the machine, which most looks never need.
        self._theirs: dict[int, tuple[int | None, int]] = {}
        self._looked = self._moved = now

    def next_look(self) -> float:
        """Return when to check again, on the caller's clock."""
        return self._looked + self._every

    def lasts(self, now: float) -> bool:
        """Return True once the silence has lasted long enough."""
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
        return {member.pid: (member.moved, member.processor_ticks) for member in group_processes(self._groups)}


def _movement(before: dict[int, tuple[int | None, int]], after: dict[int, tuple[int | None, int]]) -> float:
    """Return the bytes moved between two checks. Where bytes are unknown, processor time counts as movement."""
    total = 0.0
    for pid, (moved, ticks) in after.items():
        earlier, ticks_earlier = before.get(pid, (0, 0))
        if moved is not None:
            total += max(0, moved - (earlier or 0))
        elif ticks != ticks_earlier:
            return float("inf")
    return total


_TICKS = os.sysconf("SC_CLK_TCK")


def process_activity(first: int) -> tuple[ProcessActivity, ...]:
    """Return the process and all its descendants; none when they have ended.

    Why by parents and not by group or session: each stage of a run has a session of its own.
    """
    children: dict[int, list[int]] = {}
    worked: dict[int, float] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(name)):
            children.setdefault(int(fields[1]), []).append(int(name))
            worked[int(name)] = (int(fields[11]) + int(fields[12])) / _TICKS
    found, left = [], [first] if first in worked else []
    while left:
        pid = left.pop()
        found.append(ProcessActivity(pid=pid, processor_s=worked[pid], moved=_moved(pid)))
        left += children.get(pid, [])
    return tuple(found)


def _stat(pid: str) -> list[bytes] | None:
    """Return the fields after the program's name, which may hold any text. Source: proc_pid_stat(5)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b") ")[2].split()
    except OSError:
        return None


def _moved(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/io", "rb") as file:
            lines = file.read().split()
    except OSError:
        return None
    return int(lines[1]) + int(lines[3])
