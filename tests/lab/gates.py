"""Gates of machines in the lab."""

import shlex

from tests.lab.common import Ended, Machine


def let_through(machine: Machine, name: str, *words: str, user: str = "") -> Ended:
    """Let the key of the other machine through a gate of that name, and do nothing else; return what the set-up said."""
    key = "\"$(cut -d ' ' -f 1-3 ~/key)\""
    line = f"mv ~/.ssh/authorized_keys ~/key && poolferry setup gate {name} {shlex.join(words)} --key {key}"
    home = {"HOME": f"/home/{user}" if user else "/root"}
    return machine.sh(line, user=user, environment=home)
