"""Acts that the status page asks for: checked again by name, recorded with who asked, and done; none destroys anything.

What is quick is done at once. What takes long is the same command that a person would type, as a process of its own.
"""

import os
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Settings, WrongRequest, unheard
from orchestrator.app.worker import MANNERS, PrefixedLines
from orchestrator.domain.act import ENDED_WITH_DAEMON, ActAnswer, ActRequest, ActVerb
from orchestrator.domain.errors import DeclarationError, HistoryError, OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import printable_line, show_name
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.domain.units import parse_duration
from orchestrator.process.executor import Writer
from orchestrator.process.stop import StopRequest

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.act import ActRecord
    from orchestrator.history.store import History

MOST_AT_ONCE = 8
MOST_A_MINUTE = 60
_LAST_LINES = 4
_AGAIN_S = 5.0  # between two tries to record how acts ended
_RESTORES = "poolferry-restored-"
_SAID = 600  # characters that are kept of the last lines
_PLAN_LINES, _PLAN_SAID = 200, 12_000  # of a plan, which is what was asked for
_PASSED_ON = ("TZ", "CREDENTIALS_DIRECTORY", "PYTHONPATH", "POOLFERRY_DEBUG")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActContext:
    """Directories and last good configuration by which acts are checked and done now."""

    where: compose.Directories
    configuration: "Configuration"


class ActRefused(Exception):
    """An act that is not done. The message says why."""


class TooMuch(ActRefused):
    """An act that is not done now, and may be asked for again in a while."""


class ActService:
    """The acts of one daemon; threads may share it. `context`: returns the present one; `processes`: False where nothing is started."""

    def __init__(
        self, history: "History", context: Callable[[], ActContext], say: Say, *, processes: bool = True
    ) -> None:  # fmt: skip
        self._history, self._context, self._say, self._processes = history, context, say, processes
        self._guard = threading.Lock()
        self._running: dict[int, _ActProcess] = {}
        self._busy: set[tuple[str, str]] = set()
        self._times: deque[float] = deque(maxlen=MOST_A_MINUTE)
        self._ends = _ActEnds(history, say)
        history.acts.end_open(ENDED_WITH_DAEMON, compose.now())

    def ask(self, request: ActRequest, who: str) -> ActAnswer:
        """Check, record and begin an act; return when it has begun, or ended. Raises: HistoryError where the history cannot be read."""
        context = self._context()
        if request.order and (before := self._history.acts.of_order(request.order)) is not None:
            return ActAnswer(accepted=True, act=before.id, said="it was asked for before")
        try:
            check_request(request, context.configuration, self._history)
            self._admit(request)
        except ActRefused as refused:
            return ActAnswer(accepted=False, act=None, said=str(refused), later=isinstance(refused, TooMuch))
        name = _who_asks(request, who)
        try:
            act = self._history.acts.asked(
                request.verb, request.subject, describe(request), name, compose.now(), order=request.order or None
            )
        except HistoryError as error:  # a full disk: nothing was begun, and it may be asked for again
            self._over(request)
            return ActAnswer(accepted=False, act=None, said=error.why, later=True)
        self._say(f"{request.subject}: {name} asks for {request.verb} {describe(request)}".rstrip())
        try:
            return self._begin(act, request, context)
        except BaseException:
            self._over(request)
            raise

    def _admit(self, request: ActRequest) -> None:
        """Count a request in. Raises: ActRefused where too much is asked for."""
        key, now = (request.verb.value, request.subject), compose.monotonic()
        with self._guard:
            if key in self._busy:
                raise ActRefused(f"{request.verb} of {request.subject} was asked for, and goes on")
            if len(self._busy) >= MOST_AT_ONCE:
                raise TooMuch(f"{MOST_AT_ONCE} requests are being carried out; ask again when one of them has ended")
            if len(self._times) == MOST_A_MINUTE and now - self._times[0] < 60:
                raise TooMuch(f"more than {MOST_A_MINUTE} requests in a minute; ask again in a while")
            self._times.append(now)
            self._busy.add(key)

    def _over(self, request: ActRequest) -> None:
        with self._guard:
            self._busy.discard((request.verb.value, request.subject))

    def _begin(self, act: int, request: ActRequest, context: ActContext) -> ActAnswer:
        settings = Settings(config=context.where.config, state=context.where.state)
        try:
            if request.verb in _QUICK:
                said = _QUICK[request.verb](settings, request)
                return self._ended(act, request, well=True, said=said)
            if not self._processes:
                raise ActRefused("this is a demonstration: nothing is copied, read or let go")
            commands = act_commands(settings, request)
        except (ActRefused, OrchestratorError, DeclarationError, WrongRequest, OSError) as error:
            return self._ended(act, request, well=False, said=str(getattr(error, "why", error)))
        plans, evacuates = request.verb is ActVerb.PLAN, request.verb is ActVerb.EVACUATE
        running = _ActProcess(
            commands, request.subject, unheard if plans else self._say, whole=plans or evacuates, apart=evacuates
        )
        with self._guard:
            self._running[act] = running

        def ended(well: bool, said: str) -> None:
            with self._guard:
                self._running.pop(act, None)
            self._ended(act, request, well=well, said=said)

        running.begin(lambda pid: self._begun(act, pid), ended)
        return ActAnswer(accepted=True, act=act, said="it has begun")

    def _ended(self, act: int, request: ActRequest, *, well: bool, said: str) -> ActAnswer:
        self._over(request)
        self._ends.write(act, well=well, said=said, now=compose.now())
        return ActAnswer(accepted=True, act=act, said=said)

    def _begun(self, act: int, pid: int) -> None:
        """Record a process of an act. Where that cannot be, only the page of the act lacks its runs."""
        try:
            self._history.acts.begun(act, pid)
        except HistoryError as error:
            self._say(f"the process {pid} of act {act} is not recorded: {error.why}")

    def end(self, patience_s: float) -> None:
        """Ask all that goes on to end, and wait for it."""
        with self._guard:
            running = tuple(self._running.values())
        for each in running:
            each.stop.request("the daemon ends")
        until = compose.monotonic() + patience_s
        for each in running:
            each.wait(max(0.0, until - compose.monotonic()))
        self._ends.write_again()


