"""The lines of a compressed manifest, whole or not at all; only as much code as a worker needs.

Four formats: 2 is 1 with one more line behind the last, a tag over all before it; 3 and 4 are those two with access lists and
attributes behind each digest. What lacks one of them is written in the earlier format, so that an earlier version says of the
later ones that it cannot read them, and not that they are damaged.
"""

import re
import zlib
from collections.abc import Callable, Iterator

FORMAT = b"# poolferry manifest 1"
TAGGED_FORMAT = b"# poolferry manifest 2"
FULL_FORMAT = b"# poolferry manifest 3"
TAGGED_FULL_FORMAT = b"# poolferry manifest 4"
TAGGED = (TAGGED_FORMAT, TAGGED_FULL_FORMAT)
_FORMATS = (FORMAT, FULL_FORMAT, *TAGGED)
TAG_LINE = re.compile(rb"# authentication: blake2b ([0-9a-f]{8}) ([0-9a-f]{64})")
TAG_BYTES = len(b"# authentication: blake2b ") + 8 + 1 + 64 + 1  # the line of the tag, its newline included
_AT_ONCE = 4 << 20  # bytes that are unpacked before they are looked at
_LONGEST = 4 << 20  # bytes of one line; a path that programs can name has 4 KiB
_END = re.compile(rb"# end entries=(\d+) files=(\d+) bytes=(\d+)")


class ManifestDamaged(ValueError):
    """A manifest that is cut, damaged, or none at all."""


def packed_lines(path: str, *, holding: bytes = b"", seen: Callable[[bytes], object] | None = None) -> Iterator[bytes]:
    """Yield every line without its newline, headings first; the `# end` line and the tag's are checked and not yielded.

    `holding`: of entries only the lines with these bytes in them; the others are counted, which takes a tenth of the time.
    `seen`: takes the whole text, piece by piece, before its lines are yielded.
    Raises: Damaged (at the end at the latest: what came before is then worth nothing) · OSError.
    """
    passed = _PassedLines()
    lines = _unpacked(path, holding, passed, seen)
    beginning = next(lines, None)
    if beginning not in _FORMATS:
        raise ManifestDamaged(
            f"{path}: not a manifest that this version can read (it does not begin with {FORMAT.decode()!r})"
        )
    yield beginning
    entries = 0
    for line in lines:
        if line.startswith(b"# end "):
            if beginning in TAGGED:
                _check_tag_line(path, next(lines, b""))
            return _check_end(path, line, entries + passed.count, next(lines, None))
        entries += not line.startswith(b"#")
        yield line
    raise ManifestDamaged(f"{path}: the manifest is cut short: its last line '# end …' is missing")


class PackedTexts:
    """The lines of all entries, as texts of many without the newline of the last. `totals`: entries, files and bytes, once all were read.

    `seen`: takes the whole text, piece by piece. Raises: as `packed_lines`.
    """

    def __init__(self, path: str, *, seen: Callable[[bytes], object]) -> None:
        self._path, self._seen = path, seen
        self.totals = (0, 0, 0)

    def __iter__(self) -> Iterator[bytes]:
        rest, told, entries = b"", list[bytes](), 0
        for piece in unpacked_pieces(self._path):
            self._seen(piece)
            text, _, rest = (rest + piece).rpartition(b"\n")
            if len(rest) > _LONGEST:
                raise ManifestDamaged(f"{self._path}: the manifest is damaged: it has a line without an end")
            if text.startswith(b"#") or b"\n#" in text:  # the begin or the end
                lines = text.split(b"\n")
                told += [line for line in lines if line.startswith(b"#")]
                text = b"\n".join(line for line in lines if not line.startswith(b"#"))
            if text:
                entries += text.count(b"\n") + 1
                yield text
        if rest or not told or told[0] not in _FORMATS:
            raise ManifestDamaged(f"{self._path}: the manifest is cut short, or something follows it")
        if told[0] in TAGGED:
            _check_tag_line(self._path, told.pop())
        _check_end(self._path, told[-1], entries, None)
        match = _END.fullmatch(told[-1])
        self.totals = (entries, int(match[2]), int(match[3])) if match else self.totals


def _check_end(path: str, line: bytes, entries: int, after: bytes | None) -> None:
    match = _END.fullmatch(line)
    if not match or int(match[1]) != entries or after is not None:
        raise ManifestDamaged(
            f"{path}: the manifest is damaged: it ends with {line!r}, and before that the number of its entries is {entries}"
        )


def _check_tag_line(path: str, line: bytes) -> None:
    if not TAG_LINE.fullmatch(line):
        raise ManifestDamaged(f"{path}: the manifest is damaged: the line of its tag is missing")


class _PassedLines:
    """The count of the lines that were passed over."""

    def __init__(self) -> None:
        self.count = 0


def _unpacked(
    path: str, holding: bytes, passed: _PassedLines, seen: Callable[[bytes], object] | None
) -> Iterator[bytes]:
    rest = b""
    for text in unpacked_pieces(path):
        if seen is not None:
            seen(text)
        whole, end, rest = (rest + text).rpartition(b"\n")
        if len(rest) > _LONGEST:
            raise ManifestDamaged(f"{path}: the manifest is damaged: it has a line without an end")
        if end:
            yield from _select(whole, holding, passed) if holding else whole.split(b"\n")
    if rest:
        raise ManifestDamaged(f"{path}: the manifest is cut short, or something follows it")


def _select(text: bytes, holding: bytes, passed: _PassedLines) -> Iterator[bytes]:
    """Yield the lines of a text that hold these bytes, and those that are no entries; count the others."""
    text = b"\n%b\n" % text
    passed.count += text.count(b"\n") - 1
    hit, ours = text.find(holding), text.find(b"\n#")
    while hit >= 0 or ours >= 0:
        begin = ours + 1 if hit < 0 or 0 <= ours < hit else text.rfind(b"\n", 0, hit) + 1
        end = text.find(b"\n", begin)
        passed.count -= 1
        yield text[begin:end]
        if 0 <= hit < end:
            hit = text.find(holding, end)
        if 0 <= ours < end:
            ours = text.find(b"\n#", end)


def unpacked_pieces(path: str) -> Iterator[bytes]:
    """Yield the text of a manifest in pieces. Raises: ManifestDamaged · OSError."""
    unpack = zlib.decompressobj(wbits=31)
    with open(path, "rb") as file:
        try:
            while packed := file.read(1 << 16):
                while packed:  # 64 KiB of packed zeros are 64 MiB
                    yield unpack.decompress(packed, _AT_ONCE)
                    packed = unpack.unconsumed_tail
        except zlib.error as error:
            raise ManifestDamaged(f"{path}: the manifest is damaged: {error}") from None
    if not unpack.eof or unpack.unused_data:
        raise ManifestDamaged(f"{path}: the manifest is cut short, or something follows it")
