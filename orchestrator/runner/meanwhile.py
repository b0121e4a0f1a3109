"""Imports what is needed later while a program runs that we only wait for.

Why: a run that finds nothing to do should cost what its look costs. Half of our start is the import of what acts on the
look; beside a look of a second it costs nothing.

Changes things.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Thread

_TURN = 0.0005  # seconds; 5 ms is usual, and one who waits for a program needs some ten turns


@contextmanager
def meanwhile(*modules: str) -> Iterator[None]:
    """Imports the modules in a thread while the body runs; who needs them then imports them as always."""
    thread = Thread(target=lambda: [import_module(module) for module in modules], daemon=True)
    turn = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    thread.start()
    try:
        yield
        thread.join()
    finally:
        sys.setswitchinterval(turn)
