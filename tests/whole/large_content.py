"""The contents of large files that programs of ours write ahead: made quickly, each another one."""

import random

from orchestrator.engines.rsync.model import LARGE_FILE


def content(number: int) -> bytes:
    """Return the bytes of the large file of a number."""
    return random.Random(number).randbytes(1 << 16) * (LARGE_FILE >> 16)
