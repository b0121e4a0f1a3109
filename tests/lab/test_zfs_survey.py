"""Test what the survey sees of real pools, and what it makes of pools that are not well."""

import re

import pytest

from orchestrator.domain.errors import (
    HostUnreachable,
    NotNow,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
)
from orchestrator.domain.place import Host, Location
from orchestrator.engines.zfs import ENGINE
from orchestrator.engines.zfs.model import DatasetType, SendFlags
from orchestrator.engines.zfs.plan.hold_names import cursor_bookmark_name, hold_bookmark_name, replication_target_id
from orchestrator.engines.zfs.survey.survey import survey
from tests.engines.zfs.sides import ASKED, job
from tests.lab.common import ENCRYPTED, Machine
from tests.lab.frail import FrailPool
from tests.lab.guest_writer import GuestWriter
from tests.lab.laboratory import Pair
from tests.lab.virtual import VirtualMachine


def sources(machine: Machine) -> None:
    """tank/photos with what a dataset may have; names as people and programs make them."""
    machine.pool("tank")
    machine.sh(
        "zfs create tank/photos && zfs create 'tank/photos/a b:c' && zfs create -V 8M tank/photos/-v && "
        "zfs snapshot -r 'tank/photos@one -x:y' && zfs snapshot tank/photos@two && zfs snapshot tank/photos@10 && "
        "zfs bookmark tank/photos@two tank/photos#kept && zfs destroy tank/photos@two && "
        "zfs clone 'tank/photos/a b:c@one -x:y' tank/photos/clone"
    )


@pytest.mark.flavours("trixie", "bookworm")
def test_both_sides_as_they_are(master: Machine, flavour: str) -> None:
    sources(master)
    master.pool("vault")
    master.sh(
        "zfs create vault/copies && zfs create -o poolferry:flags=Lce vault/copies/photos && "
        "zfs create -u -o canmount=off -o poolferry:placeholder=on vault/copies/photos/place && "
        "zfs create vault/copies/photos/place/below && zfs snapshot vault/copies/photos@own && "
        "head -c 1M /dev/urandom > /vault/copies/photos/new && zpool sync && "
        f"{ENCRYPTED} vault/copies/photos/sealed"
    )
    hands = GuestWriter(master)
    seen = survey(job(), ASKED, hands)
    assert len(hands.ran) == 3  # the source does not know the newest there, so all of the target was looked at
    source, target = seen.source, seen.target
    told = {
        name: master.sh(f"zpool get -Hp -o value guid {name}").text for name in ("tank", "vault")
    }  # fmt: skip
    assert {"tank": str(source.pool_guid), "vault": str(target.pool_guid)} == told
    assert source.version[0] == 2
    assert source.version[1] == (3 if flavour == "trixie" else 1)
    assert (source.programs, source.sudo, source.mbuffer) == (True, False, True)
    assert set(source.datasets) == {"", "a b:c", "-v", "clone"}
    root = source.datasets[""]
    assert [one.name for one in root.snapshots] == ["one -x:y", "10"]
    assert [one.name for one in root.bookmarks] == ["kept"]
    assert root.snapshots[0].createtxg < root.bookmarks[0].createtxg < root.snapshots[1].createtxg
    assert source.datasets["-v"].kind is DatasetType.VOLUME
    assert source.datasets["clone"].origin == "tank/photos/a b:c@one -x:y"
    assert not any(one.encrypted for one in source.datasets.values())
    copy, place, below, sealed = (target.datasets[name] for name in ("", "place", "place/below", "sealed"))
    assert (copy.flags, copy.mounted, place.placeholder, place.flags) == (SendFlags(), True, True, None)
    assert copy.written
    assert copy.written >= 1 << 20
    assert not below.placeholder  # inherited
    assert (sealed.encrypted, sealed.key_loaded, sealed.encryption_root) == (True, True, "vault/copies/photos/sealed")
    assert target.above == frozenset({"vault", "vault/copies"})
    assert target.available
    assert target.available > 1 << 20


def test_a_flat_look_sees_the_root_alone_and_holds_of_ours_by_their_marks(master: Machine) -> None:
    sources(master)
    master.pool("vault")
    seen = survey(job(recursive=False, catch_up="kept"), ASKED, GuestWriter(master))
    assert {name: len(one.snapshots) for name, one in seen.source.datasets.items()} == {"": 2}
    assert set(seen.created) == {one.guid for one in seen.source.datasets[""].snapshots}
    now = float(master.sh("date +%s").text)
    assert all(abs(taken.timestamp() - now) < 600 for taken in seen.created.values())
    snapshot, pool = seen.source.datasets[""].snapshots[-1], seen.target.pool_guid
    ours, other = (
        replication_target_id(pool, job().target.location),
        replication_target_id(pool + 1, job().target.location),
    )
    marks = (
        cursor_bookmark_name(ours, snapshot.guid),
        hold_bookmark_name(ours, snapshot.guid),
        hold_bookmark_name(other, snapshot.guid),
    )
    master.sh("; ".join(f"zfs bookmark tank/photos@10 tank/photos#{mark}" for mark in marks))
    assert survey(job(), ASKED, GuestWriter(master)).held == {"": ("10",)}


