"""The sentence by which a gate refuses, and by which the other side knows it."""

from orchestrator import __version__
from orchestrator.domain.gate import PRINTED


def refusal_line(name: str, why: str) -> str:
    """Return the sentence."""
    return f"{PRINTED}{name}: refused: {why} (poolferry {__version__})"
