"""Tags over manifests and disk markers that only the holder of this host's key can make, and their judgement.

Source: RFC 7693: BLAKE2b takes a key, and a "person" that separates the uses of one key; hashlib has both.
"""

import json
from enum import StrEnum
from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.hashes import blake2b, compare_digest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from orchestrator.domain.rotation import Disk, DiskMarker

KEY_BYTES = 32
_ID_BYTES, _TAG_BYTES = 4, 32


class AuthenticationKey:
    """The key of a state directory, and when it was made. No dataclass: its text must never show the secret."""

    __slots__ = ("_secret", "id", "made")

    def __init__(self, secret: bytes, made: "datetime") -> None:
        if len(secret) != KEY_BYTES:
            raise ValueError(f"a key of {KEY_BYTES} bytes")
        self._secret = secret
        self.made = made
        self.id = blake2b(key=secret, person=b"key-id", digest_size=_ID_BYTES).hexdigest()

    def __repr__(self) -> str:
        return f"AuthenticationKey({self.id})"

    def manifest_hash(self) -> blake2b:
        """Return the hash that makes a manifest's tag, to be fed with its text."""
        return blake2b(key=self._secret, person=b"manifest", digest_size=_TAG_BYTES)

    def kit_tag(self, job: str, text: str) -> str:
        """Return the tag over the digests of the files that lie beside a job's copies."""
        told = json.dumps([job, text]).encode("ascii")
        return blake2b(told, key=self._secret, person=b"kit-digests", digest_size=_TAG_BYTES).hexdigest()

    def marker_tag(self, marker: "DiskMarker", disk: "Disk") -> str:
        """Return the tag over all fields of a marker and the identity that the disk's storage itself reports."""
        told = [disk.identity, disk.inside or "", marker.disk, marker.name, marker.set, marker.owner, marker.host]
        text = json.dumps([*told, marker.generation]).encode("ascii")
        return blake2b(text, key=self._secret, person=b"disk-marker", digest_size=_TAG_BYTES).hexdigest()


class Authenticity(StrEnum):
    """Result of checking a tag. EARLIER: made before tags existed; OTHER_KEY: unknown, as that key is not on this machine."""

    AUTHENTIC = "authentic"
    EARLIER = "earlier"
    OTHER_KEY = "other-key"
    FORGED = "forged"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestTag:
    """The tag of a manifest, with the job and point that the manifest names. `key` empty: it has no tag.

    `right`: it was made with the key in question.
    """

    job: str
    point: str
    key: str
    right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestJudgement:
    """Judgement of a manifest's tag, as a sentence; empty when there is nothing to report.

    `other_key`: the tag names a key that this host did not use then: another machine may have made the point.
    """

    shown: Authenticity
    says: str = ""
    other_key: bool = False


def judge_manifest(
    tag: ManifestTag, *, job: str, point: str, key: str | None, expected: str | None
) -> ManifestJudgement:
    """Judge the tag of the manifest beside a point. `key`: the id of this host's key.

    `expected`: the id of the key with which this host must have tagged it; None: no record says that it did.
    """
    named = f"the manifest of point {point}"
    if not tag.key:
        if expected is None:
            return ManifestJudgement(shown=Authenticity.EARLIER)
        return _forged(
            f"{named} was changed by somebody who does not have this host's key: the tag that this host gave it is gone"
        )
    if tag.key == key:
        if not tag.right:
            return _forged(f"{named} was changed by somebody who does not have this host's key")
        if (tag.job, tag.point) != (job, point):
            return _forged(f"{named} was replaced by that of point {tag.point} of {tag.job}")
        return ManifestJudgement(shown=Authenticity.AUTHENTIC)
    if expected not in (None, tag.key):
        return _forged(
            f"{named} was changed by somebody who does not have this host's key, or made by another machine that copies to the same "
            f"place: its tag is of the key {tag.key}",
            other_key=True,
        )
    says = (
        f"{named} cannot be authenticated: its key {tag.key} is not on this machine; it is compared with all the same. "
        "Where another machine copies to the same place, give one of the two jobs a target of its own"
    )
    return ManifestJudgement(shown=Authenticity.OTHER_KEY, says=says)


def _forged(says: str, *, other_key: bool = False) -> ManifestJudgement:
    return ManifestJudgement(shown=Authenticity.FORGED, says=says, other_key=other_key)


USES = "manifest keys on "  # before a place's name, a small fact of a job: ids of keys, each with its first use


def parse_uses(text: str) -> "tuple[tuple[str, datetime], ...]":
    """Parse the fact of that name. Raises: one of NOT_READ for a damaged one."""
    from orchestrator.domain.answers import parse_instant, parse_json

    return tuple((str(key), parse_instant(since)) for key, since in parse_json(text or "[]"))


def expected_key(uses: "Sequence[tuple[str, datetime]]", made: "datetime | None") -> str | None:
    """Return the id of the key in use when a manifest was made; None: it was made before there was one.

    `uses`: ids, each with the time of its first use, in order. `made` None: for a mirror, whose manifest is always the last
    one.
    """
    before = [key for key, since in uses if made is None or since <= made]
    return before[-1] if before else None


def tag_marker(marker: "DiskMarker", disk: "Disk", key: AuthenticationKey) -> "DiskMarker":
    """Return the marker with its tag."""
    return replace(marker, authentication=f"{key.id}:{key.marker_tag(marker, disk)}")


def judge_marker(marker: "DiskMarker", disk: "Disk", key: AuthenticationKey, *, tagged: bool) -> Authenticity:
    """Return the result of checking the marker's tag. `tagged`: this key tagged the disk in its last visit."""
    made_by, _, tag = marker.authentication.partition(":")
    if made_by == key.id:
        right = compare_digest(tag.encode("utf-8", "surrogateescape"), key.marker_tag(marker, disk).encode())
        return Authenticity.AUTHENTIC if right else Authenticity.FORGED
    if tagged:
        return Authenticity.FORGED
    return Authenticity.OTHER_KEY if made_by else Authenticity.EARLIER
