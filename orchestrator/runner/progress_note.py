"""The note of a run's progress, `running/RUN.json` in the state directory: for `status` and `show` of other processes.

It is written at most once a second and only while bytes move, so a run with nothing to do, or a short one, writes none. Steps
stand in the history. Nothing depends on a note: where it cannot be written, the run goes on.
"""

import contextlib
import json
import os
from collections.abc import Callable
from datetime import datetime, timedelta

from orchestrator.domain.events import TransferProgress
from orchestrator.domain.run_progress import LARGEST, RunProgress, parse_progress_note, progress_value
from orchestrator.planners.throughput import Throughput, ThroughputCounter
from orchestrator.runner.context import ProcessIdentity

GAP = 1.0  # seconds between two notes
_FOLDER = "running"
_RENEWED = timedelta(minutes=5)  # a run that waits asks again each half minute


class ProgressNote:
    """The note of one run. Its own events come from several threads, so the caller holds a lock."""

    def __init__(
        self, state: str, run: int, *, begun: float, clock: Callable[[], datetime], monotonic: Callable[[], float],
        identity: ProcessIdentity, alive: Callable[[int, int, str], bool],
    ) -> None:  # fmt: skip
        self._folder = f"{state}/{_FOLDER}"
        self._run, self._clock, self._monotonic, self._identity = run, clock, monotonic, identity
        self._count, self._written = ThroughputCounter(monotonic), -GAP
        self._count.pace = Throughput(begun)
        with contextlib.suppress(OSError):
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            remove_stale_notes(state, alive)

    def step_begun(self) -> None:
        """Count anew, unless the whole run is counted."""
        self._count.step_begun()

    def moved(self, event: TransferProgress) -> None:
        """Count the bytes, and write the note when the last one is a second old."""
        pace, now = self._count.moved(event), self._monotonic()
        if now - self._written < GAP:
            return
        self._written = now
        rate, left = pace.rate, pace.left_s
        found = RunProgress(
            run=self._run, done=event.done, expected=event.expected, rate=None if rate is None else int(rate), left_s=left,
            at=self._clock(),
        )  # fmt: skip
        self._write(found)

    def waits(self, text: str) -> None:
        """Write what the run waits for; empty: nothing any more, and there is no note until bytes move."""
        if not text:
            self.remove()
            return
        self._write(
            RunProgress(run=self._run, done=0, expected=None, rate=None, left_s=None, at=self._clock(), waits=text)
        )

    def _write(self, found: RunProgress) -> None:
        who = self._identity
        value = {**progress_value(found), "pid": who.pid, "process_started": who.started, "boot": who.boot}
        part = f"{self._folder}/.{self._run}"
        with contextlib.suppress(OSError):
            descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(json.dumps(value).encode())
            os.rename(part, f"{self._folder}/{self._run}.json")

    def remove(self) -> None:
        """Remove the note at the end of the run."""
        for name in (f".{self._run}", f"{self._run}.json"):
            with contextlib.suppress(OSError):
                os.unlink(f"{self._folder}/{name}")


def read_progress(state: str, run: int) -> RunProgress | None:
    """Return the newest progress of a run that goes on; None where it wrote none, or none that can be read."""
    found = parse_progress_note(_content(f"{state}/{_FOLDER}/{run}.json"))
    return found if found is not None and found.run == run else None


def waiting_processes(state: str, now: datetime) -> frozenset[int]:
    """Return the processes of runs that have begun and wait, as their notes say; one that was not renewed says nothing."""
    from orchestrator.domain.answers import NOT_READ, parse_instant, parse_json

    found = set[int]()
    with contextlib.suppress(OSError):
        for name in os.listdir(f"{state}/{_FOLDER}"):
            with contextlib.suppress(*NOT_READ):
                told = parse_json(_content(f"{state}/{_FOLDER}/{name}"))
                if told["waits"] and now - parse_instant(told["at"]) < _RENEWED:
                    found.add(int(told["pid"]))
    return frozenset(found)


def remove_stale_notes(state: str, alive: Callable[[int, int, str], bool]) -> None:
    """Remove the notes of runs whose process is gone: one that was killed could not. Raises: OSError."""
    from orchestrator.domain.answers import NOT_READ, parse_json

    for name in os.listdir(f"{state}/{_FOLDER}"):
        path = f"{state}/{_FOLDER}/{name}"
        try:
            told = parse_json(_content(path))
            lives = alive(int(told["pid"]), int(told["process_started"]), str(told["boot"]))
        except NOT_READ:
            lives = name.startswith(".")  # another run writes it at this moment
        if not lives:
            os.unlink(path)


def _content(path: str) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with open(descriptor, "rb") as file:
        return file.read(LARGEST + 1)[:LARGEST]
