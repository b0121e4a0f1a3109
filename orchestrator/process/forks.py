"""Several processes from one: their share of a work is done side by side, and one program answers for all of them."""

import os
import sys
from collections.abc import Callable, Iterable

_TERMINATE = 15  # SIGTERM; the module that names it takes longer to import than a folder to read


def run_forked(acts: Iterable[Callable[[], int]]) -> int:
    """Run each act in a process of its own; return 0 when all returned 0. After the first failure the others are ended.

    Only for a program with one thread. What an act does not catch ends its process without a word.
    """
    left = set[int]()
    for act in acts:
        child = os.fork()
        if not child:
            status = 1
            try:
                status = act()
            finally:
                os._exit(status)
        left.add(child)
    failed = 0
    while left:
        child, status = os.wait()
        left.discard(child)
        if status and not failed:
            failed = 1
            if os.WIFSIGNALED(status):
                sys.stderr.write(f"a reader was ended by signal {os.WTERMSIG(status)}\n")
            for other in left:
                os.kill(other, _TERMINATE)
    return failed


class Turn:
    """A turn that one of several forked processes has at a time, to write what no other writes into. Use it in a `with`."""

    def __init__(self) -> None:
        self._turn = os.eventfd(1, os.EFD_SEMAPHORE | os.EFD_CLOEXEC)

    def __enter__(self) -> None:
        os.eventfd_read(self._turn)

    def __exit__(self, *_: object) -> None:
        os.eventfd_write(self._turn, 1)
