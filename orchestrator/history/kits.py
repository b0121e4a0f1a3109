"""Recovery kits in the history: of each job's source the newest one."""

from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.kit import Kit
from orchestrator.history.database import Door


@dataclass(frozen=True, slots=True, kw_only=True)
class KitRecord:
    """A kit, and of when it is."""

    made_at: datetime
    kit: Kit


class Kits:
    """What is kept of kits. Every method raises HistoryError."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def of(self, job: str) -> KitRecord | None:
        """The newest kit of a job's source; None: there was none yet."""
        row = self._door.first("kit", job=job)
        if row is None:
            return None
        words = {name: str(row[name]) for name in ("content", "layout", "recovery", "guids")}
        return KitRecord(made_at=row["made_at"], kit=Kit(**words))

    def keep(self, job: str, kit: Kit, now: datetime) -> None:
        """From now on this is the newest one."""
        self._door.change(
            "keep_kit", job=job, now=now, content=kit.content, layout=kit.layout, recovery=kit.recovery, guids=kit.guids
        )
