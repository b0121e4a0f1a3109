"""The lines of a compressed manifest, whole or not at all; only as much code as a worker needs."""

import re
import zlib
from collections.abc import Iterator

FORMAT = b"# poolferry manifest 1"
_LONGEST = 4 << 20  # bytes of one line; a path that programs can name has 4 KiB
_END = re.compile(rb"# end entries=(\d+) files=(\d+) bytes=(\d+)")


class ManifestDamaged(ValueError):
    """A manifest that is cut, damaged, or none at all."""


def packed_lines(path: str) -> Iterator[bytes]:
    """Yield every line without its newline, headings first; the `# end` line is checked and not yielded.

    Raises: Damaged (at the end at the latest: what came before is then worth nothing) · OSError.
    """
    lines = _unpacked(path)
    if next(lines, None) != FORMAT:
        raise ManifestDamaged(
            f"{path}: not a manifest that this version can read (it does not begin with {FORMAT.decode()!r})"
        )
    yield FORMAT
    entries = 0
    for line in lines:
        if line.startswith(b"# end "):
            return _check_end(path, line, entries, next(lines, None))
        entries += not line.startswith(b"#")
        yield line
    raise ManifestDamaged(f"{path}: the manifest is cut short: its last line '# end …' is missing")


def _check_end(path: str, line: bytes, entries: int, after: bytes | None) -> None:
    match = _END.fullmatch(line)
    if not match or int(match[1]) != entries or after is not None:
        raise ManifestDamaged(f"{path}: the manifest is damaged: it ends with {line!r} after {entries} entries")


def _unpacked(path: str) -> Iterator[bytes]:
    unpack = zlib.decompressobj(wbits=31)
    rest = b""
    with open(path, "rb") as file:
        try:
            while packed := file.read(1 << 16):
                *lines, rest = (rest + unpack.decompress(packed)).split(b"\n")
                if len(rest) > _LONGEST:
                    raise ManifestDamaged(f"{path}: the manifest is damaged: it has a line without an end")
                yield from lines
        except zlib.error as error:
            raise ManifestDamaged(f"{path}: the manifest is damaged: {error}") from None
    if not unpack.eof or unpack.unused_data or rest:
        raise ManifestDamaged(f"{path}: the manifest is cut short, or something follows it")
