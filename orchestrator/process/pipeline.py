"""A pipeline: its start, its result, and the stage that failed with its last output.

It finds the programs, connects them by pipes and starts each in a session of its own. Bytes between two stages can be counted
inside the kernel, exactly.
"""

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from enum import StrEnum

from orchestrator.domain.command_line import evidence_line, ssh_argv
from orchestrator.domain.errors import Evidence, OrchestratorError, RetryClass
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.names import make_printable
from orchestrator.domain.plan import Command, Pipeline
from orchestrator.process.link_wall import Side, WalledCommand, wall_off
from orchestrator.process.meter import living_processes
from orchestrator.process.program_path import SYSTEM_PATH, is_missing

_PASSED_ON = ("SSH_AUTH_SOCK", "TMPDIR")
_SETPRIV = "/usr/bin/setpriv"


class StopReason(StrEnum):
    """Reason why poolferry ended a pipeline."""

    STOPPED = "stopped"  # on request
    STALLED = "stalled"  # nothing moved for too long
    TIMED_OUT = "timed out"  # a reading took longer than it may
    FLOODED = "too much output"  # a reading printed more than fits into memory
    LET_GO = "let go"  # nothing reads its output any more: the caller left early, or its callback raised


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineResult:
    """Result of a pipeline. `exits`: per stage, negative for signals, None if unknown; without meaning if `stopped`.

    `moved`: bytes that passed the counted stage, else bytes added to `keeps`, else None (unknown). `links_lead`: where root's rsync
    could not be started behind the wall against links.
    """

    exits: tuple[int | None, ...]
    stdout: bytes = b""
    last_output: tuple[str, ...] = ()
    took_s: float = 0.0
    moved: int | None = None
    stopped: StopReason | None = None
    links_lead: frozenset[Side] = frozenset()

    @property
    def culprit(self) -> int | None:
        """Return the stage to blame; None when all is well, and after a kill by poolferry."""
        return None if self.stopped else culprit(self.exits)

    @property
    def well(self) -> bool:
        """Return True when every stage ended well by itself: only then the output is complete."""
        return self.stopped is None and culprit(self.exits) is None


class Forbidden(OrchestratorError):
    """A pipeline that its executor may not run: a mistake in our own code, like a TypeError."""

    retry = RetryClass.NEVER


class PipelineFailed(Exception):
    """A failed pipeline without an explanation yet: engines turn its evidence into an OutsideError."""

    def __init__(self, pipeline: Pipeline, result: PipelineResult, evidence: Evidence) -> None:
        stage = result.culprit
        said = result.last_output[stage] if stage is not None and stage < len(result.last_output) else ""
        how = result.stopped or f"exit {result.exits[stage] if stage is not None else result.exits}"
        super().__init__(f"{pipeline}: {how}" + (f": {said}" if said else ""))
        self.pipeline = pipeline
        self.result = result
        self.evidence = evidence


def pipeline_failure(pipeline: Pipeline, result: PipelineResult, ssh_options: tuple[str, ...] = ()) -> PipelineFailed:
    """Build the exception for a failed pipeline, with its evidence; `host`: of the blamed stage, or the first host."""
    hosts = [stage.host for stage in pipeline.stages]
    blamed = hosts[result.culprit] if result.culprit is not None else next((host for host in hosts if host), None)
    evidence = Evidence(
        lines=tuple(evidence_line(stage, ssh_options) for stage in pipeline.stages),
        exits=result.exits,
        last_output=result.last_output,
        host=str(blamed) if blamed else None,
    )
    return PipelineFailed(pipeline, result, evidence)


# A shell on the other side of ssh reports a death by signal as 128 + its number.
_PIPE_CLOSED = (-signal.SIGPIPE.value, 128 + signal.SIGPIPE.value)


