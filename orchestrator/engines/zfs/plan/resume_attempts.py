"""A receive that was cut and comes no byte further: how often a run went on from it in vain."""

import re
from zlib import crc32

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.engines.zfs.model import Token

RUNS = 3
_TOLD = re.compile(r"([0-9a-f]{8}|-) (\d+) (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """`runs` so many in a row failed from this very token on. `anew`: the guid of the snapshot that was begun anew for it."""

    mark: str = "-"  # of the token: who has a token itself can have the rest of the stream
    runs: int = 0
    anew: int = 0

    def __str__(self) -> str:
        return f"{self.mark} {self.runs} {self.anew}"

    def is_stuck(self, token: Token) -> bool:
        """Whether going on from the token was tried often enough."""
        return self.mark == _mark(token) and self.runs >= RUNS


def key(dataset: str) -> str:
    """Under which name it is remembered of a dataset, told by where it lies below the root."""
    return f"zfs-cut {dataset}"


def parse_tried(text: str) -> Tried | None:
    """What was remembered; None: nothing, or nothing that we understand."""
    found = _TOLD.fullmatch(text)
    return Tried(mark=found[1], runs=int(found[2]), anew=int(found[3])) if found else None


def next_try(before: Tried | None, token: Token) -> Tried:
    """What is to be remembered when one more run fails from the token on; the token tells how far it came."""
    again = before is not None and before.mark == _mark(token)
    anew = token.to_guid if before is not None and before.anew == token.to_guid else 0
    return Tried(mark=_mark(token), runs=before.runs + 1 if before is not None and again else 1, anew=anew)


def _mark(token: Token) -> str:
    return f"{crc32(token.text.encode()):08x}"
