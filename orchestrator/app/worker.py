"""One run as a process of its own, so that a filesystem that hangs blocks this process and not the daemon.

Also a lock of systemd-logind, where it runs, that prevents sleep while a run goes on.
"""

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping

from orchestrator import compose
from orchestrator.domain.answers import split_lines
from orchestrator.domain.due import DueRun
from orchestrator.domain.events import ProcessActivity
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Command, Effect, Pipeline, single_command
from orchestrator.domain.units import show_duration
from orchestrator.planners.watchdog import shows_activity, silence_limit
from orchestrator.process.executor import PipelineResult, Writer
from orchestrator.process.flow import TerminationPolicy
from orchestrator.process.meter import process_activity
from orchestrator.process.stop import StopRequest

# A run ends its own programs first, which takes at most 15 s, and then records how it ended.
_ALL = slice(None)
MANNERS = TerminationPolicy(steps=((0.0, signal.SIGTERM, _ALL), (60.0, signal.SIGKILL, _ALL)), give_up=65.0)
LOOK_S = 30.0
PASSED_ON = ("TZ", "CREDENTIALS_DIRECTORY", "PYTHONPATH", "POOLFERRY_DEBUG")

INHIBITOR = "/usr/bin/systemd-inhibit"
_BOOTED, _BUS = "/run/systemd/system", "/run/dbus/system_bus_socket"  # source: sd_booted(3)

Say = Callable[[str], None]


