"""`pins` on real pools: every hold and bookmark of ours, who wants it, and letting go of the rest."""

from typing import Any

import pytest

from tests.lab.common import Machine

BOTH = pytest.mark.flavours("trixie", long=["bookworm"])  # 2.1 tells the time of a hold otherwise
JOB = 'engine = "zfs"\nsource = "tank/{name}"\ntarget = "vault"\n'
PLACE = '[place.vault]\ndataset = "vault/copies"\n'


def set_up(master: Machine) -> str:
    """Two pools and two jobs that have run; returns the tag of a hold for the target."""
    master.pool("tank", "200M")
    master.pool("vault", "200M")
    master.sh("zfs create vault/copies; for d in photos mail; do zfs create tank/$d; zfs snapshot tank/$d@a; done")
    for name in ("photos", "mail"):
        master.job(name, JOB.format(name=name), targets=PLACE)
    master.kitted("photos", "mail")
    assert master.poolferry("run", "photos", "mail").code == 0
    return f"poolferry_{int(master.sh('zpool list -Hp -o guid vault').text):016x}"


def pins(master: Machine, *more: str) -> dict[str, Any]:
    ended = master.poolferry("pins", "--json", *more)
    assert ended.code == 0, ended
    told: dict[str, Any] = ended.json
    return told


def wanted(told: dict[str, Any]) -> dict[str, str | None]:
    """By what it is on, who wants it."""
    return {each["at"].replace("#", "@").partition("_")[0]: each["job"] for each in told["pins"]}


def ours(master: Machine) -> list[str]:
    """All bookmarks, and all holds with our kind of tag."""
    lines = master.sh("zfs list -H -t bookmark -o name; zfs holds -rH tank | cut -f 1,2", check=False).lines
    return [line for line in lines if "poolferry" in line]


@BOTH
def test_what_no_job_wants_or_wants_no_longer_goes_and_nothing_else(master: Machine) -> None:
    tag = set_up(master)
    told = pins(master)
    assert wanted(told) == {"tank/mail@poolferry": "mail", "tank/photos@poolferry": "photos"}
    assert {(each["kind"], each["pool"], each["bytes"]) for each in told["pins"]} == {("bookmark", "vault", 0)}
    assert (told["unseen"], told["lets_go"]) == ([], [])
    master.sh(
        f"zfs hold {tag} tank/mail@a; zfs hold mine tank/mail@a; zfs hold poolferry_00000000000000ff tank/photos@a"
    )
    master.sh("rm /etc/poolferry/jobs/mail.toml")
    told = pins(master)
    unwanted = sorted((each["kind"], each["at"].partition("_")[0]) for each in told["pins"] if not each["wanted"])
    assert unwanted == [("bookmark", "tank/mail#poolferry"), ("hold", "tank/mail@a"), ("hold", "tank/photos@a")]
    assert all(each["since"].startswith("20") for each in told["pins"])
    before = ours(master)
    shown = master.poolferry("pins").text
    assert "3 pins no job needs any more; `poolferry pins --let-go` would do this" in shown
    assert ours(master) == before
    told = pins(master, "--let-go")
    assert [run["outcome"] for run in told["runs"]] == ["done"], told
    left = ours(master)
    assert [line.partition("_")[0] for line in left] == ["tank/photos#poolferry"]
    assert "mine" in master.sh("zfs holds -H tank/mail@a").text
    assert pins(master)["lets_go"] == []
    (recorded,) = [run for run in master.poolferry("history", "--json").json["runs"] if run["job"] == "pins"]
    assert recorded["outcome"] == "done"
    a_hold_is_kept_for_its_time_and_no_longer(master, tag)


def a_hold_is_kept_for_its_time_and_no_longer(master: Machine, tag: str) -> None:
    master.sh(f"zfs hold {tag} tank/photos@a")
    assert wanted(pins(master))["tank/photos@a"] == "photos"
    master.job("photos", JOB.format(name="photos") + '[zfs]\nhold-for = "1m"\n')
    master.sh('date -s "@$(($(date +%s) + 86400))"')
    assert wanted(pins(master))["tank/photos@a"] is None
    pins(master, "--let-go", "--job", "photos")
    assert [line.partition("_")[0] for line in ours(master)] == ["tank/photos#poolferry"]


@pytest.mark.long
def test_a_pool_that_is_away_keeps_its_pins(master: Machine) -> None:
    set_up(master)
    before = ours(master)
    master.sh("zpool export vault")
    told = pins(master, "--let-go")
    assert [each["place"] for each in told["unseen"]] == ["vault"]
    assert {each["job"] for each in told["pins"]} == {"photos", "mail"}
    assert all("was not seen now" in each["why"] for each in told["pins"])
    assert (told["lets_go"], ours(master)) == ([], before)


@pytest.mark.long
def test_a_pool_with_a_new_guid_keeps_the_only_base_of_its_chain(master: Machine) -> None:
    set_up(master)
    for name in ("photos", "mail"):
        master.sh(f"zfs snapshot tank/{name}@b; zfs destroy tank/{name}@a")
    master.sh("zpool reguid vault")
    told = pins(master, "--let-go")
    assert told["lets_go"] == []
    assert all("its pool has a new guid" in each["why"] for each in told["pins"])
    assert master.poolferry("run", "photos", "mail").code == 0
    master.sh("for d in photos mail; do zfs list vault/copies/$d@b; done")
