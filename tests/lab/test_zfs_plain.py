"""Streams without properties, to copies that have them all; and a recovery kit for which the library of ZFS was asked."""

import json
import re
import sys
from typing import Any

import pytest

from orchestrator.domain.place import Location
from orchestrator.engines.zfs.recovery.kit import kit_command, make_kit, parse_kit_survey
from orchestrator.process.own_program import own_environment
from tests.engines.zfs.sides import NOW, job
from tests.lab.common import Machine

pytestmark = pytest.mark.flavours("trixie", "bookworm")
JOB = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\nschedule = "manual"\n'
PLACES = '[place.vault]\ndataset = "vault/copies"\n'
COPIED = "vault/copies/photos"
NAMES = ("", "/a", "/b", "/c")


def spread(master: Machine) -> None:
    """tank/photos with three datasets below it, and a copy of all."""
    master.pool("tank")
    master.pool("vault")
    master.sh("for d in '' /a /b /c; do zfs create tank/photos$d; done; zfs snapshot -r tank/photos@one")


def values(master: Machine, dataset: str, *names: str) -> tuple[str, ...]:
    """Of each property value, what was received, and source."""
    asked = ["zfs", "get", "-Hp", "-o", "value,received,source", ",".join(names), dataset]
    return tuple(line.replace("\t", " ") for line in master.sh(asked).lines)


def carry(master: Machine, snapshot: str, *more: str) -> set[str]:
    """Takes the next snapshot and runs the job; the datasets whose streams brought properties."""
    master.sh(f"zfs snapshot {' '.join(more)} -r tank/photos@{snapshot}")
    plan = master.poolferry("plan", "photos", check=True).text
    sent = re.findall(
        r"zfs send -P(\w+) -i tank/photos(\S*)@\S+ tank/photos\S*@\S+ .*?zfs receive -s -u (-\w)", plan, re.DOTALL
    )
    assert [name for _, name, _ in sent] == list(NAMES), plan
    assert all(("p" in flags) is (option == "-x") for flags, _, option in sent), (
        "a stream without properties needs no option"
    )
    master.poolferry("run", "photos", check=True)
    assert {
        line.rpartition("@")[2] for line in master.sh(f"zfs get -rHp -o value prevsnap -t filesystem {COPIED}").lines
    } == {snapshot}
    return {name for flags, name, _ in sent if "p" in flags}


def test_streams_bring_properties_only_where_there_are_some_to_bring(master: Machine) -> None:
    spread(master)
    master.kitted("photos")
    master.job("photos", JOB, targets=PLACES)
    master.poolferry("run", "photos", check=True)
    assert carry(master, "two") == set()
    own = "readonly", "canmount", "poolferry:flags", "mountpoint", "sharenfs"
    ours = ("on - local", "noauto - local", "Lce - local", f"/{COPIED}/a - default", "off - default")
    assert values(master, f"{COPIED}/a", *own) == ours

    master.sh("zfs set compression=lz4 mountpoint=/etc/a quota=100M tank/photos/a")
    master.sh("zfs snapshot -o user:x=y tank/photos/b@three-b")
    assert "-I tank/photos/b@two tank/photos/b@three-b" not in master.poolferry("plan", "photos").text
    master.sh("zfs destroy tank/photos/b@three-b")
    assert carry(master, "three", "-o user:x=y") == set(NAMES), "each snapshot has a property"
    assert values(master, f"{COPIED}/b@three", "user:x") == ("y y received",)
    received = ("lz4 lz4 received", f"/{COPIED}/a /etc/a default")
    assert values(master, f"{COPIED}/a", "compression", "mountpoint") == received
    assert values(master, f"{COPIED}/a", "quota")[0].split()[::2] == ["0", "local"]
    assert carry(master, "four") == set(), "the copy has received all that its source has"
    assert values(master, f"{COPIED}/a", "compression", "mountpoint") == received

    master.sh(f"zfs inherit -S mountpoint {COPIED}/a")
    assert carry(master, "five") == {"/a"}, "what must not be in force is put out of it again"
    assert values(master, f"{COPIED}/a", "compression", "mountpoint") == received
    master.sh("zfs inherit compression tank/photos/a; zfs set user:note=here tank/photos/c")
    assert carry(master, "six") == {"/a", "/c"}
    assert values(master, f"{COPIED}/a", "compression")[0].split()[1:] in (["-", "default"], ["-", "-"])
    assert values(master, f"{COPIED}/c", "user:note") == ("here here received",)
    master.sh("zfs inherit user:note tank/photos/c")
    assert carry(master, "seven") == {"/c"}, "what the source has no more, the copy has no more"
    assert values(master, f"{COPIED}/c", "user:note") == ("- - -",)


