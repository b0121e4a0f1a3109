"""Datasets through a gate: a key that only adds to copies, and a key that only copies from here, on real OpenZFS."""

import shlex

import pytest

from tests.lab.common import Ended, Machine
from tests.lab.cuts import COPY, PATIENCE, SOURCE, Chain, Copying, answer, ours
from tests.lab.laboratory import Pair
from tests.whole.house import wait_until

pytestmark = pytest.mark.virtual
KEYS = "/root/.ssh/authorized_keys"


def let_through(machine: Machine, name: str, *words: str) -> None:
    """Let the key of the other machine through a gate of that name, and do nothing else."""
    machine.sh(
        f"cp {KEYS} /root/key && rm {KEYS} && poolferry setup gate {name} {shlex.join(words)} --key \"$(cut -d ' ' -f 1-3 /root/key)\""
    )
    # The program of the working tree is no file of that name.
    print(machine.sh(f"cat {KEYS}").text)


def ask(machine: Machine, other: str, *words: str, given: str = "") -> Ended:
    return machine.sh(["ssh", other, shlex.join(words)], check=False, given=given)


def test_push(pair: Pair) -> None:
    copying = Copying(*pair, chain=Chain(a=8, b=1, c=1))
    pair.backup.sh("ls -l /root/.ssh; cat /root/.ssh/authorized_keys; which poolferry; head -5 $(which poolferry)")
    let_through(pair.backup, "laptop", "--receives", "vault")
    print(copying.at.poolferry("run", "photos").out.decode())
    print(
        pair.backup.sh(
            "journalctl -t poolferry-gate --no-pager | tail -50; zfs list -rt all vault; zfs get all vault/photos | grep -v default"
        ).text
    )
    assert 0
