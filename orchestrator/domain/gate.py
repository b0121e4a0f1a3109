"""Gates: what the key of another machine may do here, which the owner declares in gates/NAME.toml."""

import re

from orchestrator.domain.errors import OrchestratorError, RetryClass
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import config_key

_PLAIN = r"/[A-Za-z0-9/_.,+@%=:-]+"


def parse_gate_folder(text: str) -> str:
    """Parse the absolute path of a folder. Raises: ValueError."""
    parts = text.split("/")[1:]
    if not re.fullmatch(_PLAIN, text) or not parts[0] or {"", ".", ".."} & set(parts):
        raise ValueError(
            'an absolute path such as "/srv/photos", not the root, without "." and ".."; of letters, digits and /_.,+@%=:- alone, as rsync '
            "hands other paths on by a way that no gate sees"
        )
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A gate: the key that goes through it can do what is declared here, and nothing else."""

    reads: str = config_key(
        "the folder that the other side copies from; it can read what is below it, and change nothing",
        parse=parse_gate_folder, example='"/srv/photos"',
    )  # fmt: skip


class GateRefusal(OrchestratorError):
    """A request that the gate does not admit. `why`: what was asked, and why not."""

    retry = RetryClass.ASK_A_HUMAN


PRINTED = "poolferry gate "  # begins each refusal, by which the other side knows it
REFUSED = 126  # exit status; as of shells: "cannot execute"
