"""Names of jobs, points and tree entries, with a lossless text form for any bytes."""

import re
from datetime import UTC, datetime

JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
POINT_NAME = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z")
_POINT_FORMAT = "%Y-%m-%dT%H%M%SZ"
# Compiled by re when first needed, which is not in every run; a backslash is all of it that is printable.
_UNSAFE = r"[\\\x00-\x1f\x7f-\x9f\u2028\u2029\udc80-\udcff]"
_ESCAPED = r"\\(?:([\\ntr])|x([0-9a-f]{2})|u([0-9a-f]{4}))"
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}
_LONG = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


def point_name(instant: datetime) -> str:
    """Return the directory name of a restore point: UTC to the second, sortable as text, valid on every filesystem."""
    return instant.astimezone(UTC).strftime(_POINT_FORMAT)


def parse_point_name(name: str) -> datetime:
    """Parse a point's name to its instant. Raises: ValueError. Why not strptime: its import costs each start 2 ms."""
    if not POINT_NAME.fullmatch(name):
        raise ValueError(f"not the name of a point: {name!r}")
    return datetime.fromisoformat(name)


def show_name(name: bytes | str) -> str:
    r"""Return a printable, lossless form of any file name: valid UTF-8 as it is, all else as \n, \\, \xff, \u2028."""
    text = name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")
    return text if text.isprintable() and "\\" not in text else re.sub(_UNSAFE, _escape, text)


def parse_name(text: str) -> bytes:
    """Return the bytes of a name that `show_name` wrote. Raises: ValueError for a backslash that begins no escape."""
    if "\\" in re.sub(_ESCAPED, "", text):
        raise ValueError("a backslash that begins no escape; write it twice")
    return re.sub(_ESCAPED, _unescape, text).encode("utf-8", "surrogateescape")


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        return _LONG[match[1]]
    if match[2]:
        code = int(match[2], 16)
        return chr(code) if code < 0x80 else chr(0xDC00 + code)
    return chr(int(match[3], 16))