class _ActEnds:
    """Ends of acts, written into the history: once there is room again, where its disk is full. Otherwise an act would seem to go on."""

    def __init__(self, history: "History", say: Say) -> None:
        self._history, self._say = history, say
        self._guard = threading.Lock()
        self._left: dict[int, tuple[bool, str, datetime]] = {}

    def write(self, act: int, *, well: bool, said: str, now: datetime) -> None:
        """Write an end, now or later."""
        with self._guard:
            self._left[act] = well, said, now
            alone = len(self._left) == 1
        if (why := self.write_again()) and alone:
            self._say(f"how act {act} ended is recorded once that is possible: {why}")
            threading.Thread(target=self._go, name="ends of acts", daemon=True).start()

    def write_again(self) -> str:
        """Try to write all that is left; return why that cannot be, or nothing."""
        with self._guard:
            for act, (well, said, now) in tuple(self._left.items()):
                try:
                    self._history.acts.ended(act, well=well, said=said, now=now)
                except HistoryError as error:
                    return error.why
                del self._left[act]
        return ""

    def _go(self) -> None:
        while self.write_again():
            compose.sleep(_AGAIN_S)


def check_request(request: ActRequest, configuration: "Configuration", history: "History") -> None:
    """Check that all names of a request are declared, and points recorded. Raises: ActRefused."""
    if request.pool:
        from orchestrator.app.evacuate_pool import jobs_of_pool

        try:
            jobs_of_pool(request.pool, configuration.jobs)
        except WrongRequest as wrong:
            raise ActRefused(str(wrong)) from None
    if request.disk and request.disk not in [disk.name for each in configuration.sets for disk in each.disks]:
        raise ActRefused("there is no disk of this name in targets.toml")
    if not request.job:
        return
    found = next((job for job in configuration.jobs if job.name == request.job), None)
    if found is None:
        raise ActRefused("there is no job of this name")
    if request.verb in (ActVerb.VERIFY, ActVerb.RESTORE, ActVerb.DRILL) and not found.copies:
        raise ActRefused(f"{found.name} copies nothing, so there is nothing to read or to bring back")
    if request.point and request.point not in {point.name for point in history.views.points(request.job)}:
        raise ActRefused(f"history knows no such point of {request.job}")


