"""Orders of a centre to its hosts: acts of the closed list, asked for from afar; each is carried out by the host's own daemon."""

import re
from datetime import datetime
from enum import StrEnum

from orchestrator.domain.act import ActRequest, ActVerb, encode_request, parse_request
from orchestrator.domain.command_line import quoted
from orchestrator.domain.fast_dataclass import dataclass

ORDERED = (
    ActVerb.RUN, ActVerb.PLAN, ActVerb.PAUSE, ActVerb.RESUME, ActVerb.VERIFY, ActVerb.DRILL, ActVerb.EVACUATE,
)  # fmt: skip
MOST_ATTEMPTS = 2
# What begins with a look at what there is does no harm when it is done twice, so it is tried once more where a daemon's death cut it. The others would undo
# what a person did meanwhile, or read and copy a whole pool again: nobody knows what became of them, and the one who ordered decides.
RETRIED = frozenset({ActVerb.RUN, ActVerb.PLAN, ActVerb.VERIFY, ActVerb.DRILL})
UNKNOWN_END = "it is not known what became of it"
_KEY = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class OrderState(StrEnum):
    """The stages of an order. The first three are open."""

    ASKED = "asked"
    TAKEN = "taken"
    BEGUN = "begun"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedOrder:
    """An open order as its host gets it. `late`: its deadline is over; `attempt`: how often it was asked of the daemon."""

    key: str
    request: ActRequest
    state: OrderState
    attempt: int
    late: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRecord:
    """An order as its centre knows it. `subject`: the job or the pool; `act`: its number in the host's history.

    `version`: of the host's poolferry, as it said last; empty: it never did.
    """

    id: int
    host: str
    verb: ActVerb
    subject: str
    about: str
    asked_by: str
    asked_at: datetime
    deadline: datetime
    state: OrderState
    attempt: int
    act: int | None
    said: str
    told_at: datetime | None
    version: str = ""

    @property
    def unknown_end(self) -> bool:
        """Return True when it was begun, and nobody knows how it ended."""
        return self.state is OrderState.FAILED and UNKNOWN_END in self.said

    @property
    def unknown_there(self) -> bool:
        """Return True when the host's own version does not have this verb."""
        return self.state is OrderState.REFUSED and self.said.startswith(
            f"not understood: {self.verb} cannot be ordered"
        )


def describe_unknown_end(request: ActRequest) -> str:
    """Return what is told of an order whose daemon died while it did it, and that is not begun again."""
    looks = "status" if request.pool else f"schedule {quoted(request.job)}"
    return (
        f"the daemon there ended meanwhile, so {UNKNOWN_END}, and it is not begun again: see `poolferry {looks}` on that host, then order it again "
        "if it is still wanted"
    )


def order_request(
    verb: str,
    subject: str,
    *,
    point: str = "",
    span: str = "",
    guid: str = "",
    user: str = "",
    key: str = "",
    attempt: int = 1,
) -> ActRequest:
    """Return a request that is exactly one of the closed list, or raise. `subject`: a job; of an evacuation a pool, with or without its `guid`.

    Raises: ValueError with the reason.
    """
    if verb not in ORDERED:
        raise ValueError(f"{verb} cannot be ordered; there are {', '.join(ORDERED)}")
    if key and not _KEY.fullmatch(key):
        raise ValueError("an order without a key")
    evacuates = verb == ActVerb.EVACUATE
    request = ActRequest(
        verb=ActVerb(verb), job="" if evacuates else subject, pool=subject if evacuates else "", guid=guid, point=point, span=span, user=user,
        order=f"{key}.{attempt}" if key else "",
    )  # fmt: skip
    return parse_request(encode_request(request))  # what a centre says is checked as what any caller says
