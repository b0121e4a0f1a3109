"""The zfs engine, as the contract asks for it."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestrator.domain.answers import split_lines
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job, VerifyRules
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision, Plan, Refusal, Step
from orchestrator.domain.point import Finding, RestorePoint
from orchestrator.domain.source_tree import SourceTree
from orchestrator.domain.units import show_size
from orchestrator.engines.contract.comparison import ComparisonPlan
from orchestrator.engines.contract.engine import (
    RunRequest,
    StageResults,
    SystemCheckResult,
)
from orchestrator.engines.contract.holds import PinReport
from orchestrator.engines.zfs.commands.progress import ZfsMeter
from orchestrator.engines.zfs.errors import explain as failures
from orchestrator.engines.zfs.model import ZfsSurvey
from orchestrator.engines.zfs.options import ZfsOptions, copy_location, mistakes
from orchestrator.engines.zfs.survey.survey import survey, survey_points
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed

if TYPE_CHECKING:
    from orchestrator.domain.dataset_restore import DatasetRestorePlan, DatasetRestoreRequest, NextBase, SnapshotView
    from orchestrator.domain.drill import DrillDataset, DrillPlan
    from orchestrator.domain.evacuation import KitFacts, PoolContents
    from orchestrator.domain.kit import KitContents
    from orchestrator.domain.plan import Command, Pipeline
    from orchestrator.domain.rotation import IncrementBase
    from orchestrator.engines.contract.comparison import ReadableDataset
    from orchestrator.engines.contract.drills import ScratchClone


class ZfsEngine:
    """The zfs implementation of the engine contract: each call goes to the module that does the work.

    Modules that nothing needs before the survey are imported in the call; `later` names them.
    """

    name = "zfs"
    options: type = ZfsOptions
    needs_datasets = True
    stays = False
    without: tuple[str, ...] = ()
    guards: tuple[str, ...] = ("aside", "abort", "follow-renames", "take-over", "target-room", "no-bookmarks")
    no_files = (
        "{tree} is a snapshot, and not brought back as a tree of files",
        (
            "files: `zfs get mountpoint {dataset}` there, then copy from .zfs/snapshot/{name}; "
            "whole: `zfs send -R {dataset}@{name} | zfs receive -u` into a new dataset"
        ),
    )

    def mistakes(
        self, options: Any, source: SourceTree, target: Location, verify: VerifyRules
    ) -> Iterable[tuple[str, str, str]]:
        return mistakes(options, source, target, verify)

    def lands(self, options: Any, source: Location, place: Location) -> Location:
        return copy_location(options, source, place)

    def advise(self, job: Job, reader: Reader) -> tuple[SystemCheckResult, ...]:
        from orchestrator.engines.zfs.system_check import check_system

        return check_system(job, reader)

    def survey(self, job: Job, run_request: RunRequest, reader: Reader) -> ZfsSurvey:
        return survey(job, run_request, reader)

    def later(self, request: RunRequest) -> tuple[str, ...]:
        return (
            "orchestrator.engines.zfs.plan.plan",
            "orchestrator.engines.zfs.plan.steps",
            "orchestrator.engines.zfs.survey.confirm",
        )

    def plan(self, job: Job, world: ZfsSurvey, run_request: RunRequest) -> Decision:
        from orchestrator.engines.zfs.plan.plan import plan

        return plan(job, world, run_request)

    def identity(self, world: ZfsSurvey) -> str:
        if "" not in world.source.datasets:
            return ""
        from orchestrator.engines.zfs.plan.divergence import source_identity

        return str(source_identity(world.source))

    def place_identity(self, world: ZfsSurvey) -> str | None:
        """Return the guid of the copy's root, which each receive of a whole dataset makes anew, and a rename keeps."""
        root = world.target.datasets.get("")
        return str(root.guid) if root else ("" if world.target.pool_guid else None)

    def find_place_identity(self, job: Job, reader: Reader) -> str | None:
        from orchestrator.engines.zfs.survey.survey import survey_copy

        return self.place_identity(survey_copy(job, reader))

    def explain_moved_copy(self, job: Job, remembered: Mapping[str, str], reader: Reader) -> Refusal | None:
        from orchestrator.engines.zfs.errors.moved_copy import explain_moved_copy
        from orchestrator.engines.zfs.survey.survey import find_moved_copy

        return explain_moved_copy(job, find_moved_copy(job, remembered, reader))

    def identity_of_kit(self, content: str) -> str:
        from orchestrator.engines.zfs.plan.divergence import identity_of_kit

        return str(identity_of_kit(content) or "")

    def waiting(self, world: ZfsSurvey) -> tuple[str, ...]:
        """Return the datasets of the source that are restored and wait for a key or for their mountpoint."""
        return tuple(world.source.full(name) for name, one in sorted(world.source.datasets.items()) if one.waits)

    def weigh(self, plan: Plan, reader: Reader) -> Plan:
        """Return the plan with the sizes that dry-run sends report."""
        from orchestrator.engines.zfs.survey.confirm import estimate_sizes

        return estimate_sizes(plan, reader)

    def check_space(
        self, job: Job, world: ZfsSurvey, plan: Plan, run_request: RunRequest, reader: Reader
    ) -> Plan | Refusal:
        """Return the plan, or a refusal when the target has too little free space for it."""
        from orchestrator.engines.zfs.space.check import check_space

        return check_space(job, world, plan, run_request, reader)

    def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
        return survey_points(job, reader)

    def incomplete_points(
        self, job: Job, world: ZfsSurvey, known: Mapping[str, tuple[str, ...]], reader: Reader
    ) -> dict[str, tuple[str, ...]]:
        from orchestrator.engines.zfs.survey.survey import incomplete_points

        return incomplete_points(job, world.source, known, reader)

    def meter(self) -> ZfsMeter:
        return ZfsMeter()

    def explain(self, broken: PipelineFailed) -> OrchestratorError:
        return failures.explain(broken)

    def space(self, world: ZfsSurvey) -> str:
        return "" if world.target.available is None else f"{show_size(world.target.available)} were free before"

    def holds_copies(self, job: Job, world: ZfsSurvey) -> bool:
        return any(dataset.snapshots for dataset in world.target.datasets.values())

    def confirm(self, stage: StageResults, reader: Reader) -> None:
        from orchestrator.engines.zfs.survey.confirm import confirm_snapshots

        confirm_snapshots(stage.confirmations, reader, uncertain=stage.uncertain)

    def survey_both(self, job: Job, run_request: RunRequest, reader: Reader, *, content: bool) -> Any:
        from orchestrator.engines.zfs.survey.survey import run_read_command
        from orchestrator.engines.zfs.verify.checksum import (
            ComparisonSurvey,
            checksum_support_command,
            parse_checksum_support,
        )

        world = survey(job, run_request, reader, whole=True)
        if not (content and world.source.datasets and world.target.datasets):
            return ComparisonSurvey(world=world, able=None)
        source, target = (
            parse_checksum_support(
                split_lines(run_read_command(reader, checksum_support_command(side.root)).stdout), side.root
            )
            for side in (world.source, world.target)
        )
        return ComparisonSurvey(world=world, able=(source, target))

    def survey_copy(self, job: Job, reader: Reader, *, away: str) -> Any:
        """Return a survey of the copy alone, for a restore test. Raises: OrchestratorError."""
        from orchestrator.engines.zfs.survey.survey import survey_copy
        from orchestrator.engines.zfs.verify.checksum import ComparisonSurvey

        return ComparisonSurvey(world=survey_copy(job, reader), able=None, away=away)

    def plan_comparison(
        self, job: Job, seen: Any, run_request: RunRequest, *, point: str | None, content: bool
    ) -> ComparisonPlan | Refusal:
        from orchestrator.engines.zfs.plan.context import PlanContext
        from orchestrator.engines.zfs.verify import checksum as digesting
        from orchestrator.engines.zfs.verify import compare as comparing

        judged = comparing.compare_guids(PlanContext(job, seen.world, run_request), point=point)
        return judged if isinstance(judged, Refusal) else digesting.plan_checksums(job, seen, judged, run_request)

    def survey_dataset_restore(
        self,
        job: Job,
        dataset_request: "DatasetRestoreRequest",
        run_request: RunRequest,
        reader: Reader,
        *,
        content: bool,
    ) -> Any:
        from orchestrator.engines.zfs.restore.survey import survey_dataset_restore

        return survey_dataset_restore(job, dataset_request, run_request, reader, content=content)

    def partial_points(self, job: Job, kit: str | None, reader: Reader) -> Mapping[str, tuple[str, ...]]:
        from orchestrator.engines.zfs.restore.survey import survey_partial_points

        return survey_partial_points(job, kit, reader)

    def plan_dataset_restore(self, seen: Any, run_request: RunRequest) -> "DatasetRestorePlan":
        from orchestrator.engines.zfs.restore import plan as returning

        return returning.plan(seen, run_request)

    def plan_restore_verification(self, seen: Any, run_request: RunRequest) -> ComparisonPlan | Refusal:
        from orchestrator.engines.zfs.plan.context import PlanContext
        from orchestrator.engines.zfs.restore.plan import unverified_part
        from orchestrator.engines.zfs.verify import checksum as digesting
        from orchestrator.engines.zfs.verify import compare as comparing

        world = unverified_part(seen)
        judged = comparing.compare_guids(PlanContext(seen.job, world, run_request), point=None)
        both = digesting.ComparisonSurvey(world=world, able=seen.able)
        return judged if isinstance(judged, Refusal) else digesting.plan_checksums(seen.job, both, judged, run_request)

    def survey_owners(self, kit: str, to: Location, reader: Reader) -> tuple[str, ...]:
        from orchestrator.engines.zfs.restore.survey import survey_owners

        return survey_owners(kit, to, reader)

    def survey_lost_rights(self, job: Job, kit: str, now: datetime, reader: Reader) -> tuple[tuple[str, ...], str]:
        """Return lines for what no stream brings, and a kit records; and one on received values. Raises: OrchestratorError."""
        import json

        from orchestrator.engines.zfs.recovery.delegations import compare_delegations, count_received
        from orchestrator.engines.zfs.recovery.kit import survey_kit
        from orchestrator.engines.zfs.recovery.kit_diff import parse_kit_content

        then = parse_kit_content(kit)
        if "datasets" not in then:
            return (), ""
        today = json.loads(survey_kit(job, now, reader).content)
        return tuple(compare_delegations(then, today)), count_received(then, today)

    def survey_files(self, job: Job, path: bytes, point: RestorePoint, reader: Reader) -> "SnapshotView | Refusal":
        from orchestrator.engines.zfs.restore.browse_files import survey_files

        return survey_files(job, path, point, reader)

    def chain(self, world: Any) -> "NextBase":
        from orchestrator.engines.zfs.restore.plan import find_next_base

        return find_next_base(world)

    def plan_try(
        self, job: Job, below: str, until: RestorePoint, keep: datetime | None, run_request: RunRequest, reader: Reader
    ) -> Plan | Refusal:
        """Plan the clones of a restore point. Raises: OrchestratorError."""
        from orchestrator.engines.zfs.drill.scratch_clone import plan_try

        return plan_try(job, below, until, keep, run_request, reader)

    def survey_scratch(self, job: Job, reader: Reader) -> "tuple[ScratchClone, ...]":
        """Return the scratch copies beside a job's copy. Raises: OrchestratorError."""
        from orchestrator.engines.zfs.drill.scratch_clone import survey_scratch

        return survey_scratch(job, reader)

    def drop_scratch(self, job: Job, scratch: "ScratchClone") -> Step:
        """Build the step that destroys one scratch copy."""
        from orchestrator.engines.zfs.drill.scratch_clone import drop_step

        return drop_step(job, scratch)

    def heal(
        self, job: Job, seen: Any, run_request: RunRequest, copy: tuple[Finding, ...], source: tuple[Finding, ...]
    ) -> tuple[str, ...]:
        """Return lines that name the good data for each finding, with the exact repair commands."""
        from orchestrator.engines.zfs.plan.context import PlanContext
        from orchestrator.engines.zfs.restore.repair import explain_repair

        return explain_repair(PlanContext(job, seen.world, run_request), copy, source)

    def plan_drill(
        self, job: Job, seen: Any, run_request: RunRequest, *, whole: bool, kit: str | None
    ) -> "DrillPlan | Refusal":
        """Plan the restore test of a copy."""
        from orchestrator.engines.zfs.drill.drill import plan_drill

        return plan_drill(job, seen, run_request, whole=whole, kit=kit)

    def drill_check(self, job: Job, drill_plan: "DrillPlan", folder: str, owner: "Command") -> "Command | Refusal":
        """Build the command that runs the owner's own check on the restored data."""
        from orchestrator.engines.zfs.drill.drill import user_check_command

        return user_check_command(job, drill_plan, folder, owner)

    def drill_listing(self, job: Job, drill_plan: "DrillPlan", part: "DrillDataset", keeps: str) -> Step:
        """Build the step that lists the files of a part."""
        from orchestrator.engines.zfs.drill.drill import listing_step

        return listing_step(job, drill_plan, part, keeps)

    def drill_damage(self, job: Job, drill_plan: "DrillPlan", part: "DrillDataset", names: str) -> Step:
        """Build the step that damages files of a part."""
        from orchestrator.engines.zfs.drill.drill import damage_step

        return damage_step(job, drill_plan, part, names)

    def plan_drill_comparison(
        self, job: Job, seen: Any, drill_plan: "DrillPlan", names: Mapping[int, str], notes: str
    ) -> ComparisonPlan:
        """Plan the steps that read the chosen files on both sides."""
        from orchestrator.engines.zfs.drill.drill import plan_drill_comparison

        return plan_drill_comparison(job, seen, drill_plan, names, notes)

    def survey_kit(self, job: Job, now: datetime, reader: Reader) -> "KitContents":
        """Return the recovery kit: the data needed to rebuild the source. Raises: OrchestratorError."""
        from orchestrator.engines.zfs.recovery.kit import survey_kit

        return survey_kit(job, now, reader)

    def kit_for_place(self, job: Job, kit: "KitContents") -> "KitContents":
        """Return a kit with the page for the place of this job's copy."""
        from orchestrator.engines.zfs.recovery.kit import kit_for_place

        return kit_for_place(job, kit)

    def store_kit(self, job: Job, archive: str) -> "Pipeline":
        """Build the pipeline that stores an archive of the kit's files beside the copy."""
        from orchestrator.engines.zfs.recovery.kit import store_pipeline

        return store_pipeline(job, archive)

    def survey_pool(self, pool: str, reader: Reader) -> "PoolContents":
        from orchestrator.engines.zfs.recovery.evacuation import survey_pool

        return survey_pool(pool, reader)

    def survey_copy_guids(self, job: Job, run_request: RunRequest, reader: Reader) -> "Mapping[str, frozenset[int]]":
        from orchestrator.engines.zfs.recovery.evacuation import survey_copy_guids

        return survey_copy_guids(job, run_request, reader)

    def survey_source_guids(self, job: Job, run_request: RunRequest, reader: Reader) -> "Mapping[str, frozenset[int]]":
        from orchestrator.engines.zfs.recovery.evacuation import survey_source_guids

        return survey_source_guids(job, run_request, reader)

    def read_kit(self, content: str, pool: str) -> "KitFacts":
        from orchestrator.engines.zfs.recovery.kit_diff import read_kit

        return read_kit(content, pool)

    def compare_kits(self, before: str, now: str) -> tuple[str, ...]:
        from orchestrator.engines.zfs.recovery.kit_diff import compare_kits

        return compare_kits(before, now)

    def rename_kit(self, content: str, before: str, now: str, *, keep_paths: bool) -> str:
        from orchestrator.engines.zfs.recovery.kit_rename import rename_kit

        return rename_kit(content, before, now, keep_paths=keep_paths)

    def bases(self, job: Job, pool_guid: int, reader: Reader) -> "tuple[IncrementBase, ...]":
        from orchestrator.engines.zfs.space.forecast import survey_bases

        return survey_bases(job, pool_guid, reader)

    def sendable(self, job: Job, reader: Reader) -> "tuple[ReadableDataset, ...]":
        from orchestrator.engines.zfs.verify.read_copy import survey_readable_datasets

        return survey_readable_datasets(job, reader)

    def survey_pins(self, jobs: tuple[Job, ...], reader: Callable[[Job], Reader]) -> Any:
        from orchestrator.engines.zfs.holds import survey as pinned
        from orchestrator.engines.zfs.survey.survey import parse_result, run_read_command

        seen, unseen = list[pinned.PoolPins](), list[tuple[Location, str]]()
        for pool, job in pinned.pools_of_jobs(jobs).items():
            try:
                command = pinned.holds_command(pool)
                told = run_read_command(reader(job), command)
                seen.append(
                    parse_result(command, told, partial(pinned.parse_holds, split_lines(told.stdout), pool, job))
                )
            except OrchestratorError as error:
                unseen.append((pool, str(error)))
                continue
            if pool.path not in seen[-1].pools.values():
                unseen.append((pool, "the pool is not imported"))
        return pinned.PinSurvey(pools=tuple(seen), unseen=tuple(unseen))

    def judge_pins(self, jobs: tuple[Job, ...], seen: Any, now: datetime) -> PinReport:
        from orchestrator.engines.zfs.holds.report import judge_pins

        return judge_pins(jobs, seen, now)

    def plan_release(self, seen: Any, pins: PinReport) -> tuple[tuple[Job, tuple[Step, ...]], ...]:
        from orchestrator.engines.zfs.holds.report import plan_release

        return plan_release(seen, pins)


ENGINE = ZfsEngine()
