"""Live parts: made once for all who look, only when somebody looks, and sent when they changed."""

import asyncio
import json
from contextlib import aclosing

import pytest

from orchestrator.web import live
from orchestrator.web.live import CUT, MOST_STREAMS, LivePart, LiveStreams, tell_change


def event(text: str, before: str | None = None) -> bytes:
    """Return the event that tells a page of a part. `before`: what the page shows."""
    part = LivePart(marked=text)
    told = json.dumps(tell_change(LivePart(marked=before) if before else None, part))
    return f"event: show\nid: {part.mark}\ndata: {told}\n\n".encode()


def of(*pieces: str) -> LivePart:
    """Return a part with pieces, each with its first letter as its id."""
    return LivePart(marked="<ul>" + "".join(f'{CUT}<li id="{each[0]}">{each}</li>{CUT}' for each in pieces) + "</ul>")


def test_one_piece_is_sent_when_one_changed_and_names_when_their_order_did() -> None:
    before = of("a1", "b1", "c1")
    assert tell_change(before, of("a1", "b2", "c1")) == {"changed": ['<li id="b">b2</li>']}
    assert tell_change(before, of("c1", "b2", "a1")) == {
        "parts": ["<ul>", {"keep": "c"}, "", '<li id="b">b2</li>', "", {"keep": "a"}, "</ul>"]
    }
    assert tell_change(before, of("a1", "c1")) == {"parts": ["<ul>", {"keep": "a"}, "", {"keep": "c"}, "</ul>"]}
    assert "".join(map(str, tell_change(None, before)["parts"])) == before.html
    assert CUT not in before.html
    assert LivePart(marked="a" + CUT + "<b>no id</b>" + CUT).html == "a<b>no id</b>"


def test_one_part_is_made_for_all_and_none_when_nobody_looks() -> None:
    made: list[str] = []

    def make(topic: str) -> LivePart:
        made.append(topic)
        return LivePart(marked=f"part {len(made)}")

    async def look() -> None:
        streams = LiveStreams(make)
        looking = [streams.stream("disks") for _ in range(MOST_STREAMS)]
        for each in looking:
            await anext(each)  # the pause before it is opened again
        shown = await asyncio.gather(*(anext(each) for each in looking))
        assert set(shown) == {event("part 1")}
        assert made == ["disks"]
        full = [streams.full]
        for each in looking:
            await each.aclose()
        assert [*full, streams.full] == [True, False]
        assert await anext(streams.stream("disks"))

    asyncio.run(look())


def test_one_look_that_fails_is_for_all_who_wait_for_it() -> None:
    """Or each would look, and fail, after the other, and hold its place as long; who asks later has a look of its own."""
    looks: list[str] = []

    def make(topic: str) -> LivePart:
        looks.append(topic)
        raise OSError(f"look {len(looks)}")

    async def look() -> None:
        streams = LiveStreams(make)
        waiting = [streams.stream("disks") for _ in range(12)]
        told = await asyncio.gather(*(anext(each) for each in waiting), return_exceptions=True)
        assert [str(each) for each in told] == ["look 1"] * 12
        with pytest.raises(OSError, match="look 2"):
            await anext(streams.stream("disks"))

    asyncio.run(look())


def test_a_part_is_sent_when_it_changed_and_the_last_one_ends_the_stream() -> None:
    parts = iter(("a", "a", "b", "b", "c"))

    def make(_: str) -> LivePart:
        html = next(parts)
        return LivePart(marked=html, over=html == "c")

    async def look() -> list[bytes]:
        async with aclosing(LiveStreams(make).stream("runs/1")) as stream:
            return [piece async for piece in stream]

    live_pause, live._PAUSE = live._PAUSE, 0.01
    try:
        told = asyncio.run(look())
    finally:
        live._PAUSE = live_pause
    assert told == [
        b"retry: 3000\n\n",
        event("a"),
        event("b", "a"),
        event("c", "b"),
        b"event: over\ndata: \n\n",
    ]


def test_what_a_page_shows_already_is_not_sent_again_and_what_it_showed_once_is() -> None:
    """Or else each page is drawn twice; and a page that missed a change in between would keep an old state."""
    parts = iter(("a", "a", "b", "a", "end"))

    def make(_: str) -> LivePart:
        html = next(parts)
        return LivePart(marked=html, over=html == "end")

    async def look() -> list[bytes]:
        async with aclosing(LiveStreams(make).stream("runs/1", LivePart(marked="a").mark)) as stream:
            return [piece async for piece in stream]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live, "_PAUSE", 0.01)
        told = asyncio.run(look())
    assert told == [b"retry: 3000\n\n", event("b", "a"), event("a", "b"), event("end", "a"), b"event: over\ndata: \n\n"]


def test_the_end_of_the_server_ends_all_streams() -> None:
    async def look() -> list[bytes]:
        streams = LiveStreams(lambda _: LivePart(marked="same"))
        told = []
        async with aclosing(streams.stream("promises")) as stream:
            async for piece in stream:
                told.append(piece)
                if len(told) == 2:
                    streams.end()
        return told

    assert len(asyncio.run(look())) == 2
