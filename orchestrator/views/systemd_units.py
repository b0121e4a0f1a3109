"""The systemd units as they are installed: the shipped files, with this program and these directories in them."""

import re
from collections.abc import Mapping

USUAL = ("/etc/poolferry", "/var/lib/poolferry")
SHIPPED = "/usr/bin/poolferry"
DAEMON = ("poolferry.service", "poolferry-run@.service", "poolferry-disk@.service")
TIMER = ("poolferry-owed.service", "poolferry-owed.timer", "poolferry-run@.service", "poolferry-disk@.service")
ALL = tuple(dict.fromkeys((*DAEMON, *TIMER)))
RULES = "90-poolferry.rules"  # udev's: it calls poolferry-disk@ when a disk is plugged in
_STATE = re.compile(r"(?m)^StateDirectory(?:Mode)?=.*\n")


def unit_texts(shipped: Mapping[str, str], *, program: str, config: str, state: str) -> dict[str, str]:
    """The text of each unit by its name. `program`: the absolute path of the command."""
    return {name: _unit(text, program, config, state) for name, text in shipped.items()}


def _unit(text: str, program: str, config: str, state: str) -> str:
    text = text.replace(f"={SHIPPED} ", f"={quoted(program)} ")
    told = []
    if config != USUAL[0]:
        told.append(f'Environment="POOLFERRY_CONFIG={_escaped(config)}"')
    if state != USUAL[1]:  # systemd makes only what lies below /var/lib
        told.append(f'Environment="POOLFERRY_STATE={_escaped(state)}"')
        text = _STATE.sub("", text)
    return text.replace("[Service]\n", "\n".join(["[Service]", *told, ""]), 1)


def quoted(path: str) -> str:
    """A path as a command line of a unit takes it. Source: systemd.service(5): $ begins a variable."""
    path = _escaped(path).replace("$", "$$")
    return f'"{path}"' if re.search(r"[\s'\"]", path) else path


def _escaped(path: str) -> str:
    """Source: systemd.unit(5): % begins a specifier."""
    return path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
