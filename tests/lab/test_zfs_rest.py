"""Test what outlives a cut on real pools: the snapshots between, a second job into the same pool, and a stream that is stuck."""

import random
from typing import Any

import pytest

from orchestrator.engines.zfs.model import ActionPlan
from orchestrator.engines.zfs.plan.hold_names import parse_cursor_bookmark
from tests.engines.zfs.model_run import Cut
from tests.lab.common import Machine
from tests.lab.real_ferry import RealFerry

BOTH = pytest.mark.flavours(
    "trixie", long=["bookworm"]
)  # 2.1 and 2.3 make bookmarks and tell tokens each in its own way
ROOT, COPY = "tank/photos", "vault/copies/photos"
JOB = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "{place}"\n[retry]\nattempts = 1\n[pipe]\nrate-limit = "2M"\n'
PLACES = '[place.vault]\ndataset = "vault/copies"\n[place.others]\ndataset = "vault/others"\n'
# In the place of zfs: a send that is to go on from a token ends at once, and nobody has met its words yet.
STUCK = '#!/bin/sh\ncase "$*" in "send -P -t "*) echo "cannot resume send: out of ideas" >&2; exit 1;; esac\nexec {zfs} "$@"\n'


class Nobody(random.Random):
    """Of whom a cut may kill it takes nobody, so that the receiver stores all that came before the stream ends."""

    def choice(self, victims: Any) -> Any:
        return victims[0]


def prune(machine: Machine) -> None:
    """All but the newest, as far as nothing holds them."""
    machine.sh(
        "zfs list -H -d 1 -t snapshot -s createtxg -o name tank/photos | head -n -1 | xargs -r -d '\\n' -n 1 zfs destroy || :"
    )


@BOTH
@pytest.mark.long
def test_what_arrived_of_several_snapshots_stays_a_base_when_all_are_pruned(master: Machine) -> None:
    for name in ("tank", "vault"):
        master.pool(name)
    ferry = RealFerry(master, Nobody(0), encrypted=False, sealed=False)
    ferry.source.snapshot(ROOT, "a")
    assert isinstance(ferry.run(), ActionPlan)
    for name in "bcde":
        ferry.source.snapshot(ROOT, name)

    def mishap(step: object) -> int | None:
        return 14 if getattr(step, "copies", False) else None  # 672 KiB of four times some 300

    with pytest.raises(Cut):
        ferry.run(mishap=mishap)
    arrived = [one.name for one in ferry.target.nodes[COPY].snapshots]
    assert arrived in (["a", "b"], ["a", "b", "c"])
    prune(master)
    assert isinstance(ferry.run(), ActionPlan)
    assert [one.name for one in ferry.target.nodes[COPY].snapshots] == list("abcde")
    assert master.sh("zfs list -H -t snapshot -o name -r tank | xargs zfs holds -H").text == ""
    prune(master)
    assert master.sh(f"zfs list -H -t snapshot -o name -r {ROOT}").text == f"{ROOT}@e"
    (mark,) = ferry.source.nodes[ROOT].bookmarks
    assert mark.guid == ferry.source.nodes[ROOT].snapshots[-1].guid


def jobs(master: Machine, *names: str) -> None:
    """Two pools, and these jobs from one dataset, each into a place of that name."""
    for name in ("tank", "vault"):
        master.pool(name)
    master.sh("zfs create tank/photos; zfs create vault/copies; zfs create vault/others")
    for name in names:
        master.job(name, JOB.format(place=name), targets=PLACES)
    master.kitted(*names, at=names)


