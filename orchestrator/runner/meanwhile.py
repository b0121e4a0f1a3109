"""The import of what a run needs later, while it waits for a program."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Thread

from orchestrator.process.executor import Reader

_TURN = 0.0005  # seconds; 5 ms is the default, and waiting for a program needs some ten switches


@contextmanager
def import_meanwhile(reader: Reader, *modules: str) -> Iterator[None]:
    """Import the modules in a thread once the body waits for a program; code that needs them sooner imports them as usual.

    Why not at once: two threads import no faster than one, and the program would start later.
    """
    thread = Thread(target=lambda: [import_module(module) for module in modules], daemon=True)

    def begin() -> None:
        with suppress(
            RuntimeError
        ):  # another thread of the body has begun it, or there is no room for one more: then no sooner than usual
            thread.start()

    turn = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    reader.meanwhile(begin)
    try:
        yield
        if thread.ident is not None:
            thread.join()
    finally:
        sys.setswitchinterval(turn)
