"""pool: watches one pool and scrubs it; it copies nothing, so its jobs have no target."""

from collections.abc import Iterable
from typing import Any

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job, VerifyRules
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.scrub import PoolScrub
from orchestrator.domain.source_identity import SOURCE_IDENTITY, SourceIdentity
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.contract.engine import (
    RunRequest,
    StageResults,
    SystemCheckResult,
)
from orchestrator.engines.pool import errors as failures
from orchestrator.engines.pool.model import PoolSurvey, ScrubState
from orchestrator.engines.pool.options import PoolOptions, mistakes
from orchestrator.engines.pool.survey import confirm_scrub, survey, survey_pool, survey_scrub
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed


class PoolEngine:
    """The pool engine, which implements the contract. Its one "point" is the pool itself, when last found healthy."""

    name = "pool"
    options: type = PoolOptions
    needs_datasets = True
    stays = True
    without: tuple[str, ...] = (
        "keep", "snapshots", "verify", "guard", "drill", "pipe.buffer", "pipe.public-transport", "pipe.rate-limit", "pipe.transport",
    )  # fmt: skip
    guards: tuple[str, ...] = ()
    no_files = (
        "this job watches a pool and copies nothing, so there is nothing to bring back, to read or to remove",
        "`zpool scrub` reads all data of a pool; a job of the engine zfs or rsync makes copies",
    )

    def mistakes(
        self, options: Any, source: SourceTree, target: Location, verify: VerifyRules
    ) -> Iterable[tuple[str, str, str]]:
        return mistakes(options, source, target, verify)

    def lands(self, options: Any, source: Location, place: Location) -> Location:
        return source

    def advise(self, job: Job, reader: Reader) -> tuple[SystemCheckResult, ...]:
        from orchestrator.engines.pool.system_check import check_system

        return check_system(job, reader)

    def survey(self, job: Job, request: RunRequest, reader: Reader) -> PoolSurvey:
        return survey(job, reader, known=request.remembered.get(SOURCE_IDENTITY, ""))

    def identity(self, world: PoolSurvey) -> str:
        """Return the identity of the pool by its guid; a pool that is watched has no dataset of its own to be known by."""
        return (
            str(SourceIdentity(dataset=0, pool=int(world.guid), root=str(world.root))) if world.guid.isdecimal() else ""
        )

    def identity_of_kit(self, content: str) -> str:
        return ""

    def waiting(self, world: PoolSurvey) -> tuple[str, ...]:
        return ()

    def later(self, request: RunRequest) -> tuple[str, ...]:
        return ("orchestrator.engines.pool.plan",)

    def plan(self, job: Job, world: PoolSurvey, request: RunRequest) -> Decision:
        from orchestrator.engines.pool.plan import plan

        return plan(job, world, request)

    def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
        return (_point(survey_pool(job.source, reader)),)

    def survey_scrub(self, pool: Location, reader: Reader) -> PoolScrub | None:
        return survey_scrub(pool, reader)

    def explain(self, broken: PipelineFailed) -> OrchestratorError:
        return failures.explain(broken)

    def confirm(self, stage: StageResults, reader: Reader) -> None:
        for confirmation in stage.confirmations:
            if isinstance(confirmation, ScrubState):
                confirm_scrub(confirmation, reader)


def _point(world: PoolSurvey) -> RestorePoint:
    return RestorePoint(name=world.root.path, taken=world.at, tree=world.root, manifest=None)


ENGINE = PoolEngine()
