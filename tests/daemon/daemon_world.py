"""A real daemon on a real configuration: started, watched, signalled, ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.ferry import Ferry

PATIENCE_S = 75.0  # a daemon that starts late has missed its minute, and waits for the next one
START = (
    "import sys\nfrom datetime import timedelta\nfrom orchestrator import compose\nreal = compose.now\n"
    "compose.now = lambda: real() + timedelta(seconds={ahead})\n"
    "from orchestrator.cli import main\nsys.exit(main(['daemon']))"
)


def until(holds: Callable[[], object], what: str, log: Callable[[], str] = str) -> None:
    """Waits for a condition; a file that goes while it is looked at is one that is not there."""
    end = time.monotonic() + PATIENCE_S

    def now() -> object:
        with suppress(FileNotFoundError):
            return holds()
        return None

    while not now():
        assert time.monotonic() < end, f"waited in vain: {what}\n{log()}"
        time.sleep(0.05)


class Daemon:
    """A daemon as a process. `ahead`: how many seconds its clock is ahead of the true one."""

    def __init__(self, ferry: Ferry, *, ahead: float = 0, **variables: str) -> None:
        self.ferry = ferry
        self.file = ferry.root / f"daemon-{len(list(ferry.root.glob('daemon-*.log')))}.log"
        with self.file.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", START.format(ahead=ahead)],
                env={**ferry.variables(), **variables},
                cwd=ferry.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def log(self) -> str:
        """All that it said."""
        return self.file.read_text()

    def says(self, words: str, times: int = 1) -> None:
        """Waits until it has said something."""
        until(lambda: self.log.count(words) >= times or self.process.poll() is not None, words, lambda: self.log)
        assert self.log.count(words) >= times, self.log

    def send(self, number: signal.Signals) -> None:
        """Signals it."""
        self.process.send_signal(number)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ends it; its exit code."""
        self.send(number)
        return self.process.wait(30)


@contextmanager
def daemon(ferry: Ferry, *, ahead: float = 0, **variables: str) -> Iterator[Daemon]:
    """A daemon as long as it is needed."""
    made = Daemon(ferry, ahead=ahead, **variables)
    try:
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
            made.process.wait()


def runs(ferry: Ferry, job: str = "photos") -> list[dict[str, Any]]:
    """The runs that history knows, newest first."""
    found: list[dict[str, Any]] = ferry.run("history", job, "--json").value["runs"]
    return found


def promise(ferry: Ferry, job: str = "photos") -> dict[str, Any]:
    """Return what `schedule` says of a job."""
    found: list[dict[str, Any]] = ferry.run("schedule", job, "--json").value["jobs"]
    return found[0]


def slow_job(ferry: Ferry, name: str = "photos", schedule: str = 'every = "1m"\n') -> None:
    """A job whose copy takes a minute."""
    source = ferry.job(name, schedule + '[pipe]\nrate-limit = "256K"\n')
    (source / "big").write_bytes(os.urandom(16 << 20))


def quicken(ferry: Ferry, name: str = "photos") -> None:
    """The same job without its limit."""
    file = ferry.config / "jobs" / f"{name}.toml"
    file.write_text(file.read_text().replace('rate-limit = "256K"', ""))


def copying(target: Path) -> bool:
    """Return whether some bytes of the large file have arrived."""
    return any(path.stat().st_size > 0 for path in target.rglob("*big*") if path.is_file())
