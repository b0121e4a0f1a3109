"""Jobs from the files of zrepl on both sides. Source: zrepl's documentation, 0.5 and 0.6."""

import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.config.migrate.job_text import JobText, Value
from orchestrator.config.migrate.program_calls import ImportedSettings, sections_of
from orchestrator.config.migrate.result import ImportBuilder, ImportResult, Lost
from orchestrator.config.migrate.time_span import late_after, parse_when
from orchestrator.config.migrate.yaml_tree import YamlValue, parse_yaml
from orchestrator.config.parse_job import Engines, dataset_mistake
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Host, Location
from orchestrator.domain.units import parse_duration, show_count

_KEYS = {
    "push": "name type connect filesystems send snapshotting pruning replication conflict_resolution",
    "pull": "name type connect root_fs interval recv pruning replication conflict_resolution",
    "snap": "name type filesystems snapshotting pruning",
    "sink": "name type serve root_fs recv",
    "source": "name type serve filesystems send snapshotting",
}
_QUIET_SEND = (
    "encrypted",
    "raw",
    "bandwidth_limit",
    "compressed",
    "embedded_data",
    "large_blocks",
    "send_properties",
    "step_holds",
)
_KINDS = (("yearly", 31_536_000), ("monthly", 2_592_000), ("weekly", 604_800), ("daily", 86_400), ("hourly", 3600))
_GRID = re.compile(r"(\d{1,4})x(\d{1,5})(s|m|h|d|w)(?:\(keep=(\w+)\))?")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


@dataclass(frozen=True, slots=True, kw_only=True)
class ZreplJob:
    """One entry of `jobs`. `where`: its file and line."""

    file: str
    value: YamlValue

    @property
    def where(self) -> str:
        """Return where it begins."""
        return f"{self.file}:{self.value.line}"

    @property
    def kind(self) -> str:
        """Return its type: push, pull, snap, sink or source."""
        return self.value.at("type").text

    def line(self, value: YamlValue) -> str:
        """Return the file and line of a value in it."""
        return f"{self.file}:{value.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFilter:
    """One dataset that a filter lets through, and what lies below it."""

    dataset: str
    recursive: bool
    exclude: tuple[str, ...] = ()


def import_zrepl(settings: ImportedSettings, engines: Engines) -> ImportResult:
    """Import zrepl's jobs. Raises: ValueError for a file that is no YAML."""
    work = ImportBuilder()
    jobs: list[ZreplJob] = []
    for file, text in settings.files:
        try:
            root = parse_yaml(text)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
        jobs += [ZreplJob(file=file, value=each) for each in root.at("jobs").items]
        _tell_global(work, file, root)
    for job in jobs:
        try:
            _import_job(work, job, jobs)
        except ValueError as error:
            work.say(job.where, Lost(f"is not carried over: {error}"))
    return work.result(engines, _then(work) if work.jobs else ())


_LET_GO = (
    "nobody prunes zrepl's own snapshots any more; once they are not needed, on both sides: zfs list -H -o name -t snapshot -r "
    "DATASET | grep @zrepl_ | xargs -r -d '\\n' -n 1 zfs destroy; `zrepl zfs-abstraction release-all` lets go of its holds first"
)


def _then(work: ImportBuilder) -> tuple[str, ...]:
    chains = "the first run of each job continues from the newest snapshot that both sides hold: nothing is sent again"
    sent = any("zfs" in job.sections for job in work.jobs)
    off = "systemctl disable --now zrepl, on both sides, otherwise zrepl and poolferry both replicate and prune"
    return (*([chains] if sent else []), off, _LET_GO)


def _tell_global(work: ImportBuilder, file: str, root: YamlValue) -> None:
    for each in root.at("global", "monitoring").items:
        work.say(
            f"{file}:{each.line}", Lost("its monitoring is not carried over: write [metrics] listen in poolferry.toml")
        )
    for key in root.table:
        if key not in ("global", "jobs"):
            work.say(f"{file}:{root.lines[key]}", Lost(f"{key} is not carried over: no equivalent in poolferry"))


