"""The request of a person for a restore."""

from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """The request for a restore. `path`: below the point, b"" all of it; `content`: verify contents, not only guids.

    `owners`: warn of accounts whose numbers have changed; False when the caller compares them itself. `stays`: mount
    points whose filesystem was restored separately, so that files of the point are not restored into it. `lost_keys`: datasets whose keys are lost.
    """

    to: Location
    path: bytes = b""
    point: str | None = None
    at: datetime | None = None
    aside: bool = False
    content: bool = False
    stays: tuple[str, ...] = ()
    owners: bool = True
    lost_keys: tuple[str, ...] = ()


def restore_reason(path: bytes, to: Location) -> str:
    """Return the reason of a restore for its record."""
    return f"restore {f'{show_name(path)} ' if path else ''}to {to}"
