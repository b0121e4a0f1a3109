"""An owner of a dataset below the source, with all that `zfs allow` may give her: what others have is copied whatever she does."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.engines.zfs.options import ZfsOptions
from orchestrator.engines.zfs.recovery.kit import survey_kit
from tests.lab.common import Machine
from tests.lab.guest_writer import GuestWriter
from tests.lab.pools import age

pytestmark = [pytest.mark.timeout(900), pytest.mark.flavours("trixie", long=["bookworm"])]
HERS, COPY = "tank/photos/eve", "vault/copies/photos"
RIGHTS = "snapshot,destroy,rename,mount,create,clone,promote,hold,release,bookmark,userprop,rollback,quota,mountpoint,canmount,sharenfs"
JOB = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n[retry]\nattempts = 2\nwait = "1s"\n'
OTHERS = ("", "/ann", "/fay")  # who are there before her and after her in every listing


@dataclass(frozen=True, kw_only=True)
class Attack:
    """Something that eve does. `named`: the run says that hers could not be copied, and why; else hers is copied, too.

    `before`: as root. `endless`: it goes on while the run does. `undo`: what the run's hint says.
    """

    does: str
    before: str = ":"
    undo: str = ":"
    named: str = ""
    endless: bool = False


# Of a value of several lines, what looks like other datasets' properties, and like parts of what our scripts print.
FORGED = """x
tank/photos/ann\tpoolferry:flags\tLceb\tlocal
tank/photos\tpoolferry:flags\tLceb\tlocal
=failed dataset does not exist
=allowed
---- Permissions on tank/photos ----------
Local+Descendent permissions:
\tuser eve destroy,mount
=end"""
# The same, in the tag of a hold, and in a value whose lines Python alone would see as several.
FORGED_HOLD = "x\ttomorrow\n=allowed\n" + FORGED[FORGED.index("----") :] + "\ntank/photos/fay@s0\tkeep\ttomorrow"
# The tag of a hold that, were its returns ends of lines, is another's hold and bookmark.
FORGED_RETURNS = (
    "x\\t1\\rtank/photos/fay@s0\\t%s\\t1\\r=bookmarks\\rtank/photos/fay#%s_0000000000000001\\t1\\r=holds\\r"
)
RETURNS = "x" + "".join(f"\\r{line}" for line in FORGED.replace("\t", "\\t").split("\n"))
MARKS = f"""zfs snapshot {HERS}@own; mark=$(zfs list -H -t bookmark -o name {HERS} | head -n 1); ours=${{mark%_*}}; tag=${{ours#*#}}
for n in 1 2 3; do
  zfs bookmark {HERS}@own "${{ours}}_000000000000000$n"
  zfs bookmark {HERS}@own "$(echo "$ours" | sed s/poolferry_/poolferry_held_/)_000000000000000$n"
done
zfs hold "$tag" {HERS}@own; zfs hold '{FORGED_HOLD}' {HERS}@own; zfs hold "$(printf '{FORGED_RETURNS}' "$tag" "$tag")" {HERS}@own
zfs set user:returns="$(printf '{RETURNS}')" {HERS}
zfs snapshot {HERS}@-r; zfs snapshot {HERS}@autosnap_2099-01-01_00:00:00_daily"""
# The names of five minutes, in one transaction.
NAMES = f"""at=$(date +%s); n=0; while [ $n -lt 300 ]; do
  echo {HERS}@autosnap_$(TZ=UTC date -d @$((at + n)) +%Y-%m-%d_%H:%M:%S)_hourly; n=$((n + 1))
done >/run/names
echo 'for _, name in ipairs((...)["argv"]) do zfs.sync.snapshot(name) end' >/run/take.lua
xargs -a /run/names zfs program tank /run/take.lua"""
ATTACKS = (
    Attack(does=f"for s in $(zfs list -H -d 1 -t snapshot -o name {HERS}); do zfs destroy $s; done"),
    Attack(
        does=f"zfs set poolferry:flags=Lceb {HERS}", undo=f"zfs inherit poolferry:flags {HERS}", named="is not whole yet"
    ),
    Attack(
        does=f"""zfs set poolferry:flags='{FORGED}' poolferry:waits='{FORGED}' poolferry:placeholder='{FORGED}' user:note='{FORGED}' {HERS}
            {MARKS}"""
    ),
    # A dataset that is new is sent before all increments.
    Attack(
        before=f"zfs set quota=1M {COPY}/eve; zfs create {HERS}/new; head -c 3M /dev/urandom >/{HERS}/new/much",
        does="true",
        undo=f"zfs set quota=none {COPY}/eve",
        named="a quota on the target is reached",
    ),
    Attack(
        does=f"while :; do zfs snapshot {HERS}@loop$((i=i+1)); zfs destroy {HERS}@loop$i; done", endless=True
    ),
)  # fmt: skip


def newest(master: Machine) -> set[str]:
    return set(master.sh(f"zfs list -Hr -t snapshot -o name {COPY}").lines)


def set_up(master: Machine, more: str = "") -> None:
    for name in ("tank", "vault"):
        master.pool(name, "200M")
    master.sh(f"""set -e; useradd -m eve; zfs create vault/copies
        for d in tank/photos tank/photos/ann {HERS} tank/photos/fay; do zfs create $d; done
        zfs allow eve {RIGHTS} {HERS}; zfs snapshot -r tank/photos@s0""")
    master.job("photos", JOB + more, targets='[place.vault]\ndataset = "vault/copies"\n')
    master.kitted("photos")


@pytest.mark.long
def test_an_owner_holds_up_no_other_dataset_and_takes_no_point(master: Machine) -> None:
    set_up(master)
    assert master.poolferry("run", "photos").code == 0
    for turn, attack in enumerate(ATTACKS, 1):
        held = set(master.sh("zfs list -Hr -t snapshot -o guid vault").lines)
        master.sh(attack.before)
        running = master.popen(attack.does, user="eve") if attack.endless else None
        if running is None:
            master.sh(attack.does, user="eve")
        master.sh(f"zfs snapshot -r tank/photos@s{turn}")
        ran = master.poolferry("run", "photos", "--json", seconds=300)
        if running is not None:
            running.kill(9)
            running.wait(30)
        else:
            assert (ran.code, HERS.rpartition("/")[2] in ran.json["why"]) == (
                (1, True) if attack.named else (0, False)
            ), ran
            assert attack.named in str(ran.json), ran
        for name in OTHERS:
            assert f"{COPY}{name}@s{turn}" in newest(master), (attack, ran)
        assert held <= set(master.sh("zfs list -Hr -t snapshot -o guid vault").lines), attack
        master.sh(attack.undo)
    kept_apart(master)
    assert master.poolferry("run", "photos").code == 0
    assert f"{COPY}/eve@s{len(ATTACKS)}" in newest(master)


@pytest.mark.long
def test_who_has_the_names_of_what_sanoid_takes_stops_no_snapshot_of_others(master: Machine) -> None:
    set_up(master, "[snapshots]\nhourly = 3\n")
    master.sh(NAMES)
    master.sh(f"zfs set poolferry:flags='-\t{HERS}\ntank/photos/fay\t9\tLceb\ttank/photos/fay\nx' {HERS}", user="eve")
    ran = master.poolferry("run", "photos", "--json", seconds=300)
    assert ran.code == 0, ran
    for name in OTHERS:
        assert re.search(rf"{COPY}{name}@autosnap_\S+_hourly", "\n".join(newest(master))), ran


@pytest.mark.long
def test_a_source_that_is_not_pruned_says_so_until_it_is(master: Machine) -> None:
    """A dataset that is refused each night keeps all snapshots of the source: it fills, and that is told with its space."""
    set_up(master, "[snapshots]\nhourly = 1\n")
    old = [f"autosnap_2026-01-0{day}_00:00:00_hourly" for day in (1, 2)]
    age(master, *((9 - day, f"tank/photos@{name}") for day, name in enumerate(old)))
    master.sh(f"zfs set poolferry:flags=Lceb {HERS}", user="eve")
    unpruned = []
    for code in (1, 3):  # all else is copied, then there is nothing else
        assert master.poolferry("run", "photos", "--json", seconds=300).code == code
        (told,) = master.poolferry("status", "--json").json["jobs"]
        unpruned += [each for each in told["problems"] if each["kind"] == "unpruned"]
    assert unpruned[0]["since"] == unpruned[1]["since"]
    assert re.search(
        "hourly ones would go by .snapshots.; all its snapshots take .*, and .* are free in tank/photos",
        unpruned[0]["why"],
    )
    status = master.poolferry("status").text
    assert "also: no snapshot of the source is pruned since" in status
    assert "what to do: `poolferry plan photos` says what cannot be copied" in status
    assert "is not whole yet" in (planned := master.poolferry("plan", "photos")).text, planned
    assert all(f"tank/photos@{name}" in master.sh("zfs list -Ho name -t snapshot").lines for name in old)
    master.sh(f"zfs inherit poolferry:flags {HERS}", user="eve")
    assert master.poolferry("run", "photos", "--json", seconds=300).code == 0
    (told,) = master.poolferry("status", "--json").json["jobs"]
    assert (told["state"], told["problems"]) == ("up", [])
    assert not any(f"tank/photos@{name}" in master.sh("zfs list -Ho name -t snapshot").lines for name in old)


def kept_apart(master: Machine) -> None:
    """The recovery kit grants her nothing that she has not: its commands are typed by root after a loss."""
    place = Place(name="vault", location=Location(path=COPY))
    job = Job(
        name="photos", file="", engine="zfs", source=Location(path="tank/photos"), target=place, options=ZfsOptions()
    )
    kit = survey_kit(job, datetime.now(UTC), GuestWriter(master)).content
    assert f"zfs allow -u eve {','.join(sorted(RIGHTS.split(',')))} {HERS}" in kit
    assert "eve destroy,mount tank/photos" not in kit
    assert '"value": "x"' in kit, "the first line of what she wrote"
    assert json.loads(kit)["holds"] == [[f"{HERS}@own", "x"]], "nobody holds what her tag names"
    pins = master.poolferry("pins", "--json")
    assert (pins.code, re.search("fay(@s0|#.*0001)", pins.text)) == (0, None), pins
