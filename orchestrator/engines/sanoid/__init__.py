"""sanoid: takes snapshots of datasets by rules, and removes those that no rule keeps; alone, or around zfs copies."""

from collections.abc import Iterable
from typing import Any

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job, SnapshotRules, VerifyRules
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision, Step
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.source_identity import SOURCE_IDENTITY, SourceIdentity, is_made_anew
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.contract.engine import RunRequest, SystemCheckResult
from orchestrator.engines.sanoid import errors as failures
from orchestrator.engines.sanoid import parse
from orchestrator.engines.sanoid.model import SanoidSurvey
from orchestrator.engines.sanoid.options import SanoidOptions, mistakes, snapshot_mistakes
from orchestrator.engines.sanoid.survey import survey
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed


class SanoidEngine:
    """The sanoid engine, which implements the contract, for snapshot-only jobs and for runs of other engines' jobs."""

    name = "sanoid"
    options: type = SanoidOptions
    needs_datasets = True
    stays = True
    without: tuple[str, ...] = ("pipe.buffer", "pipe.public-transport", "pipe.rate-limit", "pipe.transport")
    guards: tuple[str, ...] = ()
    no_files = (
        "this job only takes snapshots, where the data is: there is no copy to bring back",
        "look into .zfs/snapshot at the dataset's own mountpoint, or `zfs clone` a snapshot beside it",
    )

    def mistakes(
        self, options: Any, source: SourceTree, target: Location, verify: VerifyRules
    ) -> Iterable[tuple[str, str, str]]:
        return mistakes(options, source, target, verify)

    def lands(self, options: Any, source: Location, place: Location) -> Location:
        return source

    def snapshot_mistakes(
        self, snapshots: SnapshotRules, source: Location, copy: Location | None
    ) -> Iterable[tuple[str, str, str]]:
        return snapshot_mistakes(snapshots, source, copy)

    def advise(self, job: Job, reader: Reader) -> tuple[SystemCheckResult, ...]:
        from orchestrator.engines.sanoid.system_check import check_system

        return check_system(job, reader)

    def survey(self, job: Job, request: RunRequest, reader: Reader) -> SanoidSurvey:
        return survey(job, reader, known=request.remembered.get(SOURCE_IDENTITY, ""))

    def identity(self, world: SanoidSurvey) -> str:
        """Return the identity of the source by the guid of its root, which it keeps under each name, and in a pool of another one."""
        return str(SourceIdentity(dataset=world.guid, pool=0, root=str(world.root)))

    def identity_of_kit(self, content: str) -> str:
        return ""

    def waiting(self, world: SanoidSurvey) -> tuple[str, ...]:
        return ()

    def survey_snapshots(self, job: Job, reader: Reader) -> SanoidSurvey:
        return survey(job, reader)

    def is_made_anew(self, world: SanoidSurvey, remembered: str) -> bool:
        return is_made_anew(remembered, str(world.root), world.guid)

    def is_being_restored(self, world: SanoidSurvey, *, known: bool) -> bool:
        return world.restoring or (known and bool(world.unfinished))

    def take(self, job: Job, world: SanoidSurvey, folder: str) -> tuple[Step, ...]:
        from orchestrator.engines.sanoid.plan import refuse_misdated, take_steps

        if refusal := refuse_misdated(job, world):
            raise OrchestratorError(refusal.why, hint=refusal.hint)
        return take_steps(job, world, folder)

    def prune_source(self, job: Job, world: SanoidSurvey, folder: str) -> tuple[Step, ...]:
        from orchestrator.engines.sanoid.plan import prune_source_steps

        return prune_source_steps(job, world, folder)

    def unpruned(self, job: Job, world: SanoidSurvey, reader: Reader) -> str:
        from orchestrator.engines.sanoid.survey import survey_unpruned

        return survey_unpruned(job, world, reader)

    def prune_target(self, job: Job, folder: str) -> tuple[Step, ...]:
        from orchestrator.engines.sanoid.plan import prune_target_steps

        return prune_target_steps(job, folder)

    def told(self, words: str) -> tuple[str, ...]:
        said = parse.parse_output(words)
        kept = tuple(f"{name} could not be removed: {why}" for name, why in said.kept)
        missed = tuple(
            f"{name} was not taken: one of that name was there, with the data of then" for name in said.missed
        )
        deferred = ("sanoid left snapshots for later: a send, a receive or another sanoid is at work there",)
        return missed + kept + (deferred if said.deferred else ())

    def later(self, request: RunRequest) -> tuple[str, ...]:
        return ("orchestrator.engines.sanoid.plan",)

    def plan(self, job: Job, world: SanoidSurvey, request: RunRequest) -> Decision:
        from orchestrator.engines.sanoid.plan import plan

        return plan(job, world, request)

    def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
        world = survey(job, reader)
        return tuple(_point(world, at) for at in range(len(world.snapshots)))

    def explain(self, broken: PipelineFailed) -> OrchestratorError:
        return failures.explain(broken)


def _point(world: SanoidSurvey, at: int) -> RestorePoint:
    taken = world.snapshots[at]
    tree = Location(path=f"{world.root.path}@{taken.name}", host=world.root.host)
    return RestorePoint(name=taken.name, taken=taken.at, tree=tree, manifest=None)


ENGINE = SanoidEngine()