def culprit(exits: tuple[int | None, ...]) -> int | None:
    """Return the index of the stage to blame; None when every stage ended well.

    The rightmost status that is neither 0 nor a SIGPIPE; if only SIGPIPEs remain, the stage after the last of them (it stopped
    reading too early), or that one itself where none follows. An unknown status (None: the stage was never started) is blamed
    only when no other is. Why: a stage that dies ends the stages before it by SIGPIPE, and the stages after it get a short
    stream.
    """
    failed = [index for index, status in enumerate(exits) if status not in (0, None, *_PIPE_CLOSED)]
    if failed:
        return failed[-1]
    cut_off = [index for index, status in enumerate(exits) if status in _PIPE_CLOSED]
    if cut_off:
        return min(cut_off[-1] + 1, len(exits) - 1)
    return exits.index(None) if None in exits else None


MOST_BYTES = 8 << 10


class StderrTail:
    """The last 8 KiB of a stage's output; `seen` counts all of it."""

    def __init__(self) -> None:
        self.seen = 0
        self._kept = bytearray()

    def add(self, said: bytes) -> None:
        """Add output and drop the oldest."""
        self.seen += len(said)
        self._kept += said
        del self._kept[:-MOST_BYTES]

    @property
    def text(self) -> str:
        """Return the text, in whole lines where possible; begins with "…" when earlier text was dropped."""
        kept = bytes(self._kept)
        if self.seen <= MOST_BYTES:
            return printable_text(kept)
        _, end, rest = kept.partition(b"\n")
        return "…\n" + printable_text(rest if end and rest else kept)


def printable_text(said: bytes) -> str:
    r"""Convert any bytes to printable text: carriage returns end lines, bytes that are no UTF-8 show as \xff."""
    text = said.decode("utf-8", "surrogateescape").replace("\r\n", "\n").replace("\r", "\n")
    return make_printable(text).strip("\n")


WIDE = 1 << 20
_AT_ONCE = 16  # turns before other descriptors are handled
_ENOUGH = WIDE // 2  # bytes worth a turn; as many fit into the pipe meanwhile
_BEGUN = 8 << 20  # bytes; a smaller stream ends before its turns matter, and must not wait for a rest
_SHORTEST_REST, _LONGEST_REST = 0.01, 0.1  # seconds


def wide_pipe() -> tuple[int, int]:
    """Return (read end, write end) of a pipe of 1 MiB, or as wide as the system allows; neither is inherited.

    Why: 64 KiB pipes carry 1.2 GiB/s, 1 MiB pipes 4.5.
    """
    source, sink = os.pipe()
    # Refused when all pipes of one user hold too much together: a narrow pipe carries the same bytes.
    with contextlib.suppress(PermissionError):
        fcntl.fcntl(sink, fcntl.F_SETPIPE_SZ, WIDE)
    return source, sink


class Relay:
    """A pump from one pipe into the next by splice that counts the bytes. It never blocks: `wants` returns what to poll.

    `rests_until`: when to poll it again, by the monotonic clock; until then the pipes fill and drain. Why: a turn costs 0.1 ms
    of processor time, and a stream of 10 MB/s needed 80 turns a second.
    """

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.sink = sink
        self.moved = 0
        self.closed = False
        self.rests_until = 0.0
        self._turned = time.monotonic()
        self._full = False
        os.set_blocking(source, False)
        os.set_blocking(sink, False)

    def wants(self) -> dict[int, int]:
        """Return the ends to poll and their events; always the sink, which shows that its reader has left."""
        if self.rests_until:
            return {self.sink: 0}
        if self._full:
            return {self.sink: select.POLLOUT}
        return {self.source: select.POLLIN, self.sink: 0}

    def turn(self, failed: bool = False) -> None:
        """Move what can be moved now. `failed`: the poll showed that nothing reads the sink any more."""
        if failed:
            return self.close()
        before, self.rests_until = self.moved, 0.0
        try:
            for _ in range(_AT_ONCE):
                moved = os.splice(self.source, self.sink, WIDE, flags=os.SPLICE_F_NONBLOCK | os.SPLICE_F_MOVE)
                if not moved:
                    return self.close()
                self.moved += moved
            self._full = False
        except BlockingIOError:
            self._full = _readable(self.source)
        except BrokenPipeError:
            return self.close()
        self._rest(self.moved - before)
        return None

    def _rest(self, moved: int) -> None:
        """Set the rest to the time that the next half pipe takes at the speed of this turn."""
        now = time.monotonic()
        took, self._turned = now - self._turned, now
        if moved and self.moved >= _BEGUN:
            rest = min(_LONGEST_REST, took * _ENOUGH / moved)
            self.rests_until = now + rest if rest >= _SHORTEST_REST else 0.0

    def close(self) -> None:
        """Close both ends: the stage before gets SIGPIPE, the stage after sees the end of its input."""
        if not self.closed:
            self.closed = True
            os.close(self.source)
            os.close(self.sink)


