"""Monitor for the disk that a run copies to: an unplugged disk would leave programs that wait for it for ever."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from orchestrator.domain.place import Place
from orchestrator.process.stop import StopRequest

DEVICES = "/sys/class/block"
_OFTEN = 0.5


def is_gone(place: Place, devices: str = DEVICES) -> bool:
    """Return True when the kernel no longer knows the device of an attached disk."""
    return not os.path.exists(os.path.join(devices, place.device))


def pulled_out_sentence(place: Place) -> str:
    """Return why work on a disk ends."""
    return f"disk {place.disk} was pulled out"


@contextmanager
def watch_removal(place: Place, stop: StopRequest, devices: str = DEVICES) -> Iterator[None]:
    """Request the run's stop as soon as the kernel no longer knows the device.

    Why by its name: no other device gets that name while something is mounted or imported from it.
    """
    over = Event()

    def watch() -> None:
        while not over.wait(_OFTEN):
            if is_gone(place, devices):
                stop.request(pulled_out_sentence(place))
                return

    thread = Thread(target=watch, name=f"watch {place.disk}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
