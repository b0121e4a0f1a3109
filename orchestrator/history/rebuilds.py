"""Pools that are being made anew: what has to be remembered while they are gone."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.history.database import Door


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """A pool on its way. `top_guid`: of its own dataset as it was; `lost`: what may be lost; `kits`: by job, as it was then."""

    id: int
    begun_at: datetime
    top_guid: int | None
    lost: tuple[str, ...]
    kits: Mapping[str, str]


class Rebuilds:
    """What is kept of them. Every method raises HistoryError."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def of(self, pool: str) -> Rebuild | None:
        """The one that has not ended; None: there is none."""
        row = self._door.first("open_rebuild", pool=pool)
        if row is None:
            return None
        guid = str(row["top_guid"])
        return Rebuild(
            id=row["id"], begun_at=row["begun_at"], top_guid=int(guid) if guid else None,
            lost=tuple(json.loads(row["lost"])), kits=json.loads(str(row["kits"])),
        )  # fmt: skip

    def keep(
        self, pool: str, *, top_guid: int | None, lost: Sequence[str], kits: Mapping[str, str], now: datetime
    ) -> None:
        """The pool may go; said again before it went, this is what holds."""
        told = {
            "top_guid": "" if top_guid is None else str(top_guid),
            "lost": json.dumps(list(lost)),
            "kits": json.dumps(dict(kits)),
        }
        with self._door.together():
            known = self.of(pool)
            if known is None:
                self._door.add("begin_rebuild", pool=pool, now=now, **told)
            else:
                self._door.change("renew_rebuild", rebuild=known.id, now=now, **told)

    def end(self, pool: str, now: datetime) -> None:
        """All of it is back."""
        known = self.of(pool)
        if known is not None:
            self._door.change("end_rebuild", rebuild=known.id, now=now)
