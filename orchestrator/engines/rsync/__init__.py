"""rsync: trees of files, copied to dated restore points that share unchanged files, or to a plain mirror."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any

from orchestrator.domain.changes import Changes
from orchestrator.domain.errors import OrchestratorError, ProofFailed
from orchestrator.domain.job import Job, Verify
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision, Pipeline, Plan, Proof, Refusal, Step
from orchestrator.domain.point import Point
from orchestrator.engines.contract import Advice, Asked, DestinationSeen, LeftOut, Meter, Recorded, Wanted
from orchestrator.engines.rsync import commands, parse, script_commands
from orchestrator.engines.rsync.model import MIRROR, MIRROR_DAMAGED, CountsEqual, PointVisible, World
from orchestrator.engines.rsync.options import RsyncOptions, mistakes, options_of
from orchestrator.engines.rsync.parse import RsyncMeter, confirm_counts
from orchestrator.engines.rsync.survey import runner, survey, survey_points
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import Broken

Parse = Callable[[Iterable[bytes]], Iterator[tuple[bytes, str]]]


class RsyncEngine:
    """The rsync engine, which implements the contract: each call goes directly to the responsible module.

    What nothing needs before the look is imported in the call, as `later` tells.
    """

    name = "rsync"
    options = RsyncOptions
    wants_datasets = False
    stays = False
    without: tuple[str, ...] = ("pipe.buffer", "pipe.public-transport", "pipe.transport")
    guards: tuple[str, ...] = ("target-new", "target-in-use")
    later = ("orchestrator.engines.rsync.plan", "orchestrator.engines.rsync.survey")

    def mistakes(
        self, options: Any, source: Location, target: Location, verify: Verify
    ) -> Iterable[tuple[str, str, str]]:
        return mistakes(options, source, target, verify)

    def lands(self, _options: RsyncOptions, _source: Location, place: Location) -> Location:
        return place

    def advise(self, job: Job, reader: Reader) -> tuple[Advice, ...]:
        from orchestrator.engines.rsync.system_check import advise

        return advise(job, reader)

    def survey(self, job: Job, asked: Asked, reader: Reader) -> World:
        return survey(job, asked, reader)

    def changes(self, world: World) -> Changes | None:
        return world.changes

    def newest(self, world: World) -> Point | None:
        return world.points[-1] if world.points else None

    def ground(self, world: World) -> tuple[str, bool]:
        return str(world.source.device), world.source.mounted

    def plan(self, job: Job, world: World, asked: Asked) -> Decision:
        from orchestrator.engines.rsync.plan import plan

        return plan(job, world, asked)

    def weigh(self, plan: Plan, _reader: Reader) -> Plan:
        return plan

    def points(self, job: Job, reader: Reader) -> tuple[Point, ...]:
        return survey_points(job, reader)

    def plan_removal(self, job: Job, names: tuple[str, ...], reasons: tuple[str, ...]) -> tuple[Step, ...]:
        from orchestrator.engines.rsync import plan

        return plan.remove(job, names, reasons)

    def survey_restore(self, job: Job, wanted: Wanted, reader: Reader) -> DestinationSeen:
        from orchestrator.engines.rsync import restore as restoring

        return restoring.survey_restore(wanted, reader)

    def plan_restore(self, job: Job, wanted: Wanted, seen: DestinationSeen, *, aside: str | None) -> Plan:
        from orchestrator.engines.rsync import restore as restoring

        return restoring.plan_restore(job, wanted, seen, aside=aside)

    def plan_sample(self, job: Job, point: Point, paths: tuple[bytes, ...], to: Location, notes: str) -> Step:
        from orchestrator.engines.rsync import restore as restoring

        return restoring.plan_sample(job, point, paths, to, notes)

    def meter(self) -> RsyncMeter:
        return RsyncMeter()

    def left_out(self, broken: Broken, errors: Iterable[bytes], job: Job) -> LeftOut | None:
        from orchestrator.engines.rsync import errors as failures

        return failures.left_out(broken, errors, job.source.path)

    def explain(self, broken: Broken) -> OrchestratorError:
        from orchestrator.engines.rsync import errors as failures

        return failures.explain(broken)

    def check_room(self, job: Job, world: World, plan: Plan, asked: Asked, reader: Reader) -> Plan | Refusal:
        """Return the plan, with a warning when the data may not fit."""
        from orchestrator.engines.rsync.survey import warn_of_room

        return warn_of_room(world, plan) if options_of(job).points else plan  # in a mirror what goes makes room

    def room(self, world: World) -> str:
        from orchestrator.engines.rsync.survey import tell_room

        return tell_room(world)

    def confirm(
        self,
        proofs: tuple[Proof, ...],
        meters: tuple[Meter, ...],
        left_out: tuple[LeftOut, ...],
        recorded: Recorded | None,
        reader: Reader,
    ) -> None:
        for proof in proofs:
            if isinstance(proof, CountsEqual) and recorded is not None:
                own = tuple(meter for meter in meters if isinstance(meter, RsyncMeter))
                confirm_counts(proof, own, left_out, recorded)
            if isinstance(proof, PointVisible):
                _confirm_visible(proof, reader)

    def moved(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
        return ((path, f"xxh128:{digest}" if digest else "") for path, digest in parse.parse_moved(lines))

    def _told(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
        return ((path, digest) for path, digest in self.moved(lines) if digest)

    def digests(self, tree: Location, names: str, empty: str, algorithm: str, job: Job) -> tuple[Pipeline, Parse]:
        command = commands.digests_command(tree, empty, algorithm, job)
        parser: Parse = parse.parse_sums if algorithm == "sha256" else self._told
        return Pipeline(stages=(command,), reads=names), parser

    def damage_note(self, point: Point) -> Location | None:
        if point.name == MIRROR:
            return point.tree / MIRROR_DAMAGED
        return Location(path=f"{point.tree.path}.damaged", host=point.tree.host)

    def recovery(self, job: Job, made: datetime) -> str:
        from orchestrator.engines.rsync.recovery_page import page

        return page(job, made)

    def store(self, local: str, file: Location) -> Pipeline:
        return Pipeline(stages=(script_commands.store_command(file),), reads=local)

    def fetch(self, file: Location, local: str) -> Pipeline:
        return Pipeline(stages=(script_commands.show_file_command(file),), keeps=local)


def _confirm_visible(proof: PointVisible, reader: Reader) -> None:
    answer = runner(reader)(script_commands.see_point_command(proof.root, proof.name))
    if answer.strip() != b"there":
        raise ProofFailed(
            f"point {proof.name} is not to be seen after publishing",
            cure="look at the target's disk; the next run looks again",
        )


ENGINE = RsyncEngine()
