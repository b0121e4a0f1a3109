"""Acts that the status page may ask the daemon for: a closed list, none of which destroys anything; and the line that asks for one.

Never among them: prune, destroy, enroll, retire, roll back, and consent of any kind.
"""

import json
import re
from datetime import datetime
from enum import StrEnum

from orchestrator.domain.answers import parse_json
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import JOB_NAME, POINT_NAME, parse_name, show_name

LONGEST_LINE = 64 << 10  # bytes
MOST_PATHS = 20
SPANS = ("1d", "3d", "7d", "14d", "30d")
_POOL = re.compile(
    r"[A-Za-z](?:[A-Za-z0-9_.: -]{0,198}[A-Za-z0-9_.:-])?"
)  # what zpool create takes; the centre keeps 200 characters
_GUID = re.compile(r"[1-9][0-9]{0,19}")  # of a pool, as zpool(8) prints it
_ORDER = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[1-9]")
ENDED_WITH_DAEMON = "the daemon ended before it"  # of an act that a later daemon found open
_USER = re.compile(r"[A-Za-z0-9][\w.@+-]{0,63}", re.ASCII)


class ActVerb(StrEnum):
    """All acts."""

    RUN = "run"
    PLAN = "plan"
    PAUSE = "pause"
    RESUME = "resume"
    VERIFY = "verify"
    ACKNOWLEDGE = "acknowledge"
    SNOOZE = "snooze"
    EJECT = "eject"
    RESTORE = "restore"
    DRILL = "drill"
    EVACUATE = "evacuate"


# By the verb: the arguments that it must have, and those that it may have.
_ARGUMENTS: dict[ActVerb, tuple[frozenset[str], frozenset[str]]] = {
    ActVerb.RUN: (frozenset({"job"}), frozenset()),
    ActVerb.PLAN: (frozenset({"job"}), frozenset()),
    ActVerb.PAUSE: (frozenset({"job"}), frozenset({"span"})),
    ActVerb.RESUME: (frozenset({"job"}), frozenset()),
    ActVerb.VERIFY: (frozenset({"job"}), frozenset({"point"})),
    ActVerb.ACKNOWLEDGE: (frozenset({"job"}), frozenset()),
    ActVerb.SNOOZE: (frozenset({"disk", "span"}), frozenset()),
    ActVerb.EJECT: (frozenset({"disk"}), frozenset()),
    ActVerb.RESTORE: (frozenset({"job", "point", "paths"}), frozenset()),
    ActVerb.DRILL: (frozenset({"job"}), frozenset()),
    ActVerb.EVACUATE: (frozenset({"pool"}), frozenset({"guid"})),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActRequest:
    """A request for one act. `user`: as the page's own server names who asks, if it knows; `paths`: below a point; `guid`: of the pool.

    `order`: the key of the centre's order that it comes from, with the number of the attempt; empty: it comes from none.
    """

    verb: ActVerb
    job: str = ""
    disk: str = ""
    pool: str = ""
    guid: str = ""
    point: str = ""
    paths: tuple[bytes, ...] = ()
    span: str = ""
    user: str = ""
    order: str = ""

    @property
    def subject(self) -> str:
        """Return the name of the job, of the disk or of the pool."""
        return self.job or self.disk or self.pool


@dataclass(frozen=True, slots=True, kw_only=True)
class ActAnswer:
    """The daemon's answer. `act`: its number in the history; None: it was refused before it was recorded.

    `later`: it was refused only because too much goes on now.
    """

    accepted: bool
    act: int | None
    said: str
    later: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ActRecord:
    """One act that was asked for. `well` None: it goes on; `runs`: the runs of its own process."""

    id: int
    verb: ActVerb
    subject: str
    about: str
    who: str
    asked: datetime
    ended: datetime | None
    well: bool | None
    said: str
    runs: tuple[int, ...] = ()


def encode_request(request: ActRequest) -> bytes:
    """Return the line that asks for an act."""
    told: dict[str, object] = {"act": request.verb.value}
    told |= {
        name: value
        for name in ("job", "disk", "pool", "guid", "point", "span", "user", "order")
        if (value := getattr(request, name))
    }
    if request.paths:
        told["paths"] = [show_name(path) for path in request.paths]
    return json.dumps(told).encode() + b"\n"


def parse_request(line: bytes) -> ActRequest:
    """Parse a line that asks for an act. Raises: ValueError with the reason for whatever is not exactly one."""
    if len(line) > LONGEST_LINE:
        raise ValueError("a longer line than any act needs")
    told = parse_json(line)
    if not isinstance(told, dict):
        raise ValueError("expected one JSON object on one line")
    try:
        verb = ActVerb(told.pop("act", ""))
    except (ValueError, TypeError):
        raise ValueError(f"no act that may be asked for; there are {', '.join(ActVerb)}") from None
    user = parse_user(told.pop("user")) if "user" in told else ""
    order = _text(told, "order", _ORDER)
    told.pop("order", None)
    needed, allowed = _ARGUMENTS[verb]
    given = frozenset(told)
    if lacks := needed - given:
        raise ValueError(f"{verb} needs {', '.join(sorted(lacks))}")
    if given - needed - allowed:
        raise ValueError(f"{verb} takes {', '.join(sorted(needed | allowed))} alone")
    return ActRequest(
        verb=verb, user=user, order=order, job=_text(told, "job", JOB_NAME), disk=_text(told, "disk", JOB_NAME), span=_span(told),
        pool=_text(told, "pool", _POOL), guid=_text(told, "guid", _GUID), point=_text(told, "point", POINT_NAME), paths=_paths(told.get("paths", [])),
    )  # fmt: skip


def parse_user(told: object) -> str:
    """Return the name of who asks, as a reverse proxy gives it. Raises: ValueError for whatever is not exactly one."""
    if not isinstance(told, str) or not _USER.fullmatch(told):
        raise ValueError("user: not a name that one can have (letters, digits and . _ @ + - alone, 64 at most)")
    return told


def _text(told: dict[str, object], name: str, form: "re.Pattern[str]") -> str:
    """Return a name of this form; empty when there is none. Raises: ValueError."""
    value = told.get(name, "")
    if name in told and (not isinstance(value, str) or not form.fullmatch(value)):
        raise ValueError(f"{name}: not a name that one can have")
    return str(value)


def _span(told: dict[str, object]) -> str:
    value = told.get("span", "")
    if "span" in told and value not in SPANS:
        raise ValueError(f"span: expected one of {', '.join(SPANS)}")
    return str(value)


def _paths(told: object) -> tuple[bytes, ...]:
    if not isinstance(told, list) or not all(isinstance(each, str) for each in told):
        raise ValueError("paths: expected a list of texts")
    if len(told) > MOST_PATHS:
        raise ValueError(f"paths: {MOST_PATHS} at most; take a folder in place of its files")
    return tuple(dict.fromkeys(parse_path_below(each) for each in told))


def parse_path_below(text: str) -> bytes:
    """Return a path below a point as `show_name` writes it. Raises: ValueError for one that is none, or leads out."""
    try:
        path = parse_name(text)
    except (ValueError, OverflowError):
        raise ValueError("paths: not the path of a file or folder") from None
    if b"\0" in path or any(part in (b"", b".", b"..") for part in path.split(b"/")):
        raise ValueError("paths: not the path of a file or folder below the point")
    return path
