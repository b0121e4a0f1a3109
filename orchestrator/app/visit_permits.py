"""The permits of a visit: all that its jobs need are lent together before the disk is attached, and given back once it was let go.

Until then the disk may be unplugged, and nothing of it is held. Why together: jobs of a visit run one after the other on one disk, and
two hosts that each held one limit and waited for the other's would wait for ever. The first run of the visit waits: it says so, is
seen in `poolferry status`, and can be stopped.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Self

from orchestrator.domain.errors import NotNow
from orchestrator.domain.permit import PermitRequest, RunVoice, join_requests
from orchestrator.planners.identify_disk import VisitResult
from orchestrator.process.stop import StopRequest
from orchestrator.runner.disk.state import job_on_disk
from orchestrator.runner.disk.visit import AttachedDisk

if TYPE_CHECKING:
    from orchestrator.app.permits import CentrePermits
    from orchestrator.domain.job import Job
    from orchestrator.domain.run import RunReport
    from orchestrator.planners.identify_disk import IdentifiedDevice

    Lend = Callable[[RunVoice], AbstractContextManager[None]]
    LendOf = Callable[[Job, CentrePermits, StopRequest], Lend | None]
    Lending = Callable[[LendOf], AbstractContextManager[None]]

Begin = Callable[[], AttachedDisk | VisitResult]


class VisitPermits:
    """The permits of the jobs of one visit. Use as a context manager that is left once the disk was let go."""

    def __init__(self, lending: "Lending", jobs: "Sequence[Job]") -> None:
        """Take what these jobs need. `lending`: of the session that runs them; `jobs`: at least one of them needs a permit."""
        self._lending, self._jobs = lending, frozenset(job.name for job in jobs)
        self._request: PermitRequest = join_requests([job.permit for job in jobs if job.permit])
        self._held, self._lent = ExitStack(), False
        self._begin: Begin | None = None
        self.begun: AttachedDisk | VisitResult | None = None
        self.first = ""  # the name of the job that began the visit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def first_run(
        self, job: "Job", found: "IdentifiedDevice", begin: Begin, do: "Callable[[Job], RunReport]"
    ) -> "RunReport":
        """Run the first job of a visit: once its permits are lent, `begin` attaches the disk. `begun` then says what became of that.

        `do`: runs the job in the session, placed on the disk.
        """
        if found.disk is None:
            raise ValueError(found.state)
        self.first, self.begun, self._begin = job.name, None, begin
        with self._lending(self._lend_of):
            report = do(job_on_disk(job, found.disk, found.device.name))
        self._note(report)
        return report

    def _note(self, report: "RunReport") -> None:
        if isinstance(self.begun, AttachedDisk):
            self.begun.reports.append(report)

    def run(self, job: "Job", attached: AttachedDisk, do: "Callable[[Job], RunReport]") -> "RunReport | None":
        """Run another job of the visit; one whose permits are not among those that are held asks for its own."""
        with self._lending(self._lend_of):
            return attached.run(job, do)

    def _lend_of(self, job: "Job", lender: "CentrePermits", stop: StopRequest) -> "Lend | None":
        """Return what a run of the visit enters in place of its own permit; None: its own."""
        if self._begin is not None:
            return lambda voice: self._lent_and_attached(job, lender, voice, stop)
        return (lambda _: nullcontext()) if job.name in self._jobs else None

    @contextmanager
    def _lent_and_attached(
        self, job: "Job", lender: "CentrePermits", voice: RunVoice, stop: StopRequest
    ) -> Iterator[None]:
        if not self._lent:
            self._held.enter_context(lender.hold(job.name, self._request, voice, stop))
            self._lent = True
        begin, self._begin = self._begin, None
        if begin is None:
            raise AssertionError("a visit begins once")
        self.begun = begin()
        if isinstance(self.begun, VisitResult):
            raise NotNow(self.begun.why, hint=self.begun.hint)
        self.begun.prepare_first(job)
        yield
