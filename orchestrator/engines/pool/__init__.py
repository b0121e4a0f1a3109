"""pool: watches one pool and scrubs it; it copies nothing, so its jobs have no target."""

from collections.abc import Iterable
from typing import Any, NoReturn

from orchestrator.domain.changes import Changes
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job, VerifyRules
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision, Plan, Proof, Step
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.contract import (
    DestinationSurvey,
    ManifestCounts,
    ProgressMeter,
    RestoreRequest,
    RunRequest,
    SkippedEntries,
    SystemCheckResult,
)
from orchestrator.engines.pool import errors as failures
from orchestrator.engines.pool.model import PoolSurvey, ScrubState
from orchestrator.engines.pool.options import PoolOptions, mistakes
from orchestrator.engines.pool.survey import confirm_scrub, survey, survey_pool
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed


class ScrubMeter:
    """A meter that counts nothing: a scrub moves no bytes."""

    expected = None

    def feed(self, chunk: bytes) -> int | None:
        return None

    def heard(self, chunk: bytes) -> None:
        return None

    def passed(self, count: int) -> int:
        return count

    def moved(self) -> int | None:
        return None


class PoolEngine:
    """The pool engine, which implements the contract. Its one "point" is the pool itself, when last found healthy."""

    name = "pool"
    options: type = PoolOptions
    wants_datasets = True
    stays = True
    without: tuple[str, ...] = (
        "keep", "snapshots", "verify", "guard", "drill", "pipe.buffer", "pipe.public-transport", "pipe.rate-limit", "pipe.transport",
    )  # fmt: skip
    guards: tuple[str, ...] = ()
    later: tuple[str, ...] = ("orchestrator.engines.pool.plan",)

    def mistakes(
        self, options: Any, source: Location, target: Location, verify: VerifyRules
    ) -> Iterable[tuple[str, str, str]]:
        return mistakes(options, source, target, verify)

    def lands(self, options: Any, source: Location, place: Location) -> Location:
        return source

    def advise(self, job: Job, reader: Reader) -> tuple[SystemCheckResult, ...]:
        from orchestrator.engines.pool.system_check import check_system

        return check_system(job, reader)

    def survey(self, job: Job, request: RunRequest, reader: Reader) -> PoolSurvey:
        return survey(job, reader)

    def changes(self, world: PoolSurvey) -> Changes | None:
        return None

    def newest(self, world: PoolSurvey) -> RestorePoint | None:
        return _point(world)

    def ground(self, world: PoolSurvey) -> tuple[str, bool]:
        return world.guid, True

    def plan(self, job: Job, world: PoolSurvey, request: RunRequest) -> Decision:
        from orchestrator.engines.pool.plan import plan

        return plan(job, world, request)

    def weigh(self, plan: Plan, reader: Reader) -> Plan:
        return plan

    def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
        return (_point(survey_pool(job.source, reader)),)

    def plan_removal(self, job: Job, names: tuple[str, ...], reasons: tuple[str, ...]) -> tuple[Step, ...]:
        _refuse()

    def survey_restore(self, job: Job, wanted: RestoreRequest, reader: Reader) -> DestinationSurvey:
        _refuse()

    def plan_restore(self, job: Job, wanted: RestoreRequest, seen: DestinationSurvey, *, aside: str | None) -> Plan:
        _refuse()

    def meter(self) -> ScrubMeter:
        return ScrubMeter()

    def left_out(self, broken: PipelineFailed, errors: Iterable[bytes], job: Job) -> SkippedEntries | None:
        return None

    def explain(self, broken: PipelineFailed) -> OrchestratorError:
        return failures.explain(broken)

    def space(self, world: PoolSurvey) -> str:
        return ""

    def confirm(
        self,
        proofs: tuple[Proof, ...],
        meters: tuple[ProgressMeter, ...],
        left_out: tuple[SkippedEntries, ...],
        recorded: ManifestCounts | None,
        reader: Reader,
    ) -> None:
        for proof in proofs:
            if isinstance(proof, ScrubState):
                confirm_scrub(proof, reader)


def _point(world: PoolSurvey) -> RestorePoint:
    return RestorePoint(name=world.root.path, taken=world.at, tree=world.root, manifest=None)


def _refuse() -> NoReturn:
    raise OrchestratorError(
        "this job watches a pool and copies nothing, so there is nothing to bring back, to read or to remove",
        hint="`zpool scrub` reads all data of a pool; a job of the engine zfs or rsync makes copies",
    )


ENGINE = PoolEngine()
