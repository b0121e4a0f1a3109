"""The parser of `zpool status -j --json-int`, available since OpenZFS 2.3; it returns a `PoolStatus`."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from orchestrator.domain.answers import NOT_READ, instant_at, parse_json
from orchestrator.engines.pool.model import DATA, PoolScan, PoolStatus, Vdev
from orchestrator.engines.pool.status_text import HEADINGS, UnreadableStatus

Table = Mapping[str, Any]
_ROLES = {"vdevs": DATA, **HEADINGS, "l2cache": "cache"}
# As in the text of `zpool status`.
_AUX = {
    "EXTERNAL": "external device fault", "ERR_EXCEEDED": "too many errors", "OPEN_FAILED": "cannot open",
    "CORRUPT_DATA": "corrupted data", "NO_REPLICAS": "insufficient replicas", "SPARED": "currently in use",
}  # fmt: skip
# Not all: what was freed while it ran is not looked at, nor some 100 KB of each pool's own, which is much of an empty one.
_ALMOST, _OWN = 0.9, 1 << 20
_STATES = {"FINISHED": "finished", "SCANNING": "running", "CANCELED": "canceled", "PAUSED": "paused"}


def parse_status(text: str) -> tuple[PoolStatus, int | None]:
    """Return the status, and the bytes of memory that dedup tables use. Raises: UnreadableStatus."""
    try:
        told = parse_json(text)
        (pool,) = told["pools"].values()
        return _status(pool), _in_memory(pool)
    except NOT_READ as error:
        raise UnreadableStatus(f"`zpool status -j` is not as it was in any version that is known: {error!r}") from error


def _status(pool: Table) -> PoolStatus:
    said = str(pool.get("status", ""))
    errors = _count(pool, "error_count")
    damaged = pool.get("errlist", [])  # a text when ZFS cannot list them
    return PoolStatus(
        name=pool["name"],
        state=pool["state"],
        says="" if said == "OK" else " ".join(said.split()),
        action=" ".join(str(pool.get("action", "")).split()),
        scan=_scan(pool.get("scan_stats")),
        devices=tuple(
            _device(each, role)
            for part, role in _ROLES.items()
            for each in _top(pool.get(part, {}), root=part == "vdevs").values()
        ),
        errors=errors,
        damaged=tuple(map(str, damaged)) if errors and isinstance(damaged, list) else (),
    )


def _top(part: Table, *, root: bool) -> Table:
    """Return the vdevs of a part: data vdevs are below one vdev that represents the pool."""
    if not root:
        return part
    (whole,) = part.values()
    found: Table = whole.get("vdevs", {})
    return found


def _device(told: Table, role: str) -> Vdev:
    return Vdev(
        name=told["name"],
        kind=told["vdev_type"],
        role=role,
        state=_state(told),
        reads=_count(told, "read_errors"),
        writes=_count(told, "write_errors"),
        checksums=_count(told, "checksum_errors"),
        slow=_count(told, "slow_ios"),
        note=_note(told),
        below=tuple(_device(each, role) for each in told.get("vdevs", {}).values()),
    )


def _state(told: Table) -> str:
    """Return the state as the text output names it; JSON has ZFS's internal name."""
    state = str(told["state"])
    if state == "CANT_OPEN":
        return "FAULTED" if told.get("aux") in ("CORRUPT_DATA", "BAD_LOG") else "UNAVAIL"
    return {"HEALTHY": "ONLINE", "CLOSED": "OFFLINE"}.get(state, state)


def _note(told: Table) -> str:
    """Return the reason for a device's state, and the former path of a device that is known only by its number."""
    aux = str(told.get("aux", ""))
    was = [f"was {told['was']}"] if told.get("was") else []
    return ", ".join([*was, *([_AUX.get(aux, aux.lower().replace("_", " "))] if aux else [])])


def _scan(told: Table | None) -> PoolScan | None:
    if not told or told.get("function") not in ("SCRUB", "RESILVER"):
        return None
    paused = _count(told, "scrub_pause") > 0 and told["state"] == "SCANNING"
    state = "paused" if paused else _STATES[told["state"]]
    going = state in ("running", "paused")
    whole, done = _count(told, "to_examine") - _count(told, "skipped"), _count(told, "issued")
    return PoolScan(
        kind=told["function"].lower(),
        state=state,
        began=_instant(told, "start_time"),
        ended=None if going else _instant(told, "end_time"),
        share=min(done / whole, 1.0) if going and whole > 0 else None,
        repaired=_count(told, "processed") if told["function"] == "SCRUB" else 0,
        errors=_count(told, "errors"),
        whole=_count(told, "examined") + _OWN >= _ALMOST * whole,
    )


def _instant(told: Table, name: str) -> datetime | None:
    seconds = _count(told, name)
    return instant_at(seconds) if seconds else None


def _count(told: Table, name: str) -> int:
    """Return a number that is given as integer or as digits; 0 when it is missing."""
    value = told.get(name, 0)
    return int(value) if isinstance(value, int) or str(value).isdigit() else 0


def _in_memory(pool: Table) -> int | None:
    """Return the bytes of dedup tables in memory. None: there is no table."""
    table = pool.get("dedup_stats", {})
    return _count(table, "mspace") if _count(table, "obj_count") else None
