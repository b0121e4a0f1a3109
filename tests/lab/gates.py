"""Gates of machines in the lab."""

import re
import shlex
from pathlib import Path

from tests.lab.common import Ended, Machine

PAGE = (Path(__file__).parents[2] / "jobs" / "guarantees.md").read_text()


def recipe(right: str, gate: str = r"\w+") -> list[str]:
    """The commands of the page for a gate with this right: the first, or the one of this name."""
    blocks = PAGE.split("```")[1::2]
    return next(
        each.strip().split("\n") for each in blocks if re.search(rf"poolferry setup gate {gate} --{right} ", each)
    )


def type_recipe(machine: Machine, *lines: str) -> Ended:
    """Type commands of the page, where the other machine's key lies; it lets that in no other way."""
    key = "(umask 077; for one in laptop vault west; do cut -d ' ' -f 1-3 authorized_keys > /root/$one.pub; done; : > authorized_keys)"
    return machine.sh(f"cd ~/.ssh && {key} && cd ~ && {' && '.join(lines)}", environment={"HOME": "/root"})


def let_through(machine: Machine, name: str, *words: str, user: str = "") -> Ended:
    """Let the key of the other machine through a gate of that name, and do nothing else; return what the set-up said."""
    key = "\"$(cut -d ' ' -f 1-3 ~/key)\""
    line = f"mv ~/.ssh/authorized_keys ~/key && poolferry setup gate {name} {shlex.join(words)} --key {key}"
    home = {"HOME": f"/home/{user}" if user else "/root"}
    return machine.sh(line, user=user, environment=home)
