"""Live parts of pages: they are sent anew when they changed, to all who look, by EventSource.

Each part is made once a second for all who look at it, and not at all when nobody does.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Callable

from orchestrator import compose
from orchestrator.domain.fast_dataclass import dataclass

MOST_STREAMS = 256
_PAUSE = 1.0  # seconds between two looks
_LONGEST_PAUSE = 5.0  # where a look takes long, most of the time is left to the run itself
_SIGN_OF_LIFE = 15.0  # seconds; a proxy ends what is silent for long


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePart:
    """A part of a page as it is now. `over`: it does not change any more."""

    html: str
    over: bool = False

    @property
    def mark(self) -> str:
        """Return the mark by which a page says which state of the part it shows."""
        return hashlib.blake2b(self.html.encode(), digest_size=9).hexdigest()


class _Topic:
    """One part, and how many look at it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.part: LivePart | None = None
        self.mark = ""
        self.event = b""
        self.made = 0.0
        self.took = 0.0
        self.looking = 0


class LiveStreams:
    """All open streams. `make`: makes the part of a topic, in a thread; it may raise any error of ours."""

    def __init__(self, make: Callable[[str], LivePart]) -> None:
        self._make = make
        self._topics: dict[str, _Topic] = {}
        self._open = 0
        self._ended: asyncio.Event | None = None

    @property
    def full(self) -> bool:
        """Return True when no more streams are opened."""
        return self._open >= MOST_STREAMS

    def end(self) -> None:
        """End all streams, as the server ends."""
        if self._ended is not None:
            self._ended.set()

    async def stream(self, name: str, shown: str = "") -> AsyncGenerator[bytes, None]:
        """Yield a topic's part, and again each time it has changed. `shown`: the mark of what the page shows already."""
        self._ended = ended = self._ended or asyncio.Event()
        topic = self._topics.setdefault(name, _Topic())
        self._open += 1
        topic.looking += 1
        spoken = compose.monotonic()
        try:
            yield b"retry: 3000\n\n"
            while not ended.is_set():
                part = await self._current(name, topic)
                if topic.mark != shown:
                    shown, spoken = topic.mark, compose.monotonic()
                    yield topic.event
                if part.over:
                    yield b"event: over\ndata: \n\n"
                    return
                if compose.monotonic() - spoken > _SIGN_OF_LIFE:
                    spoken = compose.monotonic()
                    yield b": here\n\n"
                await _wait(ended, max(_PAUSE, min(10 * topic.took, _LONGEST_PAUSE)))
        finally:
            self._open -= 1
            topic.looking -= 1
            if not topic.looking:
                self._topics.pop(name, None)

    async def _current(self, name: str, topic: _Topic) -> LivePart:
        async with topic.lock:
            begun = compose.monotonic()
            if topic.part is None or begun - topic.made > _PAUSE / 2:
                topic.part = await asyncio.to_thread(self._make, name)
                if topic.part.mark != topic.mark:
                    topic.mark = topic.part.mark
                    topic.event = f"event: show\nid: {topic.mark}\ndata: {json.dumps(topic.part.html)}\n\n".encode()
                topic.made = compose.monotonic()
                topic.took = topic.made - begun
            return topic.part


async def _wait(ended: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(ended.wait(), seconds)
    except TimeoutError:
        return
