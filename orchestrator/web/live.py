"""Live parts of pages: what changed in them is sent to all who look, by EventSource.

Each part is made once a second for all who look at it, and not at all when nobody does. A template sets its pieces, which are
elements with an id, between two CUTs. Of a part with 300 pieces one is sent when one changed, and names in place of pieces when
only their order did.
"""

import asyncio
import hashlib
import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable

from orchestrator import compose
from orchestrator.domain.fast_dataclass import dataclass

CUT = "\x1e"  # no name brings one in: templates write it out
MOST_STREAMS = 256
_PAUSE = 1.0  # seconds between two looks
_LONGEST_PAUSE = 5.0  # where a look takes long, most of the time is left to the run itself
_SIGN_OF_LIFE = 15.0  # seconds; a proxy ends what is silent for long
_KNOWN_STATES = 4  # of a part, to tell what changed since; a slow page gets the whole part
_PIECE_ID = re.compile(r'\s*<[a-z]+ id="([^"]+)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePart:
    """A part of a page as it is now, as its template made it. `over`: it does not change any more."""

    marked: str
    over: bool = False

    @property
    def html(self) -> str:
        """Return the part as a page holds it."""
        return self.marked.replace(CUT, "")

    @property
    def mark(self) -> str:
        """Return the mark by which a page says which state of the part it shows."""
        return hashlib.blake2b(self.html.encode(), digest_size=9).hexdigest()


def tell_change(before: LivePart | None, after: LivePart) -> dict[str, list[str | dict[str, str]]]:
    """Return what a page must be told. `before`: what it shows; None: unknown.

    "changed": pieces to put in place of those with the same id; or "parts": all in order, where {"keep": id} is a piece that stays.
    """
    (was, had), (now, has) = _take_apart(before) if before else ([], {}), _take_apart(after)
    if was == now:
        return {"changed": [html for name, html in has.items() if had[name] != html]}
    return {"parts": [{"keep": part} if had.get(part) == has.get(part, "") else has.get(part, part) for part in now]}


def _take_apart(part: LivePart) -> tuple[list[str], dict[str, str]]:
    """Return what stands around the pieces, with their ids where they stand; and the pieces by their ids."""
    order: list[str] = []
    pieces: dict[str, str] = {}
    for number, text in enumerate(part.marked.split(CUT)):
        found = _PIECE_ID.match(text) if number % 2 else None
        order.append(found[1] if found else text)
        if found:
            pieces[found[1]] = text
    return order, pieces


class _Topic:
    """One part, or why the newest look at it failed, and how many look at it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.part: LivePart | Exception | None = None
        self.mark = ""
        self.states: deque[tuple[str, LivePart]] = deque(maxlen=_KNOWN_STATES)
        self.events: dict[str, bytes] = {}
        self.made = 0.0
        self.took = 0.0
        self.looking = 0

    def changed(self, part: LivePart, mark: str) -> None:
        """Take the part's new state."""
        self.mark = mark
        self.states.append((mark, part))
        self.events.clear()

    def event(self, shown: str) -> bytes:
        """Return the event for who shows the state of this mark."""
        before = dict(self.states).get(shown)
        shown = shown if before else ""
        if shown not in self.events:
            told = json.dumps(tell_change(before, self.states[-1][1]))
            self.events[shown] = f"event: show\nid: {self.mark}\ndata: {told}\n\n".encode()
        return self.events[shown]


class LiveStreams:
    """All open streams. `make`: makes the part of a topic, in a thread; it may raise any error of ours."""

    def __init__(self, make: Callable[[str], LivePart]) -> None:
        self._make = make
        self._topics: dict[str, _Topic] = {}
        self._open = 0
        self._ended = asyncio.Event()

    @property
    def full(self) -> bool:
        """Return True when no more streams are opened."""
        return self._open >= MOST_STREAMS

    def end(self) -> None:
        """End all streams, and at once those that begin from now on, as the server ends."""
        self._ended.set()

    async def stream(self, name: str, shown: str = "") -> AsyncGenerator[bytes, None]:
        """Yield a topic's part, and again each time it has changed. `shown`: the mark of what the page shows already.

        The first look comes before the first bytes, and is one for all who ask at once: the history may be locked. Raises what making raises.
        """
        ended = self._ended
        topic = self._topics.setdefault(name, _Topic())
        self._open += 1
        topic.looking += 1
        spoken = compose.monotonic()
        try:
            part = await self._current(name, topic)
            yield b"retry: 3000\n\n"
            while not ended.is_set():
                if topic.mark != shown:
                    event, shown, spoken = topic.event(shown), topic.mark, compose.monotonic()
                    yield event
                if part.over:
                    yield b"event: over\ndata: \n\n"
                    return
                if compose.monotonic() - spoken > _SIGN_OF_LIFE:
                    spoken = compose.monotonic()
                    yield b": here\n\n"
                await _wait(ended, max(_PAUSE, min(10 * topic.took, _LONGEST_PAUSE)))
                part = await self._current(name, topic)
        finally:
            self._open -= 1
            topic.looking -= 1
            if not topic.looking:
                self._topics.pop(name, None)

    async def _current(self, name: str, topic: _Topic) -> LivePart:
        async with topic.lock:
            begun = compose.monotonic()
            if topic.part is None or begun - topic.made > _PAUSE / 2:
                part = await asyncio.to_thread(self._look, name)
                if isinstance(part, LivePart) and part is not topic.part and (mark := part.mark) != topic.mark:
                    topic.changed(part, mark)
                topic.part = part
                topic.made = compose.monotonic()
                topic.took = topic.made - begun
            if isinstance(topic.part, Exception):
                raise topic.part.with_traceback(None)
            return topic.part

    def _look(self, name: str) -> LivePart | Exception:
        """Return a part, or why there is none: that, too, is for all who wait, or each would look, and fail, after the other."""
        try:
            return self._make(name)
        except Exception as error:  # noqa: BLE001  # it is raised to each who waits
            return error


async def _wait(ended: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(ended.wait(), seconds)
    except TimeoutError:
        return
