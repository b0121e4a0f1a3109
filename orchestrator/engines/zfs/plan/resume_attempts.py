"""The record of an interrupted receive without progress: how often resuming it has failed."""

import re
from zlib import crc32

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.engines.zfs.model import ResumeToken

MOST_RUNS = 3
_ATTEMPTS = re.compile(r"([0-9a-f]{8}|-) (\d+) (\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAttempts:
    """Failed resumes of one token. `runs`: how many in a row; `anew`: guid of the snapshot that was restarted for it."""

    mark: str = "-"  # a hash of the token: anyone with the token itself can request the rest of the stream
    runs: int = 0
    anew: int = 0

    def __str__(self) -> str:
        return f"{self.mark} {self.runs} {self.anew}"

    def is_stuck(self, token: ResumeToken) -> bool:
        """Return whether runs tried to resume from the token often enough."""
        return self.mark == _mark(token) and self.runs >= MOST_RUNS


def attempts_key(dataset: str) -> str:
    """Return the key of a dataset's record, by the dataset's name below the root."""
    return f"zfs-cut {dataset}"


def parse_attempts(text: str) -> ResumeAttempts | None:
    """Parse a record; None: there is none, or it has an unknown form."""
    found = _ATTEMPTS.fullmatch(text)
    return ResumeAttempts(mark=found[1], runs=int(found[2]), anew=int(found[3])) if found else None


def next_attempt(before: ResumeAttempts | None, token: ResumeToken) -> ResumeAttempts:
    """Return the record for one more failed run from the token; the token shows its progress."""
    again = before is not None and before.mark == _mark(token)
    anew = token.to_guid if before is not None and before.anew == token.to_guid else 0
    return ResumeAttempts(mark=_mark(token), runs=before.runs + 1 if before is not None and again else 1, anew=anew)


def _mark(token: ResumeToken) -> str:
    return f"{crc32(token.text.encode()):08x}"
