"""What becomes of datasets in other hands: copies that were written to, renamed pools, promoted clones, what was set aside."""

import re
from typing import Any

import pytest

from tests.lab.common import Machine
from tests.lab.pools import guids

PLACE = '[place.vault]\ndataset = "vault/copies"\n'


def run(master: Machine, *more: str) -> dict[str, Any]:
    told: dict[str, Any] = master.poolferry("run", "photos", "--json", *more, seconds=300).json
    return told


def prepare(master: Machine, script: str, *, source: str = "tank/photos", disk: bool = False, more: str = "") -> None:
    """Both pools, what the script makes in the source's, and a job that copies it."""
    for pool in ("tank", "vault"):
        master.pool(pool, "300M", disk=disk)
    master.sh(f"set -e; zfs create vault/copies\n{script}")
    master.job("photos", f'engine = "zfs"\nsource = "{source}"\ntarget = "vault"\n{more}', targets=PLACE)
    master.kitted("photos")
    ran = run(master)
    assert ran["outcome"] == "done", ran


def holds_the_same(master: Machine, source: str = "tank/photos", copy: str = "vault/copies/photos") -> bool:
    return guids(master, source) == guids(master, copy)


@pytest.mark.timeout(900)
def test_one_hint_ends_the_trouble_of_all_copies_that_were_written_to(master: Machine) -> None:
    """As it is printed, typed at once, for names with blanks and for a volume too."""
    prepare(
        master,
        """zfs create tank/photos; for name in 'a b' two three; do zfs create "tank/photos/$name"; done
        zfs create -V 8M tank/photos/disk; zfs snapshot -r tank/photos@a""",
    )
    master.sh("""set -e; cd /; for name in 'a b' two three; do
            copy="vault/copies/photos/$name"; zfs set readonly=off "$copy"; zfs mount "$copy"; echo x >"/$copy/x"; done
        zfs snapshot vault/copies/photos/two@own; zfs snapshot vault/copies/photos/disk@own; zfs snapshot -r tank/photos@b""")
    for outcome in ("failed", "refused"):  # with something else to do, and without
        told = run(master)
        assert (told["outcome"], "3 more refusals" in told["why"]) == (outcome, True), told
        commands = re.findall(r"or (zfs rollback .*)$", told["hint"])
        assert len(commands) == 1, told
        assert commands[0].count("zfs rollback") == 4, told
    master.sh(commands[0])
    ran = run(master)
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    assert holds_the_same(master)
