"""Folders of a restore point, found at once: an index of its manifest, made when somebody first looks into the point.

The manifest is read once as a stream, and its lines are written anew into an unnamed file, those of one folder side by side; in memory
stay only the names of the folders, each with the place of its lines. What is shown comes from a manifest that was whole.
"""

import mmap
import os
import re
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import IO

from orchestrator.app.point_contents import manifest_entry, open_points
from orchestrator.app.settings import Settings
from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import show_name
from orchestrator.domain.point_contents import PointEntry
from orchestrator.verify.manifest import read_rows, row_entry

_KEPT = 2  # indexes; one of a million entries takes 150 MB of disk and some memory
_TYPE = 1  # column


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderPage:
    """A part of a folder, its folders first. `total`: entries of the whole folder."""

    entries: tuple[PointEntry, ...]
    total: int


class _OpenFolder:
    """A folder whose lines are being read. `listed`: its own line was among them."""

    __slots__ = ("lines", "listed", "name")

    def __init__(self, *, name: bytes, listed: bool = False) -> None:
        self.name, self.listed = name, listed
        self.lines: list[bytes] = []


class PointIndex:
    """The index of one manifest. Threads may share it."""

    def __init__(self, manifest: str) -> None:
        """Read a manifest to its end. Raises: VerificationFailed · OSError."""
        self._manifest = manifest
        self._folders: dict[bytes, tuple[int, int]] = {}
        with tempfile.TemporaryFile() as file:
            self.entries = self._write(file)
            file.flush()
            self._lines = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if file.tell() else b""

    def _write(self, file: IO[bytes]) -> int:
        """Write the lines of each folder when it ends; return the number of entries.

        Source: the order of a manifest (verify/entry): all below a folder comes in a row, and the folder itself among it, as a name that
        begins with "-" or "." comes before it.
        """
        opened, entries = [_OpenFolder(name=b"", listed=True)], 0
        for name, row in read_rows(self._manifest):
            if not name:
                continue
            folder = row[_TYPE] == b"d"
            self._enter(file, opened, name if folder else name.rpartition(b"/")[0])
            if folder:
                opened[-1].listed = True
            opened[-2 if folder else -1].lines.append(b"\t".join(row))
            entries += 1
        for each in reversed(opened):
            self._end(file, each)
        return entries

    def _enter(self, file: IO[bytes], opened: "list[_OpenFolder]", path: bytes) -> None:
        """Make a folder the innermost open one: end those that it does not lie in, and open those that lead to it."""
        while (name := opened[-1].name) and name != path and not path.startswith(name + b"/"):
            self._end(file, opened.pop())
        if path != name:
            for part in path[len(name) :].strip(b"/").split(b"/"):
                name = name + b"/" + part if name else part
                opened.append(_OpenFolder(name=name))

    def _end(self, file: IO[bytes], folder: "_OpenFolder") -> None:
        if not folder.listed:
            raise VerificationFailed(
                f"{self._manifest}: the manifest is damaged: it lists what lies in {show_name(folder.name)}, and no such folder",
                hint="bring the manifest back from another place, if there is one",
            )
        folder.lines.sort(key=_is_no_folder)
        text = b"".join(line + b"\n" for line in folder.lines)
        self._folders[folder.name] = (file.tell(), len(text))
        file.write(text)

    def folder(self, path: bytes, first: int, count: int) -> FolderPage | None:
        """Return a part of a folder; None when the point has no such folder."""
        place = self._folders.get(path)
        if place is None:
            return None
        lines = self._lines[place[0] : place[0] + place[1]].split(b"\n")[:-1]
        return FolderPage(entries=tuple(map(self._entry, lines[first : first + count])), total=len(lines))

    def find(self, text: str, most: int) -> tuple[PointEntry, ...]:
        """Return the first entries whose own name holds a text, in any case of its letters."""
        sought = re.compile(re.escape(os.fsencode(text)), re.IGNORECASE)
        return tuple(self._found(sought, most))

    def _found(self, sought: "re.Pattern[bytes]", most: int) -> Iterator[PointEntry]:
        at = 0
        while most and (found := sought.search(self._lines, at)):
            begin = self._lines.rfind(b"\n", 0, found.start()) + 1
            end = self._lines.find(b"\n", found.start())
            entry = self._entry(self._lines[begin:end])
            at = end + 1
            if sought.search(entry.path.rpartition(b"/")[2]):
                most -= 1
                yield entry

    def _entry(self, line: bytes) -> PointEntry:
        return manifest_entry(row_entry(self._manifest, line.split(b"\t")))


def _is_no_folder(line: bytes) -> bool:
    """Return True for what is no folder. A digest holds no TAB, so the type is the second word."""
    at = line.index(b"\t") + 1
    return line[at : at + 2] != b"d\t"


class PointIndexCache:
    """The newest indexes, made one at a time. `make`: makes the index of a point of a job."""

    def __init__(self, make: Callable[[str, str], PointIndex]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], PointIndex] = OrderedDict()

    def get(self, job: str, point: str) -> PointIndex:
        """Return the index of a point. Why by its name alone: a published point never changes."""
        with self._lock:
            found = self._known.pop((job, point), None) or self._make(job, point)
            self._known[job, point] = found
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
            return found


def index_point(settings: Settings, job: str, point: str) -> PointIndex:
    """Make the index of a point of a job. Raises: OrchestratorError · OSError."""
    with open_points(settings, job, "poolferry web") as points:
        return PointIndex(points.manifest(point))
