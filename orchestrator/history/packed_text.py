"""Long texts of the history, packed: plans and commands hold whole scripts, the same in each run."""

import binascii
import zlib

_LONG = 1000  # characters
_MOST_UNPACKED = 64 << 20  # bytes; a plan of 10,000 datasets has 30 MiB
_PACKED = "zlib:"


def pack(text: str) -> str:
    """Return a text for `unpack`: a long one packed, as ASCII, and any that begins like a packed one.

    Raises: ValueError: such a beginning, and more than 64 MiB; JSON has none.
    """
    alike = text.startswith(_PACKED)
    if len(text) < _LONG and not alike:
        return text
    stored = text.encode("utf-8", "surrogatepass")
    if len(stored) > _MOST_UNPACKED:
        if alike:
            raise ValueError("a text that begins like a packed one, and is too long to be packed")
        return text
    return _PACKED + binascii.b2a_base64(zlib.compress(stored, 6), newline=False).decode("ascii")


def unpack(text: str) -> str:
    """Return the text that `pack` stored. Raises: ValueError for another one, or more than 64 MiB."""
    if not text.startswith(_PACKED):
        return text
    unpacked = zlib.decompressobj()
    try:
        found = unpacked.decompress(binascii.a2b_base64(text[len(_PACKED) :], strict_mode=True), _MOST_UNPACKED)
    except zlib.error as error:
        raise ValueError(f"not a packed text: {error}") from None
    if not unpacked.eof:
        raise ValueError("a packed text that is cut, or too long")
    return found.decode("utf-8", "surrogatepass")