def _who_asks(request: ActRequest, who: str) -> str:
    """Return who asks, for the record. `who`: the process at the other end, as the kernel knows it."""
    if request.order:
        return f"{request.user or 'somebody'} by the centre"
    return f"{request.user} (by proxy), through {who}" if request.user else who


def _asked_where(request: ActRequest) -> str:
    return f"ordered by {request.user or 'somebody'} at the centre" if request.order else "asked for on the status page"


def describe(request: ActRequest) -> str:
    """Return the arguments of a request besides its subject, as one line."""
    paths = ", ".join(map(show_name, request.paths))
    point = f"of point {request.point}" if request.paths else f"point {request.point}" if request.point else ""
    span, guid = f"for {request.span}" if request.span else "", f"guid {request.guid}" if request.guid else ""
    return printable_line(" ".join(filter(None, (span, guid, paths, point))))[:1000]


def find_act(settings: Settings, number: int) -> "ActRecord | None":
    """Return one act; None: there is none of this number. Raises: HistoryError."""
    with settings.views() as views:
        return views.acts.of(number)


def list_acts(settings: Settings, limit: int, *, subject: str | None = None) -> "tuple[ActRecord, ...]":
    """Return the newest acts, of one job or disk or of all. Raises: HistoryError."""
    with settings.views() as views:
        return views.acts.newest(limit, subject=subject)


# What each verb does.


def _pause(settings: Settings, request: ActRequest) -> str:
    from orchestrator.app.local_clock import local_calendar
    from orchestrator.app.schedule_report import pause_jobs

    _, until = pause_jobs(
        settings, (request.job,), parse_duration(request.span) if request.span else None, _asked_where(request)
    )
    return f"rests until {local_calendar().show(until)}" if until else "rests until it is resumed"


def _resume(settings: Settings, request: ActRequest) -> str:
    from orchestrator.app.schedule_report import resume_jobs

    return "runs again at its times" if resume_jobs(settings, (request.job,))[request.job] else "it did not rest"


def _snooze(settings: Settings, request: ActRequest) -> str:
    from orchestrator.app.disk_book import snooze_disk
    from orchestrator.views.format import format_clock

    now = compose.now()
    until = snooze_disk(settings, request.disk, parse_duration(request.span), "asked for on the status page", now)
    return f"it is not expected until {format_clock(until, now=now)}" if until else "it is waited for again"


def _acknowledge(settings: Settings, request: ActRequest) -> str:
    """Return the state that somebody has looked at, for the record; nothing is silenced."""
    from orchestrator.app.job_status import survey_jobs

    (status,) = survey_jobs(settings, (request.job,), compose.now()).jobs
    return f"seen as {status.health.state}: {status.health.why}"[:_SAID]


_QUICK: dict[ActVerb, Callable[[Settings, ActRequest], str]] = {
    ActVerb.PAUSE: _pause, ActVerb.RESUME: _resume, ActVerb.SNOOZE: _snooze, ActVerb.ACKNOWLEDGE: _acknowledge,
}  # fmt: skip


def act_commands(settings: Settings, request: ActRequest) -> tuple[Command, ...]:
    """Return the commands of a request as programs to start. Raises: OSError · DeclarationError."""
    return tuple(
        Command(
            argv=(
                sys.executable, "-P", "-m", "orchestrator", "--config", settings.where.config, "--state", settings.where.state, *words,
            ),
            effect=Effect.WRITES,
            environment=tuple((name, os.environ[name]) for name in _PASSED_ON if name in os.environ),
        )
        for words in act_words(settings, request)
    )  # fmt: skip


