"""Calls that are made while a transaction of a database is open, found in the syntax of a module."""

import ast
import re
from collections.abc import Iterable

_OPENS = re.compile(r"(^|\.)(together|glance|_?transaction)$")


def called_within(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names of all that a module calls within `with` of a transaction, such as `self.tools.notify`.

    What its own functions of that name call counts as if it stood there; what is handed over for later, as a lambda is, does not.
    """
    opened = list[ast.With]()
    functions: dict[str, list[ast.stmt]] = {}
    for node in nodes:
        if isinstance(node, ast.With) and any(_OPENS.search(_called(item.context_expr)) for item in node.items):
            opened.append(node)
        elif isinstance(node, ast.FunctionDef):
            functions[node.name] = [*functions.get(node.name, []), *node.body]
    found = set[str]()
    todo = {name for node in opened for name in _calls(node.body)}
    while todo:
        found.add(name := todo.pop())
        todo |= _calls(functions.pop(name.rpartition(".")[2], [])) - found
    return found


def _calls(body: Iterable[ast.AST]) -> set[str]:
    now = [node for node in body if not isinstance(node, ast.Lambda | ast.FunctionDef)]
    return {_called(node) for node in now} - {""} | {
        name for node in now for name in _calls(ast.iter_child_nodes(node))
    }


def _called(node: ast.AST) -> str:
    """Return `a.b` of a call `a.b()`, also where `a` is more than a name; nothing for what is no call."""
    return ast.unparse(node.func) if isinstance(node, ast.Call) else ""
