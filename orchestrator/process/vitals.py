"""Signs of life of a process and its descendants, from /proc."""

import os

from orchestrator.domain.events import ProcessActivity

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
