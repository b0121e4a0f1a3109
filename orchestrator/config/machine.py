"""poolferry.toml: what holds for the whole machine; the file may be missing. Reads."""

import os
from typing import Any

from orchestrator.config.fill import fill
from orchestrator.config.sheet import Sheet, nearest, one_of, shown
from orchestrator.config.text import parse_sheet
from orchestrator.domain.errors import DeclarationError, Mistake
from orchestrator.domain.machine import Clock, Machine
from orchestrator.domain.names import show_name

FILE = "poolferry.toml"
SECTIONS: dict[str, type[Any]] = {"clock": Clock}


def load_machine(directory: str) -> Machine:
    """What the file declares, its defaults where there is none. Raises: DeclarationError with all its mistakes."""
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
    machine = read_machine(held)
    if held.mistakes:
        raise DeclarationError(tuple(sorted(held.mistakes, key=lambda each: (each.line or 0, each.key))))
    return machine


def read_machine(sheet: Sheet) -> Machine:
    """The declared sections, each with its defaults where the file does not tell; each mistake noted."""
    for name in sheet.table.keys() - SECTIONS.keys():
        near = nearest(name, SECTIONS)
        sheet.say((name,), "unknown key", f"[{near}], the nearest name" if near else one_of(SECTIONS))
    return Machine(**{name: _section(sheet, name, model) for name, model in SECTIONS.items()})


def _section(sheet: Sheet, name: str, model: type[Any]) -> Any:
    written = sheet.table.get(name, {})
    if not isinstance(written, dict):
        sheet.say((name,), f"{shown(written)} does not fit", f"a section: [{name}] on a line of its own")
        return model()
    return fill(sheet, model, written, (name,), lambda _: None) or model()
