"""Requests as a hostile client would make them from those of a run, and a request for a script of ours."""

import random
import shlex
from collections.abc import Iterator, Sequence

from orchestrator.gate.request import GateRequest


def sent(*words: str) -> str:
    """The request for a script of ours, as sshd hands it on."""
    return shlex.join(("env", "LC_ALL=C.UTF-8", "sh", "-c", "rm -rf /", *words))


def mutated(
    requests: Sequence[GateRequest], parts: Sequence[str], *, seed: int, number: int = 10_000
) -> Iterator[GateRequest]:
    """Requests of which one to three words are exchanged, dropped or added."""
    chance = random.Random(seed)
    for _ in range(number):
        request = chance.choice(requests)
        words = [request.name, *request.values]
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(words) + 1)
            words[at : at + chance.randint(0, 1)] = [chance.choice(parts)] * chance.randint(0, 1)
        yield type(request)(name=(words or [""])[0], values=tuple(words[1:]))
