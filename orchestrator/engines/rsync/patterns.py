r"""Patterns of [rsync] excludes, judged as rsync judges them: its wildcards are not those of fnmatch.

`*` and `?` pass no slash, `**` does; a class takes ^ for ! and names such as [:alpha:], and never a slash; a backslash takes the next
character as it is, but only beside a wildcard. A pattern with a slash, or `**`, is compared with the path, any other with the last name. One
that begins with a slash begins at the top; one that ends with a slash fits folders alone, and `/***` the folder as well as all in it.
Source: rsync 3.4, exclude.c: add_rule and rule_matches; lib/wildmatch.c.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from orchestrator.domain.fast_dataclass import dataclass

_CLASSES = {
    b"alnum": rb"0-9A-Za-z", b"alpha": rb"A-Za-z", b"blank": rb" \t", b"cntrl": rb"\x00-\x1f\x7f", b"digit": rb"0-9",
    b"graph": rb"\x21-\x7e", b"lower": rb"a-z", b"print": rb"\x20-\x7e", b"punct": rb"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    b"space": rb"\t-\r ", b"upper": rb"A-Z", b"xdigit": rb"0-9A-Fa-f",
}  # fmt: skip
_WILD = re.compile(rb"[*[?]")
_NEVER = rb"(?!)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternRule:
    """One pattern. `keeps`: it begins with "+ ", so what it fits is copied; `last`: so many names of the end of a path are compared, 0: all."""

    keeps: bool
    folders: bool
    slashed: bool
    below: bool
    last: int
    words: re.Pattern[bytes]

    @property
    def never(self) -> bool:
        """Return True when no name whatsoever fits the pattern."""
        return _NEVER in self.words.pattern

    def fits(self, path: bytes, *, folder: bool) -> bool:
        """Return whether the pattern fits a path of the source, given without slashes at its ends."""
        if self.folders and not folder:
            return False
        names = path.split(b"/")
        if len(names) < self.last:
            return False
        text = b"/".join(names[-self.last :]) if self.last else path
        text = (b"/" if self.slashed else b"") + text + (b"/" if self.below and folder else b"")
        return self.words.fullmatch(text) is not None


def is_left_out(patterns: tuple[str, ...], path: bytes, *, folder: bool, top: bytes = b"") -> bool:
    """Return whether the patterns leave out a path of the source, or a folder above it; the first that fits one decides of it.

    `folder`: the entry itself is one. `top`: of several folders of a source the one that holds it; nothing above that is judged.
    """
    return find_decider(patterns, path, folder=folder, top=top) is not None


def find_decider(patterns: tuple[str, ...], path: bytes, *, folder: bool, top: bytes = b"") -> str | None:
    """Return the pattern that leaves out a path, or a folder above it; None: it is copied. The arguments are those of `is_left_out`."""
    rules, names = _rules(patterns), path.split(b"/")
    for count in range(top.count(b"/") + 1, len(names) + 1):
        way, is_folder = b"/".join(names[:count]), folder or count < len(names)
        number = next((number for number, rule in enumerate(rules) if rule.fits(way, folder=is_folder)), None)
        if number is not None and not rules[number].keeps:
            return patterns[number]
    return None


@lru_cache(maxsize=8)
def _rules(patterns: tuple[str, ...]) -> tuple[PatternRule, ...]:
    return tuple(parse_pattern(pattern) for pattern in patterns)


def parse_pattern(written: str) -> PatternRule:
    """Return the rule of one pattern, which is not empty."""
    pattern = written.encode("utf-8", "surrogateescape")
    keeps = pattern.startswith(b"+ ")
    if pattern[:2] in (b"+ ", b"- "):
        pattern = pattern[2:]
    folders = len(pattern) > 1 and pattern.endswith(b"/")
    pattern = pattern[:-1] if folders else pattern
    wild, deep = bool(_WILD.search(pattern)), b"**" in pattern
    first, slashes, anchored = pattern.startswith(b"**"), pattern.count(b"/"), pattern.startswith(b"/")
    text = pattern[1:] if anchored else pattern
    last = 0 if anchored or deep else slashes + 1
    words = b"".join(_words(text)) if wild else re.escape(text)
    if deep and not anchored and not first:
        words = rb"(?:.*/)?(?:" + words + rb")"
    if not text:
        words = _NEVER
    return PatternRule(
        keeps=keeps, folders=folders, slashed=first, below=deep and pattern.endswith(b"***"), last=last,
        words=re.compile(words, re.DOTALL),
    )  # fmt: skip


def _words(pattern: bytes) -> Iterator[bytes]:
    """Yield the pattern as parts of an expression. Why possessive groups: a name of many letters would take years with many stars."""
    place, opened = 0, False
    while place < len(pattern):
        char = pattern[place : place + 1]
        if char == b"*":
            stars = len(pattern) - place - len(pattern[place:].lstrip(b"*"))
            place += stars
            later = b"*" in _without_sets(pattern[place:])
            yield b")" if opened else b""
            opened = stars == 1 and later
            yield rb".*" if stars > 1 else rb"(?>[^/]*?" if opened else rb"[^/]*"
            continue
        if char == b"[":
            place, found = _set(pattern, place + 1)
            yield found
            continue
        if char == b"\\":
            place += 1
            char = pattern[place : place + 1]
        yield rb"[^/]" if char == b"?" and pattern[place - 1 : place] != b"\\" else re.escape(char) if char else _NEVER
        place += 1
    yield b")" if opened else b""


def _without_sets(pattern: bytes) -> bytes:
    """Return the pattern without what is no wildcard in it: sets, and characters behind a backslash."""
    kept, place = bytearray(), 0
    while place < len(pattern):
        if pattern[place : place + 1] == b"[":
            place, _ = _set(pattern, place + 1)
            continue
        if pattern[place : place + 1] == b"\\":
            place += 2
            continue
        kept += pattern[place : place + 1]
        place += 1
    return bytes(kept)


def _set(pattern: bytes, place: int) -> tuple[int, bytes]:
    """Return (the place behind a set, the set as an expression). `place`: behind its bracket. One that is not closed fits nothing."""
    unlike = pattern[place : place + 1] in (b"!", b"^")
    place += unlike
    parts, before, first = list[bytes](), b"", True
    while first or pattern[place : place + 1] != b"]":
        first, char = False, pattern[place : place + 1]
        if not char:
            return len(pattern), _NEVER
        if char == b"\\":
            place += 1
            char = pattern[place : place + 1]
            if not char:
                return len(pattern), _NEVER
            parts.append(re.escape(char))
        elif char == b"-" and before and pattern[place + 1 : place + 2] not in (b"", b"]"):
            place += 1
            if pattern[place : place + 1] == b"\\":
                place += 1
            end = pattern[place : place + 1]
            if not end:
                return len(pattern), _NEVER
            parts += [re.escape(before) + b"-" + re.escape(end)] if before <= end else []
            char = b""
        elif char == b"[" and pattern[place + 1 : place + 2] == b":":
            end_of = pattern.find(b"]", place + 2)
            if end_of < 0:
                return len(pattern), _NEVER
            if end_of > place + 2 and pattern[end_of - 1 : end_of] == b":":
                name = pattern[place + 2 : end_of - 1]
                if name not in _CLASSES:
                    return len(pattern), _NEVER
                parts.append(_CLASSES[name])
                place, char = end_of, b""
            else:
                parts.append(rb"\[")
        else:
            parts.append(re.escape(char))
        before = char
        place += 1
    inside = b"".join(parts)
    found = (b"[^/" + inside + b"]") if unlike else (b"(?!/)[" + inside + b"]") if inside else _NEVER
    return place + 1, found
