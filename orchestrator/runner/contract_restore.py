"""What an engine of datasets promises that can bring its copies back; the contract of all engines is in their own room."""

from typing import Any, Protocol, runtime_checkable

from orchestrator.domain.dataset_restore import Chain, Return, Shown, Wished
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import Point
from orchestrator.engines.contract import Asked, Comparison
from orchestrator.process.executor import Reader


@runtime_checkable
class Returner(Protocol):
    """An engine whose copies come back the way they went; what was cut goes on, and each part is told by a look of its own."""

    def survey_return(self, job: Job, wished: Wished, asked: Asked, reader: Reader, *, content: bool) -> Any:
        """Copy and destination as they are now."""
        ...

    def plan_return(self, seen: Any, asked: Asked) -> Return:
        """What comes next."""
        ...

    def plan_return_proof(self, seen: Any, asked: Asked) -> Comparison | Refusal:
        """What came back beside the copy; with contents, where the look asked for them."""
        ...

    def survey_owners(self, kit: str, to: Location, reader: Reader) -> tuple[str, ...]:
        """Lines for accounts that have another number where data return than a kit tells, each with its cure."""
        ...

    def survey_files(self, job: Job, path: bytes, point: Point, reader: Reader) -> Shown | Refusal:
        """Where the files below a path are, as of a point."""
        ...

    def chain(self, world: Any) -> Chain:
        """What the next run goes on from."""
        ...
