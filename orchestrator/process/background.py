"""A call in a thread of its own, beside the caller; and files that hold what memory should not."""

import os
import threading
from collections.abc import Callable
from typing import IO, Generic, Self, TypeVar

_T = TypeVar("_T")


class BackgroundCall(Generic[_T]):
    """A call in a thread of its own. `result` waits for it, as does the end of a `with`.

    Why not concurrent.futures: its import takes 4 ms of each run, as long as the listing of 3,000 files.
    """

    def __init__(self, call: Callable[[], _T]) -> None:
        self._returned: list[_T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(call,))
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _run(self, call: Callable[[], _T]) -> None:
        try:
            self._returned.append(call())
        except BaseException as error:  # noqa: BLE001  # raised again where the result is asked for
            self._error = error

    def result(self) -> _T:
        """Return what the call returned. Raises: what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._returned[0]


def nameless_file(folder: str) -> IO[bytes]:
    """Open an empty file without a name in a folder; it goes with its last user. Raises: OSError."""
    try:
        return open(os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600), "w+b")
    except OSError:  # not every filesystem has such files; the import takes 2 ms
        import tempfile

        return tempfile.TemporaryFile(dir=folder)
