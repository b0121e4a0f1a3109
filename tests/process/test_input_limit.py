"""The limit of a gate's streams: together they never bring more, and none is refused for what it does not bring."""

import fcntl
import os
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.process.input_limit import InputLimit, open_counters, place_taker


class Gate:
    """The places of a gate. `there`: bytes that are there; `ways`: of each stream under way, what it brought."""

    def __init__(self, folder: Path, at_most: int) -> None:
        self.folder, self.at_most = folder, at_most

    def take_place(self) -> tuple[int, int]:
        """Take the first free place, as each request does; return its open file and number."""
        places = os.open(self.folder / "places", os.O_RDWR | os.O_CREAT, 0o600)
        with place_taker(str(self.folder), "g") as forget:
            for place in range(100):
                try:
                    fcntl.fcntl(
                        places,
                        fcntl.F_OFD_SETLK,
                        struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0),
                    )
                except BlockingIOError:
                    continue
                forget(place)
                return places, place
        raise AssertionError

    def stream(self, used: Callable[[], int]) -> "Stream":
        return Stream(self, used)


class Stream:
    """A stream under way: `brought` bytes."""

    def __init__(self, gate: Gate, used: Callable[[], int]) -> None:
        self._counters, (self._places, place) = open_counters(str(gate.folder), "g"), gate.take_place()
        self.brought = 0
        self._limit = InputLimit(self._counters, self._places, place, at_most=gate.at_most)
        self._limit.begin(used=used())

    def bring(self, most: int, *, left: int = 0) -> int:
        """Bring as many of so many bytes as may come, but some that are left."""
        taken = self._limit.take(most)
        left = min(left, taken)
        self._limit.give_back(left)
        self.brought += taken - left
        return taken - left

    def end(self) -> None:
        os.close(self._places)
        os.close(self._counters)


def test_a_stream_that_ended_counts_no_more_where_a_question_has_its_place(tmp_path: Path) -> None:
    gate = Gate(tmp_path, 1500)
    first = gate.stream(lambda: 0)
    assert first.bring(900) == 900
    first.end()
    question, _ = gate.take_place()
    second = gate.stream(lambda: 900)
    assert second.bring(1000) == 600
    second.end()
    os.close(question)


def test_what_a_stream_beside_it_brought_counts_once(tmp_path: Path) -> None:
    gate = Gate(tmp_path, 2000)
    first = gate.stream(lambda: 0)
    assert first.bring(1000) == 1000
    second = gate.stream(lambda: 1000)
    assert second.bring(1) == 1
    first.end()
    third = gate.stream(lambda: 1000)  # of the second one nothing is used yet
    assert second.bring(2000) + third.bring(2000) == 999
    second.end()
    third.end()


@pytest.mark.parametrize("seed", range(20))
def test_streams_bring_together_no_more_than_at_most(tmp_path: Path, seed: int) -> None:
    """Whatever of that which those under way brought, is used when another one begins."""
    chance = random.Random(seed)
    gate, ended, under_way, most = Gate(tmp_path, 1000), 0, list[Stream](), 0
    questions: list[int] = []

    def used() -> int:
        return ended + sum(chance.choice((0, each.brought, chance.randint(0, each.brought))) for each in under_way)

    for _ in range(300):
        if chance.random() < 0.1:
            gone = chance.randint(0, ended)
            ended -= gone
        if chance.random() < 0.2:
            questions.append(gate.take_place()[0])
        if questions and chance.random() < 0.2:
            os.close(questions.pop(0))
        if len(under_way) < 6 and chance.random() < 0.2:
            under_way.append(gate.stream(used))
        if under_way and chance.random() < 0.15:
            stream = under_way.pop(chance.randrange(len(under_way)))
            stream.end()
            ended += stream.brought
        if under_way:
            chance.choice(under_way).bring(chance.randint(1, 200), left=chance.randint(0, 60))
        there = ended + sum(each.brought for each in under_way)
        assert there <= gate.at_most
        most = max(most, there)
    assert most > gate.at_most * 0.9, "no room was ever filled"
    for stream in under_way:
        stream.end()
        ended += stream.brought
    for question in questions:
        os.close(question)
    last = gate.stream(lambda: ended)
    assert last.bring(5000) == gate.at_most - ended
    last.end()
