"""A dataset that has another name now, known by its guid: where it lies, and the commands that give its former name back."""

from collections.abc import Iterator

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect


@dataclass(frozen=True, slots=True, kw_only=True)
class RenamedDataset:
    """The answer to where a dataset lies now. `name`: empty: nowhere that was seen, in two places, or set aside.

    `above`: the nearest existing dataset above its former name; `within`: all that the gate of our key shows, empty: there is none;
    `unseen`: why nobody could look.
    """

    name: str = ""
    above: str = ""
    within: str = ""
    unseen: str = ""

    @property
    def doubt(self) -> str:
        """Return what a look that found nothing leaves open; empty: it saw all pools of that machine."""
        if self.name:
            return ""
        if self.unseen:
            return f"whether it has another name now cannot be seen: {self.unseen}"
        if self.within:
            return f"the gate of our key shows {self.within} alone, and nothing there has its guid: it may lie elsewhere there, under another name"
        return ""


NOT_RENAMED = RenamedDataset()


def ways_on(job: Job, now: str, lines: str, back: str) -> str:
    """Return the hint of a source with another name. `lines`: what is written for it to go on so; `back`: commands that give the former name back."""
    if " " in now and job.snapshots is not None and job.snapshots.recursive:
        return f"sanoid finds no datasets below a name with a blank, so give the former one back: {back}"
    return f"to go on under that name: {lines}; or give the former one back: {back}"


def give_name_back(former: str, found: RenamedDataset, host: Host | None, *, sudo: bool = False) -> str:
    """Return the commands that give a dataset, or a pool, its former name back; on a host by ssh, behind a gate as to be typed there."""
    through, where = (None, f"on {host.name}: ") if found.within and host else (host, "")
    front = ("sudo",) if sudo else ()
    commands = (
        Command(argv=(*front, *words), effect=Effect.DESTROYS, host=through)
        for words in _words(former, found.name, found.above)
    )
    return where + " && ".join(map(str, commands))


def _words(former: str, now: str, above: str) -> Iterator[tuple[str, ...]]:
    (before, _, below), (pool, _, rest) = former.partition("/"), now.partition("/")
    if pool != before:
        yield "zpool", "export", pool
        yield "zpool", "import", pool, before
    if rest == below:
        return
    now = f"{before}/{rest}" if rest else before
    # What was renamed may lie above it: then all that lies there gets its name back.
    while above and _parent(former) != above and _last(former) == _last(now) and "/" in _parent(now):
        former, now = _parent(former), _parent(now)
    yield "zfs", "rename", *(() if _parent(former) == above else ("-p",)), now, former


def _parent(name: str) -> str:
    return name.rpartition("/")[0]


def _last(name: str) -> str:
    return name.rpartition("/")[2]
