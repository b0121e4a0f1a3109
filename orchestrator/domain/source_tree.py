"""The source of a job: one folder with all in it, or several folders that one restore point holds by their whole paths."""

from collections.abc import Sequence

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Host, Location


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTree:
    """A root, and the folders below it that are copied. `parts`: their paths below the root; empty: all of it.

    Why the root of several is always `/`: a folder that is added or taken away moves no other one inside the copies.
    """

    root: Location
    parts: tuple[str, ...] = ()

    @property
    def folders(self) -> tuple[Location, ...]:
        """Return the folders that are copied with all in them."""
        return tuple(self.root / part for part in self.parts) or (self.root,)

    @property
    def above(self) -> tuple[str, ...]:
        """Return the paths of the folders between the root and the parts, outermost first: of `srv/www` it is `srv`."""
        found = {
            "/".join(each[:depth])
            for part in self.parts
            for each in (part.split("/"),)
            for depth in range(1, len(each))
        }
        return tuple(sorted(found, key=lambda path: (path.count("/"), path)))

    @property
    def tops(self) -> tuple[bytes, ...]:
        """Return the paths that a copy must hold as folders: of the parts and of those above; empty for a whole root."""
        return tuple(each.encode("utf-8", "surrogateescape") for each in (*self.above, *self.parts))

    def group_of(self, path: bytes) -> bytes:
        """Return the folder in whose counts a path belongs: its part, or its top folder; empty for what lies in none."""
        if not self.parts:
            top, slash, _ = path.partition(b"/")
            return top if slash else b""
        parts = (part.encode("utf-8", "surrogateescape") for part in self.parts)
        return next((part for part in parts if path.startswith(part + b"/")), b"")

    def __str__(self) -> str:
        return ", ".join(map(str, self.folders))


def join_folders(folders: Sequence[Location]) -> SourceTree:
    """Return the tree of several folders of one machine, in the order written. Raises: ValueError(mistake, expected value, the folder's number)."""
    whole: dict[str, None] = {}
    hosts: list[Host | None] = []
    for number, folder in enumerate(folders):
        path = folder.path
        if path == "/":
            raise ValueError('"/" holds all the others', 'source = "/", or the folders in it', number)
        if {"", ".", ".."} & set(path.split("/")[1:]):
            raise ValueError(f'"{path}" is no plain path', 'a path without "//", "." and ".."', number)
        if path in whole:
            raise ValueError(f'"{folder}" is named twice', "each folder once", number)
        whole[path] = None
        hosts.append(folder.host)
    for number, host in enumerate(hosts):
        if host != hosts[0]:
            told = f"{hosts[0] or 'this machine'} and {host or 'this machine'}"
            raise ValueError(
                f"holds folders of two machines: {told}",
                "folders of one machine, by one user; else a job for each",
                number,
            )
    for number, path in enumerate(whole):
        if outer := next((each for each in whole if path.startswith(each + "/")), None):
            raise ValueError(
                f'"{path}" lies inside "{outer}", which is copied with all in it', "only the outer one", number
            )
    return SourceTree(root=Location(path="/", host=hosts[0]), parts=tuple(path[1:] for path in whole))
