"""Connections of browsers: one that asks for nothing, or does not take its answer, is given up, and there are only so many.

Why: whoever may open the address could else hold all of them open, and nobody else would get a page.
"""

import asyncio
from array import array
from fcntl import ioctl
from termios import TIOCOUTQ
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 15.0  # from the first byte of a request, or the begin of a connection, to the end of its head
ANSWER_S = 120.0  # in which less than LEAST of an answer is taken
LEAST = 64 << 10  # bytes
MOST = 640  # connections; a process may have 1,024 files


class BoundedConnection(H11Protocol):
    """One connection, of at most MOST: where there are more, the one that has waited longest without a request is given up."""

    _given_up: asyncio.TimerHandle | None = None  # when it is, unless its request comes
    _stuck: asyncio.TimerHandle | None = None  # when it is, unless its answer is taken

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for a request."""
        super().connection_made(cast(asyncio.Transport, transport))
        self._since = self.loop.time()
        self._await_head()
        if len(self.connections) > MOST:
            waiting = [each for each in self.connections if isinstance(each, BoundedConnection) and each.waits]
            oldest = min(waiting, key=lambda each: each._since)
            self.connections.discard(oldest)  # it ends a moment later, and many are opened in one
            oldest.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        if not self.waits:
            self._stop_waiting()
        elif self._given_up is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a browser that takes its answer slowly."""
        if self._stuck is None:
            self._await_taking()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Go on writing."""
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
        super().resume_writing()

    def on_response_complete(self) -> None:
        """Wait for the next request: who was answered a moment ago has not waited long."""
        self._since = self.loop.time()
        super().on_response_complete()

    @property
    def waits(self) -> bool:
        """Return True while no request is being answered."""
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _await_taking(self) -> None:
        self._stuck = self.loop.call_later(ANSWER_S, self._look_at_taking, self._left())

    def _look_at_taking(self, before: int) -> None:
        """Give up a connection of which less than LEAST was taken since a look; `before`: bytes that were left then."""
        if before - self._left() < LEAST:
            self.transport.abort()
        else:
            self._await_taking()

    def _left(self) -> int:
        """Return how many bytes of an answer are not taken yet: ours, and those that the kernel holds, which may be megabytes."""
        held = array("i", [0])
        # Source: tcp(7), SIOCOUTQ; unix sockets have it, too.
        ioctl(self.transport.get_extra_info("socket").fileno(), TIOCOUTQ, held)
        return self.transport.get_write_buffer_size() + held[0]

    def _await_head(self) -> None:
        self._given_up = self.loop.call_later(HEAD_S, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._given_up is not None:
            self._given_up.cancel()
            self._given_up = None
