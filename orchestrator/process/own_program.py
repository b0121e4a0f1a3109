"""Command lines of programs that are modules of ours, as processes of their own."""

import os
import sys
from importlib.util import find_spec

_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


def own_program(module: str, *words: str) -> tuple[str, ...]:
    """Return the words that start the function `program` of a module of ours.

    -P: import nothing from the current directory. -S, and no -m: a third of a start that reads no file yet.
    """
    return (sys.executable, "-PS", "-c", f"from {module} import program; program()", *words)


def own_environment(*places: str) -> tuple[tuple[str, str], ...]:
    """Return the variables with which such a program finds our modules, and libraries in these folders."""
    return (("PYTHONPATH", ":".join(dict.fromkeys((_PACKAGES, *filter(None, places))))),)


def place_of(library: str) -> str:
    """Return the folder that a library is imported from; empty where there is none."""
    spec = find_spec(library)
    if spec is None or spec.origin is None:
        return ""
    return os.path.dirname(os.path.dirname(spec.origin) if spec.submodule_search_locations else spec.origin)