def _import_job(work: ImportBuilder, job: ZreplJob, jobs: Sequence[ZreplJob]) -> None:
    """Make jobs of one entry. Raises: ValueError."""
    if job.kind not in _KEYS:
        raise ValueError(f'its type "{job.kind}" has no equivalent in poolferry')
    known = _KEYS[job.kind].split()
    for key, line in job.value.lines.items():
        if key not in known:
            work.say(f"{job.file}:{line}", Lost(f"{key} is not carried over: no equivalent in poolferry"))
    if job.kind in ("sink", "source"):
        work.say(job.where, f"is the {job.kind} of a job on another machine: poolferry needs no server there, only ssh")
    elif job.kind == "snap":
        _import_snap(work, job)
    else:
        _import_replication(work, job, jobs)


def _import_replication(work: ImportBuilder, job: ZreplJob, jobs: Sequence[ZreplJob]) -> None:
    other = _other_side(job, jobs)
    sender, receiver = (job, other) if job.kind == "push" else (other, job)
    host = _host(job)
    root = receiver.value.at("root_fs").text
    if not root:
        raise ValueError(f"{receiver.file} names no root_fs")
    if job.kind == "push":
        root = f"{root}/{_identity(job, receiver)}"
    sections, notes = _sections(job, sender)
    for dataset in _filtered(work, sender):
        _replicate(work, job, dataset, (host, root), sections, notes)
        notes = []


def _replicate(
    work: ImportBuilder,
    job: ZreplJob,
    dataset: DatasetFilter,
    ends: tuple[Host | None, str],
    sections: Mapping[str, Mapping[str, Value]],
    notes: Sequence[str],
) -> None:
    host, root = ends
    push = job.kind == "push"
    source = Location(path=dataset.dataset, host=None if push else host)
    above = dataset.dataset.rpartition("/")[0]
    target = Location(path="/".join(filter(None, (root, above))), host=host if push else None)
    for place in (source, target):
        if wrong := dataset_mistake(place):
            raise ValueError(wrong[0])
    head: dict[str, Value] = {"engine": "zfs", "source": str(source), "target": work.place(target), **sections["head"]}
    zfs: dict[str, Value] = {"recursive": dataset.recursive, **sections["zfs"]}
    zfs |= {"exclude": dataset.exclude} if dataset.exclude else {}
    snapshots = dict(sections["snapshots"])
    if snapshots and not dataset.recursive:
        snapshots["recursive"] = False
    made = sections_of(head=head, zfs=zfs, snapshots=snapshots, keep=sections["keep"], pipe=sections["pipe"])
    name = work.name(source, to=str(head["target"]))
    work.add(job.where, JobText(name=name, origin=job.where, sections=made), notes)


def _import_snap(work: ImportBuilder, job: ZreplJob) -> None:
    times, notes = _times(job.value.at("snapshotting"))
    numbers, lost = _numbers(job, job.value.at("pruning", "keep"))
    if not numbers:
        raise ValueError("it keeps no number of snapshots: write a job of the engine sanoid")
    for dataset in _filtered(work, job):
        source = Location(path=dataset.dataset)
        rules: dict[str, Value] = {**numbers, **({} if dataset.recursive else {"recursive": False})}
        head: dict[str, Value] = {"engine": "sanoid", "source": dataset.dataset, **times}
        sanoid: dict[str, Value] = {"exclude": dataset.exclude} if dataset.exclude else {}
        sections = sections_of(head=head, snapshots=rules, sanoid=sanoid)
        name = work.name(source, "-snapshots")
        work.add(job.where, JobText(name=name, origin=job.where, sections=sections), (*notes, *lost))
        notes, lost = [], []


