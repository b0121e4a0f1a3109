"""What is mounted below a folder into which files shall return."""

from collections.abc import Iterator, Sequence

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounted:
    """One place. `path`: below the folder; `full`: files lie in it; `wanted`: the point holds something below that path."""

    path: bytes
    full: bool
    wanted: bool


def outermost(paths: Sequence[bytes]) -> Iterator[bytes]:
    """The paths that lie below no other one of them, in order."""
    last = b""
    for path in sorted(set(paths), key=lambda each: each + b"/"):
        if not last or not path.startswith(last + b"/"):
            last = path
            yield path


def leads_to(path: bytes, mounts: Sequence[bytes]) -> bool:
    """Whether a path is such a place, or lies above one."""
    return any(each == path or each.startswith(path + b"/") for each in mounts)
