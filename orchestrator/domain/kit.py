"""The recovery kit: the data needed to rebuild a lost source, readable without poolferry."""

from collections.abc import Mapping

from orchestrator.domain.fast_dataclass import dataclass

SET_ASIDE = ".not-trusted"  # suffix of a kit's file that is not trusted yet
DIGESTS = "SHA256SUMS"  # in a kit's archive: the digest of each other file, as `sha256sum -c` reads it


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


def digest_lines(files: Mapping[str, bytes]) -> bytes:
    """Return the digests of files by their names, a line for each."""
    from hashlib import sha256

    lines = (f"{sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    return "".join(lines).encode("utf-8", "surrogateescape")


def find_damaged_file(files: Mapping[str, bytes]) -> str | None:
    """Return a file of an archive that is not as its digest says, was lost or added; None: all are, or it holds no digests.

    Archives of earlier versions hold none. Digests guard against bytes that went bad: who writes the archive writes them too.
    """
    if DIGESTS not in files:
        return None
    told = set(files[DIGESTS].splitlines())
    true = {line: name for name in files if name != DIGESTS for line in digest_lines({name: files[name]}).splitlines()}
    return next((true[line] for line in true if line not in told), DIGESTS if told - true.keys() else None)
