"""Two machines that do not trust each other: the one that receives prunes by its own rules, on real OpenZFS."""

import re
import time
from functools import partial
from pathlib import Path

import pytest

from tests.lab.common import Machine
from tests.lab.cuts import PATIENCE, SOURCE, Chain, Copying
from tests.lab.gates import let_through
from tests.lab.laboratory import Pair
from tests.lab.pools import age
from tests.whole.house import wait_until

pytestmark = pytest.mark.virtual
AT, COPY = "vault/in/laptop", "vault/in/laptop/photos"
PAGE = (Path(__file__).parents[2] / "jobs" / "guarantees.md").read_text()


def days_ago(days: float, begun: float, *machines: Machine) -> None:
    """Set the clocks of machines, and nothing else."""
    for machine in machines:
        machine.sh(f"date -s @{begun - days * 86400:.0f} > /dev/null")


def recorded(machine: Machine, newest: str) -> bool:
    """Return whether the gate has written down when a snapshot came: it does so some seconds after it answered."""
    guid = machine.sh(f"zfs get -Hpo value guid {COPY}@{newest}").text.strip()
    return guid in machine.sh(f"cat {machine.state}/arrivals/laptop", check=False).text


def copies(machine: Machine) -> list[str]:
    return [name.partition("@")[2] for name in machine.sh(f"zfs list -Ho name -s createtxg -t snapshot {COPY}").lines]


@pytest.mark.long
def test_what_a_key_only_adds_is_pruned_by_the_time_when_it_came(pair: Pair) -> None:
    master, backup = pair
    begun = time.time()
    days_ago(62, begun, *pair)
    copying = Copying(*pair, chain=Chain(a=3, b=1, c=1))
    backup.sh(f"zfs create -p -o mountpoint=none {AT}")
    master.write(f"{master.config}/targets.toml", f'[place.vault]\ndataset = "ssh://root@backup/{AT}"\n')
    let_through(backup, "laptop", "--receives", AT)
    backup.sh(f"rm {backup.config}/jobs/*.toml; rm {backup.config}/targets.toml", check=False)
    job = next(each for each in re.findall('```toml\n(engine = "prune"\n.*?)```', PAGE, re.DOTALL) if AT in each)
    backup.job("in", job.replace("daily = 14\nweekly = 8\nmonthly = 12", "daily = 2") + "[prune]\nlast = 1\n")
    for days, names in ((61, "d e f g h i j k l m"), (40, "n o p"), (1, "q")):
        days_ago(days, begun, *pair)
        master.sh(" && ".join(f"zfs snapshot {SOURCE}@{one}" for one in names.split()))
        assert copying.run()["outcome"] == "done"
        wait_until(partial(recorded, backup, names[-1]), 60, pause=0.5)
    days_ago(0, begun, *pair)
    assert copies(backup) == list("abcdefghijklmnopq")
    backup.sh(f"zfs hold mine {COPY}@a && zfs clone -o mountpoint=none {COPY}@b vault/clone")

    planned = backup.poolferry("plan", "in")
    assert planned.text.count("then [keep] removes") == 13, planned
    assert f"then [keep] removes {COPY}@d: came " in planned.text
    assert copies(backup) == list("abcdefghijklmnopq")
    run = backup.popen(["poolferry", "run", "in", "--json"])
    wait_until(lambda: len(copies(backup)) < 15, 60, pause=0.1)
    run.kill(9)
    left = copies(backup)
    assert 4 < len(left) < 15, left
    ended = backup.poolferry("run", "in", "--json", seconds=PATIENCE).json
    assert ended["outcome"] == "done", ended
    assert copies(backup) == list("abpq")
    assert backup.poolferry("run", "in", "--json").json["outcome"] == "nothing-to-do"
    assert "in: prune removes by its rules what came into vault/in/laptop" in backup.poolferry("check").text
    assert backup.poolferry("status").code == 0

    master.sh(f"zfs snapshot {SOURCE}@r")  # its base is there still
    assert copying.run()["outcome"] == "done"
    days_ago(-50, begun, master)
    master.sh(f"cd /tank/photos && head -c 5M /dev/urandom > a && rm b c && zfs snapshot {SOURCE}@s")
    assert copying.run()["outcome"] == "done"
    backup.sh(f"zfs release mine {COPY}@a")
    refused = backup.poolferry("run", "in", "--json")
    assert (refused.code, refused.json["outcome"]) == (3, "refused"), refused
    assert "1 point of vault/in/laptop/photos is dated after it came" in refused.json["why"]
    assert "% of vault/in/laptop/photos changed or went at once; max-changed is 60%" in refused.json["why"]
    assert copies(backup) == list("abpqrs")
    status = backup.poolferry("status")
    assert status.code == 4
    assert "dated after" in status.text, status
    (helps,) = re.findall("poolferry (run in --allow dated-ahead --allow max-changed)", status.text)
    assert backup.poolferry(*helps.split(), "--json").json["outcome"] == "done"
    assert copies(backup) == list("bqrs")
    assert backup.poolferry("status").code == 0


@pytest.mark.long
def test_a_target_without_room_is_pruned_before_the_copy_that_then_fits(master: Machine) -> None:
    """Three points of 35 MiB fill it; [keep], which comes later, lets two of them go, and the base stays."""
    master.pool("tank", "400M")
    master.pool("vault", "256M")
    master.sh("zfs create vault/copies; zfs create tank/photos")
    targets, told = (
        '[place.vault]\ndataset = "vault/copies"\n',
        'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n',
    )
    master.job("photos", told, targets=targets)
    taken = [f"autosnap_{days}_daily" for days in (9, 8, 7, 1)]
    for days, name in zip((9, 8, 7), taken, strict=False):
        master.sh("head -c 35M /dev/urandom >/tank/photos/big")
        age(master, (days, f"tank/photos@{name}"))
    ran = master.poolferry("run", "photos", "--json", seconds=PATIENCE).json
    assert ran["outcome"] == "done", ran
    master.sh("head -c 35M /dev/urandom >/tank/photos/big")
    age(master, (1, f"tank/photos@{taken[-1]}"))
    refused = master.poolferry("run", "photos", "--json", seconds=PATIENCE).json
    assert (refused["outcome"], "not enough space" in refused["why"]) == ("refused", True), refused
    master.job("photos", told + "[keep]\ndaily = 1\n", targets=targets)
    ran = master.poolferry("run", "photos", "--json", seconds=PATIENCE).json
    assert (ran["outcome"], ran["warnings"]) == ("done", []), ran
    there = [line.partition("@")[2] for line in master.sh("zfs list -Ho name -t snapshot vault/copies/photos").lines]
    assert there == taken[-1:]
    points = master.poolferry("points", "photos", "--json").json["points"]
    assert [point["point"] for point in points] == there, points
