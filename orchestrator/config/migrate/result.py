"""What an import gathers: jobs, places, and what became of each line."""

import re
from collections.abc import Iterable, Mapping

from orchestrator.config.migrate.job_text import JobText, unique
from orchestrator.config.migrate.sanoid_conf import Policy
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What became of one line. `job`: the one it went into, None where nothing did; `text`: what is to be said of it."""

    where: str
    job: str | None
    text: str


class Work:
    """Gathers while the lines are read. `conf`: how the sanoid.conf is called."""

    def __init__(self, policies: Iterable[Policy] = (), conf: str = "") -> None:
        self.jobs: list[JobText] = []
        self.places: dict[str, Location] = {}
        self.told: list[Told] = []
        self.policies: Mapping[str, Policy] = {policy.dataset: policy for policy in policies}
        self.used: set[str] = set()  # datasets whose rules went into a job that copies
        self.ruled: dict[str, str] = {}  # datasets with [snapshots], and the job that has them
        self._conf = conf

    def say(self, where: str, text: str, job: str | None = None) -> None:
        """Something about one line."""
        self.told.append(Told(where=where, job=job, text=text))

    def clash(self, dataset: str) -> str | None:
        """The job whose [snapshots] rule this dataset, one above it or one below: a job file may tell no second ones."""
        near = (
            name
            for ruled, name in self.ruled.items()
            if f"{ruled}/".startswith(f"{dataset}/") or f"{dataset}/".startswith(f"{ruled}/")
        )
        return next(near, None)

    def use(self, policy: Policy, section: str, job: str) -> None:
        """The rules of one dataset went into a section of a job that copies it."""
        self.used.add(policy.dataset)
        if section == "snapshots":
            self.ruled[policy.dataset] = job
        self.say(self.at(policy), f"became [{section}] in jobs/{job}.toml", job)

    def at(self, policy: Policy) -> str:
        """Where a policy stands."""
        return f"{self._conf}:{policy.line}"

    def add(self, where: str, job: JobText, notes: Iterable[str]) -> None:
        """A job that a line became, and what is not as it was."""
        self.jobs.append(job)
        self.say(where, f"became jobs/{job.name}.toml", job.name)
        for note in notes:
            self.say(where, note, job.name)

    def name(self, dataset: str, more: str = "") -> str:
        """A free name for a job about this dataset."""
        return unique(slug(dataset.rpartition("/")[2]) + more, (job.name for job in self.jobs))

    def place(self, parent: Location) -> str:
        """The name of the place that is this dataset."""
        known = next((name for name, location in self.places.items() if location == parent), None)
        if known is None:
            known = unique(slug(f"{parent.host.name}-{parent.path}" if parent.host else parent.path), self.places)
            self.places[known] = parent
        return known


def slug(text: str) -> str:
    """The text as a name for a job or a place."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:80] or "job"
