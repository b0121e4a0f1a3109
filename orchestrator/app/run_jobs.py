"""Runs of jobs, one after the other, each with its disk visit and its restore test; pings, notices and metrics around them."""

from collections.abc import Callable, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.session import Session, open_session, open_visits
from orchestrator.app.settings import Settings, unheard
from orchestrator.domain.errors import DeclarationError, HistoryError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.machine import has_late_hook, has_subscribers
from orchestrator.domain.run import Outcome, RunReport, unrecorded_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager

    from orchestrator.app.disk_visits import DiskVisits
    from orchestrator.app.heartbeat import StartPing
    from orchestrator.config.models import Configuration
    from orchestrator.domain.drill import DrillRunResult
    from orchestrator.domain.errors import NotNow
    from orchestrator.domain.job import Job
    from orchestrator.domain.machine import MachineConfig
    from orchestrator.domain.run import VisitCause
    from orchestrator.runner.run_recorder import RunRecorder


QUEUE_PATIENCE_S = 20.0
VISIT_PATIENCE_S = (
    12 * 3600.0
)  # of all jobs that wait for permits while a disk is attached, together: a limit that is closed by day opens


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """Result of a run, and of the restore tests after it. `heals`: the jobs that hold data that a pool lost, one line each."""

    report: RunReport
    drills: "tuple[DrillRunResult, ...]"
    heals: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsEnd:
    """Results of all runs that began. `not_begun`: jobs that were requested but did not begin."""

    runs: tuple[RunEnd, ...]
    not_begun: tuple[str, ...]


def run_jobs(
    settings: Settings,
    names: Sequence[str],
    *,
    why: str,
    allowed: frozenset[str] = frozenset(),
    only_due: bool = False,
    scheduled: bool = False,
    hears: Callable[[RunEnd], None] = unheard,
) -> RunsEnd:
    """Run the jobs of these names. `only_due`: only those with a due run, of these or of all; each with its own reason.

    `scheduled`: the daemon starts them, no person. `hears`: receives each run once it has ended, and the restore test after it.
    """
    from orchestrator.domain.run import VisitCause

    cause = VisitCause.AUTOMATIC if only_due or scheduled else VisitCause.BY_HAND
    known = settings.configuration()
    declared = tuple(known.job(name) for name in dict.fromkeys(names))
    around, ends = RunObservers(settings.where, known.jobs, settings.say), list[RunEnd]()
    with (
        open_session(settings) as session,
        open_visits(settings, session, known, read_again=True, cause=cause) as visits,
        _jobs_to_run(settings, session, known, declared, why=None if only_due else why) as requested,
    ):
        patience = QueuePatience(session, each_s=QUEUE_PATIENCE_S if only_due else None)
        alone = len(declared) == 1 and not (cause is VisitCause.AUTOMATIC and declared[0].target.rotates)
        rounds = _VisitRounds(requested, known, visits, session, settings, cause)
        ordered: Iterable[tuple[Job, str]] = rounds
        if not alone:
            pausable = settings if cause is VisitCause.AUTOMATIC else None
            ordered = _permits_last(rounds, session, visits, pausable)
        for one, reason in ordered:
            begun = around.begins(one)
            with patience.of(one, attached=visits is None or visits.is_attached(one)):
                ends.append(_run(session, visits, known, one, reason, allowed))
            for report in (ends[-1].report, *(drill.report for drill in ends[-1].drills)):
                settings.subscriber.ended(report)
            hears(ends[-1])
            around.ended(one, ends[-1].report, begun)
            if session.stopped:
                break
    known_ends = {end.report.job for end in ends}
    not_begun = () if only_due else tuple(one.name for one in declared if one.name not in known_ends)
    return RunsEnd(runs=tuple(ends), not_begun=not_begun)


def all_job_names(settings: Settings) -> tuple[str, ...]:
    """Return all jobs, each after those that it runs after, without the paused ones; the subscriber hears of those."""
    from orchestrator.runner.disk.state import order_jobs

    with settings.views() as views:
        now, pauses = compose.now(), views.due_runs.pauses()
    paused = {name for name, pause in pauses.items() if pause.until is None or pause.until > now}
    names = [job.name for job in order_jobs(settings.configuration().jobs)]
    if resting := [name for name in names if name in paused]:
        settings.say(
            f"paused, so not run: {', '.join(resting)}; `{settings.repeat(f'run {resting[0]}')}` runs one all the same"
        )
    return tuple(name for name in names if name not in paused)


def _jobs_to_run(
    settings: Settings, session: "Session", known: "Configuration", declared: "Sequence[Job]", *, why: str | None
) -> "AbstractContextManager[Iterable[tuple[Job, str]]]":
    """Return the jobs to run, each once and with its reason. `why` None: those with a due run, of these jobs or of all, asked for again each time."""
    from contextlib import nullcontext

    if why is not None:
        return nullcontext(iter([(one, why) for one in declared]))
    from orchestrator.app.run_due import take_due_runs

    parallel, names = compose.read_machine_config(settings.where).clock.parallel, [one.name for one in declared]
    return take_due_runs(settings.where, known.jobs, names, session.history, parallel=parallel)


