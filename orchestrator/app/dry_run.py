"""`plan`: the decision that a run would make now, and the points that [keep] would remove after it.

It also finds the guards that --allow may switch off. Nothing is changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.session import stop_on_signals
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass, field, replace
from orchestrator.domain.hint_phrases import PHRASES_OF_LOOK, name_hosts, say_hint
from orchestrator.domain.plan import Decision, Refusal
from orchestrator.domain.run import Outcome

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.job import Job
    from orchestrator.domain.point_contents import PlannedFile
    from orchestrator.engines.contract.copies import FileForecaster
    from orchestrator.process.stop import StopRequest
    from orchestrator.runner.dry_run import DryRunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The decision that a run would make. `removes`: points that [keep] would remove then, each with the reason.

    `short`: why there may be no room; then the run removes first what [keep] lets go. `forecast`: for a job whose
    disk is not attached, the next copy to each disk, by name.
    """

    decision: Decision
    removes: tuple[tuple[str, str], ...] = ()
    short: str = ""
    forecast: Mapping[str, str] = field(default_factory=dict)


def plan_run(settings: Settings, name: str, *, allowed: frozenset[str] = frozenset()) -> DryRun:
    """Survey and decide, as a run would. `allowed`: guards that are off. Raises: DeclarationError, OrchestratorError."""
    known = settings.configuration()
    job = known.job(name)
    if job.target.rotates:
        return _without_a_disk(settings, known, job)
    stop = compose.make_stop_request(None)
    try:
        with stop_on_signals(stop):
            planned = _look(settings, job, stop, allowed)
    except OrchestratorError as error:
        error.hint = name_hosts(say_hint(error.hint, PHRASES_OF_LOOK), job)
        raise
    removes = tuple((each.point.name, each.reason) for each in planned.going)
    decision = planned.decision
    if isinstance(decision, Refusal):
        decision = replace(decision, hint=name_hosts(decision.hint, job))
    return DryRun(decision=decision, removes=removes, short=planned.short)


def _without_a_disk(settings: Settings, known: "Configuration", job: "Job") -> DryRun:
    """Return the disk that a job would use, and a forecast for each. Why no more: a disk must be mounted to be read."""
    from orchestrator.app.disk_visits import survey_set
    from orchestrator.app.next_base import forecast_next_copy

    rotation = known.rotation(job.target.name)
    with settings.views() as views:
        stands = survey_set(rotation, known.jobs, views, now=compose.now())
        told = {disk.name: forecast_next_copy(disk, (job,), views, settings.log) for disk in rotation.disks}
    why = f"it is decided on the disk of the set {rotation.name} that is plugged in when the job runs"
    refusal = Refusal(why=why, evidence=(), hint=stands.request, outcome=Outcome.WAITING)
    return DryRun(decision=refusal, forecast=told)


def _look(settings: Settings, job: "Job", stop: "StopRequest", allowed: frozenset[str]) -> "DryRunResult":
    """Return the decision, and the points that [keep] would remove then. Create no history where there is none."""
    from orchestrator.engines.registry import load_engine
    from orchestrator.runner.dry_run import RememberedFacts, plan_job

    with settings.views() as views:
        points = views.points(job.name)
        sound = tuple(point.name for point in points if point.sound)
        ours = [each for each in points if each.place == job.target.name and (each.made_at or each.confirmed_at)]
        missed = views.problems.missed_points(job.name, job.target.name)
        known = RememberedFacts(
            facts=views.memory(job.name), sound=sound, ours=tuple(each.name for each in ours), missed=missed
        )
    where = settings.where.state
    with compose.make_reader(job, stop, settings.log) as reader:
        return plan_job(
            job, load_engine(job.engine), reader, known, state=where, now=compose.now(), allowed=allowed,
            snapshotter=compose.make_snapshotter(job),
        )  # fmt: skip


def forecast_files(settings: Settings, name: str) -> "Iterator[PlannedFile]":
    """Return the files that a run of a job would copy or remove now, as they are found. Raises: OrchestratorError."""
    from orchestrator.engines.contract.copies import FileForecaster
    from orchestrator.engines.contract.engine import implements
    from orchestrator.engines.registry import load_engine

    job = settings.configuration().job(name)
    engine = load_engine(job.engine)
    if not implements(engine, FileForecaster):
        raise OrchestratorError(
            f"{name}: the engine {job.engine} copies no single files, so none are named",
            hint=f"zfs diff -FH {quoted(job.source.path)}@SNAPSHOT {quoted(job.source.path)} lists what changed in a dataset since a snapshot; "
            f"`{settings.repeat(f'plan {name}')}` names the snapshots"
            if engine.needs_datasets
            else f"`{settings.repeat(f'plan {name}')}` shows what a run would do",
        )
    return _forecast(settings, job, engine)


def _forecast(settings: Settings, job: "Job", engine: "FileForecaster") -> "Iterator[PlannedFile]":
    from orchestrator.app.placed_jobs import jobs_on_attached_disks
    from orchestrator.engines.contract.engine import RunRequest

    stop = compose.make_stop_request(None)
    request = RunRequest(now=compose.now(), notes=f"{settings.where.state}/notes/{job.name}")
    with (
        jobs_on_attached_disks(settings, job, "a look at its files") as (placed, *_),
        stop_on_signals(stop),
        compose.make_reader(placed, stop, settings.log) as reader,
    ):
        yield from engine.forecast_files(placed, request, reader)


def allowed_guards(settings: Settings, names: Sequence[str], allow: Sequence[str]) -> frozenset[str]:
    """Return the guards that are switched off once. Raises: WrongRequest for a guard that stops none of the jobs."""
    requested = frozenset(allow)
    if not requested:
        return requested
    from orchestrator.engines.registry import load_engine
    from orchestrator.planners.guard import GUARDS

    known = settings.configuration()
    engines = [load_engine(job.engine) for job in map(known.job, names)] or [
        load_engine(job.engine) for job in known.jobs
    ]
    there = {guard for each in engines for guard in (*each.guards, *(() if "guard" in each.without else GUARDS))}
    if unknown := sorted(requested - there):
        guards = f"expected one of {', '.join(sorted(there))}" if there else "nothing guards it"
        raise WrongRequest(f"no guard {unknown[0]!r} for {' and '.join(names) or 'any job'}: {guards}")
    return requested
