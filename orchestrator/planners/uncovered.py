"""Datasets and folders beside the known sources that no job copies."""

from collections.abc import Iterable, Sequence

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import is_set_aside

# Top folders that hold the system's own programs, devices and short-lived files, or other people's disks.
SYSTEM = frozenset("bin boot dev lib lib32 lib64 libx32 lost+found media mnt proc run sbin sys tmp usr".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetMount:
    """A dataset of this machine. `mountpoint`: empty where it has none."""

    name: str
    mountpoint: str


def _is_at_or_below(path: str, above: Iterable[str]) -> bool:
    return any(path == each or path.startswith(f"{each.rstrip('/')}/") for each in above)


def find_uncovered_datasets(
    there: Sequence[DatasetMount], *, copied: Sequence[str], alone: Sequence[str], paths: Sequence[str], targets: Sequence[str],
    with_aside: Sequence[str] = (),
) -> tuple[str, ...]:  # fmt: skip
    """Return the datasets that no job copies, the topmost of each tree; in the order of their names.

    `copied`: sources with all below; `alone`: sources without what lies below; `paths`: folders that are copied; `targets`: datasets
    that hold copies; `with_aside`: sources that are copied with what --aside set aside below them. A dataset above a source only
    leads to it.
    """
    leads = {name.rpartition("/")[0] for name in (*copied, *alone, *targets)}
    while more := {each.rpartition("/")[0] for each in leads} - leads - {""}:
        leads |= more
    found: list[str] = []
    for each in sorted(there, key=lambda dataset: dataset.name):
        known = each.name in leads or each.name in alone or _is_at_or_below(each.name, (*copied, *targets))
        if is_set_aside(each.name) and each.name not in (*copied, *alone):
            known = _is_at_or_below(each.name, (*with_aside, *targets))
        mounted = each.mountpoint.startswith("/") and _is_at_or_below(each.mountpoint, paths)
        if not known and not mounted and not _is_at_or_below(each.name, found):
            found.append(each.name)
    return tuple(found)


def find_uncovered_folders(
    beside: Sequence[str], *, copied: Sequence[str], others: Sequence[str]
) -> tuple[str, ...]:  # fmt: skip
    """Return the folders that no job copies. `beside`: folders beside the sources; `others`: folders with copies, and our own."""
    wanted = []
    for path in sorted(set(beside)):
        leads = any(_is_at_or_below(each, (path,)) for each in (*copied, *others))
        system = path.count("/") == 1 and path[1:] in SYSTEM
        if not leads and not system and not _is_at_or_below(path, (*copied, *others)):
            wanted.append(path)
    return tuple(wanted)
