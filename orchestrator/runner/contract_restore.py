"""The interface of a dataset engine that can restore its copies; the contract of all engines is in their own package."""

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
    """An engine that can send its copies back; interrupted parts are resumed, and each part follows from its own survey."""

    def survey_return(self, job: Job, wished: Wished, asked: Asked, reader: Reader, *, content: bool) -> Any:
        """Return a survey of copy and destination."""
        ...

    def plan_return(self, seen: Any, asked: Asked) -> Return:
        """Decide the next part."""
        ...

    def plan_return_proof(self, seen: Any, asked: Asked) -> Comparison | Refusal:
        """Plan the comparison of restored data with the copy; with contents, if the survey requested them."""
        ...

    def survey_owners(self, kit: str, to: Location, reader: Reader) -> tuple[str, ...]:
        """Return lines for accounts with another number at the destination than in a kit, each with its hint."""
        ...

    def survey_files(self, job: Job, path: bytes, point: Point, reader: Reader) -> Shown | Refusal:
        """Return the location of the files below a path, as of a point."""
        ...

    def chain(self, world: Any) -> Chain:
        """Return the state from which the next run continues."""
        ...
