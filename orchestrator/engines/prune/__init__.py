"""prune: removes points that other machines put here through a gate, by this machine's own rules; it copies nothing."""

from collections.abc import Iterable
from typing import Any

from orchestrator.domain.arrival import ARRIVAL_GUARDS, ArrivalRules, ReceivedPoint
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job, VerifyRules
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.source_identity import SOURCE_IDENTITY, SourceIdentity
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.contract.engine import RunRequest, StageResults, SystemCheckResult
from orchestrator.engines.prune import errors as failures
from orchestrator.engines.prune.model import PruneSurvey, SnapshotsGone
from orchestrator.engines.prune.options import mistakes, options_of
from orchestrator.engines.prune.survey import confirm_gone, survey, survey_source
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed


class PruneEngine:
    """The prune engine, which implements the contract. Its one "point" is the dataset or folder itself, when last found in order."""

    name = "prune"
    options: type = ArrivalRules
    needs_datasets = True
    stays = True
    without: tuple[str, ...] = ("snapshots", "verify", "guard", "drill", "pipe")
    guards: tuple[str, ...] = ARRIVAL_GUARDS
    no_files = (
        "this job only removes what others sent here and nobody needs any more: it makes no copy",
        "the machine that sent it brings it back with `poolferry restore`; or `zfs clone` a snapshot, or copy out of a point, here",
    )

    def mistakes(
        self, options: Any, source: SourceTree, target: Location, verify: VerifyRules
    ) -> Iterable[tuple[str, str, str]]:
        return mistakes(options, source, target, verify)

    def lands(self, options: Any, source: Location, place: Location) -> Location:
        return source

    def advise(self, job: Job, reader: Reader) -> tuple[SystemCheckResult, ...]:
        from orchestrator.engines.prune.system_check import check_system

        return check_system(job, reader)

    def survey(self, job: Job, request: RunRequest, reader: Reader) -> PruneSurvey:
        return survey_source(job, reader, known=request.remembered.get(SOURCE_IDENTITY, ""))

    def identity(self, world: PruneSurvey) -> str:
        """Return the identity of the dataset by its guid; of a folder there is none."""
        return str(SourceIdentity(dataset=world.guid, pool=0, root=str(world.root))) if world.guid else ""

    def identity_of_kit(self, content: str) -> str:
        return ""

    def waiting(self, world: PruneSurvey) -> tuple[str, ...]:
        return ()

    def later(self, request: RunRequest) -> tuple[str, ...]:
        return ("orchestrator.engines.prune.plan",)

    def plan(self, job: Job, world: PruneSurvey, request: RunRequest) -> Decision:
        from orchestrator.engines.prune.plan import plan

        return plan(job, world, request)

    def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
        world = survey(job.source, reader)
        return (RestorePoint(name=world.root.path, taken=world.at, tree=world.root, manifest=None),)

    def explain(self, broken: PipelineFailed) -> OrchestratorError:
        return failures.explain(broken)

    def confirm(self, stage: StageResults, reader: Reader) -> None:
        gone = [confirmation for confirmation in stage.confirmations if isinstance(confirmation, SnapshotsGone)]
        if gone:
            guids = frozenset[tuple[str, str]]().union(*(each.guids for each in gone))
            confirm_gone(SnapshotsGone(root=gone[0].root, guids=guids), reader)

    def arrival_rules(self, job: Job) -> ArrivalRules:
        return options_of(job)

    def received_points(self, world: PruneSurvey) -> tuple[ReceivedPoint, ...]:
        return world.points


ENGINE = PruneEngine()
