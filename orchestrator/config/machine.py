"""Settings of the whole machine from poolferry.toml; the file may be missing."""

import os
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from orchestrator.config.decode import Sheet, fill, nearest, one_of, parse_sheet, shown
from orchestrator.config.ownership import writable_by_others
from orchestrator.domain.errors import DeclarationError, Mistake
from orchestrator.domain.machine import Clock, Digest, Machine, Metrics
from orchestrator.domain.names import show_name

if TYPE_CHECKING:
    from orchestrator.domain.notice import Channel

FILE = "poolferry.toml"
SECTIONS: dict[str, type[Any]] = {"clock": Clock, "digest": Digest, "metrics": Metrics}
CHANNELS = "notice"


def load_machine(directory: str, jobs: Collection[str] | None = None) -> Machine:
    """Load the file's settings, or the defaults without a file. Raises: DeclarationError with all its mistakes.

    `jobs`: the names of all jobs; then a channel that names another is a mistake.
    """
    path = os.path.join(directory, FILE)
    try:
        with open(path, "rb") as file:
            held = parse_sheet(path, file.read(), least="")
    except FileNotFoundError:
        return Machine()
    except OSError as error:
        what, wanted = f"cannot be read: {error.strerror}", "a file that this user may read"
        raise DeclarationError(
            (Mistake(file=show_name(path), line=None, key="", what=what, expected=wanted),)
        ) from None
    if isinstance(held, Mistake):
        raise DeclarationError((held,))
    machine = read_machine(held, jobs)
    mistakes = [*held.mistakes, *writable_by_others((path,))]
    if mistakes:
        raise DeclarationError(tuple(sorted(mistakes, key=lambda each: (each.line or 0, each.key))))
    return machine


def read_machine(sheet: Sheet, jobs: Collection[str] | None = None) -> Machine:
    """Read the declared sections, with defaults for what the file omits; record each mistake."""
    known = (*SECTIONS, CHANNELS)
    for name in sheet.table.keys() - set(known):
        near = nearest(name, known)
        sheet.say((name,), "unknown key", f"[{near}], the nearest name" if near else one_of(known))
    sections = {name: _section(sheet, name, model) for name, model in SECTIONS.items()}
    return Machine(**sections, notice=_channels(sheet, jobs))


def _channels(sheet: Sheet, jobs: Collection[str] | None) -> "tuple[Channel, ...]":
    """Read the channels. Why imported late: each run reads this file, and most have no channel."""
    if CHANNELS not in sheet.table:
        return ()
    from orchestrator.config.channels import read_channels

    return read_channels(sheet, jobs)


def _section(sheet: Sheet, name: str, model: type[Any]) -> Any:
    written = sheet.table.get(name, {})
    if not isinstance(written, dict):
        sheet.say((name,), f"{shown(written)} does not fit", f"a section: [{name}] on a line of its own")
        return model()
    return fill(sheet, model, written, (name,), lambda _: None) or model()
