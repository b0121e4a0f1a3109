"""The pipes and files between the stages of a pipeline.

Changes things.
"""

import contextlib
import os
from collections.abc import Iterator

from orchestrator.domain.command import Pipeline
from orchestrator.process.relay import Relay, wide_pipe

CHUNK = 256 << 10
JOINED = -1  # as an output: it goes where the stage's errors go


class Wires:
    """Input and output of every stage in `ends`; `output`, `kept` and `relay` stay with us.

    `output`: the last stage's output for us to read. `kept`: the file that collects it, without passing through our
    hands. With neither, nobody wants that output, and it joins the stage's last words.
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
        """Closes our copies of what the children hold: only so do they see the end of their input."""
        self._theirs.close()

    def close(self) -> None:
        """Closes what is ours."""
        if self.relay:
            self.relay.close()
        self._ours.close()

    @property
    def moved(self) -> int | None:
        """Bytes that were counted, else those added to the file that collects the output; None: not known."""
        if self.relay is not None:
            return self.relay.moved
        return None if self.kept is None else os.fstat(self.kept).st_size - self._kept_before

    def kept_since(self) -> Iterator[bytes]:
        """What was added since the last call to the file that collects the output, in pieces."""
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
        """(where the next stage reads, where this one writes)."""
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
