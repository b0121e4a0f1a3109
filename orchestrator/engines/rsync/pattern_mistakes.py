"""Mistakes in [rsync] excludes: patterns that rsync takes otherwise than they were meant. Pure.

Why: a pattern that fits nothing copies what its owner believes to be left out, and one that fits too much leaves out what she believes to
be copied; neither is seen before the data are needed. Each mistake names a pattern that does the same where a name is really meant.
Source: rsync 3.5, exclude.c: parse_rule_tok with XFLG_OLD_PREFIXES, add_rule.
"""

import functools
import re
from collections.abc import Iterator

from orchestrator.domain.names import show_name
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.rsync.patterns import find_decider, parse_pattern

_SHOWN = 100
_NAMED = 3  # folders that a message names
_LONGEST = 4095  # bytes; rsync passes over a longer one, says so, and ends well
_ALL = ("*", "**", "***", "/*", "/**", "/***")
_WILD = re.compile(r"[*?\[\\]")
_PLAIN = re.compile(r"[*?\[]")
_BRACES = re.compile(r"(?<![\\\[])\{[^{}/]*,[^{}/]*\}")
_OTHER_RULE = re.compile(r"[.:]\s|(?:merge|dir-merge|include|exclude|hide|show|protect|risk)[ ,_]\s*[/*]")
_BELOW = b"any folder/"


def find_pattern_mistakes(patterns: tuple[str, ...], source: SourceTree) -> Iterator[tuple[int, str, str]]:
    """Yield (number, mistake, expected pattern) for each pattern that has one, in their order."""
    whole = _whole_folders_left_out(patterns, source)
    for number, pattern in enumerate(patterns):
        text = pattern[2:] if pattern[:2] in ("+ ", "- ") else pattern
        wrong = _unusable(pattern, text) or _otherwise(text) or _whole_path(text, source.root.path.rstrip("/"))
        wrong = wrong or _elsewhere(text, source.parts)
        if wrong is None:
            wrong = (
                _without_effect(patterns, number, text, source.parts)
                if _lets_through(pattern)
                else _all_of_it(patterns[:number], text) or whole.pop(pattern, None)
            )
        if wrong:
            yield number, f"{_quoted(pattern)} {wrong[0]}", wrong[1]


def _lets_through(pattern: str) -> bool:
    return pattern.startswith("+ ")


def _unusable(pattern: str, text: str) -> tuple[str, str] | None:
    """Return the mistake of a pattern that rsync itself does not take, or that fits no name."""
    if text == "!":
        return (
            "throws away all rules before it, also those that keep our own names out",
            'a pattern; "**/!" for a file of that name',
        )
    if not text.strip():
        return "has no pattern behind its sign", f'one, such as "{pattern[:1]} *.tmp"'
    if len(text.encode("utf-8", "surrogateescape")) > _LONGEST:
        return f"has more than {_LONGEST} bytes, and rsync passes over it", "a shorter pattern"
    if {"", ".", ".."} & set(text.removeprefix("/").removesuffix("/").split("/")):
        return "fits nothing: names and paths are compared as they are in the source", _straight(text)
    if parse_pattern(text).never:
        return (
            'fits nothing: a set "[" is not closed or has nothing in it, or "\\\\" is the end',
            '"[x]" for a set, "\\\\[" for a bracket',
        )
    return None


def _straight(text: str) -> str:
    """Return the pattern without parts that are in no path, as a message shows it."""
    parts = [part for part in text.split("/") if part not in ("", ".", "..")]
    top, end = "/" if text.startswith(("/", "./")) else "", "/" if text.endswith("/") else ""
    return (
        _quoted(f"{top}{'/'.join(parts)}{end}")
        if parts and ".." not in text.split("/")
        else "a name, or a path below the source"
    )


def _otherwise(text: str) -> tuple[str, str] | None:
    """Return the mistake of a pattern that another program, or a shell, would take as something else."""
    if text.startswith("!"):
        what = 'is for names that begin with "!", and lets nothing through'
        return what, f"{_quoted(f'+ {text[1:]}')} before what leaves it out; {_quoted(f'**/{text}')} for such a name"
    if text != (inner := text.strip()):
        before, behind = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        meant = "".join((*(f"[{each}]" for each in before), inner, *(f"[{each}]" for each in behind)))
        return (
            "begins or ends with a blank, and fits such names alone",
            f"{_quoted(inner)}; {_quoted(meant)} for such a name",
        )
    if text.startswith("~/"):
        what = 'is for what lies in a folder called "~": no home is put in its place'
        return what, f"the path below the source; {_quoted(f'[~]{text[1:]}')} for such a folder"
    if braces := _BRACES.search(text):
        each = [f"{text[: braces.start()]}{one}{text[braces.end() :]}" for one in braces[0][1:-1].split(",")]
        meant = f"{text[: braces.start()]}[{{]{text[braces.start() + 1 :]}"
        told = ", ".join(_quoted(one) for one in each if one)
        return "is taken as it is: only shells make several of braces", f"{told}; {_quoted(meant)} for such a name"
    if _OTHER_RULE.match(text):
        what = 'is taken as a name: of rsync\'s rules only those with "+ " and "- " stand here'
        return what, f"a pattern alone; {_quoted(f'[{text[0]}]{text[1:]}')} for such a name"
    return None


