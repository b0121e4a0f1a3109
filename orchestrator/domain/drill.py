"""Drills, as a job file asks for them: a copy is restored into scratch, to see that it can be. Pure."""

from orchestrator.domain.declare import key
from orchestrator.domain.place import parse_location
from orchestrator.domain.quick import dataclass
from orchestrator.domain.units import Bytes, Seconds, parse_duration, parse_often, parse_size


def parse_scratch(text: str) -> str:
    """An absolute path, or a dataset, both of this machine. Raises: ValueError."""
    found = parse_location(text)
    if found.host is not None or text.startswith((".", "~")) or "/" not in text:
        raise ValueError('a directory such as "/srv/scratch", or for copies of datasets a dataset such as "tank/drill"')
    return found.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    """How often a copy is restored into scratch, to see that it can be, and how much of it."""

    every: Seconds | None = key(
        'with each "run", or after one that ended well when the last drill is older than this; without it, only by '
        "`poolferry drill`",
        default=None, parse=parse_often, example="7d",
    )  # fmt: skip
    files: int = key("files in a sample, spread over the folders", default=100, least=1)
    size: Bytes = key("bytes in a sample", default=Bytes(1 << 30), parse=parse_size, example="5G")
    whole_every: Seconds | None = key(
        "restore all of it, when the last time was longer ago than this", default=None, parse=parse_duration,
        example="90d",
    )  # fmt: skip
    scratch: str | None = key(
        "where to: a directory, else one in the state directory",
        default=None,
        parse=parse_scratch,
        example="/srv/scratch",
    )
    check_command: tuple[str, ...] = key(
        "a program that looks at what came back, in its folder; any exit but 0 is a failed drill",
        default=(), example='["/usr/local/bin/open-albums"]',
    )  # fmt: skip
    check_within: Seconds = key("how long it may take", default=Seconds(600), parse=parse_duration, example="30m")

    @property
    def asked(self) -> bool:
        """Whether it is done by itself."""
        return self.every is not None or self.whole_every is not None