def test_two_jobs_into_one_pool_go_on_in_turn_whatever_is_pruned(master: Machine) -> None:
    jobs(master, "vault", "others")
    for turn, name in enumerate(("vault", "others", "vault", "vault", "others", "vault")):
        master.sh(f"head -c 100K /dev/urandom >/tank/photos/{turn}; zfs snapshot tank/photos@s{turn}")
        ended = master.poolferry("run", name, "--json")
        assert ended.code == 0, ended
        prune(master)
    marks = [line.partition("#")[2] for line in master.sh("zfs list -H -t bookmark -o name").lines]
    assert len({parse_cursor_bookmark(mark) for mark in marks}) == len(marks) == 2
    told = master.poolferry("pins", "--json").json["pins"]
    assert sorted(each["job"] for each in told) == ["others", "vault"]
    master.sh("rm /etc/poolferry/jobs/others.toml")
    assert master.poolferry("pins", "--let-go").code == 0
    (left,) = master.sh("zfs list -H -t bookmark -o name").lines
    assert left.partition("#")[2] in marks
    assert [each["job"] for each in master.poolferry("pins", "--json").json["pins"]] == ["vault"]


@pytest.mark.long
def test_a_stream_that_is_stuck_is_begun_anew(master: Machine) -> None:
    jobs(master, "vault")
    master.sh("head -c 16M /dev/urandom >/tank/photos/sea; zfs snapshot tank/photos@sea")
    master.sh("echo 1 >/sys/module/zfs/parameters/zfs_txg_timeout")  # so that there is a token soon
    master.sh(
        f"poolferry run vault --quiet & until zfs list -Ho receive_resume_token {COPY} 2>&1 | grep -q ^1-; do sleep 0.1; done; "
        "kill -9 $!; wait; while pgrep -x zfs; do sleep 0.1; done"
    )
    token = f"zfs list -Ho receive_resume_token {COPY}"
    before = master.sh(token).text
    master.write("/usr/local/sbin/zfs", STUCK.format(zfs=master.sh("command -v zfs").text), mode=0o755)
    try:
        for _ in range(2):
            ended = master.poolferry("run", "vault", "--json")
            assert ended.code == 1, ended
            assert master.sh(token).text == before
        ended = master.poolferry("run", "vault", "--json")  # the third looks again at once, and begins anew
        assert ended.code == 0, ended
    finally:
        master.sh("rm -f /usr/local/sbin/zfs")
    assert master.sh(f"zfs list -Ho name -t snapshot -r {COPY}").text == f"{COPY}@sea"
    shown = master.poolferry("show", "4").text
    assert "3 runs in a row continued from it and received no byte more" in shown


@pytest.mark.long
def test_a_copy_onto_a_placeholder_that_was_cut_keeps_what_we_set(master: Machine) -> None:
    """The first properties that a dataset receives clear its own, and no rest of a stream brings any."""
    for name in ("tank", "vault"):
        master.pool(name)
    master.sh("zfs create -p tank/photos/y && zfs snapshot tank/photos/y@a && zfs create vault/copies")
    master.job("photos", JOB.format(place="vault"), targets=PLACES)
    master.kitted("photos")
    assert master.poolferry("run", "photos", "--json").json["outcome"] == "done"
    assert own(master)["poolferry:placeholder"] == "on"
    master.sh("head -c 12M /dev/urandom > /tank/photos/x && zfs snapshot tank/photos@a")
    run = master.popen(["poolferry", "run", "photos", "--json"])
    master.sh(f"until zfs get -Hpo value receive_resume_token {COPY} | grep -q 1-; do sleep 0.3; done", seconds=120)
    run.kill(9)
    run.wait(60)
    master.sh("while pgrep -x zfs; do sleep 0.2; done; zfs snapshot tank/photos@b", seconds=60)
    told = master.poolferry("run", "photos", "--json").json
    assert (told["outcome"], told["resumed"]) == ("done", True), told
    assert own(master).items() >= {"readonly": "on", "canmount": "noauto"}.items()
    assert "poolferry:placeholder" not in own(master)


def own(machine: Machine) -> dict[str, str]:
    """Return what is set on the copy itself."""
    lines = machine.sh(f"zfs get -Hp -s local -o property,value all {COPY}").lines
    return dict(line.split("\t") for line in lines)
