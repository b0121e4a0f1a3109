"""The recovery kit: what is needed to build a source again when it is lost, readable without us."""

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """`content`: all that is known, as JSON; `layout`: what the pool is made of, for a comparison with older kits.

    `recovery`: the page that tells what to do; `guids`: a line for each snapshot, name and guid.
    """

    content: str
    layout: str
    recovery: str
    guids: str
