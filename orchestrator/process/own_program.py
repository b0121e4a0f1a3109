"""Command lines of programs that are modules of ours, as processes of their own."""

import os
import sys

_PACKAGES = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))


def own_program(module: str, *words: str) -> tuple[str, ...]:
    """Return the words that start the function `program` of a module of ours.

    -P: import nothing from the current directory. -S, and no -m: a third of a start that reads no file yet.
    """
    return (sys.executable, "-PS", "-c", f"from {module} import program; program()", *words)


def own_environment(*places: str) -> tuple[tuple[str, str], ...]:
    """Return the variables with which such a program finds our modules, and libraries in these folders."""
    return (("PYTHONPATH", ":".join(dict.fromkeys((_PACKAGES, *filter(None, places))))),)
