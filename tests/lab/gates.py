"""Gates of machines in the lab."""

import shlex

from tests.lab.common import Machine

_KEYS = "/root/.ssh/authorized_keys"


def let_through(machine: Machine, name: str, *words: str) -> None:
    """Let the key of the other machine through a gate of that name, and do nothing else."""
    key = "\"$(cut -d ' ' -f 1-3 /root/key)\""
    machine.sh(f"mv {_KEYS} /root/key && poolferry setup gate {name} {shlex.join(words)} --key {key}")
