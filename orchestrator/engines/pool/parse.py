"""The parser of the survey's output; it returns a `PoolSurvey`, or the newest scrub alone."""

from datetime import datetime
from itertools import chain

from orchestrator.domain.answers import instant_at, split_lines
from orchestrator.domain.names import check_zfs_names, unescape_mount_path
from orchestrator.domain.place import Location
from orchestrator.domain.scrub import PoolScrub
from orchestrator.engines.pool import status_json, status_text
from orchestrator.engines.pool.model import DatasetProperty, MemoryUsage, PoolStatus, PoolSurvey, SpaceUsage
from orchestrator.engines.pool.status_text import UnreadableStatus

_UNREADABLE = "zpool's answer is not one that is known"
_SECTIONS = ("list", "vdevs", "status", "memory", "settings", "mounts", "work", "end")


def parse_survey(output: bytes, root: Location) -> PoolSurvey:
    """Parse the output of the survey command. Raises: UnreadableStatus when it is incomplete."""
    at, version, parts = _answer(output)
    whole, guid = _whole(parts["list"])
    status, dedup = _status("\n".join(parts["status"]), json=version >= (2, 3))
    check_zfs_names((status.name, whole.name))
    return PoolSurvey(
        root=root,
        at=at,
        version=version,
        guid=guid,
        status=status,
        whole=whole,
        vdevs=parse_vdevs(parts["vdevs"]),
        settings=_settings(parts.get("settings", [])),
        memory=_memory(parts.get("memory", []), dedup),
        at_work=active_processes(root.path, parts.get("mounts", []), parts.get("work", [])),
    )


def parse_scrub(output: bytes) -> PoolScrub | None:
    """Parse the output of the status command for the newest scrub; None: the newest scan was none. Raises: UnreadableStatus."""
    at, version, parts = _answer(output)
    status, _ = _status("\n".join(parts["status"]), json=version >= (2, 3))
    scan = status.scan
    if scan is None or scan.kind != "scrub" or scan.began is None:
        return None
    clean = scan.state == "finished" and scan.whole and not scan.errors and not status.errors
    return PoolScrub(began=scan.began, at=at, clean=clean)


def _answer(output: bytes) -> tuple[datetime, tuple[int, ...], dict[str, list[str]]]:
    """Return the machine's time, the version and the parts."""
    head, parts = _sections(output.decode(errors="surrogateescape"))
    if "end" not in parts or len(head) < 2:
        raise UnreadableStatus(f"{_UNREADABLE}: it has no end")
    return instant_at(int(head[0])), parse_version(head[1]), parts


def parse_version(text: str) -> tuple[int, ...]:
    """Parse "2.3.4-1" or "zfs-2.3.4-1" to (2, 3, 4). Raises: UnreadableStatus."""
    numbers = text.removeprefix("zfs-").partition("-")[0].split(".")
    if not all(number.isdigit() for number in numbers):
        raise UnreadableStatus(f'{_UNREADABLE}: "{text}" is no version')
    return tuple(map(int, numbers))


def _sections(text: str) -> tuple[list[str], dict[str, list[str]]]:
    """Return the lines before the first section mark, and those below each; each mark counts once, in its order."""
    head: list[str] = []
    parts: dict[str, list[str]] = {}
    lines, left = head, list(_SECTIONS)
    for line in split_lines(text):
        name = line[1:] if line.startswith("=") else ""
        if name in left:
            left = left[left.index(name) + 1 :]
            lines = parts.setdefault(name, [])
        else:
            lines.append(line)
    return head, parts


def _whole(lines: list[str]) -> tuple[SpaceUsage, str]:
    name, guid, size, used, free, *_ = lines[0].split("\t")
    return SpaceUsage(name=name, size=_number(size), used=_number(used), free=_number(free)), guid


def _status(text: str, *, json: bool) -> tuple[PoolStatus, int | None]:
    return status_json.parse_status(text) if json else status_text.parse_status(text)


def parse_vdevs(lines: list[str]) -> tuple[SpaceUsage, ...]:
    """Parse the top-level data vdevs of `zpool list -HpPv`: the pool first, then a heading for each role.

    A device of a mirror or a raidz has a size, and "-" for its used space.
    """
    found: list[SpaceUsage] = []
    for line in lines[1:]:
        if not line.startswith("\t"):
            break  # a heading: data comes first
        name, *numbers = line.strip().split("\t")
        if len(numbers) > 2 and all(number.isdigit() for number in numbers[:3]):
            size, used, free = map(int, numbers[:3])
            found.append(SpaceUsage(name=name, size=size, used=used, free=free))
    return tuple(found)


def _settings(lines: list[str]) -> tuple[DatasetProperty, ...]:
    split = (line.split("\t") for line in lines)
    found = tuple(DatasetProperty(dataset=each[0], name=each[1], value=each[2]) for each in split if len(each) > 2)
    check_zfs_names(chain.from_iterable((each.dataset, each.name) for each in found))
    return found


def _memory(lines: list[str], dedup: int | None) -> MemoryUsage:
    total = arc = None
    for line in lines:
        words = line.split()
        if words[:1] == ["MemTotal:"]:
            total = int(words[1]) << 10
        elif words[:1] == ["c_max"]:
            arc = int(words[2])
    return MemoryUsage(total=total, arc_most=arc, dedup=dedup)


def active_processes(pool: str, mounts: list[str], lines: list[str]) -> tuple[str, ...]:
    """Return the transfers that are running from or into a pool: each process as text.

    A send by a token names no dataset, so it may belong to this pool. For rsync only directories count: its own, and those in
    its arguments.
    """
    places = [unescape_mount_path(line.partition("\t")[2]).rstrip("/") for line in mounts]
    found: dict[str, None] = {}
    for line in lines:
        directory, _, arguments = line.partition("\t")
        words = arguments.split()
        if words and (told := _of_pool(pool, places, directory, words)):
            found[told] = None
    return tuple(found)


def _of_pool(pool: str, places: list[str], directory: str, words: list[str]) -> str:
    if words[0].rpartition("/")[2] == "rsync":
        paths = [directory, *(word for word in words[1:] if word.startswith("/"))]
        place = next((path for path in paths if any(f"{path}/".startswith(f"{place}/") for place in places)), "")
        return f"rsync in {place.rstrip('/')}" if place else ""
    verb = next((word for word in words[1:3] if word in ("send", "receive", "recv")), "")
    if not verb:
        return ""
    for word in words:
        dataset = word.partition("@")[0]
        if dataset == pool or dataset.startswith(f"{pool}/"):
            return f"zfs {verb} of {dataset}"
    return "zfs send that resumes by a token" if verb == "send" and "-t" in words else ""


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
