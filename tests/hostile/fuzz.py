"""Random damage to real answers, and the limits within which a door ends."""

import random
import resource
import time
from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.domain.errors import OrchestratorError
from tests.hostile.answers import WORDS, Target

MANY = 20_000
LONGEST_WORDS = 5000  # characters of an error
LONGEST = (
    15.0  # seconds of processor time that one answer may take: a hang is minutes, and a busy machine three times slower
)
MOST_MEMORY = 512 << 10  # KiB by which all answers together may make the program grow


def mutate(sample: bytes, seed: int) -> bytes:
    """The answer with a few random faults in it; sometimes with one word very often."""
    chance = random.Random(seed)
    made = bytearray(sample)
    for _ in range(chance.randint(1, 6)):
        at = chance.randint(0, len(made))
        upto = min(len(made), at + chance.choice((1, 1, 2, 8, 64)))
        match chance.randint(0, 6):
            case 0:
                del made[at:upto]
            case 1:
                made[at:at] = made[at:upto] * chance.randint(1, 9)
            case 2:
                made[at:upto] = bytes(chance.randrange(256) for _ in range(upto - at))
            case 3:
                made[at:at] = chance.choice(WORDS)
            case 4:
                made[at:upto] = chance.choice(WORDS)
            case 5:
                del made[at:]
            case 6:
                often = 20_000 if chance.random() < 0.05 else 3
                made[at:at] = chance.choice(WORDS) * often
    return bytes(made[:500_000])


@dataclass(frozen=True)
class Damaged:
    """A sample with faults in it, by number: an example is shown as it is, and a database in full is a megabyte of text."""

    sample: int
    seed: int


def answers(target: Target) -> st.SearchStrategy[bytes | Damaged]:
    damaged = st.builds(Damaged, st.integers(0, len(target.samples) - 1), st.integers(0, 1 << 32))
    alike = st.lists(st.sampled_from(WORDS), max_size=12).map(b"".join)
    return damaged | damaged | alike | st.binary(max_size=200)


def hear(target: Target, said: bytes) -> None:
    began = time.process_time()
    try:
        target.read(said)
    except OrchestratorError as error:
        long = error.why if len(error.why) > LONGEST_WORDS else ""
    else:
        long = ""
    assert not long
    took = time.process_time() - began
    assert took < LONGEST, f"{took:.1f} s for {said[:300]!r}"


def grown(since: int) -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - since


def fuzz(target: Target, examples: int) -> None:
    before = grown(0)

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(answers(target))
    def heard(said: bytes | Damaged) -> None:
        hear(target, said if isinstance(said, bytes) else mutate(target.samples[said.sample], said.seed))

    heard()
    assert grown(before) < MOST_MEMORY
