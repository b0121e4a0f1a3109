"""Sizes, durations and counts, as people write them in job files and as poolferry prints them."""

import re
from typing import NewType

Bytes = NewType("Bytes", int)
Seconds = NewType("Seconds", float)

_SIZE = r"(\d+(?:\.\d+)?)\s*([kKMGTPE]?)(i?)[bB]?"
_DURATION = r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)"
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_LETTERS = " KMGTPE"


def parse_size(text: str) -> Bytes:
    """Parse "500", "64K", "1.5 GiB", "10M" to bytes. Units: powers of 1024, as in rsync and zfs. Raises: ValueError."""
    match = re.fullmatch(_SIZE, text.strip())
    if not match:
        raise ValueError('a size such as "500M" or "2G"')
    return Bytes(int(float(match[1]) * 1024 ** _LETTERS.index(match[2].upper() or " ")))


def parse_duration(text: str) -> Seconds:
    """Parse "90s", "15m", "26h", "7d", "2w", "1h 30m" to a duration. Units: seconds. Raises: ValueError."""
    parts = re.findall(_DURATION, text)
    if not parts or re.sub(_DURATION, "", text).strip():
        raise ValueError('a duration such as "90s", "15m", "26h" or "7d"')
    return Seconds(sum(float(number) * _SECONDS[unit] for number, unit in parts))


def parse_often(text: str) -> Seconds:
    """Parse an interval: "run" is 0 s; else a duration. Raises: ValueError."""
    return Seconds(0) if text == "run" else parse_duration(text)


def show_size(size: int | None) -> str:
    """Format a size for people: "1.2 GiB"; an unknown size is "unknown"."""
    if size is None:
        return "unknown"
    value, letter = float(size), 0
    while value >= 1024 and letter < len(_LETTERS) - 1:
        value, letter = value / 1024, letter + 1
    return f"{size} B" if not letter else f"{value:.1f} {_LETTERS[letter]}iB"


def show_duration(seconds: float | None) -> str:
    """Format a duration for people: "0.4 s", "12 s", "3 min 20 s", "5 h 2 min", "3 d 4 h"."""
    if seconds is None:
        return "unknown"
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    for size, name, lower, below in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // lower
            return f"{whole // size} {name} {rest} {below}" if rest else f"{whole // size} {name}"
    raise AssertionError(whole)


def show_count(number: int, one: str, many: str | None = None) -> str:
    """Format a number of things: "1 file", "2 files", "2 entries"."""
    return f"{number} {one if number == 1 else many or one + 's'}"
