"""A real configuration in a directory, and the real command run on it."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.fork_server import run_command

ROOT = Path(__file__).resolve().parents[1]
COMMAND = (sys.executable, "-m", "orchestrator")
JOB = 'engine = "rsync"\nsource = "{source}"\ntarget = "{place}"\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """End of a command."""

    code: int
    out: str
    err: str

    @property
    def value(self) -> dict[str, Any]:
        """The one JSON object on stdout."""
        found: dict[str, Any] = json.loads(self.out)
        assert found["format"] == 1
        return found


class Ferry:
    """A configuration with sources and places below one directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.config = root / "etc"
        self.state = root / "state"
        (self.config / "jobs").mkdir(parents=True)
        self._places = ""

    def job(self, name: str = "photos", more: str = "") -> Path:
        """A job with a source of two files; the source's directory.

        Without a [retry] of its own one attempt is all: a test sees what the first failure does, and waits for no other.
        """
        source = self.root / f"{name}-source"
        (source / "deep").mkdir(parents=True)
        (source / "deep" / "a.txt").write_text("some words\n")
        (source / "b.bin").write_bytes(bytes(range(256)) * 64)
        self._places += f'[place.{name}-copies]\npath = "{self.target(name)}"\n'
        (self.config / "targets.toml").write_text(self._places)
        once = "" if "[retry]" in more else "[retry]\nattempts = 1\n"
        text = JOB.format(source=source, place=f"{name}-copies") + more + once
        (self.config / "jobs" / f"{name}.toml").write_text(text)
        return source

    def target(self, name: str = "photos") -> Path:
        """Return where a job's copies go."""
        return self.root / f"{name}-copies"

    def variables(self) -> dict[str, str]:
        """The environment of the command."""
        here = {"POOLFERRY_CONFIG": str(self.config), "POOLFERRY_STATE": str(self.state), "PYTHONPATH": str(ROOT)}
        # As at a user's: PYTHONUNBUFFERED and the like would hide what buffers do.
        usual = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        return {**usual, **here}

    def run(self, *arguments: str, **variables: str) -> Ended:
        """The command to its end."""
        told = run_command(arguments, environment={**self.variables(), **variables}, folder=str(self.root), timeout=60)
        return Ended(
            code=told.returncode,
            out=told.stdout.decode("utf-8", "surrogateescape"),
            err=told.stderr.decode("utf-8", "surrogateescape"),
        )
