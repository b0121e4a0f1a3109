"""The daemon's main loop: read, check, start due runs, wait for a wakeup; until the end."""

import os
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app import local_clock as timekeeping
from orchestrator.app.acts import ActContext, ActService
from orchestrator.app.beside_process import BesideProcess
from orchestrator.app.config_cache import LoadedConfig, config_fingerprint, config_for_runs, reload_config
from orchestrator.app.due_check import DueCheckResult, JobHistoryCache, check_due, next_scheduled_time, retry_unrecorded
from orchestrator.app.pidfile import DaemonPresence, hold_daemon_lock
from orchestrator.app.settings import Settings
from orchestrator.app.source_thaw import release_held_sources
from orchestrator.app.uncovered import remember_uncovered
from orchestrator.app.worker import RunProcess, SleepInhibitor
from orchestrator.daemon.control_socket import ControlSocket
from orchestrator.daemon.notifier import Notifier
from orchestrator.daemon.sd_notify import ServiceManager
from orchestrator.daemon.wakeup import SignalRequests, Wakeup, listen_to_signals
from orchestrator.domain.due import Downtime, DowntimeCause, DueRun
from orchestrator.domain.errors import DeclarationError, HistoryError, OrchestratorError
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.machine import INHIBITS
from orchestrator.domain.schedule import CronSchedule, DailySchedule, parse_normal_schedule
from orchestrator.domain.units import show_count, show_duration
from orchestrator.schedule.clockwork import EVERY_S, ScheduleTimers

if TYPE_CHECKING:
    from orchestrator.app.fleet_process import SenderProcess

LOOK_S = 25.0
BESIDE_S = 3600.0
READ_S = 1800.0  # between two looks whether copies are to be read again
DRAIN_S = 70.0
_BESIDE_ENDS_S = 10.0
_STILL = 4 * EVERY_S  # without a tick for so long the timers have stopped
Say = Callable[[str], None]


