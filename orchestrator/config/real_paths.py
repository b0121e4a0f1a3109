"""Real paths, as far as their filesystems answer: one that is dead must not hold up what is asked of all other jobs."""

import contextlib
import os.path
from collections.abc import Iterable
from threading import Thread

_PATIENCE = 3.0  # seconds for all that is asked at once; a folder of a disk that sleeps is in memory


class RealPaths:
    """The real paths of some paths of this machine. One that no filesystem tells in time stands as it is written.

    Why threads: nothing ends a look at a server that has gone, or at a pool that waits; each thread ends with the program.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._found: dict[str, str] = {}
        wanted = tuple(dict.fromkeys(paths))
        if wanted:
            self._look((wanted,))
        if missing := [path for path in wanted if path not in self._found]:
            self._look([(path,) for path in missing])  # each for itself: only one of them may be dead
        self._found = dict(self._found)  # what comes later changes no answer

    def _look(self, groups: Iterable[tuple[str, ...]]) -> None:
        threads = [Thread(target=self._resolve, args=(self._found, group), daemon=True) for group in groups]
        for thread in threads:
            thread.start()
        left = _PATIENCE
        for thread in threads:
            thread.join(left)
            left = 0 if thread.is_alive() else left

    @staticmethod
    def _resolve(found: dict[str, str], paths: tuple[str, ...]) -> None:
        for path in paths:
            with contextlib.suppress(OSError):  # a link on its way was exchanged between two looks at it
                found[path] = os.path.realpath(path)

    def __getitem__(self, path: str) -> str:
        return self._found.get(path) or os.path.normpath(path)
