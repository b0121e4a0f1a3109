"""Manifests as somebody makes them who can write on the target, and does not have the host's key."""

import gzip
import os
import re
from pathlib import Path

from tests.whole.house import House

TAG = re.compile(rb"# authentication: blake2b [0-9a-f]{8} [0-9a-f]{64}\n")
ATTRIBUTES = re.compile(rb"^([^#+\t\n]+)\+[^\t\n]*\t", re.MULTILINE)


def manifest_of(house: House, which: int = -1) -> Path:
    """The manifest of one point."""
    return house.target / "points" / f"{house.points()[which]}.manifest.gz"


def text_of(manifest: Path) -> bytes:
    return gzip.decompress(manifest.read_bytes())


def rewrite(manifest: Path, text: bytes) -> None:
    manifest.write_bytes(gzip.compress(text))


def untag(manifest: Path, number: int = 1) -> None:
    """Makes a manifest as an earlier version wrote it: format 1, or 3 with access lists and attributes."""
    heading, _, text = TAG.sub(b"", text_of(manifest)).partition(b"\n")
    assert heading in (b"# poolferry manifest 2", b"# poolferry manifest 4"), heading
    text = text if number == 3 else ATTRIBUTES.sub(rb"\1\t", text)
    rewrite(manifest, b"# poolferry manifest %d\n%b" % (number, text))


def change_both(house: House, name: str, content: bytes, *, which: int = -1) -> None:
    """Changes a file of a point, without a trace in its size and time, and its line in the manifest."""
    import xxhash

    file, manifest = house.point(which) / name, manifest_of(house, which)
    before, seen = file.read_bytes(), file.stat()
    assert len(before) == len(content)
    file.write_bytes(content)
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    old, new = (xxhash.xxh3_128_hexdigest(each).encode() for each in (before, content))
    text = text_of(manifest)
    assert old in text
    rewrite(manifest, text.replace(old, new))
