"""Manual pages in the language of man(7): of commands, from the texts of their help; of files and hooks, from the pages on them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it.token import Token

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
        return f"man1/{self.path.replace(' ', '-')}.1"


def render_page(command: CommandHelp, version: str, related: Iterable[str] = ()) -> str:
    """Return the page's source. `related`: other pages, as "poolferry-restore.1"."""
    summary = command.summary.removeprefix(f"{command.path} ").rstrip(".")
    lines = _heading(command.file, version, summary)
    lines += [".SH SYNOPSIS", f".B {_plain(command.path)}", *([_plain(command.synopsis)] if command.synopsis else [])]
    lines += [".SH DESCRIPTION", *_paragraphs(command.text)]
    for title, rows in command.groups:
        lines.append(f'.SH "{_plain(title.upper())}"')
        for word, says in rows:
            lines += [".TP", f".B {_plain(word)}", _plain(says)]
    if command.closing:
        lines += [".SH NOTES", *_paragraphs(command.closing)]
    lines += _references(command.file, related)
    return "\n".join(lines) + "\n"


def render_document(file: str, version: str, summary: str, markdown: str, related: Iterable[str] = ()) -> str:
    """Return the source of a page made of Markdown: headings, paragraphs, lists, code and tables. `file`: as man5/x.toml.5."""
    from markdown_it import MarkdownIt

    lines = _heading(file, version, summary)
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    lines += _Document().render(tokens)
    lines += _references(file, related)
    return "\n".join(lines) + "\n"


def _name(file: str) -> str:
    return file.partition("/")[2].rpartition(".")[0]


def _heading(file: str, version: str, summary: str) -> list[str]:
    name, section = _name(file), file.rpartition(".")[2]
    title = f'.TH "{name.upper()}" "{section}" "" "poolferry {_plain(version)}" "poolferry"'
    return [title, ".SH NAME", _plain(f"{name} - {summary}")]


def _references(file: str, related: Iterable[str]) -> Iterator[str]:
    others = sorted({page for page in related if page != file})
    if others:
        yield ".SH SEE ALSO"
    for page in others:
        comma = "," if page != others[-1] else ""
        yield f".BR {_plain(_name(page))} ({page.rpartition('.')[2]}){comma}"


class _Document:
    """A writer of Markdown's tokens as lines of man(7)."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._cells: list[str] = []
        self._titles: list[str] = []
        self._depth = 0  # of lists
        self._item = False  # the next paragraph begins one

    def render(self, tokens: "Iterable[Token]") -> list[str]:
        """Return the lines."""
        opened = ""
        for token in tokens:
            if token.type == "inline":
                self._text(opened, _inline(token))
            elif token.type in ("fence", "code_block"):
                self._lines += [
                    ".PP",
                    ".in +4n",
                    ".EX",
                    *(_verbatim(line) for line in token.content.splitlines()),
                    ".EE",
                    ".in",
                ]
            elif token.type.endswith("list_open"):
                self._depth += 1
                self._lines += [".RS"] if self._depth > 1 else []
            elif token.type.endswith("list_close"):
                self._lines += [".RE"] if self._depth > 1 else []
                self._depth -= 1
            elif token.type == "list_item_open":
                self._item = True
            elif token.type == "tr_close":
                self._row()
            elif token.type == "table_close":
                self._titles = []
            elif token.type.endswith("_open"):
                opened = token.type if token.type != "heading_open" else token.tag
        return self._lines

    def _text(self, opened: str, text: str) -> None:
        if opened in ("th_open", "td_open"):
            self._cells.append(text)
        elif opened in ("h1", "h2"):
            self._lines.append(f'.SH "{text.upper()}"')
        elif opened.startswith("h"):
            self._lines.append(f'.SS "{text}"')
        else:
            self._lines += [".IP \\(bu 2" if self._item else ".IP" if self._depth else ".PP", text]
            self._item = False

    def _row(self) -> None:
        """Write a row as its first cell and below it the others, each with its column's title but the last."""
        cells, self._cells = self._cells, []
        if not self._titles:
            self._titles = cells
            return
        first, *rest, last = cells if len(cells) > 1 else [*cells, ""]
        told = [f"{title} {cell}" for title, cell in zip(self._titles[1:], rest, strict=False) if cell]
        self._lines += [".TP", first or "\\&", "; ".join([*told, last] if last else told) or "\\&"]


def _inline(token: "Token") -> str:
    """Return the text of a paragraph: code and strong words bold, links as their words."""
    parts = []
    for each in token.children or ():
        match each.type:
            case "code_inline":
                parts.append(f"\\fB{_plain(each.content)}\\fR")
            case "strong_open":
                parts.append("\\fB")
            case "em_open":
                parts.append("\\fI")
            case "strong_close" | "em_close":
                parts.append("\\fR")
            case "softbreak" | "hardbreak":
                parts.append(" ")
            case _:
                parts.append(_escape(each.content))
    text = "".join(parts).strip()
    return f"\\&{text}" if text[:1] in (".", "'") else text


def _verbatim(line: str) -> str:
    safe = _escape(line)
    return f"\\&{safe}" if safe[:1] in (".", "'") else safe


def _escape(text: str) -> str:
    return text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in re.split(r"\n\s*\n", text.replace("\b", "").strip()):
        yield ".PP"
        yield _plain(" ".join(paragraph.split()))


def _plain(text: str) -> str:
    """Return text that stands for itself: no request at its beginning, no escape or quote in it, and a dash that can be copied."""
    safe = _escape(" ".join(text.split()))
    return f"\\&{safe}" if safe[:1] in (".", "'") else safe