def _readable(source: int) -> bool:
    poll = select.poll()
    poll.register(source, select.POLLIN)
    return bool(poll.poll(0))


CHUNK = 256 << 10
JOINED = -1  # as an output: it joins the stage's error output


class PipelinePipes:
    """Input and output of every stage in `ends`; `output`, `kept` and `relay` belong to this process.

    `output`: the last stage's output for us to read. `kept`: the file that collects it, without passing through this process.
    With neither, the output joins the stage's error output.
    """

    def __init__(self, pipeline: Pipeline, *, output: bool, counted: bool) -> None:
        self.ends: list[tuple[int, int]] = []
        self.output: int | None = None
        self.kept: int | None = None
        self._kept_before = self._kept_told = 0
        self.relay: Relay | None = None
        self._theirs = contextlib.ExitStack()
        self._ours = contextlib.ExitStack()
        try:
            self._lay(pipeline, output, counted)
        except BaseException:
            self.let_go()
            self.close()
            raise

    def let_go(self) -> None:
        """Close our copies of the children's descriptors; only then do the children see the end of their input."""
        self._theirs.close()

    def close(self) -> None:
        """Close our own descriptors."""
        if self.relay:
            self.relay.close()
        self._ours.close()

    @property
    def moved(self) -> int | None:
        """Return the counted bytes, else those added to the output file; None when unknown."""
        return self.relay.moved if self.relay is not None else self.kept_bytes

    @property
    def kept_bytes(self) -> int | None:
        """Return the bytes added to the output file; None without one."""
        return None if self.kept is None else os.fstat(self.kept).st_size - self._kept_before

    def kept_since(self) -> Iterator[bytes]:
        """Yield the data added to the output file since the last call, in pieces."""
        while self.kept is not None and (piece := os.pread(self.kept, CHUNK, self._kept_told)):
            self._kept_told += len(piece)
            yield piece

    def _lay(self, pipeline: Pipeline, output: bool, counted: bool) -> None:
        source = self._hold(self._theirs, os.open(pipeline.reads or os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        if pipeline.keeps:
            how = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self.kept = self._hold(self._ours, os.open(pipeline.keeps, how, 0o600))
            self._kept_before = self._kept_told = os.fstat(self.kept).st_size
        for index in range(len(pipeline.stages) - 1):
            after, sink = self._joint(counted and index == pipeline.counts)
            self.ends.append((source, sink))
            source = after
        self.ends.append((source, self._last_sink(output)))

    def _joint(self, counted: bool) -> tuple[int, int]:
        """Create a pipe; return (where the next stage reads, where this one writes)."""
        after, sink = self._pipe(self._theirs, self._theirs) if not counted else wide_pipe()
        if counted:
            self._hold(self._theirs, sink)
            onward, far_sink = wide_pipe()
            self.relay = Relay(after, far_sink)
            after = self._hold(self._theirs, onward)
        return after, sink

    def _last_sink(self, output: bool) -> int:
        if not output:
            return JOINED if self.kept is None else self.kept
        self.output, sink = self._pipe(self._ours, self._theirs)
        os.set_blocking(self.output, False)
        return sink

    def _pipe(self, reader: contextlib.ExitStack, writer: contextlib.ExitStack) -> tuple[int, int]:
        source, sink = wide_pipe()
        return self._hold(reader, source), self._hold(writer, sink)

    @staticmethod
    def _hold(holder: contextlib.ExitStack, descriptor: int) -> int:
        holder.callback(os.close, descriptor)
        return descriptor


_END_NOW = 5.0
# Stages that even SIGKILL did not end (they wait for a dead disk): kept, so that they are reaped when they end after all.
_LEFT_BEHIND: list[subprocess.Popen[bytes]] = []


class PipelineStage:
    """One program and its children. It is reaped last, so that its pid, which names its group, is not reused.

    `errors`: where to read its error output; `exit_wakeup`: readable once it has ended. `names`: see `WalledCommand`; `links_lead`: see
    `PipelineResult`.
    """

    def __init__(
        self, *, command: Command, process: subprocess.Popen[bytes], errors: int, walled: WalledCommand
    ) -> None:
        self.command = command
        self.names = walled.names
        self.links_lead = walled.open
        self.errors = errors
        self.words = StderrTail()
        self.alive = True
        self.status: int | None = None
        self.group = process.pid
        self.exit_wakeup = _exit_descriptor(process.pid)
        self._process = process
        os.set_blocking(errors, False)

    def note_exit(self) -> None:
        """Record the exit status; None when it cannot be known.

        Why not Popen's status: where our parent made us ignore SIGCHLD it is always 0.
        """
        self.alive = False
        with contextlib.suppress(OSError):
            end = os.waitid(os.P_PIDFD, self.exit_wakeup, os.WEXITED | os.WNOWAIT)
            if end is not None:
                self.status = end.si_status if end.si_code == os.CLD_EXITED else -end.si_status

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the group and wake it, as a stopped process gets none; SIGKILL goes to the whole session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, number)
            os.killpg(self.group, signal.SIGCONT)
        if number == signal.SIGKILL:
            for member in living_processes({self.group}):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(member.pid, number)

    def left_behind(self) -> str:
        """Return one line about its processes that do not end; empty when there are none."""
        left = ", ".join(f"{member.pid} (state {member.state})" for member in living_processes({self.group}))
        return f"{self.command.argv[0]}: does not end even when killed: process {left}" if left else ""

    def end_now(self) -> None:
        """Kill the program and release it."""
        self.send(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_NOW)
        self.let_go()

    def let_go(self) -> None:
        """Reap the process and close our descriptors for it."""
        if self._process.poll() is None:
            _LEFT_BEHIND.append(self._process)
        os.close(self.exit_wakeup)
        os.close(self.errors)


def _exit_descriptor(pid: int) -> int:
    """Return a descriptor that is readable once the process ended; at once if SIGCHLD is ignored and it is gone."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return os.eventfd(1, os.EFD_CLOEXEC)


def reap_left_behind() -> None:
    """Reap left-behind processes that have ended since."""
    for process in tuple(_LEFT_BEHIND):
        if process.poll() is not None:
            with contextlib.suppress(ValueError):
                _LEFT_BEHIND.remove(process)


class PipelineNotStarted(Exception):
    """A pipeline of which a stage could not be started, so none runs; `result` is as a shell would report it."""

    def __init__(self, exits: tuple[int | None, ...], last_output: tuple[str, ...]) -> None:
        super().__init__("\n".join(last_output))
        self.result = PipelineResult(exits=exits, last_output=last_output)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOptions:
    """Start options: the job's ssh options, descriptors that children inherit, and requests for output and count."""

    ssh_options: tuple[str, ...] = ()
    inherit: tuple[int, ...] = ()
    output: bool = False
    counted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningPipeline:
    """A running pipeline."""

    stages: tuple[PipelineStage, ...]
    wires: PipelinePipes


def start_pipeline(pipeline: Pipeline, fittings: StartOptions) -> RunningPipeline:
    """Start every stage, or none. Raises: PipelineNotStarted.

    Call it from a thread that lives as long as the pipeline: children get a signal to end when that thread ends.
    """
    _look_up(pipeline, fittings)
    stages: list[PipelineStage] = []
    wires = _wires(pipeline, fittings)
    try:
        for command, ends in zip(pipeline.stages, wires.ends, strict=True):
            stages.append(_start_stage(command, ends, fittings))
    except OSError as error:
        status = 127 if isinstance(error, FileNotFoundError) else 126
        words = f"{pipeline.stages[len(stages)].argv[0]}: {error.strerror}"
        raise _not_started(pipeline, len(stages), status, words) from error
    finally:
        wires.let_go()
        if len(stages) < len(pipeline.stages):
            wires.close()
            for stage in stages:
                stage.end_now()
    return RunningPipeline(stages=tuple(stages), wires=wires)


def _look_up(pipeline: Pipeline, fittings: StartOptions) -> None:
    """Check that every program exists. Why: through setpriv a missing one would show as a failure of setpriv."""
    programs = [ssh_argv(stage, fittings.ssh_options)[0] for stage in pipeline.stages]
    missing = [is_missing(name, child_environment(at)) for name, at in zip(programs, pipeline.stages, strict=True)]
    if any(missing):
        words = [f"{name}: command not found" if gone else "" for name, gone in zip(programs, missing, strict=True)]
        raise PipelineNotStarted(tuple(127 if gone else None for gone in missing), tuple(words))


def _wires(pipeline: Pipeline, fittings: StartOptions) -> PipelinePipes:
    try:
        return PipelinePipes(pipeline, output=fittings.output, counted=fittings.counted)
    except OSError as error:
        # A shell's own status for a file it cannot open.
        at = 0 if error.filename in (pipeline.reads, None) else len(pipeline.stages) - 1
        raise _not_started(pipeline, at, 1, f"{error.filename}: {error.strerror}") from error


def _not_started(pipeline: Pipeline, at: int, status: int, words: str) -> PipelineNotStarted:
    places = range(len(pipeline.stages))
    return PipelineNotStarted(
        tuple(status if n == at else None for n in places), tuple(words if n == at else "" for n in places)
    )


def _start_stage(command: Command, ends: tuple[int, int], fittings: StartOptions) -> PipelineStage:
    source, sink = ends
    walled = wall_off(command)
    errors, errors_sink = os.pipe()
    try:
        process = subprocess.Popen(
            (*death_signal_prefix(), *ssh_argv(replace(command, argv=walled.argv), fittings.ssh_options)),
            stdin=source,
            stdout=errors_sink if sink == JOINED else sink,
            stderr=errors_sink,
            env=child_environment(command),
            pass_fds=fittings.inherit,
            # A session, not only a group, so that no child has a terminal for questions.
            start_new_session=True,
        )
    except BaseException:
        os.close(errors)
        raise
    finally:
        os.close(errors_sink)
    try:
        return PipelineStage(command=command, process=process, errors=errors, walled=walled)
    except BaseException:
        process.kill()
        process.wait()
        os.close(errors)
        raise


def child_environment(command: Command) -> dict[str, str]:
    """Build the clean environment of the child. A remote command's own variables are part of its remote line."""
    ours = [folder for folder in os.environ.get("PATH", "").split(":") if folder]
    clean = {
        "PATH": ":".join(dict.fromkeys((*ours, *SYSTEM_PATH))),
        "HOME": os.environ.get("HOME") or os.path.expanduser("~"),
        "LC_ALL": "C.UTF-8",
    }
    clean |= {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return clean if command.host else clean | dict(command.environment)


def death_signal_prefix() -> tuple[str, ...]:
    """Return the argv prefix by which the kernel signals the child to end when the thread that started it dies.

    Why: after a kill -9 of poolferry nothing else stops the sender. The kernel drops this setting for programs that gain
    privileges (sudo) and for the child's own children, which end by their closed pipes.
    """
    return (_SETPRIV, "--pdeathsig", "TERM", "--") if os.access(_SETPRIV, os.X_OK) else ()
