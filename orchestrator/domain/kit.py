"""The recovery kit: the data needed to rebuild a lost source, readable without poolferry."""

from collections.abc import Mapping

from orchestrator.domain.fast_dataclass import dataclass

SET_ASIDE = ".not-trusted"  # suffix of a kit's file that is not trusted yet


@dataclass(frozen=True, slots=True, kw_only=True)
class KitContents:
    """One recovery kit. `content`: all known facts as JSON; `layout`: the pool layout, to compare with older kits.

    `recovery`: the page with the steps to take; `guids`: a line for each snapshot, name and guid.
    """

    content: str
    layout: str
    recovery: str
    guids: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """One file that is not trusted yet. `name`: its name for --trust; `acts`: what it would run or send, for people."""

    name: str
    path: str
    acts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KitReview:
    """A kit's configuration, divided.

    `accepted`: by path; `set_aside`: not trusted; `left_out`: files that are no configuration. `copies`: source and target of
    each job file, for people.
    """

    accepted: Mapping[str, bytes]
    set_aside: tuple[SetAside, ...]
    left_out: tuple[str, ...]
    copies: tuple[str, ...]
