"""A dataset that is not where it was: its name now, by its guid, in the pools that are imported on that machine."""

from collections.abc import Iterable

from orchestrator.domain.answers import text_lines
from orchestrator.domain.errors import OrchestratorError, Stopped
from orchestrator.domain.names import check_zfs_names, is_set_aside
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Effect, Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.process import scripts
from orchestrator.process.executor import Reader

_PATIENCE = Seconds(120)
_LIMIT = 1 << 20


def find_moved_dataset(guid: int, pool_guid: int, host: Host | None, reader: Reader) -> str:
    """Return the name of the dataset now; empty: it is nowhere, in two places, set aside, or that cannot be seen, as through a gate.

    `guid`: 0: the pool itself is meant; `pool_guid`: of the pool that it lies in; 0: any.
    """
    command = scripts.script_command(
        "process", "find-datasets.sh", str(guid), str(pool_guid), effect=Effect.READS, host=host
    )
    try:
        result = reader.read(Pipeline(stages=(command,)), limit=_LIMIT, timeout=_PATIENCE)
        found = parse_moved(text_lines(result.stdout)) if result.well else ()
    except Stopped:
        raise
    except (OrchestratorError, ValueError):
        return ""
    names = [name for pool, name in found if pool_guid in (0, pool) and not is_set_aside(name)]
    return names[0] if len(names) == 1 else ""


def parse_moved(lines: Iterable[str]) -> tuple[tuple[int, str], ...]:
    """Parse where a dataset lies: the guid of its pool, and its name. Raises: ValueError."""
    *told, end = tuple(lines) or ("",)
    if end != "=end":
        raise ValueError("the answer ended too early")
    found = tuple((int(pool), name) for pool, _, name in (line.partition("\t") for line in told))
    check_zfs_names(name for _, name in found)
    return found
