"""The rsync engine, as the contract asks for it."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from orchestrator.domain.answers import split_lines
from orchestrator.domain.errors import EntriesRefused, OrchestratorError, VerificationFailed
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job, VerifyRules
from orchestrator.domain.place import HERE, USED, Location
from orchestrator.domain.plan import Decision, Pipeline, Plan, Refusal, Step, TreeVerification
from orchestrator.domain.point import MIRROR, Changes, RestorePoint
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.contract.engine import (
    RunRequest,
    SkippedEntries,
    StageResults,
    SystemCheckResult,
)
from orchestrator.engines.rsync.model import MIRROR_DAMAGED, WORK, CountsEqual, PointVisible, RsyncSurvey
from orchestrator.engines.rsync.options import RsyncOptions, mistakes, options_of

# What a first copy's survey needs for its listing of the source.
_OF_A_FIRST_COPY = (
    "orchestrator.engines.rsync.own_look",
    "orchestrator.engines.rsync.parallel",
    "orchestrator.engines.rsync.side_by_side",
)

Parse = Callable[[Iterable[bytes]], Iterator[tuple[bytes, str]]]

if TYPE_CHECKING:
    from orchestrator.domain.point_contents import PlannedFile
    from orchestrator.engines.contract.restore import DestinationSurvey, RestoreRequest
    from orchestrator.engines.contract.trees import MendedPart
    from orchestrator.engines.rsync.parse import RsyncMeter
    from orchestrator.process.executor import Reader
    from orchestrator.process.pipeline import PipelineFailed


class RsyncEngine:
    """The rsync engine, which implements the contract: each call goes directly to the responsible module.

    Modules are imported in the call: `status` needs none of them, and of those that nothing needs before the survey `later` tells.
    """

    name = "rsync"
    options = RsyncOptions
    needs_datasets = False
    stays = False
    without: tuple[str, ...] = ("pipe.buffer", "pipe.public-transport", "pipe.transport")
    guards: tuple[str, ...] = ("target-new", "target-in-use")
    no_files = ("", "")

    def mistakes(
        self, options: Any, source: SourceTree, target: Location, verify: VerifyRules
    ) -> Iterable[tuple[str, str, str]]:
        return mistakes(options, source, target, verify)

    def lands(self, options: RsyncOptions, source: Location, place: Location) -> Location:
        # Why: --fake-super is for the far half of an rsync alone, so a copy within this machine gets one.
        alone = options.fake_super and place.host is None and source.host is None
        return replace(place, host=HERE) if alone else place

    def advise(self, job: Job, reader: "Reader") -> tuple[SystemCheckResult, ...]:
        from orchestrator.engines.rsync.system_check import check_system

        return check_system(job, reader)

    def survey(self, job: Job, request: RunRequest, reader: "Reader") -> RsyncSurvey:
        from orchestrator.engines.rsync.survey import survey

        if request.refused or request.unnamed:
            from orchestrator.engines.rsync.refused_alike import find_alike

            request = replace(request, refused=find_alike(job, request, reader))
        return survey(job, request, reader)

    def changes(self, world: RsyncSurvey) -> Changes | None:
        return world.changes

    def newest(self, world: RsyncSurvey) -> RestorePoint | None:
        return world.points[-1] if world.points else None

    def find_moved(self, job: Job, world: RsyncSurvey, reader: "Reader") -> Mapping[bytes, int]:
        from orchestrator.engines.rsync.moves import find_moved

        return find_moved(job, world, reader)

    def forecast_files(self, job: Job, request: RunRequest, reader: "Reader") -> "Iterator[PlannedFile]":
        from orchestrator.engines.rsync.file_forecast import forecast_files

        return forecast_files(job, request, reader)

    def record_look(
        self, job: Job, world: RsyncSurvey, request: RunRequest, point: str, reader: "Reader", *, touched: bool
    ) -> None:
        if world.look is not None and world.look.settings:
            from orchestrator.engines.rsync.own_look import record_look

            record_look(job, world, request, point, reader, touched=touched)

    def surveyed_points(self, job: Job, world: RsyncSurvey) -> tuple[RestorePoint, ...] | None:
        return world.points if world.target.owner == job.identity and options_of(job).points else None

    def is_own_place(self, job: Job, reader: "Reader") -> bool:
        from orchestrator.engines.rsync.survey import is_own_place

        return is_own_place(job, reader)

    def pruned_there(self, world: RsyncSurvey) -> bool:
        return world.adds

    def ground(self, world: RsyncSurvey) -> Mapping[str, tuple[str, bool]]:
        if not world.parts:
            return {"": (str(world.source.device), world.source.mounted)}
        return {each.folder: (str(each.device), each.mounted) for each in world.parts}

    def later(self, request: RunRequest) -> tuple[str, ...]:
        first = () if USED in request.remembered else _OF_A_FIRST_COPY
        return (*first, "orchestrator.engines.rsync.plan")

    def plan(self, job: Job, world: RsyncSurvey, request: RunRequest) -> Decision:
        from orchestrator.engines.rsync.plan import plan

        return plan(job, world, request)

    def points(self, job: Job, reader: "Reader") -> tuple[RestorePoint, ...]:
        from orchestrator.engines.rsync.survey import survey_points

        return survey_points(job, reader)

    def plan_removal(self, job: Job, names: tuple[str, ...], reasons: tuple[str, ...]) -> tuple[Step, ...]:
        from orchestrator.engines.rsync import plan

        return plan.remove_points(job, names, reasons)

    def survey_restore(self, job: Job, wanted: "RestoreRequest", reader: "Reader") -> "DestinationSurvey":
        from orchestrator.engines.rsync import restore as restoring

        return restoring.survey_restore(job, wanted, reader)

    def plan_restore(self, job: Job, wanted: "RestoreRequest", seen: "DestinationSurvey", *, aside: str | None) -> Plan:
        from orchestrator.engines.rsync import restore as restoring

        return restoring.plan_restore(job, wanted, seen, aside=aside)

    def plan_sample(self, job: Job, point: RestorePoint, paths: tuple[bytes, ...], to: Location, notes: str) -> Step:
        from orchestrator.engines.rsync import restore as restoring

        return restoring.plan_sample(job, point, paths, to, notes)

    def comparison_of(self, job: Job, point: RestorePoint, tree: Location) -> TreeVerification:
        from orchestrator.engines.rsync import restore as restoring

        return restoring.comparison_of(job, point, tree)

    def meter(self) -> "RsyncMeter":
        from orchestrator.engines.rsync.parse import RsyncMeter

        return RsyncMeter()

    def left_out(self, broken: "PipelineFailed", errors: bytes, job: Job) -> SkippedEntries | None:
        from orchestrator.engines.rsync import errors as failures

        return failures.find_skipped_entries(broken, split_lines(errors), job.tree, _copied_into(job))

    def refused(self, broken: "PipelineFailed", errors: bytes, job: Job, moved: str | None) -> EntriesRefused | None:
        from orchestrator.engines.rsync.refused_entries import find_refused

        return find_refused(broken, split_lines(errors), job, _copied_into(job), moved)

    def explain(self, broken: "PipelineFailed") -> OrchestratorError:
        from orchestrator.engines.rsync import errors as failures

        return failures.explain(broken)

    def check_space(
        self, job: Job, world: RsyncSurvey, plan: Plan, request: RunRequest, reader: "Reader"
    ) -> Plan | Refusal:
        """Return the plan, with a warning when the data may not fit."""
        from orchestrator.engines.rsync.free_space import warn_of_low_space

        return warn_of_low_space(world, plan) if options_of(job).points else plan  # in a mirror deletions free space

    def space(self, world: RsyncSurvey) -> str:
        from orchestrator.engines.rsync.free_space import describe_space

        return describe_space(world)

    def holds_copies(self, job: Job, world: RsyncSurvey) -> bool:
        return world.target.holds_copies(job.identity, points=options_of(job).points)

    def confirm(self, stage: StageResults, reader: "Reader") -> None:
        from orchestrator.engines.rsync.parse import RsyncMeter, confirm_counts

        for confirmation in stage.confirmations:
            if isinstance(confirmation, CountsEqual) and stage.recorded is not None:
                own = tuple(meter for meter in stage.meters if isinstance(meter, RsyncMeter))
                confirm_counts(confirmation, own, stage.left_out, stage.recorded)
            if isinstance(confirmation, PointVisible):
                _confirm_visible(confirmation, reader)

    def moved(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
        from orchestrator.engines.rsync.parse import parse_moved

        return ((path, f"xxh128:{digest}" if digest else "") for path, digest in parse_moved(lines))

    def _told(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
        return ((path, digest) for path, digest in self.moved(lines) if digest)

    def digests(
        self, tree: Location, names: str, empty: str, algorithm: str, job: Job, *, whole: bool
    ) -> tuple[Pipeline, Parse]:
        from orchestrator.engines.rsync import commands, parse

        with open(names, "rb") as file:
            odd_names = any(b"\\" in line and set(line) & set(b"*?[") for line in file)
        whole = whole and algorithm == "xxh128"
        command = commands.digests_command(tree, empty, algorithm, job, odd_names=odd_names, whole=whole)
        parser: Parse = parse.parse_sums if algorithm == "sha256" else self._told
        return Pipeline(stages=(command,), reads=None if whole else names), parser

    def damage_note(self, point: RestorePoint) -> Location | None:
        if point.name == MIRROR:
            return point.tree / MIRROR_DAMAGED
        return Location(path=f"{point.tree.path}.damaged", host=point.tree.host)

    def forget(self, tree: Location, paths: tuple[bytes, ...]) -> Pipeline:
        from orchestrator.engines.rsync import script_commands

        return Pipeline(stages=(script_commands.discard_command(tree, paths),))

    def discard(self, file: Location) -> Pipeline:
        from orchestrator.engines.rsync import script_commands

        return Pipeline(stages=(script_commands.discard_note_command(file),))

    def mend(self, job: Job, *, sound: RestorePoint, damaged: RestorePoint, what: "MendedPart") -> Pipeline:
        from orchestrator.engines.rsync import script_commands

        options = options_of(job)
        # With fake-super, too: what keeps an owner there is an attribute as others are.
        flags = ("--acls",) * options.acls + ("--xattrs", "--xattrs") * (options.xattrs or options.fake_super)
        root = job.target.location
        return Pipeline(stages=(script_commands.mend_point_command(root, sound.name, damaged.name, what, flags),))

    def recovery(self, job: Job, made: datetime) -> str:
        from orchestrator.engines.rsync.recovery_page import recovery_page

        return recovery_page(job, made)

    def store(self, local: str, file: Location, *, sized: bool = True) -> Pipeline:
        from orchestrator.engines.rsync import script_commands

        command = script_commands.store_command(file, os.path.getsize(local) if sized else None)
        return Pipeline(stages=(command,), reads=local)

    def fetch(self, file: Location, local: str) -> Pipeline:
        from orchestrator.engines.rsync import script_commands

        return Pipeline(stages=(script_commands.show_file_command(file),), keeps=local)


def _copied_into(job: Job) -> str:
    """Return the root of the tree that a copy writes."""
    root = job.target.location
    return (root / WORK if options_of(job).points else root).path


def _confirm_visible(confirmation: PointVisible, reader: "Reader") -> None:
    from orchestrator.engines.rsync import script_commands
    from orchestrator.engines.rsync.survey import command_runner

    if confirmation.root.host is None and _is_visible(confirmation.root.path, confirmation.name):
        return
    answer = command_runner(reader)(script_commands.confirm_point_command(confirmation.root, confirmation.name))
    if answer.strip() != b"there":
        raise VerificationFailed(
            f"point {confirmation.name} is not to be seen after publishing",
            hint="look at the target's disk; the next run looks again",
        )


def _is_visible(root: str, name: str) -> bool:
    """Return whether a point on this machine is as `see-point.sh` wants it; where it is not, or cannot be seen, that says so."""
    try:
        tree, manifest = os.stat(f"{root}/points/{name}"), os.stat(f"{root}/points/{name}.manifest.gz")
        named = os.readlink(f"{root}/latest") == f"points/{name}"
    except OSError:
        return False
    return named and stat.S_ISDIR(tree.st_mode) and stat.S_ISREG(manifest.st_mode)


ENGINE = RsyncEngine()
