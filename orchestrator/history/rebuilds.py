"""Pools that are being recreated: facts to remember while the pools are gone."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from orchestrator.domain.answers import parse_guid
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.history.columns import needed
from orchestrator.history.database import Database, Row, decode_list, parse_stored


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRebuild:
    """A pool being recreated. `top_guid`: of its old own dataset; `lost`: what may be lost; `kits`: old kits, by job."""

    id: int
    begun_at: datetime
    top_guid: int | None
    lost: tuple[str, ...]
    kits: Mapping[str, str]


class RebuildHistory:
    """Records of pool rebuilds. Every method raises HistoryError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, pool: str) -> PoolRebuild | None:
        """Return the rebuild of a pool that has not ended; None when there is none."""
        return self._database.value("open_rebuild", _rebuild, pool=pool)

    def keep(
        self, pool: str, *, top_guid: int | None, lost: Sequence[str], kits: Mapping[str, str], now: datetime
    ) -> None:
        """Record that the pool may be destroyed; a repeated call before that replaces the record."""
        told = {
            "top_guid": "" if top_guid is None else str(top_guid),
            "lost": json.dumps(list(lost)),
            "kits": json.dumps(dict(kits)),
        }
        with self._database.together():
            known = self.of(pool)
            if known is None:
                self._database.add("begin_rebuild", pool=pool, now=now, **told)
            else:
                self._database.change("renew_rebuild", rebuild=known.id, now=now, **told)

    def end(self, pool: str, now: datetime) -> None:
        """Record that all of the pool is restored."""
        known = self.of(pool)
        if known is not None:
            self._database.change("end_rebuild", rebuild=known.id, now=now)


def _guid(text: str) -> int | None:
    return parse_guid(text) if text else None


def _rebuild(row: Row) -> PoolRebuild:
    needed(row, "begun_at")
    kits = parse_stored(row["kits"])
    if not all(isinstance(kit, str) for kit in kits.values()):
        raise ValueError("kits without their contents")
    return PoolRebuild(
        id=row["id"], begun_at=row["begun_at"], top_guid=_guid(row["top_guid"]),
        lost=decode_list(row["lost"]), kits=kits,
    )  # fmt: skip
