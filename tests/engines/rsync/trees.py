"""A source and a target on the disk, as runs leave them, and surveys of them."""

import json
import subprocess
from pathlib import Path
from typing import Any

from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync.model import RsyncSurvey
from orchestrator.engines.rsync.survey import survey
from orchestrator.process.executor import Reader
from tests.engines.rsync.builders import NOW, OLD, job


class Trees:
    """A source, a target and notes; `look` surveys them."""

    def __init__(self, folder: Path) -> None:
        self.source, self.target, self.notes = folder / "source", folder / "target", folder / "notes"
        (self.notes / "empty").mkdir(parents=True)
        self.source.mkdir()

    def job(self, **options: Any) -> Job:
        return job(source=Location(path=str(self.source)), target=Location(path=str(self.target)), **options)

    def look(self, reader: Reader | None = None, **options: Any) -> RsyncSurvey:
        return survey(self.job(**options), RunRequest(now=NOW, notes=str(self.notes)), reader or Reader())

    def write(self, path: str, content: str = "x") -> None:
        (self.source / path).parent.mkdir(parents=True, exist_ok=True)
        (self.source / path).write_text(content)

    def mark(self, owner: str = "photos") -> Path:
        """The target as a run leaves it."""
        ours = self.target / ".poolferry"
        ours.mkdir(mode=0o700, parents=True, exist_ok=True)
        (ours / "target.json").write_text(json.dumps({"format": 1, "job": owner, "coarse": False}))
        return ours

    def point(self, name: str = OLD) -> Path:
        """A point that is as the source."""
        self.mark()
        tree = self.target / "points" / name
        tree.parent.mkdir(exist_ok=True)
        subprocess.run(["rsync", "-aH", f"{self.source}/", f"{tree}/"], check=True)
        (self.target / f"points/{name}.manifest.gz").touch()
        return tree
