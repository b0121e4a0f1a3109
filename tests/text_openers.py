"""Calls that open a text so that its returns are read as newlines."""

import ast
import re
from collections.abc import Iterable, Iterator


def translated_texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield each call that opens a text to read it and names no `newline`."""
    for node in nodes:
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("open", "os.fdopen", "io.open"):
            named = {keyword.arg: keyword.value for keyword in node.keywords}
            if "newline" not in named and re.fullmatch("[rt+]*", _mode(node, named)):
                yield ast.unparse(node)


def _mode(call: ast.Call, named: dict[str | None, ast.expr]) -> str:
    """Return the mode of a call; one that is computed counts as reading text."""
    given = named.get("mode", call.args[1] if len(call.args) > 1 else None)
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else "r"
