"""Permits of a job: the limits of a fleet's centre that its runs count against, and what a run does while the centre is away."""

import re
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Seconds, parse_duration, show_count, show_duration

LIMIT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,99}")
_LONGEST = 7 * 86400
GO_ON = "go-on"
# Of a permit that an earlier session of the job has: this run's own, or that of one that ended without a word.
SEEN_SOON = (
    "waits until the centre sees that an earlier line of this job to it was cut, as by a power cut, which takes up to a minute: until then its permit, "
    "or its place in the queue, is kept"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PermitRequest:
    """The request of a job's run. `weight`: slots of each limit; `patience` None: it goes on at once where the centre is away."""

    limits: tuple[str, ...]
    weight: int = 1
    patience: Seconds | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PermitAnswer:
    """The answer of the centre. `place`: in the queue, from 1; `limit`: the one that is waited for, with what is lent of it.

    `opens`: the local time at which it opens again, where it is closed; `unknown`: names that the centre does not know;
    `clamped`: limits that have fewer slots than the weight; `busy`: another run of the same job holds the permit, or waits for it.
    """

    permit: int | None
    granted: bool
    busy: bool = False
    place: int = 0
    limit: str = ""
    used: int = 0
    slots: int = 0
    opens: str = ""
    unknown: tuple[str, ...] = ()
    clamped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredLimit:
    """A limit. `between`: when it lends, such as 18:00-07:00 in local time of `zone`; empty: always. `lent` and `waiting`: slots, and permits in the queue."""

    name: str
    slots: int
    between: str = ""
    zone: str = "UTC"
    lent: int = 0
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PermitRecord:
    """A permit as the centre knows it. `since`: lent, or asked for; `lives`: its session is there; `taken`: it was not lent."""

    host: str
    job: str
    limits: tuple[str, ...]
    weight: int
    held: bool
    taken: bool
    lives: bool
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PermitList:
    """The limits of a centre by name; and its permits, those that are held first, then the queue in the order of asking."""

    limits: tuple[DeclaredLimit, ...]
    permits: tuple[PermitRecord, ...]


class RunVoice(Protocol):
    """The part of a run's record that a permit speaks to."""

    def say(self, text: str) -> None:
        """Record a line."""

    def warn(self, text: str) -> None:
        """Record a warning."""

    def waits(self, text: str) -> None:
        """Show what the run waits for; empty: nothing any more."""


class RunPermit(Protocol):
    """The permit of one run: waited for and then held, or both at once."""

    def obtain(self, voice: RunVoice) -> None:
        """Wait until it is lent, and keep it for `hold`. Raises: Stopped, and NotNow at the end of the patience."""

    def hold(self, voice: RunVoice) -> AbstractContextManager[None]:
        """Hold it while inside, after a wait where it was not obtained before. Raises: as `obtain`."""

    def give_back_meanwhile(self, voice: RunVoice) -> AbstractContextManager[None]:
        """Give back what is held while inside, and wait for it again afterwards. Raises: as `obtain`."""


def parse_limit_name(text: str) -> str:
    """Return the text, if it may name a limit. Raises: ValueError."""
    if not LIMIT_NAME.fullmatch(text):
        raise ValueError("the name of a limit: letters, digits, dots, - and _, the first a letter")
    return text


def parse_permit_away(text: str) -> Seconds | None:
    """Parse "go-on" to None, "wait 30m" to its seconds. Raises: ValueError."""
    if text == GO_ON:
        return None
    word, _, span = text.partition(" ")
    try:
        seconds = parse_duration(span.strip())
    except ValueError:
        seconds = Seconds(0)
    if word != "wait" or not 1 <= seconds <= _LONGEST:
        raise ValueError('"go-on", or how long to wait: "wait 30m"')
    return seconds


def describe_wait(answer: PermitAnswer) -> str:
    """Return what a run waits for, as one line."""
    queued = f"; number {answer.place} in the queue" if answer.place else ""
    if answer.opens:
        return f"waits for the permit {answer.limit}, which is closed until {answer.opens}{queued}"
    return f"waits for the permit {answer.limit}: {answer.used} of {show_count(answer.slots, 'slot')} lent{queued}"


def describe_absence(request: PermitRequest, why: str) -> str:
    """Return what a run does while the centre is away, as one line."""
    if request.patience is None:
        return f"goes on without the permit {' and '.join(request.limits)}: {why}"
    long = show_duration(request.patience)
    return f"waits up to {long} for the centre, which lends the permit {' and '.join(request.limits)}: {why}"


def describe_lapse(request: PermitRequest) -> str:
    """Return what is said of a permit that ran out while its run went on."""
    return (
        f"the centre heard nothing of this run for so long that it gave up its permit {' and '.join(request.limits)}, and others could have it: "
        "this machine slept, or the line was cut; the run goes on, and is counted again"
    )
