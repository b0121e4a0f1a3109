"""Mount points below a folder into which files are restored."""

from collections.abc import Iterator, Sequence

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MountPoint:
    """One mount point. `path`: below the folder; `full`: files lie there; `wanted`: the point has entries below it."""

    path: bytes
    full: bool
    wanted: bool


def outermost_paths(paths: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the paths that lie below no other one, in order."""
    last = b""
    for path in sorted(set(paths), key=lambda each: each + b"/"):
        if not last or not path.startswith(last + b"/"):
            last = path
            yield path


def leads_to_mount(path: bytes, mounts: Sequence[bytes]) -> bool:
    """Return True when a path is a mount point, or lies above one."""
    return any(each == path or each.startswith(path + b"/") for each in mounts)
