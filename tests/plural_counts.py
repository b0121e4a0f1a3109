"""Find numbers that are written before a noun in the plural, in words for people: one of them would be "1 files"."""

import ast
import re
from collections.abc import Iterator

_NOUNS = frozenset(
    "attempts blocks bookmarks bytes channels clones commands contents datasets days devices disks entries errors events files filesystems "
    "folders groups guids hooks hosts hours inodes jobs keys kits lines links lists manifests members messages minutes mistakes mounts names "
    "nights notices numbers orders others owners pages parts paths permits places points pools problems programs properties rows rules "
    "seconds sets slots snapshots steps stories streams symlinks tables things times units users versions visits volumes warnings weeks years".split()
)
_WORDS = re.compile(r"((?: [a-z-]+)*?) ([a-z]+)\b")
_VERBS = frozenset(
    {"names", "lists", "numbers", "orders", "sets", "times", "contents", "keys", "links", "mounts", "permits"}
)
_MOST_BETWEEN = 2  # words, as in "{count} newer points"
_BREAKS = frozenset(
    "of in on and or to for from by as at with is are was were a the no each than that copies holds has have remove removes their its put puts".split()
)


def uncounted(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the words of each number before a plural. What is only written for other numbers than one is passed over."""
    yield from _within(tree, judged=False)


def _within(node: ast.AST, *, judged: bool) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.JoinedStr) and not judged:
        yield from _of_text(node)
    judged = judged or (isinstance(node, ast.IfExp | ast.If) and _asks_for_number(node.test))
    for child in ast.iter_child_nodes(node):
        yield from _within(child, judged=judged)


def _asks_for_number(test: ast.expr) -> bool:
    """Return whether a condition compares with a number, such as `count == 1`."""
    return any(
        isinstance(each, ast.Compare) and any(isinstance(one, ast.Constant) and one.value in (1, 2) for one in each.comparators)
        for each in ast.walk(test)
    )  # fmt: skip


def _of_text(text: ast.JoinedStr) -> Iterator[tuple[int, str]]:
    before = ""
    for value, after in zip(text.values, text.values[1:], strict=False):
        told, before = before, value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
        if not (
            isinstance(value, ast.FormattedValue) and isinstance(after, ast.Constant) and isinstance(after.value, str)
        ):
            continue
        if told.endswith("than "):  # a limit, which is never one
            continue
        if _is_number(value.value) and (noun := _plural_after(after.value)):
            yield text.lineno, f"{{{ast.unparse(value.value)}}}{noun}"


def _plural_after(text: str) -> str:
    """Return the words up to a plural at the beginning of a text; empty: there is none."""
    found = _WORDS.match(text)
    while found:
        between = found[1].split()
        if len(between) > _MOST_BETWEEN or not _BREAKS.isdisjoint(between):
            return ""
        if found[2] in _NOUNS and not (found[2] in _VERBS and not between):
            return found[0]
        longer = re.match(rf"{re.escape(found[0])} ([a-z]+)\b", text)
        if found[2] in _BREAKS or longer is None or len(between) == _MOST_BETWEEN:
            return ""
        found = re.match(rf"({re.escape(found[0])}) ([a-z]+)\b", text)
    return ""


def _is_number(value: ast.expr) -> bool:
    """Return whether an expression may be one; a constant of ours is none that changes, and what is joined or shown is a word."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in ("len", "sum", "max", "min", "int")
    name = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
    if name.isupper() or isinstance(value, ast.Constant):
        return False
    return bool(name) or isinstance(value, ast.BinOp)