class _VisitRounds:
    """The requested jobs; after those that began a visit by themselves, also the other jobs of the disk's set. Each round asks again.

    Why the other jobs: once a disk was said to be safe to remove, nothing automatic touches it until it was away.
    """

    def __init__(
        self,
        requested: "Iterable[tuple[Job, str]]",
        known: "Configuration",
        visits: "DiskVisits | None",
        session: "Session",
        settings: Settings,
        cause: "VisitCause",
    ) -> None:
        self._requested, self._known, self._visits = requested, known, visits
        self._session, self._settings, self._cause = session, settings, cause
        self._begun = set[str]()  # also those of a set that are not due: they are asked for once

    def __iter__(self) -> "Iterator[tuple[Job, str]]":
        """Yield what is requested and was not yielded before, then what belongs to the visits."""
        for job, why in self._requested:
            yield job, why
            self._begun.add(job.name)
        yield from self._of_visits()

    def _of_visits(self) -> "Iterator[tuple[Job, str]]":
        from orchestrator.domain.run import VisitCause

        if self._cause is not VisitCause.AUTOMATIC or self._visits is None:
            return
        from orchestrator.runner.disk.state import explain_not_due, jobs_of_set, order_jobs

        for rotation in self._known.sets:
            attached = self._visits.attached(rotation)
            if attached is None or rotation.use_again:
                continue
            for job in order_jobs(jobs_of_set(rotation, self._known.jobs)):
                if job.name in self._begun:
                    continue
                self._begun.add(job.name)
                if told := explain_not_due(job, attached.disk, self._session.history.views, compose.now()):
                    self._settings.say(f"{job.name}: not now: {told}")
                else:
                    yield job, f"disk {attached.disk.name} is visited"


class QueuePatience:
    """The time for which runs of one command may wait for their permits. `each_s`: of each run; None: as its job needs.

    A run that holds a removable disk meanwhile has an end of its patience; one that holds nothing waits until it is its turn.
    """

    def __init__(self, session: "Session", *, each_s: float | None = None) -> None:
        self._session, self._each_s = session, each_s
        self._waited_s = 0.0  # of the runs that held a disk: what they took to copy is no wait

    @contextmanager
    def of(self, job: "Job", *, attached: bool = True) -> "Iterator[None]":
        """Let a run of the job wait so long in the queue as is left. What was lent for it and not used is given back afterwards.

        `attached`: the disk that it needs, if it needs one, is attached before it waits.
        """
        session, before = self._session, self._session.waited_s
        holds_disk = attached and job.permit is not None and bool(job.target.rotates or job.target.disk)
        left = max(0.0, VISIT_PATIENCE_S - self._waited_s) if holds_disk else None
        session.visit_patience_s = left
        session.queue_patience_s = left if self._each_s is None else self._each_s
        try:
            yield
        finally:
            session.drop_permit()
            if holds_disk:
                self._waited_s += session.waited_s - before


def _permits_last(
    rounds: "Iterable[tuple[Job, str]]",
    session: "Session",
    visits: "DiskVisits | None",
    pausable: "Settings | None",
) -> "Iterator[tuple[Job, str]]":
    """Yield the jobs that need not wait for a permit, then the others; each after those that it runs after.

    `rounds`: gives the jobs; asked again, what came meanwhile. `pausable`: skip a job that was paused while it waited, and tell these settings.
    """
    from orchestrator.runner.disk.state import is_paused

    while True:
        waiting: list[tuple[Job, str]] = []
        for job, why in rounds:
            if waits_for_permit(job, [each for each, _ in waiting], session, visits):
                waiting.append((job, why))
            else:
                yield job, why
        for job, why in waiting:
            if pausable is not None and is_paused(job, session.history.views, compose.now()):
                pausable.say(f"{job.name}: not now: it is paused")
            else:
                yield job, why
        if not waiting:
            return


def waits_for_permit(
    job: "Job", waiting: "Sequence[Job]", session: "Session", visits: "DiskVisits | None" = None
) -> bool:
    """Return True when a job has to wait for its permit, or for one of those that wait. Without a disk it asks for none."""
    if any(each.name in job.after for each in waiting):
        return True
    if not job.permit or not (visits is None or visits.is_attached(job) or visits.can_attach(job)):
        return False
    return session.must_wait(job)


def _is_held(absent: "NotNow") -> bool:
    from orchestrator.app.disk_visits import DiskInUse

    return isinstance(absent, DiskInUse)