def _sections(job: ZreplJob, sender: ZreplJob) -> tuple[dict[str, Mapping[str, Value]], list[str]]:
    """Return the sections that all datasets of a job have in common."""
    snapshotting = sender.value.at("snapshotting")
    timing = snapshotting if job.kind == "push" else job.value
    times, notes = _times(timing)
    keep, lost = _numbers(job, job.value.at("pruning", "keep_receiver"))
    notes += lost
    snapshots: dict[str, Value] = {}
    if snapshotting.at("type").text in ("periodic", "cron") and job.kind == "push":
        snapshots, lost = _numbers(job, job.value.at("pruning", "keep_sender"))
        notes += lost
        if not snapshots:
            text = "its snapshots are not carried over: nobody takes any now: write [snapshots], such as daily = 14"
            notes.append(Lost(text))
    elif job.kind == "pull":
        notes.append(
            "zrepl's source took snapshots there: does sanoid take any now? Else install poolferry there, with a job of the engine sanoid"
        )
    send = sender.value.at("send")
    zfs: dict[str, Value] = {"raw": "yes"} if send.at("encrypted").yes or send.at("raw").yes else {}
    pipe: dict[str, Value] = {}
    if limit := send.at("bandwidth_limit", "max").text or job.value.at("recv", "bandwidth_limit", "max").text:
        pipe["rate-limit"] = re.sub(r"\s*([KMGT])i?B$", r"\1", limit)
    if key := job.value.at("connect", "identity_file").text:
        pipe["ssh-options"] = ("-i", key)
        notes.append(
            "its key does one thing there (zrepl stdinserver in authorized_keys): poolferry needs a key that may call zfs"
        )
    for part, known in ((send, _QUIET_SEND), (job.value.at("recv"), ("bandwidth_limit", "placeholder"))):
        notes += [
            Lost(f"{name} is not carried over: no equivalent in poolferry") for name in part.table if name not in known
        ]
    return {"head": times, "zfs": zfs, "snapshots": snapshots, "keep": keep, "pipe": pipe}, notes


def _times(value: YamlValue) -> tuple[dict[str, Value], list[str]]:
    """Return the schedule of a job from its snapshotting, or from the interval of a pull."""
    interval, cron = value.at("interval").text, value.at("cron").text
    if cron:
        schedule = parse_when(cron)
        late = late_after(schedule)
        found: dict[str, Value] = {"schedule": schedule, "late-after": late} if schedule and late else {}
        return found, [] if found else [Lost(f'its time is not carried over: "{cron}" is no schedule for a job file')]
    try:
        parse_duration(interval)
    except (ValueError, OverflowError):
        manual = interval in ("", "manual")
        return {}, ["it has no times: the job runs by hand"] if manual else [
            Lost(f"its interval {interval} is not carried over")
        ]
    return {"every": interval, "late-after": str(late_after(None, interval))}, []


def _other_side(job: ZreplJob, jobs: Sequence[ZreplJob]) -> ZreplJob:
    """Return the sink of a push, or the source of a pull. Raises: ValueError."""
    wanted = "sink" if job.kind == "push" else "source"
    connect = job.value.at("connect")
    found = [each for each in jobs if each.kind == wanted]
    if connect.at("type").text == "local":
        listener = connect.at("listener_name").text
        found = [each for each in found if each.value.at("serve", "listener_name").text == listener]
    else:
        found = [each for each in found if each.value.at("serve", "type").text != "local"]
    if len(found) == 1:
        return found[0]
    if found:
        raise ValueError(
            f"{show_count(len(found), 'job')} of the type {wanted} may be its other side: give one file of the other machine"
        )
    what = "where the copies lie (root_fs)" if job.kind == "push" else "what is copied (filesystems)"
    there = connect.at("host").text or connect.at("address").text or "the other machine"
    raise ValueError(f"{what} stands in the {wanted} of zrepl.yml on {there}: copy that file here, and name it, too")


def _host(job: ZreplJob) -> Host | None:
    """Return the machine at the other end; None for a job on one machine. Raises: ValueError."""
    connect = job.value.at("connect")
    if connect.at("type").text == "local":
        return None
    name = connect.at("host").text or connect.at("address").text.rpartition(":")[0].strip("[]")
    port = connect.at("port").text
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*|[0-9A-Fa-f:]+", name) or (
        port and not re.fullmatch(r"[0-9]{1,5}", port)
    ):
        raise ValueError(f'connect names no host that ssh could reach: "{name}"')
    user = connect.at("user").text or ("root" if connect.at("type").text in ("tls", "tcp") else "")
    return Host(name=name, user=user or None, port=int(port) if port and port != "22" else None)