class RunProcess:
    """A run in progress. `result` None: it has not ended yet."""

    def __init__(self, job: Job, due_run: DueRun, where: compose.Directories, environment: Mapping[str, str]) -> None:
        self.job = job
        self.due = due_run
        self.result: PipelineResult | None = None
        self._stop = StopRequest()
        self._command = Command(
            argv=(
                sys.executable, "-P", "-m", "orchestrator", "--config", where.config, "--state", where.state,
                "run", "--scheduled", "--why", due_run.why, "--", job.name,
            ),
            effect=Effect.WRITES,
            environment=tuple((name, environment[name]) for name in PASSED_ON if name in environment),
        )  # fmt: skip
        self._watch = _StallWatch(job, self._stop, where.state)
        self._thread: threading.Thread | None = None

    def begin(self, say: Say, ended: Callable[[], None]) -> None:
        """Start the run. `say` receives its lines, `ended` is called from a thread of its own.

        Why a thread for each: the process gets a signal to end when the thread that started it ends.
        """
        self._thread = threading.Thread(target=self._go, args=(say, ended), name=f"run {self.job.name}", daemon=True)
        self._thread.start()

    @property
    def stuck(self) -> bool:
        """Return True when the run has shown no sign of life for too long."""
        return self._watch.stuck

    @property
    def waits(self) -> bool:
        """Return True while the run waits for a permit."""
        return self._watch.waits()

    def end(self, why: str) -> None:
        """Request the run to stop; a later run continues from there."""
        self._stop.request(why)

    def wait(self, seconds: float) -> bool:
        """Wait for the run's end up to the time limit; return True when it ended."""
        if self._thread is not None:
            self._thread.join(seconds)
        return self.result is not None

    def _go(self, say: Say, ended: Callable[[], None]) -> None:
        words = PrefixedLines(self.job.name, say)
        said = PrefixedLines(self.job.name, say)
        watch = self._watch
        watch.say = say
        try:
            self.result = Writer().stream(
                Pipeline(stages=(self._command,)), stop=self._stop, stall_after=None, manners=MANNERS, on_output=words.add, on_errors=said.add,
                on_tick=watch.look, on_start=watch.begin,
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 - a thread that dies silently would leave the job waiting for ever
            self.result = PipelineResult(exits=(None,), last_output=(f"{type(error).__name__}: {error}",))
            say(f"{self.job.name}: this is a mistake in poolferry: {type(error).__name__}: {error}")
        words.end()
        said.end()
        ended()

    def left_behind(self) -> str:
        """Return the message about processes of the run that survive a kill; empty: there are none."""
        words = "".join(self.result.last_output) if self.result else ""
        return next((line for line in split_lines(words) if "does not end even when killed" in line), "")

    def outcome(self) -> str:
        """Return how the process ended, with its last output."""
        result = self.result or PipelineResult(exits=(None,))
        code, words = result.exits[0], split_lines("".join(result.last_output).strip())
        told = "was ended" if code is None else f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
        return told + (f": {words[-1]}" if words else "")


def _unheard(_: str) -> None:
    pass


class _StallWatch:
    """A check for signs of life twice a minute, which ends a run that has shown none for too long.

    Why it does not know the run itself: two objects that hold each other live on with the descriptor of the stop request
    until a garbage collection, which may not come for many runs.
    """

    def __init__(self, job: Job, stop: StopRequest, state: str) -> None:
        self.first: tuple[int, ...] = ()
        self.say: Say = _unheard
        self.stuck = False
        self._name = job.name
        self._stop = stop
        self._state = state if job.permit else ""
        self._patience = silence_limit(job)
        self._seen: tuple[ProcessActivity, ...] = ()
        self._looked = self._lived = compose.monotonic()

    def begin(self, processes: tuple[int, ...]) -> None:
        self.first = processes
        self._looked = self._lived = compose.monotonic()

    def waits(self) -> bool:
        """Return True while the run waits for a permit, in which nothing of it moves."""
        if not self._state:
            return False
        from orchestrator.runner.progress_note import waiting_processes

        return not waiting_processes(self._state, compose.now()).isdisjoint(self.first)

    def look(self) -> None:
        now = compose.monotonic()
        if now - self._looked < min(LOOK_S, self._patience / 4) or self.stuck:
            return
        seen = tuple(each for process in self.first for each in process_activity(process))
        if shows_activity(self._seen, seen, now - self._looked) or self.waits():
            self._lived = now
        self._seen, self._looked = seen, now
        if now - self._lived >= self._patience:
            self.stuck = True
            long = show_duration(now - self._lived)
            self.say(f"{self._name}: stuck: for {long} its processes have neither worked nor moved a byte; it is ended")
            self._stop.request(f"stuck: nothing moved for {long}")


class PrefixedLines:
    """Whole lines of a run's output, each with the job's name before it. `last`: the newest of them, without the name."""

    def __init__(self, name: str, say: Say, *, kept: int = 0) -> None:
        self._name = name
        self._say = say
        self._rest = b""
        self.last: deque[str] = deque(maxlen=kept)

    def add(self, said: bytes) -> None:
        """Take a piece of the output."""
        *whole, self._rest = (self._rest + said).split(b"\n")
        for line in whole:
            self._tell(line)

    def end(self) -> None:
        """Take the end of the output: what has no line end is a line, too."""
        if self._rest:
            self._tell(self._rest)
            self._rest = b""

    def _tell(self, line: bytes) -> None:
        text = line.decode("utf-8", "surrogateescape").rstrip()
        if text:
            self.last.append(text.removeprefix(f"{self._name}: "))
        self._say(text if text.startswith(f"{self._name}: ") else f"{self._name}: {text}")


class SleepInhibitor:
    """One lock of logind, held as long as a run needs it.

    Why a program of its own beside the runs, and not around each: if it fails or is not allowed, the run continues. Why
    "block": a lock of type "delay" ends after 5 s, and a run takes longer.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._stop: StopRequest | None = None
        self._useful = bool(what) and all(os.path.exists(path) for path in (INHIBITOR, _BOOTED, _BUS))

    def need(self, wanted: bool) -> None:
        """Take the lock when the machine is needed from now on; else release it."""
        if wanted and self._stop is None and self._useful:
            self._stop = StopRequest()
            threading.Thread(target=self._hold, args=(self._stop,), name="awake", daemon=True).start()
        elif not wanted and self._stop is not None:
            self._stop.request("nothing runs any more")
            self._stop = None

    def _hold(self, stop: StopRequest) -> None:
        argv = (
            INHIBITOR, f"--what={self._what}", "--mode=block", "--who=poolferry", "--why=a backup is running", "sleep", "infinity",
        )  # fmt: skip
        Writer().stream(single_command(*argv, effect=Effect.WRITES), stop=stop, stall_after=None)
