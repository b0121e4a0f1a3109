"""Commands that messages show: found in the code, wherever a text holds one."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.syntax import walked

ROOT = Path(__file__).resolve().parents[1] / "orchestrator"
# Programs with the words after which they change something. What only shows is harmless, and needs no test of its own.
_CHANGES = (
    r"zfs (?:create|destroy|rename|rollback|inherit|set|load-key|change-key|mount|unmount|snapshot|allow|promote|release|bookmark|hold)",
    r"zpool (?:attach|clear|destroy|export|import|online|replace|set|upgrade)",
    r"(?:chmod|chown|kill|mv|rm|setfacl|umount|usermod|groupmod)",
    r"poolferry (?:points accept|rename|disks (?:attach|eject|enroll|lost|readopt|retire)|run [^`;,]*--(?:allow|aside)|restore (?:run|pool))",
)
_SHOWS = (
    r"zfs (?:diff|get|holds|list|send)",
    r"zpool (?:get|history|list|scrub|status)",
    r"(?:ls|findmnt|fuser|smartctl)",
    r"poolferry [a-z]+(?: [a-z]+)?",
)
_BEGINS = r"(?:^|[`(] ?|[,;:] |\b(?:or|then|and|by|with) |&& )"
_ENDS = r"(?=[`;)]|, |: |$| \(| &&)"
CHANGING = re.compile(rf"{_BEGINS}((?:{'|'.join(_CHANGES)}) [^`;]*?){_ENDS}")
ANY = re.compile(rf"{_BEGINS}((?:{'|'.join((*_CHANGES, *_SHOWS))})(?: [^`;]*?)?){_ENDS}")


@dataclass(frozen=True)
class HintText:
    """A text of the code. `holes`: the expressions that stand for the {} in it, in order."""

    file: str
    line: int
    text: str
    holes: tuple[str, ...] = ()

    def commands(self, pattern: re.Pattern[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield each command with its holes."""
        for found in pattern.finditer(self.text):
            first = self.text[: found.start(1)].count("{}")
            yield found[1].strip(), self.holes[first : first + found[1].count("{}")]


@cache
def texts() -> tuple[HintText, ...]:
    """Return the texts of all files but docstrings; a page of commands has tests that follow it as it stands."""
    paths = (path for path in sorted(ROOT.rglob("*.py")) if path.name != "recovery_page.py")
    return tuple(text for path in paths for text in texts_of(path.read_text(), str(path.relative_to(ROOT))))


def texts_of(source: str, file: str) -> Iterator[HintText]:
    nodes = walked(source)
    docstrings = {
        id(node.body[0].value)
        for node in nodes
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and node.body and isinstance(node.body[0], ast.Expr)
    }  # fmt: skip
    parts = {id(value) for node in nodes if isinstance(node, ast.JoinedStr) for value in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            text = "".join(str(value.value) if isinstance(value, ast.Constant) else "{}" for value in node.values)
            holes = tuple(ast.unparse(value.value) for value in node.values if isinstance(value, ast.FormattedValue))
            yield HintText(file, node.lineno, text, holes)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts | docstrings:
            yield HintText(file, node.lineno, re.sub(r"\{\w+\}", "{}", node.value), ())
