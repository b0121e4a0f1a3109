"""Functions that write by the path of a place, found in their syntax: it leads elsewhere once its owner exchanges a folder above."""

import ast
import re
from collections.abc import Iterable, Iterator

_PLACE = re.compile(r"(.*\.)?(root|manifest|tree|there|location|place|to|file|target|work)\.path")
_WRITES = re.compile(
    r"open\(.*, ['\"][wax]|O_CREAT|^(os\.(remove|rename|replace|unlink|mkdir|makedirs|link|symlink|truncate|chmod|chown|utime)|"
    r"shutil\.\w+|.*backup_to|(write|finish|build)_(manifest|batches|lines|archive)|rename_whole)\(",
    re.DOTALL,
)


def place_writers(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the name of each of these functions that makes or changes a file at a place's path, or at a text made of one."""
    for function in nodes:
        if isinstance(function, ast.FunctionDef):
            inside = tuple(ast.walk(function))
            if not any(isinstance(node, ast.Attribute) and node.attr == "path" for node in inside):
                continue  # to read the rest takes ten times as long
            calls = (node for node in inside if isinstance(node, ast.Call))
            if any(_WRITES.search(ast.unparse(call)) and _texts(call) & _of_a_place(function) for call in calls):
                yield function.name


def _of_a_place(function: ast.FunctionDef) -> set[str]:
    """Return the texts that are paths of places there: `.path` of a value, and the names that such texts were put in."""
    found = set(filter(_PLACE.fullmatch, _texts(function)))
    puts = [node for node in ast.walk(function) if isinstance(node, ast.Assign) and _texts(node.value) & found]
    return found | {target.id for node in puts for target in node.targets if isinstance(target, ast.Name)}


def _texts(node: ast.AST) -> set[str]:
    return {ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.Attribute | ast.Name)}
