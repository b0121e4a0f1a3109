"""The parser of `zpool status` as text, the only format before OpenZFS 2.3; it returns a `PoolStatus`."""

import re
from datetime import UTC, datetime, timedelta

from orchestrator.domain.answers import split_lines
from orchestrator.domain.units import parse_size
from orchestrator.engines.pool.model import DATA, PoolScan, PoolStatus, Vdev

HEADINGS = {"special": "special", "dedup": "dedup", "logs": "logs", "cache": "cache", "spares": "spares"}
_PARTS = (
    "pool",
    "state",
    "status",
    "action",
    "see",
    "scan",
    "config",
    "dedup",
    "errors",
    "remove",
    "checkpoint",
    "comment",
)
_LONGEST = 4096  # characters of one part; on millions the patterns would never end
_HEAD = re.compile(rf"^ {{0,3}}({'|'.join(_PARTS)}): ?(.*)$")
_LEFT = re.compile(r"(?:(\d+) days? )?(\d+):(\d\d):(\d\d) to go")
_DONE = re.compile(r"([\d.]+)% done")
_DATE = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}")
_ENDED = re.compile(
    r"(?:scrub repaired|resilvered)(?: \(\S+\))? (\S+) in (?:(\d+) days )?(\d+):(\d\d):(\d\d) with (\d+) errors on"
)
_CORE = re.compile(r"DDT entries (\d+), size .* on disk, (\S+) in core")
_GROUP = re.compile(r"(mirror|raidz\d?|draid\S*?|replacing|spare|hole|indirect)-\d+")


class UnreadableStatus(ValueError):
    """An answer in a form that no known version prints."""


def parse_status(text: str) -> tuple[PoolStatus, int | None]:
    """Return the status, and the bytes of memory that dedup tables use. Raises: UnreadableStatus."""
    parts = _parts(text)
    if "pool" not in parts or "config" not in parts:
        raise UnreadableStatus("`zpool status` lists no pool")
    errors, damaged = _errors(parts.get("errors", []))
    status = PoolStatus(
        name=parts["pool"][0].strip(),
        state=parts.get("state", [""])[0].strip(),
        says=_joined(parts.get("status", [])),
        action=_joined(parts.get("action", [])),
        scan=_scan(parts.get("scan", [])),
        devices=_devices(parts["config"]),
        errors=errors,
        damaged=damaged,
    )
    return status, _in_memory(_joined(parts.get("dedup", [])))


def _parts(text: str) -> dict[str, list[str]]:
    """Return the lines of each part by its name, with the rest of its first line. Files with errors are indented."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in split_lines(text):
        if head := _HEAD.match(line):
            lines = found.setdefault(head[1], [])
            lines.append(head[2])
        else:
            lines.append(line)
    return found


def _joined(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())


def _errors(lines: list[str]) -> tuple[int, tuple[str, ...]]:
    """Return the number of data errors and the damaged files. Short form: "3 data errors, use '-v' for a list"."""
    first, *rest = lines or [""]
    if first.startswith("No known data errors") or not first:
        return 0, ()
    files = tuple(line.strip() for line in rest if line.strip())
    number = first.split()[0]
    return (int(number) if number.isdigit() else max(len(files), 1)), files


def _scan(lines: list[str]) -> PoolScan | None:
    """Parse the lines of the scan. Times are in UTC, as the survey requests it."""
    text = _joined(lines)[:_LONGEST]
    kind = "resilver" if text.startswith("resilver") else "scrub" if text.startswith("scrub") else ""
    if not kind:
        return None
    dates = [
        datetime.strptime(date, "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        for date in _DATE.findall("\n".join(lines)[:_LONGEST])
    ]
    first = dates[0] if dates else None
    if ended := _ENDED.match(text):
        repaired = parse_size(ended[1]) if kind == "scrub" else 0
        days, hours, minutes, seconds = (int(number or 0) for number in ended.groups()[1:5])
        took = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        began = first - took if first else None
        return PoolScan(
            kind=kind, state="finished", began=began, ended=first, repaired=repaired, errors=int(ended[6])
        )  # fmt: skip
    if " canceled on " in text:
        return PoolScan(kind=kind, state="canceled", ended=first)
    done, left = _DONE.search(text), _LEFT.search(text)
    paused = " paused since " in text
    return PoolScan(
        kind=kind,
        state="paused" if paused else "running",
        began=dates[-1] if paused and dates else first,
        share=float(done[1]) / 100 if done else None,
        left=_seconds(left) if left else None,
    )


def _seconds(left: re.Match[str]) -> float:
    days, hours, minutes, seconds = (int(number or 0) for number in left.groups())
    return days * 86400.0 + hours * 3600 + minutes * 60 + seconds


def _devices(lines: list[str]) -> tuple[Vdev, ...]:
    """Parse the vdevs by their indentation: two blanks for each level; headings are indented like the pool itself."""
    rows = [
        (len(line[1:]) - len(line[1:].lstrip(" ")), line.split(maxsplit=1)) for line in lines if line.startswith("\t")
    ]
    rows = [(depth, words) for depth, words in rows if words and words[0] != "NAME"]
    found: list[Vdev] = []
    role, at = DATA, 0
    while at < len(rows):
        depth, words = rows[at]
        if depth == 0:
            role = HEADINGS.get(words[0], DATA)
            at += 1
            continue
        device, at = _device(rows, at, role)
        found.append(device)
    return tuple(found)


def _device(rows: list[tuple[int, list[str]]], at: int, role: str) -> tuple[Vdev, int]:
    """Return the device in one row with all its descendants, and the number of the row after them."""
    depth, words = rows[at]
    name, rest = words[0], (words[1] if len(words) > 1 else "").split()
    below: list[Vdev] = []
    at += 1
    while at < len(rows) and rows[at][0] > depth:
        each, at = _device(rows, at, role)
        below.append(each)
    numbers = [word for word in rest[1:5] if word.isdigit() or word == "-"]
    reads, writes, checksums, slow = [*(int(n) if n.isdigit() else 0 for n in numbers), 0, 0, 0, 0][:4]
    group = _GROUP.fullmatch(name)
    kind = group[1] if group else "disk"
    device = Vdev(
        name=name, kind=kind, role=role, state=rest[0] if rest else "", reads=reads, writes=writes, checksums=checksums,
        slow=slow, note=" ".join(rest[1 + len(numbers) :]), below=tuple(below),
    )  # fmt: skip
    return device, at


def _in_memory(dedup: str) -> int | None:
    """Return the bytes of dedup tables in memory: entries times bytes per entry. None: there is no table."""
    told = _CORE.search(dedup[:_LONGEST])
    return int(told[1]) * parse_size(told[2]) if told else None
