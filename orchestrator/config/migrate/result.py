"""Collected results of an import: jobs, places, channels for notices, and the result of each line."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from orchestrator.config.channels import parse_channels
from orchestrator.config.cross_checks import check_all_jobs
from orchestrator.config.decode import TomlFile, parse_toml_file
from orchestrator.config.migrate.job_text import JobText, Value, to_toml, unique_name
from orchestrator.config.migrate.sanoid_conf import SanoidPolicy
from orchestrator.config.parse_job import Engines, parse_job, parse_places
from orchestrator.domain.errors import ConfigMistake
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.place import Location

_PATTERNS = (
    "rsync.excludes",
    "zfs.exclude",
    "zfs.skip-snapshots",
    "sanoid.exclude",
)  # what they leave out is no reason to lose a job


class Lost(str):
    """A message about something that is not carried over: it makes the import's exit code 1."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedLine:
    """Result of one line. `job`: the job that took it, None when none did; `lost`: something of it is not carried over."""

    where: str
    job: str | None
    text: str
    lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """Result of an import: the files to write, by relative path; those for the owner's eyes alone; each line; the manual work."""

    files: Mapping[str, str]
    private: frozenset[str] = frozenset()
    told: tuple[ImportedLine, ...] = ()
    then: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedChannel:
    """A [notice.NAME] to be. `secret`: the address that a file of its own holds; `jobs`: the jobs that it is about."""

    kind: str
    keys: tuple[tuple[str, Value], ...]
    jobs: tuple[str, ...]
    secret: str = ""


class ImportBuilder:
    """Collector of results while the lines are read. `conf`: the name of the sanoid.conf."""

    def __init__(self, policies: Iterable[SanoidPolicy] = (), conf: str = "") -> None:
        self.jobs: list[JobText] = []
        self.places: dict[str, Location] = {}
        self.channels: list[ImportedChannel] = []
        self._lines: dict[ImportedLine, None] = {}
        self.policies: Mapping[str, SanoidPolicy] = {policy.dataset: policy for policy in policies}
        self.used: set[str] = set()  # datasets whose rules are part of a job that copies
        self.ruled: dict[str, str] = {}  # datasets with [snapshots], and the job that has them
        self._conf = conf

    def say(self, where: str, text: str, job: str | None = None) -> None:
        """Record a message about one line; each once."""
        line = ImportedLine(where=where, job=job, text=str(text), lost=isinstance(text, Lost))
        self._lines[line] = None

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

    def notify(self, channel: ImportedChannel) -> bool:
        """Add a channel, if `check` would accept it; one that is there already is also for these jobs."""
        if _is_refused(channel):
            return False
        for at, known in enumerate(self.channels):
            if (known.kind, known.keys, known.secret) == (channel.kind, channel.keys, channel.secret):
                jobs = tuple(dict.fromkeys((*known.jobs, *channel.jobs)))
                self.channels[at] = ImportedChannel(kind=known.kind, keys=known.keys, secret=known.secret, jobs=jobs)
                return True
        self.channels.append(channel)
        return True

    def name(self, source: Location, more: str = "", to: str = "") -> str:
        """Return a free name for a job about this dataset or folder: its last part; for another copy of it with its place `to`; else
        with the parts above it, or numbered.
        """
        parts = [make_name(part) for part in (source.path.strip("/") or "root").split("/")]
        taken = [job.name for job in self.jobs]
        again = any(job.sections[""].get("source") == str(source) for job in self.jobs)
        longer = ["-".join(parts[-number:])[:90] + more for number in range(1, min(len(parts), 4) + 1)]
        names = [longer[0], *([f"{parts[-1][:40]}-to-{to}"[:95]] if again and to else []), *longer]
        return next((name for name in names if name not in taken), "") or unique_name(longer[0], taken)

    def free_name(self, wanted: str) -> str:
        """Return a name that no job has yet: this one, or this one with a number."""
        return unique_name(wanted, [job.name for job in self.jobs])

    def place(self, parent: Location, called: str = "") -> str:
        """Return the name of this dataset's or folder's place; add the place if it is new, `called` so where that is free."""
        known = next((name for name, location in self.places.items() if location == parent), None)
        if known is None:
            usual = make_name(f"{parent.host.name}-{parent.path}" if parent.host else parent.path)
            known = unique_name(called or usual, self.places)
            self.places[known] = parent
        return known

    def result(self, engines: Engines, then: Sequence[str]) -> ImportResult:
        """Return the files, without patterns, and then jobs, that `check` would refuse: those are listed as lost."""
        self._leave_out_patterns(engines)
        while refused := self._refused(engines):
            out = [job for job in self.jobs if job.name in refused]
            self.jobs = [job for job in self.jobs if job.name not in refused]
            self._lines = {line: None for line in self._lines if line.job not in refused}
            for job in out:
                self.say(job.origin, Lost(f"is not carried over: {refused[job.name]}"))
        files = self._job_files()
        private: list[str] = []
        if self.jobs and self.channels:
            files["poolferry.toml"], secrets = self._machine_file()
            files |= secrets
            private += secrets
        return ImportResult(files=files, private=frozenset(private), told=tuple(self._lines), then=tuple(then))

    def _job_files(self) -> dict[str, str]:
        files = {f"jobs/{job.name}.toml": str(job) for job in self.jobs}
        used = {job.sections[""].get("target") for job in self.jobs}
        places = {name: where for name, where in self.places.items() if name in used}
        return files | ({"targets.toml": _targets(places)} if places else {})

    def _leave_out_patterns(self, engines: Engines) -> None:
        """Take patterns out of lists that `check` would refuse, as a whole job is more than one of them."""
        for at, job in enumerate(self.jobs):
            told = self._mistakes(engines).get(job.name, [])
            for wrong in (each for each in told if each.key in _PATTERNS):
                before = self.jobs[at]
                for shorter in _with_a_pattern_less(before, *wrong.key.split(".")):
                    self.jobs[at] = shorter
                    left = [(each.key, each.what) for each in self._mistakes(engines).get(job.name, [])]
                    if (wrong.key, wrong.what) not in left:
                        text = f"a pattern is not carried over: {wrong.what}; in [{wrong.key.replace('.', '] ')} write {wrong.expected}"
                        self.say(job.origin, Lost(text), job.name)
                        break
                else:
                    self.jobs[at] = before

    def _refused(self, engines: Engines) -> dict[str, str]:
        """Return the jobs that `check` would refuse, and why."""
        found = self._mistakes(engines).items()
        return {name: "; ".join(f"{each.key}: {each.what}" for each in mistakes) for name, mistakes in found}

    def _mistakes(self, engines: Engines) -> dict[str, list[ConfigMistake]]:
        """Return the mistakes that `check` would find, by job."""
        texts = {name: parse_toml_file(name, _bytes(text), least="") for name, text in self._job_files().items()}
        read = {name: each for name, each in texts.items() if isinstance(each, TomlFile)}
        targets = read.pop("targets.toml", None)
        drafts = [parse_job(each, _job_name(name), engines) for name, each in read.items()]
        places = parse_places(targets) if targets else {}
        check_all_jobs(drafts, places, sets={}, names=[job.name for job in self.jobs])
        refused = {_job_name(name): each.mistakes for name, each in read.items() if each.mistakes}
        refused |= {_job_name(name): [each] for name, each in texts.items() if isinstance(each, ConfigMistake)}
        for mistake in targets.mistakes if targets else ():
            users = [job for job in self.jobs if f"place.{job.sections['']['target']}" in mistake.key.replace('"', "")]
            refused |= {job.name: [mistake] for job in users or self.jobs[:1]}
        return refused

    def _machine_file(self) -> tuple[str, dict[str, str]]:
        """Return the text of poolferry.toml, and the files with the addresses that are secrets."""
        tables, secrets, taken = [], {}, list[str]()
        for channel in self.channels:
            jobs = tuple(name for name in channel.jobs if name in {job.name for job in self.jobs})
            if not jobs:
                continue
            name = unique_name(channel.kind if len(jobs) > 1 else f"{channel.kind}-{jobs[0]}", taken)
            taken.append(name)
            keys = [f"kind = {to_toml(channel.kind)}", *(f"{key} = {to_toml(value)}" for key, value in channel.keys)]
            if channel.secret:
                keys.append(f'{"topic" if channel.kind == "ntfy" else "url"} = "@{name}.secret"')
                secrets[f"{name}.secret"] = channel.secret + "\n"
            if set(jobs) != {job.name for job in self.jobs}:
                keys.append(f"jobs = {to_toml(jobs)}")
            tables.append(f"[notice.{_key(name)}]\n" + "\n".join(keys) + "\n")
        return "\n".join(tables), secrets


