"""Each command that `setup gate` prints is typed on a new machine as it stands, and works there."""

import re
import shlex
import subprocess

import pytest

from tests.whole.house import House
from tests.whole.sshd import make_key

pytestmark = pytest.mark.slow


def test_each_command_of_a_set_up_works_on_a_new_machine(house: House) -> None:
    """No folder above that of the points is there, and no job."""
    folder = house.folder / "backup/all/laptop"
    (house.config / "jobs").rmdir()
    make_key(house.folder / "key")
    key = (house.folder / "key.pub").read_text()
    words = ("setup", "gate", "laptop", "--adds", str(folder), "--key", key, "--into", str(house.folder / "keys"))
    refused = house.call(*words)
    assert refused.code == 2, refused
    assert f"{folder.parent} is not there" in refused["error"], refused
    assert not (house.folder / "keys").exists()
    (made,) = re.findall("`(mkdir [^`]*)`", refused["hint"])
    subprocess.run(["sh", "-c", made], check=True)
    shown = [word for word in house.argv(*words) if word != "--json"]
    told = subprocess.run(shown, env=house.environment, capture_output=True, text=True, check=True).stdout
    typed = [line for line in told.split("\n") if line.startswith(("  printf ", "  mkdir "))]
    assert len(typed) == 2, told
    for line in typed:
        subprocess.run(["sh", "-ec", line], check=True)
    assert (ended := house.run("laptop-in")).outcome == "nothing-to-do", ended


def test_a_gate_that_is_removed_says_where_its_key_may_stand_still(house: House) -> None:
    """It opens nothing then, but would open the next gate of that name: so the command that removes it is said, and works."""
    keys = house.folder / "keys"
    words = ("setup", "gate", "vault", "--reads", str(house.source), "--key", "ssh-ed25519 " + "A" * 68)
    assert house.call(*words, "--into", str(keys)).code == 0
    removed = house.call("setup", "gate", "vault", "--remove")
    assert (removed.code, len(removed["changed"]), len(removed["warnings"])) == (0, 1, 1), removed
    (typed,) = re.findall("`poolferry ([^`]*)`", removed["warnings"][0])
    again = house.call(*(str(keys) if word == "FILE" else word for word in shlex.split(typed)))
    assert (again["changed"], again["warnings"], keys.read_text()) == ([str(keys)], [], ""), again
