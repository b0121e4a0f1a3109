"""Short ways to say pipelines, and to wait for a condition."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from orchestrator.domain.plan import Command, Effect, Pipeline


def reads(*argvs: tuple[str, ...]) -> Pipeline:
    """A pipeline of these commands that only reads."""
    return Pipeline(stages=tuple(Command(argv=argv, effect=Effect.READS) for argv in argvs))


def writes(*argvs: tuple[str, ...], reads: Path | None = None, keeps: Path | None = None) -> Pipeline:
    """A pipeline of these commands that writes."""
    return Pipeline(
        stages=tuple(Command(argv=argv, effect=Effect.WRITES) for argv in argvs),
        reads=str(reads) if reads else None,
        keeps=str(keeps) if keeps else None,
    )


def sh(script: str, *arguments: str) -> tuple[str, ...]:
    return ("sh", "-c", script, "sh", *arguments)


def python(script: str) -> tuple[str, ...]:
    return (sys.executable, "-S", "-c", script)


def until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    """True as soon as the condition holds, False when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
