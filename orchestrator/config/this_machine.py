"""Facts of this machine that stay: its key for markers, and its place in a spread of times."""

import os
from hashlib import sha256

_MACHINE = "/etc/machine-id"


def machine_id_hash() -> str:
    """Return this machine's key for markers: it stays when the machine is renamed, and hides the machine's own id.

    Source: machine-id(5): the id is confidential, and must be hashed for applications.
    """
    try:
        with open(_MACHINE, encoding="ascii", newline="\n") as file:
            told = file.read().strip()
    except (OSError, ValueError):
        told = ""
    return sha256(f"poolferry:{told or os.uname().nodename}".encode()).hexdigest()[:32]


def place_in_spread(job: str, span: float) -> int:
    """Return how many whole seconds within the span are this machine's and job's: always the same ones."""
    return int(sha256(f"{machine_id_hash()}:{job}".encode()).hexdigest()[:16], 16) % max(int(span), 1)
