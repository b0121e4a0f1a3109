"""The tools that are set side by side: how each is told to bring a tree to a pool of its own."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.bench.zfs_pools import SOURCE, tree
from tests.lab.common import Machine

OURS = "ferry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """`pool`: its own target; `command`: the words for a tree of so many datasets; `prepare`: what it wants before."""

    name: str
    pool: str
    command: Callable[[int], tuple[str, ...]]
    prepare: Callable[[Machine, int], None]
    expected: bool  # fewer commands than it needs, not only no more time
    remembers: bool = False  # its first run marks on the pools what later ones go on from


def _ferry(machine: Machine, count: int) -> None:
    text = f'engine = "zfs"\nsource = "{tree(count)}"\ntarget = "{OURS}"\nschedule = "manual"\n'
    machine.job(f"d{count}", text, targets=f'[place.{OURS}]\ndataset = "{OURS}"\n')


def _selected(machine: Machine, count: int) -> None:
    machine.sh(["zfs", "set", f"autobackup:d{count}=true", tree(count)])


def _nothing(_: Machine, __: int) -> None:
    pass


def _below(pool: str, count: int) -> str:
    return tree(count).replace(SOURCE, pool, 1)


FERRY = Tool(
    name="poolferry", pool=OURS, prepare=_ferry, expected=False, remembers=True,
    command=lambda count: ("poolferry", "run", f"d{count}", "--json"),
)  # fmt: skip
# Each does what it does by itself, but takes and destroys no snapshots of its own.
PEERS = (
    Tool(
        name="syncoid", pool="syncoid", prepare=_nothing, expected=True,
        command=lambda count: ("syncoid", "-r", "--quiet", "--no-sync-snap", tree(count), _below("syncoid", count)),
    ),
    Tool(
        name="zfs-autobackup", pool="autobackup", prepare=_selected, expected=True,
        command=lambda count: ("zfs-autobackup", "--no-snapshot", "--no-thinning", "--exclude-received", "--strip-path=1", f"d{count}", "autobackup"),
    ),
    Tool(
        name="bzfs", pool="bzfs", prepare=_nothing, expected=False, remembers=True,
        command=lambda count: ("bzfs", "--recursive", "--quiet", tree(count), _below("bzfs", count)),
    ),
)  # fmt: skip


def held_by(machine: Machine, pool: str, count: int, name: str) -> int:
    """Return how many datasets of a tool's copy have the snapshot as their newest."""
    told = machine.sh(
        ["zfs", "get", "-Hp", "-r", "-t", "filesystem", "-o", "value", "prevsnap", _below(pool, count)], seconds=600
    )
    return sum(line.endswith(f"@{name}") for line in told.lines)


def pools(tools: Iterable[Tool]) -> tuple[str, ...]:
    """The targets of the tools."""
    return tuple(tool.pool for tool in tools)
