"""Gates: what the key of another machine may do here, which the owner declares in gates/NAME.toml."""

import re

from orchestrator.domain.errors import OrchestratorError, RetryClass
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import config_key
from orchestrator.domain.names import printable_word
from orchestrator.domain.units import Bytes, parse_size

_DATASET = r"[A-Za-z][A-Za-z0-9_.: /-]*"  # as zfs allows, and no %, which names what is hidden
_LONGEST = 200  # bytes, of the 255 of a whole name
_LONGEST_HELLO = 4096
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


def parse_gate_dataset(text: str) -> str:
    """Parse the name of a dataset. Raises: ValueError."""
    parts = text.split("/")
    if not re.fullmatch(_DATASET, text) or {"", ".", ".."} & set(parts) or len(text) > _LONGEST:
        raise ValueError('a dataset such as "vault/in/laptop", of letters, digits, blanks and _.:-/ alone')
    return text


def parse_pool_id(text: str) -> str:
    """Parse the guid of a pool as poolferry's bookmarks and holds have it. Raises: ValueError."""
    if not re.fullmatch("[0-9a-f]{16}", text):
        raise ValueError(
            '16 hexadecimal digits such as "09f5e474ffec3f56", the first ones in the name of each bookmark for that pool'
        )
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A gate: the key that goes through it can do what is declared here, and nothing else."""

    reads: tuple[str, ...] = config_key(
        "the folder that the other side copies from, or a list of several; it can read what is below, and change nothing",
        default=(), parse=parse_gate_folder, example='["/srv/photos"]',
    )  # fmt: skip
    sends: str = config_key(
        "the dataset that the other side copies from; it can read it and all below it, and write only poolferry's own bookmarks and holds",
        default="", parse=parse_gate_dataset, example='"tank"',
    )  # fmt: skip
    pools: tuple[str, ...] = config_key(
        "the pools to which `sends` is copied: bookmarks and holds for other pools are left alone; without it, those for any may go",
        default=(), parse=parse_pool_id, example='["09f5e474ffec3f56"]',
    )  # fmt: skip
    receives: str = config_key(
        "the dataset below which the other side adds to its copies; it can change and remove none of them",
        default="", parse=parse_gate_dataset, example='"vault/in/laptop"',
    )  # fmt: skip
    adds: str = config_key(
        "the folder in which the other side adds to its restore points; it can change and remove none of them",
        default="", parse=parse_gate_folder, example='"/backup/laptop"',
    )  # fmt: skip
    at_most: Bytes | None = config_key(
        "how much may lie below `receives`: where more is used nothing is received, and what streams bring, all together, ends there",
        default=None, parse=parse_size, example='"2T"',
    )  # fmt: skip
    keep_free: Bytes | None = config_key(
        "how much of the filesystem of `adds` stays free: with less no copy begins, and one that goes on is ended",
        default=None, parse=parse_size, example='"50G"',
    )  # fmt: skip
    connections: int = config_key("how many requests are answered at once", default=100, least=1)

    @property
    def rights(self) -> tuple[str, ...]:
        """Return what the key may do, as the names of the keys that say so."""
        return tuple(name for name in ("reads", "sends", "receives", "adds") if getattr(self, name))


# The versions of what both sides say to each other that this program knows. 1: the questions of copies, and no hello. 2: hello, and
# folders to which points are added. 3: a hello without what rsync says. 4: a key that reads may ask whether links are closed to rsync.
PROTOCOLS: tuple[int, ...] = (1, 2, 3, 4)
TELLS_OF_LINKS = 4
LINKS = "look-at-links.sh"
GATE_ROOT_ABSENT = ", below which it receives, is not there"
ABSENT_OF_GATE = (
    "where it was renamed there, give it its name back, or name it so in the gate's file there and in targets.toml here; where it was never "
    "made: `poolferry setup gate` there names the command"
)
HELLO, ALONE = "hello.sh", "alone"  # the second: without what rsync says


@dataclass(frozen=True, slots=True, kw_only=True)
class GateHello:
    """The first words of a run through a gate, of either side: one line of JSON. `gate`, `rights`: of a gate alone."""

    poolferry: str
    protocols: tuple[int, ...] = PROTOCOLS
    gate: str = ""
    rights: tuple[str, ...] = ()


def format_hello(hello: GateHello) -> str:
    """Return a hello as one line of JSON."""
    import json

    told = {"poolferry": hello.poolferry, "protocols": hello.protocols, "gate": hello.gate, "rights": hello.rights}
    return json.dumps({name: value for name, value in told.items() if value})


def parse_hello(line: str | bytes) -> GateHello:
    """Parse the line of the other side; what a newer one tells besides is left aside. Raises: ValueError."""
    from orchestrator.domain.answers import parse_json

    told = parse_json(line) if len(line) <= _LONGEST_HELLO else None
    if not isinstance(told, dict):
        raise ValueError("no hello")
    protocols, rights = told.get("protocols"), told.get("rights", [])
    if not (isinstance(protocols, list) and protocols and all(type(each) is int for each in protocols)):
        raise ValueError("a hello without versions")
    if not (isinstance(rights, list) and all(isinstance(each, str) for each in rights)):
        raise ValueError("a hello with other rights than names")
    texts = (printable_word(str(told.get(name, "")))[:_LONGEST] for name in ("poolferry", "gate"))
    version, gate = texts
    return GateHello(poolferry=version, protocols=tuple(protocols), gate=gate, rights=tuple(rights))


def common_protocol(theirs: tuple[int, ...]) -> int | None:
    """Return the newest version that both sides know; None: there is none."""
    return max(set(PROTOCOLS) & set(theirs), default=None)


def who_upgrades(theirs: tuple[int, ...], *, here: str, there: str) -> str:
    """Return the sentence that says which of two sides without a common version is the older one. `here`, `there`: their names."""
    older = there if max(theirs) < max(PROTOCOLS) else here
    ours, others = (" and ".join(map(str, each)) for each in (PROTOCOLS, theirs))
    return f"{here} knows version {ours} of what is said through a gate, {there} {others}: upgrade poolferry on {older}"


def is_unknown_request(said: str) -> bool:
    """Return whether a gate's refusal says that it does not know the request, as one of another version."""
    unknown = (
        "it was asked for",
        "this key only copies from here, and was asked for",
        "it was greeted with what is no greeting",
    )
    return PRINTED in said and any(words in said for words in unknown)


def is_unknown_hello(said: str) -> bool:
    """Return whether a gate's refusal is that of one without hello, of version 1."""
    return PRINTED in said and f": refused: it was asked for `{HELLO}" in said


class GateTooOld(OrchestratorError):
    """A gate and the other side know no common version of what is said between them."""

    retry = RetryClass.ASK_A_HUMAN


class GateRefusal(OrchestratorError):
    """A request that the gate does not admit. `why`: what was asked, and why not."""

    retry = RetryClass.ASK_A_HUMAN


class CutStream(OrchestratorError):
    """A stream that broke off before its receiver began. `why`: in words of zfs or mbuffer, by which the other side knows it."""

    retry = RetryClass.NOW


ADDING = "adding"  # the file in our folder by whose lock all that write below a gate's folder are kept apart
PRINTED = "poolferry gate "  # begins each refusal, by which the other side knows it
BUSY = "busy: "  # begins the reason of a refusal that another time is not given
APPEND_ONLY = "append-only: "  # and of one because it could harm a copy
LACKS = "no right for that: "  # and of one that another right would let through
REFUSED = 126  # exit status; as of shells: "cannot execute"
