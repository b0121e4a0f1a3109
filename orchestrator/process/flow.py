"""The loop of a running pipeline: reads its output, sees stop requests, waits for its end, ends it by force.

One loop in one thread polls everything, so no stage ever blocks because we are busy with another.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Generator, Iterator, Sequence

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.process.link_wall import Side, show_names, take_out_notes
from orchestrator.process.meter import StallDetector, living_processes
from orchestrator.process.pipeline import (
    CHUNK,
    PipelineResult,
    PipelineStage,
    Relay,
    RunningPipeline,
    StopReason,
    reap_left_behind,
)
from orchestrator.process.stop import StopRequest

_FIRST, _ALL = slice(1), slice(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationPolicy:
    """Steps of a forced end as (seconds after the request, signal, stages), and when to leave the rest behind."""

    steps: tuple[tuple[float, signal.Signals, slice], ...]
    give_up: float


# The sender first: then the receiver sees the end of its input, keeps what it has, and ends by itself.
# All ends within 10 s, so that no service manager's timeout is reached.
GENTLE = TerminationPolicy(
    steps=((0.0, signal.SIGTERM, _FIRST), (8.0, signal.SIGTERM, _ALL), (8.8, signal.SIGKILL, _ALL)), give_up=9.8
)
# After a stall the disk may be the cause: a process that hangs on it may need seconds to end, or never ends.
PATIENT = TerminationPolicy(steps=GENTLE.steps, give_up=8.8 + 5.0)
# A pipeline that only reads has nothing to save.
QUICK = TerminationPolicy(steps=((0.0, signal.SIGTERM, _ALL), (0.5, signal.SIGKILL, _ALL)), give_up=2.5)


class PipelineTermination:
    """A forced end in progress; `gave_up` once the remaining stages are left behind."""

    def __init__(self, stages: Sequence[PipelineStage], manners: TerminationPolicy, now: float) -> None:
        self.gave_up = False
        self._stages = stages
        self._manners = manners
        self._began = now
        self._steps = list(manners.steps)

    def press(self, now: float) -> None:
        """Send the signals that are due, and give up when it is time."""
        while self._steps and now - self._began >= self._steps[0][0]:
            _, number, whom = self._steps.pop(0)
            for stage in self._stages[whom]:
                stage.send(number)
        if now - self._began >= self._manners.give_up and not self.gave_up:
            self.gave_up = True
            for stage in self._stages:
                stage.words.add(stage.left_behind().encode("utf-8", "surrogateescape"))


TICK = 0.5
LINGER = 8.0  # for children that outlive their stage and still hold its output
_LOOK = 0.05

DescriptorHandler = Callable[[int], bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowLimits:
    """Limits of a running pipeline: when to end it, in which manner, and the progress callbacks of each tick."""

    manners: TerminationPolicy
    stop: StopRequest | None = None
    stall_after: float | None = None
    timeout: float | None = None
    on_tick: Callable[[], None] | None = None
    on_bytes: Callable[[int], None] | None = None
    on_kept: Callable[[bytes], None] | None = None
    most_kept: int | None = None
    on_errors: Callable[[bytes], None] | None = None


class Flow:
    """A running pipeline as an iterator of output chunks, then its result."""

    def __init__(self, started: RunningPipeline, limits: FlowLimits) -> None:
        reap_left_behind()
        self._began = self._ticked = time.monotonic()
        self._stages, self._wires, self._limits = started.stages, started.wires, limits
        self._groups = {stage.group for stage in self._stages}
        self._ended = False
        self._said = 0
        self._moved: int | None = None
        self._ending: PipelineTermination | None = None
        self._stopped: StopReason | None = None
        self._last_exit = self._looked = 0.0
        self._poll = select.poll()
        self._heard: dict[int, DescriptorHandler] = {}
        self._open: set[int] = set()  # those of them that deliver output
        after = limits.stall_after
        self._silence = StallDetector(self._groups, after, self._through_our_hands, self._began) if after else None
        self._listen()

    @property
    def processes(self) -> tuple[int, ...]:
        """Return the process id of each stage."""
        return tuple(stage.group for stage in self._stages)

    def chunks(self) -> Generator[bytes, None, None]:
        """Yield the output as it arrives, until the pipeline ends. Leaving early, or an error, ends the pipeline."""
        try:
            while not self._over():
                yield from self._turn()
                if time.monotonic() >= self._ticked + TICK:
                    self._tell()
            self._tell()
        finally:
            self._finish()

    def end(self, reason: StopReason | None, manners: TerminationPolicy | None = None) -> None:
        """Begin to end the pipeline. `reason` None: its stages have ended, only their children remain."""
        if self._ending is None:
            self._stopped = reason
            self._ending = PipelineTermination(self._stages, manners or self._limits.manners, time.monotonic())

    def result(self, stdout: bytes = b"") -> PipelineResult:
        """Return the pipeline's result, once `chunks` has ended."""
        return PipelineResult(
            exits=tuple(stage.status for stage in self._stages),
            stdout=stdout,
            last_output=tuple(stage.words.text for stage in self._stages),
            took_s=time.monotonic() - self._began,
            moved=self._moved,
            stopped=self._stopped,
            links_lead=frozenset[Side]().union(*(stage.links_lead for stage in self._stages)),
        )

    def _turn(self) -> Iterator[bytes]:
        """Wait for events and handle them; yield the output."""
        for descriptor, event in self._poll.poll(1000 * self._patience()):
            heard = self._heard.get(descriptor)
            chunk = heard(event) if heard else None
            if chunk:
                yield chunk
        now = time.monotonic()
        relay = self._wires.relay
        if relay is not None and not relay.closed and 0 < relay.rests_until <= now:
            self._ask(relay)
        if self._ending is None:
            self._judge(now)
        if self._ending is not None:
            self._ending.press(now)

    def _judge(self, now: float) -> None:
        """Begin to end a pipeline that must end. One that ended by itself meanwhile does not count as stopped."""
        limits = self._limits
        if not self._running():
            if now - self._last_exit > LINGER:
                self.end(None, QUICK)
        elif limits.stop is not None and limits.stop.reason is not None:
            self.end(StopReason.STOPPED)
        elif limits.timeout is not None and now - self._began >= limits.timeout:
            self.end(StopReason.TIMED_OUT)
        elif self._silence is not None and self._silence.lasts(now):
            self.end(StopReason.STALLED, PATIENT)

    def _patience(self) -> float:
        """Return how long to wait for an event before the next check."""
        if self._ending is not None or not self._running():
            return _LOOK
        whens = [self._ticked + TICK]
        if self._wires.relay is not None and self._wires.relay.rests_until:
            whens.append(self._wires.relay.rests_until)
        if self._silence is not None:
            whens.append(self._silence.next_look())
        if self._limits.timeout is not None:
            whens.append(self._began + self._limits.timeout)
        return max(0.0, min(whens) - time.monotonic())

    def _tell(self) -> None:
        self._ticked = time.monotonic()
        if self._limits.on_bytes is not None and self._wires.relay is not None:
            self._limits.on_bytes(self._wires.relay.moved)
        if self._limits.on_kept is not None:
            for piece in self._wires.kept_since():
                self._limits.on_kept(piece)
        if self._limits.most_kept is not None and (self._wires.kept_bytes or 0) > self._limits.most_kept:
            self.end(StopReason.FLOODED, QUICK)
        if self._limits.on_tick is not None:
            self._limits.on_tick()

    def _running(self) -> bool:
        return any(stage.alive for stage in self._stages)

    def _over(self) -> bool:
        """Return True from the end on: once true, it stays true."""
        if not self._ended:
            if self._ending is not None and self._ending.gave_up:
                self._ended = True
            elif not self._running():
                closed = self._ending is None and not self._open
                self._ended = closed or (not self._more() and self._nobody_left() and not self._more())
        return self._ended

    def _nobody_left(self) -> bool:
        """Return True when no child of a stage is left.

        Why not the end of their outputs: a connection that ssh shares with later runs holds them open, from a session
        of its own.
        """
        now = time.monotonic()
        if now < self._looked + _LOOK:
            return False
        self._looked = now
        return not living_processes(self._groups)

    def _more(self) -> bool:
        """Return whether an output has something to read, if only its end: that is read first, as /proc holds all processes."""
        return any(descriptor in self._open for descriptor, _ in self._poll.poll(0))

    def _finish(self) -> None:
        try:
            if not self._over():
                self.end(StopReason.LET_GO)
                while not self._over():
                    for _ in self._turn():
                        pass
        finally:
            self._moved = self._wires.moved
            for stage in self._stages:
                stage.let_go()
            self._wires.close()
            # Both hold this object: without them it ends with its last user, and with it the stop request's descriptor.
            self._heard.clear()
            self._silence = None

    def _through_our_hands(self) -> int:
        return self._said + (self._wires.relay.moved if self._wires.relay else 0)

    # The descriptors to read.

    def _listen(self) -> None:
        for stage in self._stages:
            self._add(stage.exit_wakeup, self._exit(stage))
            self._add(stage.errors, self._words(stage), brings=True)
        output = self._wires.output
        if output is not None:
            self._add(output, lambda _: self._read(output), brings=True)
        if self._limits.stop is not None:
            wakeup = self._limits.stop.fileno()
            # It stays readable for ever, so it is handled once.
            self._add(wakeup, lambda _: self._drop(wakeup))
        if self._wires.relay is not None:
            self._relay(self._wires.relay)

    def _add(
        self, descriptor: int, heard: DescriptorHandler, *, events: int = select.POLLIN, brings: bool = False
    ) -> None:
        self._poll.register(descriptor, events)
        self._heard[descriptor] = heard
        if brings:
            self._open.add(descriptor)

    def _drop(self, descriptor: int) -> None:
        self._open.discard(descriptor)
        if self._heard.pop(descriptor, None):
            self._poll.unregister(descriptor)

    def _exit(self, stage: PipelineStage) -> DescriptorHandler:
        def heard(_: int) -> None:
            stage.note_exit()
            self._last_exit = time.monotonic()
            self._drop(stage.exit_wakeup)

        return heard

    def _words(self, stage: PipelineStage) -> DescriptorHandler:
        def heard(_: int) -> None:
            # In one piece: no program's line is longer than a pipe takes at once.
            said = self._read(stage.errors) or b""
            if stage.names:
                said, led = take_out_notes(show_names(said, stage.names))
                stage.links_lead |= led
            stage.words.add(said)
            if self._limits.on_errors is not None:
                self._limits.on_errors(said)

        return heard

    def _read(self, descriptor: int) -> bytes | None:
        with contextlib.suppress(BlockingIOError):
            said = os.read(descriptor, CHUNK)
            self._said += len(said)
            if said:
                return said
            self._drop(descriptor)
        return None

    def _relay(self, relay: Relay) -> None:
        """Poll the ends of the relay that matter now, and again after each turn, as they change."""

        def heard(event: int) -> None:
            self._ask(relay, failed=event & select.POLLERR != 0)

        for descriptor, events in relay.wants().items():
            self._add(descriptor, heard, events=events)

    def _ask(self, relay: Relay, *, failed: bool = False) -> None:
        for descriptor in (relay.source, relay.sink):
            self._drop(descriptor)
        relay.turn(failed)
        if not relay.closed:
            self._relay(relay)
