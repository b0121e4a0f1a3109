"""The folders of a restore point as a page: entries to tick, and the exact commands that bring the ticked ones back."""

from collections.abc import Callable, Sequence
from itertools import groupby
from urllib.parse import quote

from orchestrator.domain.command_line import quoted
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import show_name
from orchestrator.domain.point_contents import EntryChange, EntryInPoint, PointEntry
from orchestrator.domain.units import show_size
from orchestrator.planners.entry_versions import changed_parts
from orchestrator.views.point_contents import entry_mode, entry_time

ASIDE = "/var/tmp/restored"  # noqa: S108 - a place to type over, in which nothing of a user's is replaced

_FOLDED, _FEWEST_FOLDED = ("same", "missing"), 3


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryRow:
    """One entry. `address`: of a folder's own page; `value`: its whole path in a lossless form."""

    name: str
    folder: bool
    kind: str
    size: str
    time: str
    mode: str
    address: str
    value: str
    below: str
    below_address: str
    versions: str
    ticked: bool
    lost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Crumb:
    """A folder above, and the address of its page."""

    name: str
    address: str


def point_address(job: str, point: str, path: bytes = b"") -> str:
    """Return the address of a folder of a point."""
    return "/".join(
        ["/points", quote(job, safe=""), quote(point, safe=""), *([quote(show_name(path))] if path else [])]
    )


def entry_rows(job: str, point: str, entries: Sequence[PointEntry], ticked: Sequence[bytes]) -> tuple[EntryRow, ...]:
    """Return entries as rows."""
    return tuple(_row(job, point, each, each.path in ticked) for each in entries)


def _row(job: str, point: str, entry: PointEntry, ticked: bool) -> EntryRow:
    above, _, name = entry.path.rpartition(b"/")
    folder = entry.kind == "directory"
    target = f" → {show_name(entry.target)}" if entry.kind == "symlink" else ""
    return EntryRow(
        name=f"{show_name(name)}{target}", folder=folder, kind=entry.kind, size=show_size(entry.size) if entry.kind == "file" else "",
        time=entry_time(entry).strip(), mode=entry_mode(entry), address=point_address(job, point, entry.path) if folder else "",
        value=show_name(entry.path), below=show_name(above), below_address=point_address(job, point, above), ticked=ticked,
        versions=versions_address(job, entry.path),
        lost=entry.kind == "file" and not entry.digest,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    """One path in one point. `change`: against the point below it: "same", "different", "new", "gone", "missing" or "unknown"."""

    point: str
    disk: str
    address: str
    kind: str
    size: str
    time: str
    digest: str
    change: str
    why: str


def versions_address(job: str, path: bytes) -> str:
    """Return the address of one path in all points."""
    return f"/versions/{quote(job, safe='')}/{quote(show_name(path))}"


def version_rows(job: str, path: bytes, found: Sequence[EntryInPoint], *, whole: bool) -> tuple[VersionRow, ...]:
    """Return a path in points, the newest first, each compared with the next older one. `whole`: the last is the oldest of all."""
    older: list[EntryInPoint | None] = [*found[1:], None]
    return tuple(
        _version_row(job, path, each, before, last=whole and at == len(found) - 1)
        for at, (each, before) in enumerate(zip(found, older, strict=True))
    )


def fold_versions(rows: Sequence[VersionRow]) -> tuple[tuple[VersionRow, ...], ...]:
    """Return the rows in groups: points in a row that show nothing new together, each other row alone."""
    groups: list[tuple[VersionRow, ...]] = []
    for change, each in groupby(rows, key=lambda row: row.change):
        group = tuple(each)
        groups += [group] if change in _FOLDED and len(group) >= _FEWEST_FOLDED else [(row,) for row in group]
    return tuple(groups)


def _version_row(job: str, path: bytes, found: EntryInPoint, before: EntryInPoint | None, *, last: bool) -> VersionRow:
    entry, above = found.entry, path.rpartition(b"/")[0]
    change, why = _change(found, before, last=last)
    return VersionRow(
        point=found.point.name, disk=found.point.disk, address=point_address(job, found.point.name, above),
        kind=entry.kind if entry else "", size=show_size(entry.size) if entry and entry.kind == "file" else "",
        time=entry_time(entry).strip() if entry else "", digest=entry.digest.partition(":")[2][:16] if entry else "", change=change, why=why,
    )  # fmt: skip


def _change(found: EntryInPoint, before: EntryInPoint | None, *, last: bool) -> tuple[str, str]:
    if not found.listed:
        return "unknown", "this point has no list of its files"
    if before is None and not last:
        return ("unknown", "the point before it is not read yet") if found.entry else ("missing", "not in this point")
    if found.entry is None:
        return ("gone", "it was there before") if before and before.entry else ("missing", "not in this point")
    if before is None:
        return "new", "the oldest point that there is"
    if not before.listed:
        return "unknown", "the point before it has no list of its files"
    if before.entry is None:
        return "new", "not in the point before"
    parts = changed_parts(EntryChange(before=before.entry, after=found.entry))
    if not parts and found.entry.kind == "file" and not (found.entry.digest and before.entry.digest):
        return "unknown", "size and time are the same; contents were not read"
    return ("different", ", ".join(parts)) if parts else ("same", "as in the point before")


def crumbs(job: str, point: str, path: bytes) -> tuple[Crumb, ...]:
    """Return the folders from the point itself down to a path."""
    parts = path.split(b"/") if path else []
    below = [
        Crumb(name=show_name(part), address=point_address(job, point, b"/".join(parts[: at + 1])))
        for at, part in enumerate(parts)
    ]
    return (Crumb(name=point, address=point_address(job, point)), *below)


def restore_commands(
    repeat: Callable[[str], str], job: str, point: str, paths: Sequence[bytes]
) -> tuple[str, ...]:  # fmt: skip
    """Return the commands that bring paths back to a place aside. `repeat`: adds the directories of this configuration."""
    return tuple(_restore(repeat, job, point, path.decode("utf-8", "surrogateescape")) for path in paths)


def restore_plans(repeat: Callable[[str], str], job: str, point: str, paths: Sequence[bytes]) -> tuple[str, ...]:
    """Return the commands that show what would bring paths back, and change nothing."""
    return tuple(_restore(repeat, job, point, path.decode("utf-8", "surrogateescape"), "plan") for path in paths)


def _restore(repeat: Callable[[str], str], job: str, point: str, path: str, word: str = "run") -> str:
    return repeat(f"restore {word} {job} --point {point} --path={quoted(path)} --to {quoted(f'{ASIDE}/{path}')}")
