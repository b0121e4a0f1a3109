"""The recovery kit: the data needed to rebuild a lost source, readable without poolferry."""

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Kit:
    """One recovery kit. `content`: all known facts as JSON; `layout`: the pool layout, to compare with older kits.

    `recovery`: the page that tells what to do; `guids`: a line for each snapshot, name and guid.
    """

    content: str
    layout: str
    recovery: str
    guids: str
