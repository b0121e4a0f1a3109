"""A night in the life of the clock: it looks, the machine sleeps eight hours, it looks twice again; told as JSON.

The sleep is the kernel's: in a time namespace CLOCK_BOOTTIME goes on by eight hours while CLOCK_MONOTONIC stands still, as
time_namespaces(7) and clock_gettime(2) tell of a suspend. Only a process of one thread may enter it, so this is one.
"""

import ctypes
import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from orchestrator.app.due_check import DueCheckResult, JobHistoryCache, check_due
from orchestrator.app.pidfile import DaemonPresence
from orchestrator.domain.due import ScheduleAnchor
from orchestrator.history.store import open_history
from orchestrator.schedule.triggers import ZonedCalendar
from tests.planners.two_years import job

BEGUN = datetime(2026, 11, 20, 22, 0, 30, tzinfo=UTC)
SLEPT = timedelta(hours=8)
NEW_TIME = 0x80  # CLONE_NEWTIME of <sched.h>
HALF_HOURLY = "cron */30 * * * *"


def sleep(span: timedelta) -> None:
    """Set the clocks of the kernel as a suspend does. Raises: OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_TIME):
        raise OSError(ctypes.get_errno(), "unshare")
    with open("/proc/self/timens_offsets", "w", encoding="ascii") as file:
        file.write(f"boottime {span.total_seconds():.0f} 0\n")
    held = os.open("/proc/self/ns/time_for_children", os.O_RDONLY | os.O_CLOEXEC)
    if libc.setns(held, NEW_TIME):
        raise OSError(ctypes.get_errno(), "setns")
    os.close(held)


def night(file: str) -> dict[str, object]:
    """Return what is owed after each look, and what the clock says of the night."""
    jobs, calendar = (job("a", HALF_HOURLY),), ZonedCalendar(ZoneInfo("Europe/Berlin"))
    with open_history(file) as history:
        book = history.due_runs
        book.write(anchors=[ScheduleAnchor(job="a", at=BEGUN, schedule=HALF_HOURLY, run=0)])
        began = time.clock_gettime(time.CLOCK_BOOTTIME)
        presence = DaemonPresence(book, boot="b", pid=os.getpid(), now=BEGUN)

        def looked() -> DueCheckResult:
            now = BEGUN + timedelta(seconds=time.clock_gettime(time.CLOCK_BOOTTIME) - began)
            presence.look(now)
            absences = presence.absences
            return check_due(
                jobs, book, JobHistoryCache(book), now=now, calendar=calendar, parallel=1, absences=absences, book=book
            )

        before = looked()
        sleep(SLEPT)
        woken = [looked(), looked()]
    return {
        "before": len(before.due),
        "owed": [{name: (each.slots, each.why) for name, each in seen.due.items()} for seen in woken],
        "begin": [[each.job for each in seen.turn.begin] for seen in woken],
        "absences": [str(each.away) for each in presence.absences],
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(night(sys.argv[1])))
