"""Collected results of an import: jobs, places, and the result of each line."""

import re
from collections.abc import Iterable, Mapping

from orchestrator.config.migrate.job_text import JobText, unique_name
from orchestrator.config.migrate.sanoid_conf import SanoidPolicy
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLine:
    """Result of one line. `job`: the job that took it, None when none did; `text`: the message about it."""

    where: str
    job: str | None
    text: str


class ImportBuilder:
    """Collector of results while the lines are read. `conf`: the name of the sanoid.conf."""

    def __init__(self, policies: Iterable[SanoidPolicy] = (), conf: str = "") -> None:
        self.jobs: list[JobText] = []
        self.places: dict[str, Location] = {}
        self.told: list[ImportedLine] = []
        self.policies: Mapping[str, SanoidPolicy] = {policy.dataset: policy for policy in policies}
        self.used: set[str] = set()  # datasets whose rules are part of a job that copies
        self.ruled: dict[str, str] = {}  # datasets with [snapshots], and the job that has them
        self._conf = conf

    def say(self, where: str, text: str, job: str | None = None) -> None:
        """Record a message about one line."""
        self.told.append(ImportedLine(where=where, job=job, text=text))

    def clash(self, dataset: str) -> str | None:
        """Return the job whose [snapshots] rule this dataset, a parent or a child: second rules are not allowed."""
        near = (
            name
            for ruled, name in self.ruled.items()
            if f"{ruled}/".startswith(f"{dataset}/") or f"{dataset}/".startswith(f"{ruled}/")
        )
        return next(near, None)

    def use(self, policy: SanoidPolicy, section: str, job: str) -> None:
        """Record that the rules of a dataset are now in a section of a job that copies it."""
        self.used.add(policy.dataset)
        if section == "snapshots":
            self.ruled[policy.dataset] = job
        self.say(self.at(policy), f"became [{section}] in jobs/{job}.toml", job)

    def at(self, policy: SanoidPolicy) -> str:
        """Return the file and line of a policy."""
        return f"{self._conf}:{policy.line}"

    def add(self, where: str, job: JobText, notes: Iterable[str]) -> None:
        """Add a job made from a line, with notes on the differences."""
        self.jobs.append(job)
        self.say(where, f"became jobs/{job.name}.toml", job.name)
        for note in notes:
            self.say(where, note, job.name)

    def name(self, dataset: str, more: str = "") -> str:
        """Return a free name for a job about this dataset."""
        return unique_name(make_name(dataset.rpartition("/")[2]) + more, (job.name for job in self.jobs))

    def place(self, parent: Location) -> str:
        """Return the name of this dataset's place; add the place if it is new."""
        known = next((name for name, location in self.places.items() if location == parent), None)
        if known is None:
            known = unique_name(
                make_name(f"{parent.host.name}-{parent.path}" if parent.host else parent.path), self.places
            )
            self.places[known] = parent
        return known


def make_name(text: str) -> str:
    """Convert a text to a name for a job or a place."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:80] or "job"