def _with_a_pattern_less(job: JobText, section: str, key: str) -> Iterator[JobText]:
    """Yield the job without each pattern of a key in turn."""
    keys = job.sections[section]
    patterns = found if isinstance(found := keys[key], tuple) else ()
    for number in range(len(patterns)):
        kept = (*patterns[:number], *patterns[number + 1 :])
        yield replace(job, sections={**job.sections, section: {**keys, key: kept}})


def may_lie_in(pattern: str, folders: Sequence[str]) -> bool:
    """Return False for a pattern from the top of the machine that fits none of several folders, and nothing in them."""
    names = pattern.rstrip("/").split("/")
    for folder in folders:
        for name, part in zip_longest(names, folder.rstrip("/").split("/")):
            if part is None or (name is not None and "**" in name):
                return True
            if name is None or (name != part and not set("*?[") & set(name)):
                break
        else:
            return True
    return not pattern.startswith("/")


def _is_refused(channel: ImportedChannel) -> bool:
    keys = dict(channel.keys) | {"kind": channel.kind}
    if channel.secret:
        keys |= {"topic" if channel.kind == "ntfy" else "url": channel.secret}
    table = {name: list(value) if isinstance(value, tuple) else value for name, value in keys.items()}
    file = TomlFile("poolferry.toml", "", {"notice": {"a": table}})
    parse_channels(file)
    return bool(file.mistakes)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _job_name(file: str) -> str:
    return file.removeprefix("jobs/").removesuffix(".toml")


def _targets(places: Mapping[str, Location]) -> str:
    """Return the text of targets.toml."""
    tables = (
        f"[place.{_key(name)}]\n{'path' if where.path.startswith('/') else 'dataset'} = {to_toml(str(where))}\n"
        for name, where in places.items()
    )
    return "\n".join(tables)


def _key(name: str) -> str:
    return f'"{name}"' if "." in name else name


def make_name(text: str) -> str:
    """Convert a text to a name for a job or a place."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:80] or "job"