def _run(
    session: "Session",
    visits: "DiskVisits | None",
    known: "Configuration",
    job: "Job",
    why: str,
    allowed: frozenset[str],
) -> RunEnd:
    """Run the job, and the restore test that is due after it, while the disk is attached."""
    from orchestrator.runner.run import run_job, wait_for_permit

    drills: list[DrillRunResult] = []
    begun: RunRecorder | None = None

    def do(placed: "Job", absent: "NotNow | None") -> "RunReport":
        if begun is None and absent is not None and _is_held(absent):
            return unrecorded_report(job.name, Outcome.WAITING, absent.why, hint=absent.hint)
        report = session.do(placed, run_job, why=why, allowed=allowed, absent=absent, begun=begun)
        if placed.drill.requested and report.outcome.well and not session.stopped:
            from orchestrator.runner.drill.drill import drill_when_due

            drills.extend(filter(None, [session.do(placed, drill_when_due)]))
        return report

    if job.permit and visits is not None and not visits.is_attached(job) and visits.can_attach(job):
        begun, ended = session.do_unplaced(job, wait_for_permit, why=why)  # meanwhile the disk is not held
        if ended is not None:
            return RunEnd(report=ended, drills=(), heals=())
        visits.can_attach(job, again=True)
    report, heals = visits.run(job, do) if visits else do(job, None), tuple[str, ...]()
    if report.outcome.well and not job.target.rotates:
        _note_scrub(session, known, job)
    if not job.copies and report.outcome is Outcome.FAILED:
        from orchestrator.planners.repair_sources import explain_pool_repair

        heals = tuple(explain_pool_repair(report.evidence, known.jobs, job.source))
    return RunEnd(report=report, drills=tuple(drills), heals=heals)


def _note_scrub(session: "Session", known: "Configuration", job: "Job") -> None:
    """Let a scrub count as a reading of the copies on its pool. A pool that cannot be looked at again is seen by the next run."""
    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.engines.registry import load_engine

    if not load_engine(job.engine).needs_datasets:
        return
    from orchestrator.domain.scrub import LOOKED, is_look_due

    now, place = compose.now(), job.target
    far = place.location.host is not None  # a login for a pool that nobody watches would be dear
    if job.copies and (far or not is_look_due(session.history.recall(job.name, LOOKED + place.name), now)):
        return
    from orchestrator.app.scrubbed_copies import note_unwatched_scrub, note_watched_scrub

    note = note_unwatched_scrub if job.copies else note_watched_scrub
    with (
        suppress(OrchestratorError),
        compose.make_reader(job, compose.make_stop_request(job), lambda _: None) as reader,
    ):
        note(session.history, job, known.jobs, reader, now)


Say = Callable[[str], None]


class RunObservers:
    """The pings, notices and metrics around runs. `jobs`: all declared ones. A wrong poolferry.toml is logged, not fatal."""

    def __init__(self, where: compose.Directories, jobs: "Sequence[Job]", say: Say) -> None:
        self._where = where
        self._jobs = jobs
        self._say = say
        # Without notices and metrics nothing of this is imported.
        self._machine = self._read() if compose.has_machine_config(where) or has_late_hook(jobs) else None

    def _read(self) -> "MachineConfig":
        try:
            return compose.read_machine_config(self._where)
        except DeclarationError as error:
            for mistake in error.mistakes:
                self._say(f"{mistake} (no notice is sent for this run)")
        from orchestrator.domain.machine import MachineConfig

        return MachineConfig()

    def begins(self, job: "Job") -> "StartPing | None":
        """Send the start ping of a run that is about to begin; return it, or None when no notices are configured."""
        if self._machine is None or not self._machine.notice:
            return None
        from orchestrator.app.heartbeat import start_ping

        return start_ping(self._where, job, self._machine, self._say)

    def ended(self, job: "Job", report: "RunReport", begun: "StartPing | None") -> None:
        """Queue the end ping of a run that is already recorded in history; then publish the changes."""
        if report.outcome is not Outcome.NOTHING:
            self._thin()
        if self._machine is None:
            return
        if self._machine.notice:
            from orchestrator.app.heartbeat import queue_end_ping

            if begun is not None:
                begun.over()
            queue_end_ping(self._where, job, report, self._machine, self._say)
        self.changed()

    def _thin(self) -> None:
        """Remove the details of old runs, as [history] keep says; a failure is logged only."""
        from orchestrator.domain.machine import HistoryOptions

        keep = (self._machine.history if self._machine else HistoryOptions()).keep
        try:
            with compose.open_history(self._where) as history:
                history.thin(compose.now() - timedelta(seconds=keep))
        except HistoryError as error:
            self._say(f"the details of old runs could not be removed: {error.why}")

    def changed(self) -> None:
        """Write the metrics and send the notices after history has changed."""
        if self._machine is None:
            return
        if self._machine.metrics.textfile:
            from orchestrator.app.metrics import write_metrics

            write_metrics(self._where, self._jobs, self._machine, compose.now(), say=self._say)
        if has_subscribers(self._jobs, self._machine):
            from orchestrator.app.notify import notify_changes

            notify_changes(self._where, self._jobs, self._machine, compose.now(), say=self._say)
