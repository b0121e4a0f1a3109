"""Chaos of contents and metadata, between runs and between a kill and the next run: each copy equal, no point changes.

More rounds of the long seeds: POOLFERRY_CHAOS_ROUNDS is how many.
"""

import os
import random
import subprocess
from pathlib import Path

import pytest

from tests.processes import family, strays
from tests.whole.house import House, facts, kill, wait_until
from tests.whole.metadata_chaos import TreeChanger, filled_holes, tree_digest
from tests.whole.sshd import Sshd, sshd

__all__ = ["sshd"]
pytestmark = [pytest.mark.root, pytest.mark.slow]
# Read here: each test has an environment of its own.
ROUNDS = int(os.environ.get("POOLFERRY_CHAOS_ROUNDS", "25"))
ROUND_SECONDS = 120


class Copier:
    """A job in one of its forms, with what is known of its points."""

    def __init__(self, house: House, server: Sshd | None, chance: random.Random, *, mirror: bool, pull: bool) -> None:
        self._house, self._server, self._chance = house, server, chance
        self._mirror, self._pull = mirror, pull
        self.published: dict[str, str] = {}
        self.changer = TreeChanger(house.source, chance)

    def job(self, rate: str = "") -> None:
        """Declares the job; `rate` so that a kill comes in the middle."""
        house, server = self._house, self._server
        pipe = {**({"rate_limit": rate} if rate else {}), **(server.pipe if server else {})}
        sides: dict[str, object] = {"source": house.source, "target": house.target}
        if server:
            end = "source" if self._pull else "target"
            sides[end] = server.url(house.source if self._pull else house.target)
        rsync: dict[str, object] = (
            {"points": False, "delete": True} if self._mirror else {"parallel": self._chance.choice((1, 1, 2))}
        )
        keep = {"keep": {"hourly": 1}} if not rate and len(self.published) > 8 else {}
        rsync["checksum"] = self._chance.random() < 0.2
        house.job(**sides, rsync=rsync, pipe=pipe, guard={"max_deleted": "100%", "max_changed": "100%"}, **keep)

    def cut(self) -> None:
        """A run of which something is killed at some moment."""
        self.job("1M")
        process = self._house.start()
        try:
            process.wait(timeout=self._chance.uniform(0.15, 1.5))
        except subprocess.TimeoutExpired:
            far = self._server.sessions() if self._server else []
            everybody = [process.pid, *(pid for pid, _ in family(process.pid)), *far]
            for pid in everybody if self._chance.random() < 0.5 else [self._chance.choice(everybody)]:
                kill(pid)
        self._house.ended(process)
        wait_until(lambda: not strays(self._house.target))

    def run(self) -> None:
        """A run to its end, and then all points looked at."""
        self.job()
        ran = self._house.run()
        assert (ran.code, ran.outcome in ("done", "nothing-to-do")) == (0, True), ran
        killed_while_writing = "not certain that the disk took all" in str(ran["warnings"])  # then all is copied anew
        assert ran["warnings"] == [] or ran["resumed"] or killed_while_writing, ran
        copy = self._house.target if self._mirror else self._house.point()
        assert self._seen(copy) == self._seen(self._house.source), (
            ran,
            _differing(self._seen(copy), self._seen(self._house.source)),
        )
        assert filled_holes(self._house.source, copy) == []
        self.constant()
        if not self._mirror:
            self.published[self._house.points()[-1]] = tree_digest(copy)
        assert self._house.run().outcome == "nothing-to-do"

    def note(self, number: int) -> None:
        """A change that each run sees: rsync sees none where two names share their file no more, and nothing else."""
        self._house.write("note", str(number) + "x" * number)

    def constant(self) -> None:
        """No published point has changed."""
        self.published = {name: told for name, told in self.published.items() if name in self._house.points()}
        now = {name: tree_digest(self._house.target / "points" / name) for name in self.published}
        assert now == self.published

    def _seen(self, root: Path) -> dict[bytes, tuple[object, ...]]:
        ours = (b"/.poolferry", b"\0") if self._mirror else (b"\0", b"\0")
        found = {path: told for path, told in facts(root).items() if not path.startswith(ours)}
        return {path: told for path, told in found.items() if path or not self._mirror}


def _differing(one: dict[bytes, tuple[object, ...]], other: dict[bytes, tuple[object, ...]]) -> list[object]:
    names = sorted({*one, *other})
    told: list[object] = [(name, one.get(name), other.get(name)) for name in names if one.get(name) != other.get(name)]
    return told[:5]


def chaos(copier: Copier, chance: random.Random, rounds: int) -> None:
    copier.changer.plant()
    copier.run()
    for number in range(rounds):
        copier.changer.change(chance.randrange(1, 12))
        for _ in range(chance.choice((0, 1, 1, 2))):
            copier.cut()
            copier.constant()
            chance.choice((copier.changer.change, copier.changer.change_metadata))(chance.randrange(0, 12))
        copier.note(number)
        copier.run()
        print(f"round {number}: equal", flush=True)


def long(values: range) -> list[object]:
    return [
        pytest.param(value, ROUNDS, marks=[pytest.mark.long, pytest.mark.timeout(ROUNDS * ROUND_SECONDS)])
        for value in values
    ]


@pytest.mark.parametrize(("seed", "rounds"), [(0, 2), *long(range(1, 9))])
def test_copies_here(house: House, seed: int, rounds: int) -> None:
    chance = random.Random(f"here {seed}")
    chaos(Copier(house, None, chance, mirror=False, pull=False), chance, rounds)


@pytest.mark.parametrize(("seed", "rounds"), [(0, 1), *long(range(1, 5))])
def test_copies_over_ssh(house: House, sshd: Sshd, seed: int, rounds: int) -> None:
    chance = random.Random(f"ssh {seed}")
    chaos(Copier(house, sshd, chance, mirror=False, pull=seed % 2 == 1), chance, rounds)


@pytest.mark.parametrize(("seed", "rounds"), [(0, 1), *long(range(1, 3))])
def test_mirrors(house: House, sshd: Sshd, seed: int, rounds: int) -> None:
    chance = random.Random(f"mirror {seed}")
    chaos(Copier(house, sshd if seed % 2 == 0 else None, chance, mirror=True, pull=False), chance, rounds)
