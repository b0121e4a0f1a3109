"""Names of jobs, points and tree entries, with a lossless text form for any bytes."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime

JOB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
KEY_FILE = "authentication.key"  # of this host's key, in the state directory
POINT_NAME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{6}Z")
_POINT_FORMAT = "%Y-%m-%dT%H%M%SZ"
_ASIDE = "_aside_"
# Characters that a terminal or a log obeys instead of showing: control characters, line separators, and all of Unicode's format
# characters (category Cf), some of which turn the direction of text or are invisible; and bytes that are no UTF-8. Tab and
# newline are listed separately. Compiled by re when first needed, which is not in every run; none of it is printable.
# Source: Unicode 15.1, categories Cc, Cf, Zl and Zp, written out because a Python knows only the Unicode of its own year.
_OBEYED = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\ufeff\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e007f\udc80-\udcff"
)
UNSAFE_TEXT = f"[{_OBEYED}]"  # in a text of several lines
UNSAFE_WORD = rf"[\t\n{_OBEYED}]"  # in text that must stay on one line
_UNSAFE_LINE = rf"[\n{_OBEYED}]"
_UNSAFE_NAME = rf"[\\\t\n{_OBEYED}]"
_ESCAPED = r"\\(?:([\\ntr])|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))"
# Source: OpenZFS, module/zcommon/zfs_namecheck.c, valid_char; % is in names of receives that are going on.
_ZFS_NAME = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.: %/@#"
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}
_LONG = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\"}


def point_name(instant: datetime) -> str:
    """Return the directory name of a restore point: UTC to the second, sortable as text, valid on every filesystem."""
    return instant.astimezone(UTC).strftime(_POINT_FORMAT)


def set_aside_name(name: str, now: datetime) -> str:
    """Return what a dataset is called after --aside set it aside."""
    return f"{name}{_ASIDE}{point_name(now)}"


def is_set_aside(dataset: str) -> bool:
    """Return whether a dataset has a name that --aside gave it; not of one below such a dataset."""
    front, aside, instant = dataset.rpartition("/")[2].rpartition(_ASIDE)
    return bool(front and aside) and POINT_NAME.fullmatch(instant) is not None


def parse_point_name(name: str) -> datetime:
    """Parse a point's name to its instant. Raises: ValueError, also for a year that no clock of ours had.

    Why: nothing could come after the last instant of the year 9999. Why not strptime: its import costs each start 2 ms.
    """
    if not POINT_NAME.fullmatch(name) or not "1970" <= name[:4] < "9000":
        raise ValueError(f"not the name of a point: {name!r}")
    return datetime.fromisoformat(name)


def show_name(name: bytes | str) -> str:
    r"""Return a printable, lossless form of any file name: valid UTF-8 unchanged, all else as \n, \\, \xff, \u202e."""
    text = name if isinstance(name, str) else name.decode("utf-8", "surrogateescape")
    return text if text.isprintable() and "\\" not in text else re.sub(_UNSAFE_NAME, _escape, text)


_EACH_END = 200  # characters


def shorten(line: str) -> str:
    """Return a line with its middle left out where it is very long, such as by a path of 4 KiB: its end often says why."""
    return line if len(line) <= 2 * _EACH_END else f"{line[:_EACH_END]} … {line[-_EACH_END:]}"


def show_short_name(name: bytes | str) -> str:
    """Return a printable form of a file name, with its middle left out where it is very long."""
    return shorten(show_name(name))


def make_printable(text: str) -> str:
    r"""Return the text with characters that a terminal obeys written out: \x1b, \xff, \u202e.

    Backslashes, tabs and line ends stay.
    """
    return text if text.isprintable() else re.sub(UNSAFE_TEXT, _escape_text, text)


def printable_line(text: str) -> str:
    r"""Return the text as one line: as `make_printable`, and line ends written out as \n. Tabs stay.

    Why: the second line of a file's name would look like a line of ours, such as a hint with a command.
    """
    return text if text.isprintable() else re.sub(_UNSAFE_LINE, _escape_line, text)


def printable_word(text: str) -> str:
    r"""Return the text on one line: as `make_printable`, and tabs and line ends written out as \t and \n."""
    return text if text.isprintable() else re.sub(UNSAFE_WORD, _escape, text)


def unescape_mount_path(text: str) -> str:
    r"""Decode a field of /proc/mounts or mountinfo, in which blanks are written as octal escapes. Source: fstab(5)."""
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def check_zfs_names(names: Iterable[str]) -> None:
    """Check that datasets, snapshots and bookmarks are named as ZFS allows: a host may answer anything. Raises: ValueError.

    Why: such names come into hints and pages, whose commands people paste into a shell.
    """
    if strange := "".join(names).encode("utf-8", "surrogateescape").translate(None, _ZFS_NAME):
        raise ValueError(f"a name that no dataset or snapshot can have: it holds {show_name(strange[:40])}")


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
    return f"\\x{code:02x}" if code < 0x80 else _escape_wide(code)


def _escape_line(match: re.Match[str]) -> str:
    return "\\n" if match[0] == "\n" else _escape_text(match)


def _escape_text(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else _escape_wide(code)


def _escape_wide(code: int) -> str:
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _unescape(match: re.Match[str]) -> str:
    if match[1]:
        return _LONG[match[1]]
    if match[2]:
        code = int(match[2], 16)
        return chr(code) if code < 0x80 else chr(0xDC00 + code)
    return chr(int(match[3] or match[4], 16))
