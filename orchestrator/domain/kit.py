"""The recovery kit: the data needed to rebuild a lost source, readable without poolferry."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchestrator.domain.answers import split_lines, text_lines
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.hashes import compare_digest, sha256_for

if TYPE_CHECKING:
    from orchestrator.domain.authentication import AuthenticationKey

SET_ASIDE = ".not-trusted"  # suffix of a kit's file that is not trusted yet
DIGESTS = "SHA256SUMS"  # the digest of each other file of a kit, as `sha256sum -c` reads it
PAGE, ARCHIVE, HISTORY = KIT_FILES = ("RECOVERY.md", "configuration.tar", "history.sqlite")  # beside copies of files
# sha256sum takes lines that begin so for comments.
_BEFORE, _TAG = "# before: ", "# tag: "
_DIGEST = re.compile(r"[0-9a-f]{64}")


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
    lines = (f"{_digest_of(content)}  {name}\n" for name, content in files.items())
    return "".join(lines).encode("utf-8", "surrogateescape")


def _digest_of(content: bytes) -> str:
    digest = sha256_for(len(content))  # the history among them may be large
    digest.update(content)
    return digest.hexdigest()


def parse_digest_lines(text: bytes) -> dict[str, str]:
    """Parse what `digest_lines` returns: the digests by name. Raises: ValueError for anything else."""
    found: dict[str, str] = {}
    for line in text_lines(text):
        digest, gap, name = line.partition("  ")
        if not gap or not name or not _DIGEST.fullmatch(digest):
            raise ValueError(f"no line of digests: {line[:100]}")
        found[name] = digest
    if not found:
        raise ValueError("no digests")
    return found


def find_damaged_file(files: Mapping[str, bytes]) -> str | None:
    """Return a file of an archive that is not as its digest says, was lost or added; None: all are, or it holds no digests.

    Archives of earlier versions hold none. Digests guard against bytes that went bad: who writes the archive writes them too.
    """
    if DIGESTS not in files:
        return None
    told = set(split_lines(files[DIGESTS]))
    true = {line: name for name in files if name != DIGESTS for line in split_lines(digest_lines({name: files[name]}))}
    return next((true[line] for line in true if line not in told), DIGESTS if told - true.keys() else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class KitDigests:
    """The digests of the files beside copies, by name. `before`: those that may lie there still, as the files were being replaced when it was written.

    `key`, `tag`: the id of the key of the host that wrote it, and its tag.
    """

    files: Mapping[str, str]
    before: Mapping[str, tuple[str, ...]]
    key: str = ""
    tag: str = ""

    @property
    def text(self) -> str:
        """Return the lines that the tag is over."""
        lines = [f"{digest}  {name}\n" for name, digest in sorted(self.files.items())]
        older = [(name, digest) for name, digests in sorted(self.before.items()) for digest in digests]
        return "".join((*lines, *(f"{_BEFORE}{digest}  {name}\n" for name, digest in older)))


def seal_digests(digests: KitDigests, job: str, key: "AuthenticationKey") -> str:
    """Return the content of the file: the digests with their tag."""
    return f"{digests.text}{_TAG}{key.id}:{key.kit_tag(job, digests.text)}\n"


def parse_digests(text: str) -> KitDigests:
    """Parse that file. Raises: ValueError for a text that we did not write."""
    files: dict[str, str] = {}
    before: dict[str, tuple[str, ...]] = {}
    *lines, last = split_lines(text)
    for line in lines:
        older = line.startswith(_BEFORE)
        digest, gap, name = line.removeprefix(_BEFORE).partition("  ")
        known = before.get(name, ()) if older else files
        if not gap or name not in KIT_FILES or not _DIGEST.fullmatch(digest) or (digest if older else name) in known:
            raise ValueError(f"no line of digests: {line[:100]}")
        if older:
            before[name] = (*before.get(name, ()), digest)
        else:
            files[name] = digest
    key, colon, tag = last.removeprefix(_TAG).partition(":")
    found = KitDigests(files=files, before=before, key=key, tag=tag)
    if not colon or text != f"{found.text}{_TAG}{key}:{tag}\n":
        raise ValueError("not as it was written")
    return found


def is_sealed(digests: KitDigests, job: str, key: "AuthenticationKey") -> bool:
    """Return whether the tag was made with this key over just these digests."""
    right = compare_digest(digests.tag.encode("utf-8", "surrogateescape"), key.kit_tag(job, digests.text).encode())
    return digests.key == key.id and right


def damaged_kit_files(digests: KitDigests, found: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the files that are not as they were written. `found`: the digest of each that was looked at; None: it is not there.

    Why no memory judges, too: after a power cut, or with a history that was put back, an earlier set may lie there that is whole.
    """
    return tuple(
        name
        for name, true in digests.files.items()
        if name in found and found[name] not in (true, *digests.before.get(name, ()))
    )
