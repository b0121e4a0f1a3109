"""What a person asks a restore for. Pure."""

from datetime import datetime

from orchestrator.domain.place import Location
from orchestrator.domain.quick import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """`path`: below the point, b"" all of it; `content`: what came back is read again, where guids would prove it."""

    to: Location
    path: bytes = b""
    point: str | None = None
    at: datetime | None = None
    aside: bool = False
    content: bool = False