class Daemon:
    """One daemon, from its start to its end."""

    def __init__(self, where: compose.Directories, say: Say) -> None:
        self._where = where
        self._say = say
        self._wakeup = Wakeup()
        self._manager = ServiceManager()
        self._running: dict[str, RunProcess] = {}
        self._abandoned: set[str] = set()
        self._ticked = compose.monotonic()
        self._looked = compose.now()
        self._seen: DueCheckResult | None = None
        self._beside = float("-inf")
        self._beside_look: threading.Thread | None = None
        self._soon: tuple[datetime, str] | None = None  # the next scheduled time of all, and its job

    def live(self) -> int:
        """Run until a signal ends the daemon. Raises: DeclarationError · HistoryError · NotNow: another one runs."""
        with (
            hold_daemon_lock(self._where.state),
            compose.open_history(self._where) as history,
            listen_to_signals(self._wakeup) as heard,
        ):
            self._history, self._book = history, history.due_runs
            self._begin()
            while not heard.end:
                if heard.reload:
                    heard.reload = False
                    self._reload()
                self._look()
                self._wakeup.wait(self._patience())
            self._drain(heard)
        return 0

    def _begin(self) -> None:
        now = compose.now()
        self._memory = JobHistoryCache(self._book)
        self._kept = reload_config(self._where, None)
        self._changed = self._kept.mark
        self._complain()
        self._heal()
        who = compose.process_identity()
        self._presence = DaemonPresence(self._book, boot=who.boot, pid=who.pid, now=now)
        self._calendar, self._zone = timekeeping.local_calendar(), timekeeping.zone_fingerprint()
        self._clockwork = ScheduleTimers(self._wakeup.ring, self._tick)
        self._awake = SleepInhibitor(INHIBITS[self._kept.machine.clock.inhibit])
        self._teller = Notifier(self._where, self._say)
        self._sender: SenderProcess | None = None
        self._reader: BesideProcess | None = None
        self._teller.take(self._kept)
        self._take(self._kept)
        for absence in (each for each in self._presence.absences if not each.restart):
            self._say(_describe_start(absence, self._calendar.show))
        self._listen()
        self._see(now)  # first the results of earlier runs, which may postpone the next try
        self._book.try_at_once()
        self._manager.ready()
        release_held_sources(self._where, self._kept.configuration.jobs, self._history, say=self._say)

    def _listen(self) -> None:
        """Begin to take requests: without the control socket all runs go on as they are due, and the status page only shows."""
        self._acts = ActService(self._history, self._act_context, self._say)
        self._control: ControlSocket | None = None
        self._open_control()

    def _open_control(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        try:
            self._control = ControlSocket(self._where, self._acts.ask, self._say)
        except OSError as error:
            self._say(f"no control socket, so the status page cannot ask for anything: {error}")

    def _act_context(self) -> ActContext:
        kept = self._kept
        where = replace(self._where, config=config_for_runs(self._where, kept))
        return ActContext(where=where, configuration=kept.configuration)

    def _tick(self) -> None:
        self._ticked = compose.monotonic()

    # The configuration

    def _reload(self) -> None:
        self._manager.reloading()
        self._kept = reload_config(self._where, self._kept)
        self._changed = config_fingerprint(self._where.config)
        self._complain()
        self._take(self._kept)
        self._teller.take(self._kept)
        self._open_control()  # its group may be new
        self._manager.ready()

    def _complain(self) -> None:
        """Report the mistakes of the files, once for each change, and which configuration stays in use."""
        for mistake in self._kept.mistakes:
            self._say(mistake)
        number = show_count(len(self._kept.mistakes), "mistake")
        if self._kept.mistakes:
            self._say(f"the configuration has {number}: the last good one stays in use; send SIGHUP once it is mended")
        else:
            jobs = show_count(len(self._kept.configuration.jobs), "job")
            self._say(f"read {self._where.config}: {jobs}, {self._kept.machine.clock.parallel} at once at most")
        if self._kept.no_copy:
            self._say(f"no copy of the configuration could be kept, so mind how you change it: {self._kept.no_copy}")

    def _take(self, kept: LoadedConfig) -> None:
        jobs = kept.configuration.jobs
        schedules = {parse_normal_schedule(job.schedule) for job in jobs if job.schedule}
        timed = tuple(each for each in schedules if isinstance(each, CronSchedule | DailySchedule))
        self._clockwork.ring_at(timed, self._calendar)
        gone = {*self._book.anchors(), *self._book.due()} - {job.name for job in jobs}
        if gone:
            self._book.forget(gone)
        self._memory.forget()
        self._soon = None

    def _notice_changes(self) -> None:
        """Report once a change of the configuration files that is not loaded yet, or of the time zone."""
        now = config_fingerprint(self._where.config)
        if now != self._changed:
            self._changed = now
            self._say("the configuration has changed since it was read; SIGHUP (systemctl reload) takes it in")
        zone = timekeeping.zone_fingerprint()
        if zone != self._zone:
            self._zone, self._calendar = zone, timekeeping.local_calendar()
            self._say("the machine's time zone has changed")
            self._take(self._kept)

    # One check

    def _look(self) -> None:
        now = compose.now()
        try:
            absence = self._presence.look(now)
            if absence is not None:
                self._say(_describe_start(absence, self._calendar.show))
            self._clockwork.wake()
            self._notice_changes()
            ended = self._collect(now)
            seen = self._see(now)
            for due_run in seen.turn.begin:
                self._start(due_run)
            self._look_beside()
            self._keep_sender()
            self._keep_reader()
            self._tell(seen, now, changed=bool(ended or seen.fresh or seen.over or seen.turn.begin))
        except HistoryError as error:
            self._say(f"{error.why}; {error.hint}")
            self._manager.status(error.why)
        if compose.monotonic() - self._ticked < _STILL:
            self._manager.alive()

    def _look_beside(self) -> None:
        """Look once an hour, beside the loop, at what no job copies: the status page shows it, and may not look itself."""
        instant = compose.monotonic()
        if instant - self._beside < BESIDE_S or (self._beside_look is not None and self._beside_look.is_alive()):
            return
        self._beside = instant
        settings = Settings(config=config_for_runs(self._where, self._kept), state=self._where.state)

        def look() -> None:
            try:
                remember_uncovered(settings)
            except DeclarationError:
                return  # changed since: what is wrong in the files is said where they are read, and the next look knows
            except (OrchestratorError, OSError) as error:
                self._say(f"what no job copies could not be looked at: {error}")

        self._beside_look = threading.Thread(target=look, name="beside", daemon=True)
        self._beside_look.start()

    def _keep_sender(self) -> None:
        """Keep the process that tells the centre of a fleet. Imported late: few machines have one."""
        centre = self._kept.machine.fleet.centre
        if self._sender is None and centre is not None:
            from orchestrator.app.fleet_process import SenderProcess

            self._sender = SenderProcess(self._where, os.environ, self._say)
        if self._sender is not None:
            self._sender.keep(centre)

    def _keep_reader(self) -> None:
        """Keep the process that reads copies again where a job promises it. Why one beside: hours of reading must hold up no run of the job."""
        wanted = any(job.verify.read_all_within and not job.target.rotates for job in self._kept.configuration.jobs)
        if self._reader is None and wanted:
            self._reader = BesideProcess(
                "read again", ("verify", "--due"), self._where, os.environ, self._say, again_s=READ_S, ends=True
            )
        if self._reader is not None:
            self._reader.keep(wanted=wanted, config=lambda: config_for_runs(self._where, self._kept))

    def _see(self, now: datetime) -> DueCheckResult:
        patient = [name for name, run in self._running.items() if run.waits]
        seen = check_due(
            self._kept.configuration.jobs, self._book, self._memory, now=now, calendar=self._calendar, book=self._book,
            parallel=self._kept.machine.clock.parallel, patient=patient, running=tuple(self._running), abandoned=self._abandoned,
            absences=self._presence.absences, state=self._where.state,
        )  # fmt: skip
        for over in seen.over:
            self._say(f"{over.job}: is no longer due: {over.why}")
        for due_run in seen.fresh:
            self._say(f"{due_run.job}: a run is due: {due_run.why}")
        if seen.over or seen.fresh:
            self._memory.forget()
        self._seen = seen
        return seen

    def _start(self, due_run: DueRun) -> None:
        job = self._kept.configuration.job(due_run.job)
        where = replace(self._where, config=config_for_runs(self._where, self._kept))
        running = RunProcess(job, due_run, where, os.environ)
        self._running[job.name] = running
        self._awake.need(True)
        running.begin(self._say, self._wakeup.ring)

    def _collect(self, now: datetime) -> list[RunProcess]:
        """Handle and return the runs that have ended; repair and retry those that died without a record."""
        ended = [running for running in self._running.values() if running.result is not None]
        if not ended:
            return []
        self._heal()
        self._memory.forget()
        for running in ended:
            name = running.job.name
            del self._running[name]
            if left := running.left_behind():
                self._say(f"{name}: {left}; it is left behind, and other places go on")
                self._abandoned.add(name)
            due_run = self._book.due().get(name)
            if due_run is not None and due_run.scheduled_at != running.due.scheduled_at:
                due_run = None  # another one, due since: this run was recorded and served its own
            past = self._memory.past((name,), {name: due_run}).get(name) if due_run else None
            again = retry_unrecorded(due_run, past, running.outcome(), now) if due_run and past else None
            if again is not None:
                self._say(f"{name}: {again.told}; it is tried again at {self._calendar.show(again.not_before or now)}")
                self._book.write(due_runs=(again,))
        self._memory.forget()
        if not self._running:
            self._awake.need(False)
        return ended

    def _heal(self) -> None:
        for run in self._history.heal(compose.is_process_alive, compose.now()):
            self._say(
                f"run {run} ended without a record: killed, crashed, or the state directory was full; it is recorded as interrupted"
            )

    # Reports to others

    def _tell(self, seen: DueCheckResult, now: datetime, *, changed: bool) -> None:
        names = ", ".join(self._running) or "nothing"
        waits = f"; {show_count(len(seen.turn.waiting), 'due run waits', 'due runs wait')}" if seen.turn.waiting else ""
        if changed or self._soon is None or self._soon[0] <= now or now < self._looked:
            slots = [
                (scheduled_at, job.name)
                for job in self._kept.configuration.jobs
                if (scheduled_at := self._next(job.name, now))
            ]
            self._soon = min(slots, default=None)
        self._looked = now
        soon = f"; next {self._soon[1]} at {self._calendar.show(self._soon[0])}" if self._soon else ""
        broken = "the configuration has mistakes; " if self._kept.mistakes else ""
        self._manager.status(f"{broken}running: {names}{waits}{soon}")
        awake = max(
            (each.ended for each in self._presence.absences if each.away is not DowntimeCause.SET and not each.restart),
            default=None,
        )
        self._teller.notify(now, awake, changed=changed)

    def _next(self, name: str, now: datetime) -> datetime | None:
        job = self._kept.configuration.job(name)
        return next_scheduled_time(job, self._seen.past.get(name) if self._seen else None, self._calendar, now)

    def _patience(self) -> float:
        """Return how long to wait for a wakeup: until something is due, and always less than the watchdog allows."""
        now = compose.now()
        whens = [waiting.until for waiting in self._seen.turn.waiting if waiting.until] if self._seen else []
        whens += [self._soon[0]] if self._soon else []
        left = [(when - now).total_seconds() for when in whens if when > now]
        return min([LOOK_S, self._manager.ping_s or LOOK_S, *(max(0.05, each) for each in left)])

    # The end

    def _drain(self, heard: SignalRequests) -> None:
        self._manager.stopping()
        self._say(f"ends ({heard.end})" + (f"; asks {', '.join(self._running)} to end too" if self._running else ""))
        for running in self._running.values():
            running.end("the daemon ends")
        for beside in (self._sender, self._reader):
            if beside is not None:
                beside.end(0.0)
        until = compose.monotonic() + DRAIN_S
        if self._control is not None:
            self._control.close()
        self._acts.end(DRAIN_S)
        for running in self._running.values():
            if not running.wait(max(0.0, until - compose.monotonic())):
                self._say(f"{running.job.name}: has not ended within {show_duration(DRAIN_S)}; it is left behind")
        self._heal()
        self._awake.need(False)
        self._clockwork.stop()
        self._teller.stop()
        for beside in (self._sender, self._reader):
            if beside is not None:
                beside.end(_BESIDE_ENDS_S)
        self._presence.end(compose.now())


def _describe_start(absence: Downtime, show: Callable[[datetime], str]) -> str:
    long = show_duration((absence.ended - absence.begun) / timedelta(seconds=1))
    or_later, at_most = (" or later", "at most ") if absence.latest else ("", "")
    return f"{absence.away} from {show(absence.begun)}{or_later} to {show(absence.ended)} ({at_most}{long})"
