"""One syncoid command line as values, parsed like syncoid's own option parser.

Source: syncoid(8) of sanoid 2.1 to 2.3: options may be shortened as long as they are unique, begin with one or two dashes,
in upper or lower case, at any position.
"""

import re
from collections.abc import Iterator

from orchestrator.config.models import parse_any_location
from orchestrator.config.parse_job import dataset_location, dataset_mistake
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Host, Location

_FLAGS = (
    "no-command-checks monitor-version dumpsnaps recursive debug quiet no-stream no-sync-snap no-resume skip-parent "
    "no-clone-handling no-privilege-elevation force-delete no-clone-rollback no-rollback create-bookmark use-hold "
    "keep-sync-snap preserve-recordsize delete-target-snapshots preserve-properties help version"
).split()
_VALUED = (
    "compress sendoptions recvoptions bwlimit source-bwlimit target-bwlimit sshconfig sshkey sshport sshcipher sshoption exclude "
    "identifier pv-options mbuffer-size insecure-direct-connection exclude-datasets include-snaps exclude-snaps"
).split()
_SHORT = {"r": "recursive", "c": "sshcipher", "o": "sshoption"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncoidCall:
    """Source, target and options of a syncoid call: each option by its full name, with the value or ""."""

    source: Location
    target: Location
    options: tuple[tuple[str, str], ...]

    def of(self, name: str) -> tuple[str, ...]:
        """Return all values of an option, in order."""
        return tuple(value for told, value in self.options if told == name)

    def has(self, name: str) -> bool:
        """Return True when an option is given."""
        return bool(self.of(name))


def parse_syncoid(words: tuple[str, ...]) -> SyncoidCall:
    """Parse these arguments into a replication. Raises: ValueError that names the unreadable part."""
    places: list[str] = []
    options: list[tuple[str, str]] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            places += rest
            break
        if len(word) < 2 or not word.startswith("-"):
            places.append(word)
            continue
        told, equal, value = word.lstrip("-").partition("=")
        name = _full_name(told)
        if name in _VALUED and not equal:
            if not rest:
                raise ValueError(f"--{name} lacks its value")
            value = rest.pop(0)
        options.append((name, value))
    if len(places) != 2:
        raise ValueError("needs a source and a target" if len(places) < 2 else f"has {len(places)} places, not two")
    port = next((int(value) for name, value in options if name == "sshport" and value.isdigit()), None)
    source, target = (_location(place, port) for place in places)
    return SyncoidCall(source=source, target=target, options=tuple(options))


def _full_name(told: str) -> str:
    """Return the full name of a shortened option. Raises: ValueError."""
    name = told.lower()
    if name in _SHORT or name in (*_FLAGS, *_VALUED):
        return _SHORT.get(name, name)
    meant = [each for each in (*_FLAGS, *_VALUED) if each.startswith(name)]
    if len(meant) != 1:
        raise ValueError(f"-{'-' if len(told) > 1 else ''}{told} is no option of syncoid")
    return meant[0]


def _location(place: str, port: int | None) -> Location:
    """Parse a dataset as "pool/data", "host:pool/data" or "user@host:pool/data". Raises: ValueError."""
    match = re.fullmatch(r"(?:([^@:/]*)@)?([^@:/]+):(.+)", place)
    if match is None:
        found = Location(path=place)
    else:
        host = Host(name=match[2], user=match[1] or None, port=port)
        found = dataset_location(parse_any_location(str(Location(path=match[3], host=host))))
    if wrong := dataset_mistake(found):
        raise ValueError(wrong[0])
    return found


def parse_special(text: str) -> Iterator[tuple[str, str]]:
    """Yield the letters of --sendoptions and --recvoptions, each with its value or "": "Lce", "u o canmount=off"."""
    words = text.split()
    while words:
        letters = words.pop(0).lstrip("-")
        for at, letter in enumerate(letters, start=1):
            valued = letter in "ox" and at == len(letters) and words
            yield letter, words.pop(0) if valued else ""


def parse_pattern(regex: str) -> str | None:
    """Convert a simple regular expression, searched anywhere, to a pattern with *; None when there is none."""
    start, end = not regex.startswith("^"), not re.search(r"(?<!\\)\$$", regex)
    body = regex.removeprefix("^").removesuffix("" if end else "$")
    parts = re.findall(r"\.\*|\\[./_:-]|[A-Za-z0-9/_:. -]", body)
    if "".join(parts) != body or not body:
        return None
    plain = "".join("*" if part == ".*" else part.removeprefix("\\") for part in parts)
    return re.sub(r"\*+", "*", "*" * start + plain + "*" * end)
