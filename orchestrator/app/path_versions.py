"""One path in all restore points of a job, side by side; in parts, as the manifests of many points take long to read."""

from collections.abc import Iterable

from orchestrator import compose
from orchestrator.app.point_contents import open_points
from orchestrator.app.settings import Settings
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.point_contents import EntryInPoint

_BUDGET_S = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PathVersions:
    """A path in points, the newest first. `older`: the point before which the next part begins; None: all were read."""

    found: tuple[EntryInPoint, ...]
    older: str | None


def list_path_versions(settings: Settings, job: str, path: bytes, before: str | None) -> PathVersions:
    """Return what the points of a job hold at a path, as many as can be read in some seconds. Raises: OrchestratorError."""
    with open_points(settings, job, "poolferry web") as points:
        return read_versions(points.newest_first(path, before))


def read_versions(entries: Iterable[EntryInPoint]) -> PathVersions:
    """Return the entries that come within the time of one page; one at least."""
    found, until = list[EntryInPoint](), compose.monotonic() + _BUDGET_S
    for each in entries:
        if found and compose.monotonic() > until:
            return PathVersions(found=tuple(found), older=found[-1].point.name)
        found.append(each)
    return PathVersions(found=tuple(found), older=None)