def test_what_is_absent_is_no_failure_and_what_fails_is_nothing_else(master: Machine) -> None:
    sources(master)
    hands = GuestWriter(master)
    nowhere = survey(job(), ASKED, hands)
    assert (nowhere.target.datasets, nowhere.target.above) == ({}, frozenset())
    master.pool("vault")
    master.sh(f"{ENCRYPTED} vault/copies")
    below = survey(job(), ASKED, hands)
    assert (below.target.datasets, below.target.above) == ({}, frozenset({"vault", "vault/copies"}))
    assert below.target.inherits_encryption
    assert below.target.available
    lost = survey(job(source=Location(path="tank/nope")), ASKED, hands)
    assert lost.source.datasets == {}
    master.sh("zpool export vault")
    assert survey(job(), ASKED, hands).target.above == frozenset()
    master.sh("mkdir /root/hidden && mv /usr/sbin/zfs /root/hidden")
    with pytest.raises(ProgramMissing):
        survey(job(), ASKED, hands)


@pytest.mark.long
def test_an_ordinary_user_sees_everything_and_is_told_what_it_may(master: Machine) -> None:
    sources(master)
    master.pool("vault")
    master.sh("zfs create vault/copies")
    hands = GuestWriter(master, user="ferry")
    seen = survey(job(), ASKED, hands)
    assert set(seen.source.datasets) == {"", "a b:c", "-v", "clone"}
    assert not seen.source.programs
    advice = {line.subject: line for line in ENGINE.advise(job(), hands)}
    lacking = advice["rights on tank/photos"]
    assert not lacking.good
    assert "zfs allow ferry bookmark,destroy,hold,release,send tank/photos" in lacking.text
    # Done as it is told, once for the group: nothing is left to tell but that the copy is not there yet.
    told = [line.text.partition("; or")[0] for line in advice.values() if line.text.startswith("zfs allow ferry")]
    assert len(told) == 2
    master.sh("; ".join(told).replace("allow ferry", "allow -g ferry", 1))
    assert [line for line in ENGINE.advise(job(), hands) if not line.good] == []


@pytest.mark.long
def test_advice_names_what_is_wrong(master: Machine) -> None:
    sources(master)
    said = {line.subject: line for line in ENGINE.advise(job(), GuestWriter(master))}
    assert said["source tank/photos"].good
    assert (said["target vault/copies/photos"].good, said["target vault/copies/photos"].text.partition("; or")[0]) == (
        False, "the pool vault is not imported: zpool import vault",
    )  # fmt: skip
    master.pool("vault", options=["-d"])  # no features at all
    master.sh("mv /usr/bin/mbuffer /usr/bin/gone")
    said = {line.subject: line for line in ENGINE.advise(job(source=Location(path="tank/nope")), GuestWriter(master))}
    assert "is not installed" in said["mbuffer here"].text
    assert not said["mbuffer here"].hinders
    assert (said["source tank/nope"].good, said["target vault/copies/photos"].good) == (False, True)
    master.sh(said["pool vault here"].text.partition("from the beginning: ")[2])
    assert "pool vault here" not in {
        line.subject for line in ENGINE.advise(job(), GuestWriter(master)) if not line.good
    }


@pytest.mark.virtual
@pytest.mark.long
def test_a_suspended_pool_is_told_at_once(master: VirtualMachine) -> None:
    """Every zfs command on it would hang."""
    master.pool("tank")
    master.sh("zfs create tank/photos && zfs snapshot tank/photos@a")
    vault = FrailPool(master, "vault")
    master.sh("zfs create vault/copies")
    vault.fail()
    with pytest.raises(OutsideError, match="the pool vault is suspended") as failure:
        survey(job(), ASKED, GuestWriter(master))
    *_, clear = re.findall(r"`([^`]*)`", failure.value.hint)
    vault.answer()
    master.sh(clear)
    assert survey(job(), ASKED, GuestWriter(master)).target.above == frozenset({"vault", "vault/copies"})


@pytest.mark.flavours("trixie", long=["bookworm"])
def test_over_ssh_each_side_is_one_login(pair: Pair) -> None:
    master, backup = pair
    sources(master)
    backup.pool("vault")
    there = Host(name="backup", user="root")
    hands = GuestWriter(master, ssh_options=("-oControlMaster=auto", "-oControlPath=/run/%C", "-oControlPersist=60"))
    seen = survey(job(place=there), ASKED, hands)
    assert [line.startswith("ssh ") for line in sorted(hands.ran)] == [False, True]
    assert seen.target.root == Location(path="vault/copies/photos", host=there)
    assert (seen.target.above, seen.target.pool_guid) == (
        frozenset({"vault"}), int(backup.sh("zpool get -Hp -o value guid vault").text),
    )  # fmt: skip
    pulling = job(source=Location(path="tank/photos", host=Host(name="master", user="ferry")))
    seen = survey(pulling, ASKED, GuestWriter(backup, user="ferry"))
    assert len(seen.source.datasets) == 4
    assert (seen.source.programs, seen.source.mbuffer) == (False, True)


@pytest.mark.long
def test_hosts_that_cannot_be_asked(pair: Pair) -> None:
    sources(pair.master)
    nobody = Host(name="backup", user="nobody")
    for host, kind in ((Host(name="nowhere"), HostUnreachable), (nobody, PermissionDenied)):
        with pytest.raises(kind) as failure:
            survey(job(place=host), ASKED, GuestWriter(pair.master))
        assert not isinstance(failure.value, NotNow)
