"""The record of an interrupted receive without progress: how often a run resumed it in vain."""

import re
from zlib import crc32

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.engines.zfs.model import Token

RUNS = 3
_TOLD = re.compile(r"([0-9a-f]{8}|-) (\d+) (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """Failed resumes of one token. `runs`: how many in a row; `anew`: guid of the snapshot that was restarted for it."""

    mark: str = "-"  # of the token: who has a token itself can have the rest of the stream
    runs: int = 0
    anew: int = 0

    def __str__(self) -> str:
        return f"{self.mark} {self.runs} {self.anew}"

    def is_stuck(self, token: Token) -> bool:
        """Return whether runs tried to resume from the token often enough."""
        return self.mark == _mark(token) and self.runs >= RUNS


def key(dataset: str) -> str:
    """Return the key of a dataset's record, by the dataset's name below the root."""
    return f"zfs-cut {dataset}"


def parse_tried(text: str) -> Tried | None:
    """Parse a record; None: there is none, or none that we understand."""
    found = _TOLD.fullmatch(text)
    return Tried(mark=found[1], runs=int(found[2]), anew=int(found[3])) if found else None


def next_try(before: Tried | None, token: Token) -> Tried:
    """Return the record for one more failed run from the token; the token shows its progress."""
    again = before is not None and before.mark == _mark(token)
    anew = token.to_guid if before is not None and before.anew == token.to_guid else 0
    return Tried(mark=_mark(token), runs=before.runs + 1 if before is not None and again else 1, anew=anew)


def _mark(token: Token) -> str:
    return f"{crc32(token.text.encode()):08x}"