def act_words(settings: Settings, request: ActRequest) -> tuple[tuple[str, ...], ...]:
    """Return the commands of ours that do it, one after the other. Raises: OSError · DeclarationError.

    A restore goes into a new folder, which is made here: a name that somebody else could make before is never used.
    """
    match request.verb:
        case ActVerb.RUN:
            return (("run", "--why", _asked_where(request), "--", request.job),)
        case ActVerb.PLAN:
            return (("plan", "--", request.job),)
        case ActVerb.VERIFY:
            return (("verify", *(("--point", request.point) if request.point else ()), "--", request.job),)
        case ActVerb.DRILL:
            return (("drill", "--", request.job),)
        case ActVerb.EVACUATE:
            return (
                (
                    "evacuate",
                    *(("--guid", request.guid) if request.guid else ()),
                    "--why",
                    _asked_where(request),
                    "--",
                    request.pool,
                ),
            )
        case ActVerb.EJECT:
            return (("disks", "eject", "--", request.disk),)
        case ActVerb.RESTORE:
            folder = new_restore_folder(settings, request.job)
            return tuple(_restore(request, path, folder) for path in request.paths)
        case _:
            raise ActRefused(f"{request.verb} is no act with a command of its own")


def _restore(request: ActRequest, path: bytes, folder: str) -> tuple[str, ...]:
    name = os.fsdecode(path)
    return ("restore", "run", "--point", request.point, f"--path={name}", "--to", f"{folder}/{name}", "--", request.job)


def new_restore_folder(settings: Settings, job: str) -> str:
    """Make a new folder for what is restored, which only its owner may enter; return its path. Raises: OSError."""
    below = compose.read_machine_config(settings.where).web.restore_below
    return tempfile.mkdtemp(prefix=f"{_RESTORES}{job}-", dir=below)


class _ActProcess:
    """Commands of ours in a row, each a process of its own; the first that fails ends the row.

    `whole`: all that it prints is what was asked for; of the others the last lines say enough. `apart`: what it says on stderr is not.
    """

    def __init__(self, commands: Sequence[Command], name: str, say: Say, *, whole: bool, apart: bool = False) -> None:
        self._commands, self._name, self._say, self._whole, self._apart = commands, name, say, whole, apart
        self.stop = StopRequest()
        self._thread: threading.Thread | None = None

    def begin(self, begun: Callable[[int], None], ended: Callable[[bool, str], None]) -> None:
        """Start them. `begun` receives the process of each; `ended` whether all ended well, and what was said last.

        Why a thread: a process gets a signal to end when the thread that started it ends.
        """
        self._thread = threading.Thread(target=self._go, args=(begun, ended), name=f"act {self._name}", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait for the end, up to a limit."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _go(self, begun: Callable[[int], None], ended: Callable[[bool, str], None]) -> None:
        well, said = True, ""
        try:
            for command in self._commands:
                well, said = self._one(command, begun)
                if not well:
                    break
        except Exception as error:  # noqa: BLE001 - a thread that dies silently would leave the act open for ever
            well, said = False, f"this is a mistake in poolferry: {type(error).__name__}: {error}"
        ended(well, said)

    def _one(self, command: Command, begun: Callable[[int], None]) -> tuple[bool, str]:
        lines = PrefixedLines(self._name, self._say, kept=_PLAN_LINES if self._whole else _LAST_LINES)
        aside = PrefixedLines(self._name, self._say, kept=_LAST_LINES) if self._apart else lines
        result = Writer().stream(
            Pipeline(stages=(command,)), stop=self.stop, stall_after=None, manners=MANNERS, on_output=lines.add, on_errors=aside.add,
            on_start=lambda processes: begun(processes[0]),
        )  # fmt: skip
        lines.end()
        aside.end()
        said = "\n".join(lines.last) or "\n".join(aside.last) or "\n".join(result.last_output).strip()
        if self._apart:
            return result.well, said[-_PLAN_SAID:]  # the line that counts is the last one
        return result.well, said[:_PLAN_SAID] if self._whole else said[-_SAID:]
