"""Hints that destroy, move or unlock something are typed as they are printed, where a dataset's name has a blank; and they end the trouble."""

import re
import shlex
from typing import Any

import pytest

from tests.lab.common import Machine
from tests.lab.pools import guids

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
JOB = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n'
PLACE = '[place.vault]\ndataset = "vault/copies"\n'
SUB, COPY = "tank/photos/two words", "vault/copies/photos/two words"


def run(master: Machine, *more: str) -> dict[str, Any]:
    told: dict[str, Any] = master.poolferry("run", "photos", "--json", *more, seconds=300).json
    return told


def follow(master: Machine, told: dict[str, Any], pattern: str, outcome: str = "done") -> str:
    """Types the part of a hint that the pattern's group finds; then the job runs to that outcome. The command."""
    found = re.search(pattern, told["hint"])
    assert found, told
    master.sh(found[1])
    ran = run(master)
    assert ran["outcome"] == outcome, (found[1], ran)
    return found[1]


def test_hints_end_the_trouble_as_they_are_printed(master: Machine) -> None:
    for pool in ("tank", "vault"):
        master.pool(pool, "300M")
    master.sh(f"""set -e; zfs create vault/copies; zfs create tank/photos; zfs create '{SUB}'
        head -c 32 /dev/urandom >/root/key; zfs create -V 8M '{SUB}/disk'; echo one >'/{SUB}/one'; zfs snapshot -r tank/photos@a""")
    master.job("photos", JOB, targets=PLACE)
    master.kitted("photos")
    assert run(master)["outcome"] == "done"

    # A snapshot of the target's own.
    master.sh(f"zfs snapshot '{COPY}@mine'; zfs snapshot -r tank/photos@b")
    told = run(master)
    assert told["outcome"] == "failed", told
    follow(master, told, r"or (zfs rollback -r [^;]*)$")
    assert guids(master, COPY).keys() >= {"@a", "@b"}
    assert "@mine" not in guids(master, COPY)

    # The name of a snapshot that is to come is taken.
    master.sh(f"zfs rename '{COPY}@a' '{COPY}@c'; zfs snapshot -r tank/photos@c")
    told = run(master)
    assert "has another snapshot named @c" in told["why"], told
    follow(master, told, r"^(zfs rename [^;]*);")
    assert guids(master, COPY)["@c"] == guids(master, SUB)["@c"]

    # Datasets that were made anew at the source: what the copy holds comes back, what is there is kept.
    master.sh(f"zfs destroy -r '{SUB}'; zfs create '{SUB}'; echo new >'/{SUB}/new'; zfs snapshot -r tank/photos@d")
    told = run(master)
    assert "hold no snapshot in common" in str(told["evidence"]), told
    found = re.search(r"to bring back what the copy holds: (poolferry restore run .*? --aside)", told["hint"])
    assert found, told
    ended = master.poolferry(*shlex.split(found[1])[1:], "--json", seconds=300).json
    assert ended["outcome"] in ("done", "waiting"), ended
    (aside,) = [
        name for name in master.sh("zfs list -H -o name -r tank").lines if "_aside_" in name and "/disk" not in name
    ]
    assert guids(master, aside).keys() == {"@d"}, "nothing is lost"
    assert guids(master, SUB).keys() >= {"@b", "@c"}
    (unmount,) = re.findall(r"unmount that \((.*)\), and run the same command again", ended["hint"])
    master.sh(unmount)
    assert master.poolferry(*shlex.split(found[1])[1:], "--json", seconds=300).json["outcome"] == "done"
    assert master.sh(f"cat '/{SUB}/one'").text == "one"
    assert run(master)["outcome"] == "done"