def _whole_path(text: str, source: str) -> tuple[str, str] | None:
    """Return the mistake of a whole path: a slash before a pattern means the top of the source. `source`: without a slash at its end."""
    if not source or not f"{text}/".startswith(f"{source}/"):
        return None
    below = text[len(source) :]
    meant = f"{_quoted(below)}; " if below.strip("/") else ""
    what = f"begins at the top of the source, so it is for {show_name(source + text)}"
    return what, f"{meant}{_quoted(f'/[{text[1]}]{text[2:]}')} for that"


def _elsewhere(text: str, parts: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the mistake of a path from the top that lies in none of several folders; rsync judges nothing above them."""
    if not parts or not text.startswith("/") or any(map(functools.partial(_may_lie_in, text), parts)):
        return None
    folders = ", ".join(show_name(f"/{part}") for part in parts[:_NAMED]) + (", …" if len(parts) > _NAMED else "")
    what = "lies in none of the sources: with several the first slash is the top of the machine"
    if text.split("/")[1] in {part.split("/")[0] for part in parts}:
        return what, f"a path below one of {folders}"
    meant = [_quoted(_as_it_is(part) + text) for part in parts[:_NAMED]]
    return what, f"{', '.join(meant)}; or a path below another of {folders}"


def _as_it_is(part: str) -> str:
    """Return the pattern of one of several folders, from the top, without wildcards."""
    return "/" + _PLAIN.sub(lambda found: f"[{found[0]}]", part)


def _may_lie_in(text: str, part: str) -> bool:
    """Return whether a pattern that begins at the top may fit a folder, or something in it."""
    names, wanted = part.split("/"), text.removesuffix("/").split("/")[1:]
    for name, pattern in zip(names, wanted, strict=False):
        if "**" in pattern:
            return True
        if not parse_pattern(f"- {pattern}").fits(name.encode("utf-8", "surrogateescape"), folder=True):
            return False
    return len(wanted) >= len(names)


def _whole_folders_left_out(patterns: tuple[str, ...], source: SourceTree) -> dict[str, tuple[str, str]]:
    """Return the mistakes of patterns that leave out all of one of several folders, each under its pattern."""
    found: dict[str, list[str]] = {}
    for part in source.parts:
        path = part.encode("utf-8", "surrogateescape")
        if decider := find_decider(patterns, path, folder=True, top=path):
            found.setdefault(decider, []).append(part)
    told: dict[str, tuple[str, str]] = {}
    for decider, parts in found.items():
        folders = ", ".join(show_name(f"/{part}") for part in parts[:_NAMED]) + (", …" if len(parts) > _NAMED else "")
        what = f"leaves out all of {folders}, which is {'a source' if len(parts) == 1 else 'what is to be copied'}"
        kept = _quoted(f"+ {_as_it_is(parts[0])}/")
        told[decider] = what, f"{kept} before it, for the folder itself; or no such source"
    return told


def _without_effect(
    patterns: tuple[str, ...], number: int, text: str, parts: tuple[str, ...]
) -> tuple[str, str] | None:
    """Return the mistake of a pattern with "+ " that changes nothing: nothing behind it leaves anything out, or what it names is left out.

    Why only without wildcards: of what others fit some may be copied. `text`: without its sign.
    """
    if all(map(_lets_through, patterns[number + 1 :])):
        what = "changes nothing: it lets through what a pattern behind it would leave out, and there is none"
        return what, 'it before that pattern; or "*" behind it, to leave out all else'
    bare = text.removesuffix("/***").removesuffix("/**")
    if _WILD.search(bare):
        return None
    path, folder = bare.strip("/").encode("utf-8", "surrogateescape"), bare != text or text.endswith("/")
    ways = list(_ways(path, parts, anchored=bare.startswith("/")))
    found = [find_decider(patterns, way, folder=kind, top=top) for way, top in ways for kind in {folder, True}]
    if None in found:
        return None
    what = f"lets nothing through: {_quoted(found[0] or '')} leaves that out, or a folder above it"
    above = _quoted(f"+ {_as_it_is(parts[0]) if parts else ''}/folder/")
    return what, f"it before that pattern, as the first that fits decides, and {above} for each folder above it"


def _ways(path: bytes, parts: tuple[str, ...], *, anchored: bool) -> Iterator[tuple[bytes, bytes]]:
    """Yield what a pattern without wildcards may fit: (path, the one of several folders that holds it). `path`: what it names."""
    tops = [part.encode("utf-8", "surrogateescape") for part in parts]
    if anchored:
        yield path, next((top for top in tops if (path + b"/").startswith(top + b"/")), b"")
        return
    for top in tops or [b""]:
        before = top + b"/" if top else b""
        yield before + path, top
        yield before + _BELOW + path, top
        if (b"/" + top).endswith(b"/" + path):
            yield top, top


def _all_of_it(before: tuple[str, ...], text: str) -> tuple[str, str] | None:
    """Return the mistake of a pattern that leaves out all there is. `before`: the patterns before it."""
    if text not in _ALL or any(map(_lets_through, before)):
        return None
    return "leaves out all of the source", 'patterns with "+ " before it, for what is copied'


def _quoted(text: str) -> str:
    """Return a pattern as it is written in a job file; the end of a very long one is left out."""
    shown = show_name(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")
    return '"' + shown.replace('"', '\\"') + '"'