def _identity(job: ZreplJob, sink: ZreplJob) -> str:
    """Return what the sink calls this machine: the part of the copies' names after root_fs. Raises: ValueError."""
    serve = sink.value.at("serve")
    own = job.value.at("connect", "client_identity").text
    names = (
        [own]
        if own
        else [*serve.at("client_identities").texts(), *(each.text for each in serve.at("clients").table.values())]
    )
    if len(set(names)) != 1:
        raise ValueError(
            f"{sink.where} knows {len(set(names))} client identities: leave this machine's own alone there"
        )
    return names[0]


def _filtered(work: ImportBuilder, job: ZreplJob) -> list[DatasetFilter]:
    """Return the datasets that a job's filters let through. Raises: ValueError."""
    rules = {key: value.yes for key, value in job.value.at("filesystems").table.items()}
    if not any(rules.values()):
        raise ValueError("filesystems lets nothing through")
    if rules.get("<"):
        raise ValueError('"<" means every pool: name each, such as "tank<": true')
    for key, yes in rules.items():
        if not yes and not key.endswith("<"):
            line = job.value.at("filesystems").lines[key]
            work.say(f"{job.file}:{line}", f"[zfs] exclude leaves out what lies below {key}, too")
    return list(_let_through(rules))


def _let_through(rules: Mapping[str, bool]) -> Iterator[DatasetFilter]:
    for key, yes in rules.items():
        dataset = key.removesuffix("<").rstrip("/")
        if not yes or _nearest(rules, dataset):
            continue
        if not key.endswith("<"):
            if not rules.get(f"{dataset}<"):
                yield DatasetFilter(dataset=dataset, recursive=False)
            continue
        below = [other.removesuffix("<").rstrip("/") for other, let in rules.items() if not let]
        out = [other.removeprefix(f"{dataset}/") for other in below if other.startswith(f"{dataset}/")]
        yield DatasetFilter(dataset=dataset, recursive=True, exclude=tuple(out))


def _nearest(rules: Mapping[str, bool], dataset: str) -> bool:
    """Return what the nearest rule for a subtree above a dataset says; False where there is none."""
    above = [key for key in rules if key.endswith("<") and dataset.startswith(f"{key.removesuffix('<').rstrip('/')}/")]
    return rules[max(above, key=len)] if above else False


def _numbers(job: ZreplJob, rules: YamlValue) -> tuple[dict[str, Value], list[str]]:
    """Return how many of each kind stay, at least as many as the rules keep, and what is lost."""
    found: dict[str, int] = {}
    notes: list[str] = []
    for rule in rules.items:
        kind = rule.at("type").text
        if kind == "grid":
            try:
                for name, number in parse_grid(rule.at("grid").text):
                    found[name] = max(found.get(name, 0), number)
            except ValueError as error:
                notes.append(Lost(f"{job.line(rule)}: its grid is not carried over: {error}"))
        elif kind not in ("not_replicated", "step_holds"):
            if kind == "regex" and rule.at("negate").yes:
                continue  # keeps what zrepl did not take: nothing of ours prunes that
            text = f"keeps by {kind} {rule.at('count').text or rule.at('regex').text}".strip()
            notes.append(
                Lost(
                    f"line {rule.line} {text}, which is not carried over: [keep] counts by hours, days, weeks, months, years"
                )
            )
    kinds = ("hourly", "daily", "weekly", "monthly", "yearly")
    numbers: dict[str, Value] = {name: found[name] for name in kinds if name in found}
    return numbers, notes


def parse_grid(text: str) -> Iterator[tuple[str, int]]:
    """Yield the kind and number of each interval, so that at least as much stays for as long. Raises: ValueError."""
    elapsed = 0
    for part in (each.strip() for each in text.split("|")):
        match = _GRID.fullmatch(re.sub(r"\s", "", part))
        if match is None:
            raise ValueError(f'"{part}" is no interval such as 24x1h')
        width = int(match[2]) * _SECONDS[match[3]]
        if not width or not int(match[1]):
            raise ValueError(f'"{part}" is no interval such as 24x1h')
        elapsed += int(match[1]) * width
        name, span = next(((name, span) for name, span in _KINDS if span <= width), _KINDS[-1])
        yield name, -(-elapsed // span)
