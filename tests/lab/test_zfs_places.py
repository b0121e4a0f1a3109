"""Places of datasets that are away, have another name, or hold another copy than before: what is said of what they held."""

import json
from typing import Any

import pytest

from tests.lab.common import Ended, Machine

pytestmark = pytest.mark.timeout(900)
AWAY = "the pool vault of the target vault/copies/photos is not imported"


def place(master: Machine, name: str, dataset: str) -> None:
    """The job's place has this name and dataset."""
    job = f'engine = "zfs"\nsource = "tank/photos"\ntarget = "{name}"\n'
    master.job("photos", job, targets=f'[place.{name}]\ndataset = "{dataset}"\n')


def known(master: Machine) -> dict[tuple[str, str], Any]:
    """Return the points by place and name, each with the time when its contents were read."""
    points = master.poolferry("points", "photos", "--json").json["points"]
    return {(point["place"], point["point"]): point["sound"] for point in points}


def well(ended: Ended) -> str:
    assert ended.code == 0, ended
    return ended.text + ended.complaint


def test_places_that_are_away_renamed_or_made_anew(master: Machine) -> None:
    disk = "/root/vault.img"
    master.pool("tank", "200M")
    master.sh(f"truncate -s 200M {disk}; zpool create vault {disk}; zfs create vault/copies; zfs create tank/photos")
    place(master, "vault", "vault/copies")
    master.kitted("photos")
    for name in "ab":
        master.sh(f"echo {name} >/tank/photos/{name}; zfs snapshot tank/photos@{name}")
        well(master.poolferry("run", "photos"))
    well(master.poolferry("verify", "photos", "--content"))
    before = known(master)
    assert [read is not None for read in before.values()] == [False, True]

    # Away: each command says so, and none that the copy is not there, or was never made.
    master.sh("zpool export vault")
    for words in (("verify", "photos"), ("drill", "photos"), ("points", "photos", "--look"),
                  ("run", "photos"), ("restore", "run", "photos", "--to", "tank/back")):  # fmt: skip
        told = master.poolferry(*words)
        assert (told.code, AWAY in told.text + told.complaint) == (3, True), (words, told)
        assert "zpool import vault" in told.text + told.complaint, (words, told)
    status = master.poolferry("status")
    assert (status.code, "not seen since" in status.text, "poolferry run photos" in status.text) == (4, True, True)

    # Another name of the pool and of the place: one place, whoever looks there first.
    master.sh(f"zpool import -d {disk} vault attic")
    place(master, "attic", "attic/copies")
    assert "the place vault (vault/copies/photos) is attic" in well(master.poolferry("verify", "photos"))
    assert "unseen" not in well(master.poolferry("points", "photos"))
    assert known(master).keys() == {("attic", "a"), ("attic", "b")}
    place(master, "cellar", "attic/copies")
    assert "the place attic is called cellar now" in well(master.poolferry("run", "photos"))
    assert known(master).keys() == {("cellar", "a"), ("cellar", "b")}
    assert known(master)["cellar", "b"] is not None

    # A copy of the copy has points of the same names and is another one; that the first is away changes nothing.
    master.sh("""set -e; truncate -s 200M /root/other.img; zpool create other /root/other.img; zfs create other/copies
        zfs send -R attic/copies/photos@b | zfs receive -u other/copies/photos; zpool export attic""")
    place(master, "other", "other/copies")
    well(master.poolferry("run", "photos"))
    assert ("cellar", "b") in known(master)
    assert known(master)["other", "b"] is None, "nobody has read it"

    # Made anew under the same name, and copied again: what was read before was another copy.
    well(master.poolferry("verify", "photos", "--content"))
    well(master.poolferry("run", "photos"))
    master.sh("zfs destroy -r other/copies/photos")
    told = master.poolferry("verify", "photos")
    assert (told.code, "held copies of photos and has none now" in told.text) == (3, True), told
    assert "is another one than at the last run" in well(master.poolferry("run", "photos"))
    assert known(master)["other", "b"] is None, "nobody has read it"
    assert json.loads(master.poolferry("status", "--json").out)["jobs"][0]["newest_verified"]
