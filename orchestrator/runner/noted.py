"""What attempts note of their copying while it goes on: one file for each step, in the folder of the job's notes.

Changes things.
"""

import os

_NOTE = "moved-"
_EARLIER = "earlier-"


def forget(folder: str) -> None:
    """Removes what interrupted runs noted of their copying."""
    for name in os.listdir(folder):
        if name.startswith((_NOTE, _EARLIER)):
            os.unlink(f"{folder}/{name}")


def turn_page(folder: str) -> None:
    """What was noted so far is from now on an earlier attempt's, and older than all that is noted after."""
    names = os.listdir(folder)
    last = max((int(name.split("-")[1]) for name in names if name.startswith(_EARLIER)), default=0)
    for name in names:
        if name.startswith(_NOTE):
            os.rename(f"{folder}/{name}", f"{folder}/{_EARLIER}{last + 1:06d}-{name}")


def in_order(folder: str) -> tuple[str, ...]:
    """The paths of all notes, this run's and those of interrupted ones before it, in the order they were made."""
    names = [name for name in os.listdir(folder) if name.startswith((_EARLIER, _NOTE))]
    names.sort(key=lambda name: (name.partition(_NOTE)[0] or _NOTE, os.path.getmtime(f"{folder}/{name}")))
    return tuple(f"{folder}/{name}" for name in names)
