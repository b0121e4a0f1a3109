"""poolferry as its users start it: a configuration and a state of its own below the bench's folder."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
_LEFT_OUT = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONPROFILEIMPORTTIME", "PYTHONDEVMODE")


class Ferry:
    """A configuration with one job after the other, and one target."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.target = folder / "target"
        self.state = folder / "state"
        self.config = folder / "config"
        (self.config / "jobs").mkdir(parents=True)
        # Bytecode is written as in any use: without it each start would compile everything again.
        ours = {name: value for name, value in os.environ.items() if name not in _LEFT_OUT}
        self.environment = {**ours, "PYTHONPATH": str(CHECKOUT)}

    def job(self, source: Path, name: str = "bench", *, parallel: int | None = 1, whole_look: int = 10) -> str:
        """Declares a job that copies the source to the target. `parallel` None: as many as poolferry chooses."""
        place = f'[place.{name}]\npath = "{self.target if name == "bench" else self.folder / name}"\n'
        places = self.config / "targets.toml"
        known = places.read_text(encoding="utf-8") if places.exists() else ""
        if place not in known:
            places.write_text(known + place, encoding="utf-8")
        text = f'engine = "rsync"\nsource = "{source}"\ntarget = "{name}"\n[rsync]\nwhole-look = {whole_look}\n'
        text += f"parallel = {parallel}\n" if parallel else ""
        (self.config / "jobs" / f"{name}.toml").write_text(text, encoding="utf-8")
        return name

    def argv(self, *words: str) -> list[str]:
        """A command line of the program: the installed command where there is one beside this interpreter."""
        script = Path(sys.executable).with_name("poolferry")
        front = [str(script)] if script.exists() else [sys.executable, "-m", "orchestrator"]
        return [*front, *words, "--config", str(self.config), "--state", str(self.state)]

    def call(self, *words: str) -> tuple[str, str]:
        """Runs a command: what it printed on stdout and stderr. Raises: RuntimeError when it fails."""
        done = subprocess.run(
            self.argv(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="surrogateescape",
            env=self.environment,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(
                f"poolferry {' '.join(words)} ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}"
            )
        return done.stdout, done.stderr

    def run(self, outcome: str, job: str = "bench") -> dict[str, Any]:
        """Runs a job, and insists on its outcome."""
        value: dict[str, Any] = json.loads(self.call("run", job, "--json")[0])
        if value["outcome"] != outcome:
            raise RuntimeError(f"the run ended {value['outcome']}: {value['why']}")
        return value

    def look_command(self, job: str = "bench") -> list[str]:
        """The rsync command line that a run of the job issues when it looks; it must find nothing to do."""
        said = self.call("run", job, "--verbose")[1]
        lines = [line.removeprefix("+ ") for line in said.splitlines() if line.startswith("+ rsync ")]
        if len(lines) != 1:
            raise RuntimeError(f"a run with nothing to do should issue one rsync, not {len(lines)}")
        return shlex.split(lines[0])

    def newest(self) -> Path:
        """The tree of the newest point."""
        return (self.target / "latest").resolve()

    def empty_target(self) -> None:
        """Takes the target and what history knows of it away, and waits until the disk is done with it."""
        shutil.rmtree(self.target, ignore_errors=True)
        shutil.rmtree(self.state, ignore_errors=True)
        os.sync()


@contextmanager
def ferry(folder: Path) -> Iterator[Ferry]:
    """A fresh one; nothing stays of it."""
    here = folder / "ferry"
    shutil.rmtree(here, ignore_errors=True)
    here.mkdir(parents=True)
    try:
        yield Ferry(here)
    finally:
        shutil.rmtree(here, ignore_errors=True)
