"""Signals as requests to stop: a run ends in good order, and the next one goes on from there.

Changes things.
"""

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from orchestrator.process.stop import Stop

_WORDS = {
    signal.SIGTERM: "asked to end (SIGTERM)",
    signal.SIGINT: "interrupted (Ctrl-C)",
    signal.SIGHUP: "the terminal went away (SIGHUP)",
}


@contextlib.contextmanager
def heard_by(stop: Stop) -> Iterator[list[int]]:
    """While inside, signals ask `stop` to stop; again and again is the same as once. Yields what was heard.

    A signal that is ignored stays so: nohup and shells in the background rely on that.
    """

    def heard(number: int, _: FrameType | None) -> None:
        found.append(number)
        stop.request(_WORDS[signal.Signals(number)])

    found: list[int] = []
    before = {}
    for number in _WORDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, heard)
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
