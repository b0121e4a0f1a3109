"""The zfs engine: datasets and their snapshots, replicated as zfs streams and confirmed by guid."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from orchestrator.domain.changes import Changes
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job, Verify
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision, Plan, Proof, Refusal, Step
from orchestrator.domain.point import Finding, Point
from orchestrator.domain.units import show_size
from orchestrator.engines.contract import (
    Advice,
    Asked,
    Comparison,
    DestinationSeen,
    LeftOut,
    Meter,
    Pins,
    Recorded,
    Wanted,
)
from orchestrator.engines.zfs.commands.progress import ZfsMeter
from orchestrator.engines.zfs.errors import explain as failures
from orchestrator.engines.zfs.model import World
from orchestrator.engines.zfs.options import ZfsOptions, copy_location, mistakes
from orchestrator.engines.zfs.survey.survey import survey, survey_points
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import Broken

if TYPE_CHECKING:
    from orchestrator.domain.dataset_restore import Chain, Return, Shown, Wished
    from orchestrator.domain.drill_plan import Part, Rehearsal
    from orchestrator.domain.evacuation import KitFacts, PoolSeen
    from orchestrator.domain.kit import Kit
    from orchestrator.domain.plan import Command, Pipeline
    from orchestrator.domain.readable_stream import Sendable
    from orchestrator.domain.rotation import Base
    from orchestrator.domain.scratch import Scratch


class ZfsEngine:
    """The zfs implementation of the engine contract: each call goes to the module that does the work.

    What nothing needs before the look is imported in the call, as `later` tells.
    """

    name = "zfs"
    options: type = ZfsOptions
    wants_datasets = True
    stays = False
    without: tuple[str, ...] = ()
    guards: tuple[str, ...] = ("aside", "abort", "target-room")
    later: tuple[str, ...] = (
        "orchestrator.engines.zfs.plan.plan",
        "orchestrator.engines.zfs.plan.steps",
        "orchestrator.engines.zfs.survey.confirm",
    )

    def mistakes(
        self, options: Any, source: Location, target: Location, verify: Verify
    ) -> Iterable[tuple[str, str, str]]:
        return mistakes(options, source, target, verify)

    def lands(self, options: Any, source: Location, place: Location) -> Location:
        return copy_location(options, source, place)

    def advise(self, job: Job, reader: Reader) -> tuple[Advice, ...]:
        from orchestrator.engines.zfs.system_check import advise

        return advise(job, reader)

    def survey(self, job: Job, asked: Asked, reader: Reader) -> World:
        return survey(job, asked, reader)

    def changes(self, world: World) -> Changes | None:
        return None

    def newest(self, world: World) -> Point | None:
        return None

    def ground(self, world: World) -> tuple[str, bool]:
        root = world.source.datasets.get("")
        return f"{world.source.pool_guid}/{root.guid if root else 0}", root is not None

    def plan(self, job: Job, world: World, asked: Asked) -> Decision:
        from orchestrator.engines.zfs.plan.plan import plan

        return plan(job, world, asked)

    def weigh(self, plan: Plan, reader: Reader) -> Plan:
        """Return the plan with the sizes that dry-run sends report."""
        from orchestrator.engines.zfs.survey.confirm import weigh

        return weigh(plan, reader)

    def check_room(self, job: Job, world: World, plan: Plan, asked: Asked, reader: Reader) -> Plan | Refusal:
        """Return the plan, or a refusal when the target has too little free space for it."""
        from orchestrator.engines.zfs.space.check import check_room

        return check_room(job, world, plan, asked, reader)

    def points(self, job: Job, reader: Reader) -> tuple[Point, ...]:
        return survey_points(job, reader)

    def plan_removal(self, job: Job, names: tuple[str, ...], reasons: tuple[str, ...]) -> tuple[Step, ...]:
        """Return no steps: the program that takes the snapshots also prunes them."""
        return ()

    def survey_restore(self, job: Job, wanted: Wanted, reader: Reader) -> DestinationSeen:
        _no_trees(wanted.point)

    def plan_restore(self, job: Job, wanted: Wanted, seen: DestinationSeen, *, aside: str | None) -> Plan:
        _no_trees(wanted.point)

    def meter(self) -> ZfsMeter:
        return ZfsMeter()

    def left_out(self, broken: Broken, errors: Iterable[bytes], job: Job) -> LeftOut | None:
        return None

    def explain(self, broken: Broken) -> OrchestratorError:
        return failures.explain(broken)

    def room(self, world: World) -> str:
        return "" if world.target.available is None else f"{show_size(world.target.available)} were free before"

    def confirm(
        self,
        proofs: tuple[Proof, ...],
        meters: tuple[Meter, ...],
        left_out: tuple[LeftOut, ...],
        recorded: Recorded | None,
        reader: Reader,
    ) -> None:
        from orchestrator.engines.zfs.survey.confirm import confirm_all

        confirm_all(proofs, reader)

    def survey_both(self, job: Job, asked: Asked, reader: Reader, *, content: bool) -> Any:
        from orchestrator.engines.zfs.survey.survey import run
        from orchestrator.engines.zfs.verify.checksum import Both, able_command, parse_able

        world = survey(job, asked, reader, whole=True)
        if not (content and world.source.datasets and world.target.datasets):
            return Both(world=world, able=None)
        source, target = (
            parse_able(run(reader, able_command(side.root)).stdout.splitlines(), side.root)
            for side in (world.source, world.target)
        )
        return Both(world=world, able=(source, target))

    def survey_copy(self, job: Job, reader: Reader, *, away: str) -> Any:
        """Return a survey of the copy alone, for a restore test. Raises: OrchestratorError."""
        from orchestrator.engines.zfs.survey.survey import survey_copy
        from orchestrator.engines.zfs.verify.checksum import Both

        return Both(world=survey_copy(job, reader), able=None, away=away)

    def plan_comparison(
        self, job: Job, seen: Any, asked: Asked, *, point: str | None, content: bool
    ) -> Comparison | Refusal:
        from orchestrator.engines.zfs.plan.context import Case
        from orchestrator.engines.zfs.verify import checksum as digesting
        from orchestrator.engines.zfs.verify import compare as comparing

        judged = comparing.judge(Case(job, seen.world, asked), point=point)
        return judged if isinstance(judged, Refusal) else digesting.plan(job, seen, judged, asked)

    def survey_return(self, job: Job, wished: "Wished", asked: Asked, reader: Reader, *, content: bool) -> Any:
        from orchestrator.engines.zfs.restore.survey import look

        return look(job, wished, asked, reader, content=content)

    def plan_return(self, seen: Any, asked: Asked) -> "Return":
        from orchestrator.engines.zfs.restore import plan as returning

        return returning.plan(seen, asked)

    def plan_return_proof(self, seen: Any, asked: Asked) -> Comparison | Refusal:
        from orchestrator.engines.zfs.plan.context import Case
        from orchestrator.engines.zfs.restore.plan import to_prove
        from orchestrator.engines.zfs.verify import checksum as digesting
        from orchestrator.engines.zfs.verify import compare as comparing

        world = to_prove(seen)
        judged = comparing.judge(Case(seen.job, world, asked), point=None)
        both = digesting.Both(world=world, able=seen.able)
        return judged if isinstance(judged, Refusal) else digesting.plan(seen.job, both, judged, asked)

    def survey_owners(self, kit: str, to: Location, reader: Reader) -> tuple[str, ...]:
        from orchestrator.engines.zfs.restore.survey import survey_owners

        return survey_owners(kit, to, reader)

    def survey_files(self, job: Job, path: bytes, point: Point, reader: Reader) -> "Shown | Refusal":
        from orchestrator.engines.zfs.restore.browse_files import survey_files

        return survey_files(job, path, point, reader)

    def chain(self, world: Any) -> "Chain":
        from orchestrator.engines.zfs.restore.plan import chain

        return chain(world)

    def plan_try(
        self, job: Job, below: str, until: Point, keep: datetime | None, asked: Asked, reader: Reader
    ) -> Plan | Refusal:
        """Plan the clones of a restore point. Raises: OrchestratorError."""
        from orchestrator.engines.zfs.drill.scratch_clone import plan_try

        return plan_try(job, below, until, keep, asked, reader)

    def survey_scratch(self, job: Job, reader: Reader) -> "tuple[Scratch, ...]":
        """Return the scratch copies beside a job's copy. Raises: OrchestratorError."""
        from orchestrator.engines.zfs.drill.scratch_clone import survey_scratch

        return survey_scratch(job, reader)

    def drop_scratch(self, job: Job, scratch: "Scratch") -> Step:
        """Build the step that destroys one scratch copy."""
        from orchestrator.engines.zfs.drill.scratch_clone import drop_step

        return drop_step(job, scratch)

    def heal(
        self, job: Job, seen: Any, asked: Asked, copy: tuple[Finding, ...], source: tuple[Finding, ...]
    ) -> tuple[str, ...]:
        """Return lines that name the good data for each finding, with the exact repair commands."""
        from orchestrator.engines.zfs.plan.context import Case
        from orchestrator.engines.zfs.restore.repair import heal

        return heal(Case(job, seen.world, asked), copy, source)

    def plan_rehearsal(
        self, job: Job, seen: Any, asked: Asked, *, whole: bool, kit: str | None
    ) -> "Rehearsal | Refusal":
        """Plan the restore test of a copy."""
        from orchestrator.engines.zfs.drill.drill import plan_rehearsal

        return plan_rehearsal(job, seen, asked, whole=whole, kit=kit)

    def rehearsal_check(self, job: Job, rehearsal: "Rehearsal", folder: str, owner: "Command") -> "Command | Refusal":
        """Build the command that runs the owner's own check on the restored data."""
        from orchestrator.engines.zfs.drill.drill import check_command

        return check_command(job, rehearsal, folder, owner)

    def rehearsal_listing(self, job: Job, rehearsal: "Rehearsal", part: "Part", keeps: str) -> Step:
        """Build the step that lists the files of a part."""
        from orchestrator.engines.zfs.drill.drill import listing_step

        return listing_step(job, rehearsal, part, keeps)

    def rehearsal_harm(self, job: Job, rehearsal: "Rehearsal", part: "Part", names: str) -> Step:
        """Build the step that damages files of a part."""
        from orchestrator.engines.zfs.drill.drill import harming_step

        return harming_step(job, rehearsal, part, names)

    def plan_rehearsal_reading(
        self, job: Job, seen: Any, rehearsal: "Rehearsal", names: Mapping[int, str], notes: str
    ) -> Comparison:
        """Plan the steps that read the chosen files on both sides."""
        from orchestrator.engines.zfs.drill.drill import plan_reading

        return plan_reading(job, seen, rehearsal, names, notes)

    def survey_kit(self, job: Job, now: datetime, reader: Reader) -> "Kit":
        """Return the recovery kit: the data needed to build the source again. Raises: OrchestratorError."""
        from orchestrator.engines.zfs.recovery.kit import survey_kit

        return survey_kit(job, now, reader)

    def store_kit(self, job: Job, archive: str) -> "Pipeline":
        """Build the pipeline that stores an archive of the kit's files beside the copy."""
        from orchestrator.engines.zfs.recovery.kit import store_pipeline

        return store_pipeline(job, archive)

    def survey_pool(self, pool: str, reader: Reader) -> "PoolSeen":
        from orchestrator.engines.zfs.recovery.evacuation import survey_pool

        return survey_pool(pool, reader)

    def survey_held(self, job: Job, asked: Asked, reader: Reader) -> "Mapping[str, frozenset[int]]":
        from orchestrator.engines.zfs.recovery.evacuation import survey_held

        return survey_held(job, asked, reader)

    def survey_home(self, job: Job, asked: Asked, reader: Reader) -> "Mapping[str, frozenset[int]]":
        from orchestrator.engines.zfs.recovery.evacuation import survey_home

        return survey_home(job, asked, reader)

    def read_kit(self, content: str, pool: str) -> "KitFacts":
        from orchestrator.engines.zfs.recovery.kit_diff import read_kit

        return read_kit(content, pool)

    def compare_kits(self, before: str, now: str) -> tuple[str, ...]:
        from orchestrator.engines.zfs.recovery.kit_diff import compare

        return compare(before, now)

    def bases(self, job: Job, pool_guid: int, reader: Reader) -> "tuple[Base, ...]":
        from orchestrator.engines.zfs.space.forecast import bases

        return bases(job, pool_guid, reader)

    def sendable(self, job: Job, reader: Reader) -> "tuple[Sendable, ...]":
        from orchestrator.engines.zfs.verify.read_copy import sendable

        return sendable(job, reader)

    def survey_pins(self, jobs: tuple[Job, ...], reader: Callable[[Job], Reader]) -> Any:
        from orchestrator.engines.zfs.holds import survey as pinned
        from orchestrator.engines.zfs.survey.survey import run

        seen, unseen = list[pinned.SeenPool](), list[tuple[Location, str]]()
        for pool, job in pinned.pools_of(jobs).items():
            try:
                told = run(reader(job), pinned.look_command(pool)).stdout.splitlines()
                seen.append(pinned.parse_look(told, pool, job))
            except (OrchestratorError, ValueError) as error:
                unseen.append((pool, str(error)))
                continue
            if pool.path not in seen[-1].pools.values():
                unseen.append((pool, "the pool is not imported"))
        return pinned.SeenPins(pools=tuple(seen), unseen=tuple(unseen))

    def judge_pins(self, jobs: tuple[Job, ...], seen: Any, now: datetime) -> Pins:
        from orchestrator.engines.zfs.holds.report import judge

        return judge(jobs, seen, now)

    def plan_letting_go(self, seen: Any, pins: Pins) -> tuple[tuple[Job, tuple[Step, ...]], ...]:
        from orchestrator.engines.zfs.holds.report import plan_letting_go

        return plan_letting_go(seen, pins)


def _no_trees(point: Point) -> NoReturn:
    """Raise an error, as a snapshot is not restored as a tree of files. Raises: OrchestratorError."""
    dataset, _, name = point.tree.path.partition("@")
    raise OrchestratorError(
        f"{point.tree} is a snapshot, and not brought back as a tree of files",
        cure=f"files: `zfs get mountpoint {dataset}` there, then copy from .zfs/snapshot/{name}; "
        f"whole: `zfs send -R {dataset}@{name} | zfs receive -u` into a new dataset",
    )


ENGINE = ZfsEngine()
