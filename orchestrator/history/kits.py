"""Recovery kits in the history: the newest one of each job's source."""

from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.kit import KitContents
from orchestrator.history.database import Database, Row, parse_stored


@dataclass(frozen=True, slots=True, kw_only=True)
class KitRecord:
    """A recovery kit and its time."""

    made_at: datetime
    kit: KitContents


class KitHistory:
    """Records of recovery kits. Every method raises HistoryError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, job: str) -> KitRecord | None:
        """Return the newest kit of a job's source; None when there is none yet."""
        return self._database.value("kit", _record, job=job)

    def keep(self, job: str, kit: KitContents, now: datetime) -> None:
        """Record this kit as the newest one."""
        self._database.change(
            "keep_kit", job=job, now=now, content=kit.content, layout=kit.layout, recovery=kit.recovery, guids=kit.guids
        )


def _record(row: Row) -> KitRecord:
    if not isinstance(parse_stored(row["content"]), dict):
        raise ValueError("content is no kit")
    words = {name: str(row[name]) for name in ("content", "layout", "recovery", "guids")}
    return KitRecord(made_at=row["made_at"], kit=KitContents(**words))