def test_what_a_source_gets_between_the_look_and_the_stream_does_nothing_to_the_copy(master: Machine) -> None:
    spread(master)
    master.kitted("photos")
    master.job("photos", JOB, targets=PLACES)
    master.poolferry("run", "photos", check=True)
    own = "readonly", "canmount", "mountpoint", "sharenfs", "quota", "user:x", "poolferry:flags"
    before = values(master, f"{COPIED}/a", *own)
    master.sh("zfs snapshot -o user:x=y -r tank/photos@two")
    plan = master.poolferry("plan", "photos", check=True).text
    assert "receive -s -u -s -u" not in plan
    master.sh(
        "zfs set readonly=off canmount=on mountpoint=/etc/a sharenfs=on quota=100M user:x=z poolferry:flags=w tank/photos/a"
    )
    master.sh(f"zfs send -PLce -i tank/photos/a@one tank/photos/a@two 2>/dev/null | zfs receive -s -u -s -u {COPIED}/a")
    assert values(master, f"{COPIED}/a", *own) == before
    assert master.sh(f"zfs list -H -o name -t snapshot -d 1 {COPIED}/a").lines[-1] == f"{COPIED}/a@two"


def look(master: Machine, *, with_library: bool) -> Any:
    """The content of a kit, without what each look finds otherwise."""
    command = kit_command(Location(path="tank/photos"), with_library=with_library)
    ((_, packages),) = own_environment()
    text = command.argv[2].replace(sys.executable, "/opt/poolferry/bin/python").replace(packages, "/mnt/poolferry")
    # Where it fails, this one would answer as if it were not there.
    text = text.replace('"$1" 2> /dev/null\n', '"$1" || echo "$1" >> /root/unanswered\n')
    found = parse_kit_survey(master.sh([*command.argv[:2], text, *command.argv[3:]]).out)
    content = json.loads(make_kit(job(), NOW, found).content)
    for told in content["datasets"].values():
        told.pop("used", None)
    return content


def test_a_kit_is_the_same_whoever_was_asked(master: Machine) -> None:
    spread(master)
    master.sh(
        "zfs set compression=lz4 user:note='a b' tank/photos/a; zfs set user:lines=\"x\ntank/photos\tquota\t7\t-\tlocal\" tank/photos/b;"
        "zfs send -p tank/photos/a@one | zfs receive -u -o compression=gzip -x user:note tank/photos/back; zfs create -V 8M tank/photos/v;"
        "zfs bookmark tank/photos/c@one tank/photos/c#mark; zfs hold keep tank/photos/c@one; zfs hold 'a b' tank/photos/c@one;"
        "zfs hold keep tank/photos@one; zfs allow daemon send,hold tank/photos/b; zfs allow -s @some send tank/photos;"
        "zfs allow -l -g daemon @some tank/photos; zfs allow -e mount tank"
    )  # fmt: skip
    one, other = look(master, with_library=True), look(master, with_library=False)
    assert master.sh("cat /root/unanswered", check=False).text == ""
    assert one == other
    assert one["holds"] == [["tank/photos/c@one", "a b"], ["tank/photos/c@one", "keep"], ["tank/photos@one", "keep"]]
    assert set(one["allowed"]) == {"tank/photos", "tank/photos/b"}
    assert one["datasets"]["tank/photos/back"]["compression"]["received"] == "lz4"
    assert one["datasets"]["tank/photos/back"]["user:note"]["received"] == "a b"
    master.sh(
        "zfs release keep tank/photos@one; zfs unallow daemon tank/photos/b; zfs unallow -l -g daemon tank/photos"
    )
    later = look(master, with_library=True)
    assert later == look(master, with_library=False)
    assert (len(later["holds"]), set(later["allowed"])) == (2, {"tank/photos"})
