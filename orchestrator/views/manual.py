"""Manual pages of the commands in the language of man(7), from the same texts as their help."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

Rows = tuple[tuple[str, str], ...]  # (word, what it says)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandHelp:
    """Texts of the help of one command. `path`: its words, as "poolferry restore run"; `groups`: (title, rows of word and text)."""

    path: str
    synopsis: str
    summary: str
    text: str
    groups: tuple[tuple[str, Rows], ...] = ()
    closing: str = ""

    @property
    def file(self) -> str:
        """The name of its page, as poolferry-restore-run.1."""
        return f"{self.path.replace(' ', '-')}.1"


def render_page(command: CommandHelp, version: str, related: Iterable[str] = ()) -> str:
    """Return the page's source. `related`: other pages, as "poolferry-restore.1"."""
    name = command.file.removesuffix(".1")
    summary = command.summary.removeprefix(f"{command.path} ").rstrip(".")
    lines = [f'.TH "{name.upper()}" "1" "" "poolferry {_plain(version)}" "poolferry"']
    lines += [".SH NAME", _plain(f"{name} - {summary}")]
    lines += [".SH SYNOPSIS", f".B {_plain(command.path)}", *([_plain(command.synopsis)] if command.synopsis else [])]
    lines += [".SH DESCRIPTION", *_paragraphs(command.text)]
    for title, rows in command.groups:
        lines.append(f'.SH "{_plain(title.upper())}"')
        for word, says in rows:
            lines += [".TP", f".B {_plain(word)}", _plain(says)]
    if command.closing:
        lines += [".SH NOTES", *_paragraphs(command.closing)]
    others = sorted({page for page in related if page != command.file})
    if others:
        lines.append(".SH SEE ALSO")
        lines += [f".BR {_plain(page.removesuffix('.1'))} (1){',' if page != others[-1] else ''}" for page in others]
    return "\n".join(lines) + "\n"


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.replace("\b", "").strip()):
        yield ".PP"
        yield _plain(" ".join(paragraph.split()))


def _plain(text: str) -> str:
    """Return text that stands for itself: no request at its beginning, no escape or quote in it, and a dash that can be copied."""
    safe = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{safe}" if safe[:1] in (".", "'") else safe
