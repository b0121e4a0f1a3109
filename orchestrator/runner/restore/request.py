"""The request of a person for a restore."""

from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """The request for a restore. `path`: below the point, b"" all of it; `content`: verify contents, not only guids.

    `owners`: accounts that have other numbers than they had are warned of; whoever compares with the kit tells them himself.
    `stays`: folders in which something is mounted that came back by itself, so that files of the point for it do not.
    """

    to: Location
    path: bytes = b""
    point: str | None = None
    at: datetime | None = None
    aside: bool = False
    content: bool = False
    stays: tuple[str, ...] = ()
    owners: bool = True


def restore_reason(path: bytes, to: Location) -> str:
    """Return the reason of a restore for its record."""
    return f"restore {f'{show_name(path)} ' if path else ''}to {to}"
