"""Real sanoid on real pools: what it takes and removes for us, what stays, and what it says when it cannot."""

import re
from typing import Any

import pytest

from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.job import Job, KeepRules, SnapshotRules
from orchestrator.domain.place import Host, Location, Place
from orchestrator.domain.plan import Pipeline, Step
from orchestrator.engines.sanoid import ENGINE
from orchestrator.engines.sanoid.commands import survey_command
from orchestrator.engines.sanoid.model import SanoidSurvey
from orchestrator.engines.sanoid.options import SanoidOptions
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.lab.common import Ended, Machine
from tests.lab.laboratory import Pair
from tests.lab.pools import age

BOTH = pytest.mark.flavours("trixie", "bookworm")  # sanoid 2.2 and 2.1
LATER = pytest.mark.flavours("trixie", long=["bookworm"])
JOB = 'engine = "sanoid"\nsource = "{source}"\n[snapshots]\n{rules}\n'
PLACES = '[place.unused]\npath = "/backup"\n'


def declare(machine: Machine, rules: str, more: str = "", source: str = "tank/photos") -> None:
    """The job "snaps"."""
    machine.job("snaps", JOB.format(source=source, rules=rules) + more, targets=PLACES)


def run(machine: Machine) -> dict[str, Any]:
    """The report of one run of it."""
    told: dict[str, Any] = machine.poolferry("run", "snaps", "--json").json
    return told


def snapshots(machine: Machine, root: str = "tank/photos") -> dict[str, list[str]]:
    """The names of all snapshots, by dataset."""
    found: dict[str, list[str]] = {}
    for line in machine.sh(["zfs", "list", "-H", "-r", "-t", "snapshot", "-o", "name", "-s", "creation", root]).lines:
        dataset, _, name = line.rpartition("@")
        found.setdefault(dataset, []).append(name)
    return found


def kinds(names: list[str]) -> list[str]:
    """Return what is behind the last _ of each."""
    return sorted(name.rpartition("_")[2] for name in names)


@BOTH
def test_what_is_due_is_taken_once_and_at_one_instant(master: Machine) -> None:
    master.pool("tank")
    master.sh("zfs create -p tank/photos/a && zfs create 'tank/photos/a/my own' && zfs create tank/other")
    declare(master, "hourly = 24\ndaily = 7")
    first = run(master)
    assert first.get("outcome") == "done", first
    there = snapshots(master, "tank")
    assert set(there) == {"tank/photos", "tank/photos/a", "tank/photos/a/my own"}
    assert kinds(there["tank/photos"]) == ["daily", "hourly"]
    assert there["tank/photos"] == there["tank/photos/a"] == there["tank/photos/a/my own"]
    again = run(master)
    assert again["outcome"] == "nothing-to-do", again
    assert snapshots(master, "tank") == there


@pytest.mark.long
def test_what_is_excluded_is_left_out_with_all_below(master: Machine) -> None:
    master.pool("tank")
    master.sh("zfs create -p tank/photos/a && zfs create -p tank/photos/vm/x-tmp/y")
    declare(master, "daily = 7", '[sanoid]\nexclude = ["vm/*-tmp"]\n')
    assert run(master)["outcome"] == "done"
    assert set(snapshots(master)) == {"tank/photos", "tank/photos/a", "tank/photos/vm"}


@LATER
@pytest.mark.virtual  # it sets the clock
def test_pruning_takes_only_what_its_rule_has_outlived(master: Machine) -> None:
    master.pool("tank")
    master.sh("zfs create -p tank/photos")
    names = {days: f"tank/photos@autosnap_{days}-days-ago_daily" for days in (9, 8, 7, 6, 1)}
    others = (
        (9, "tank/photos@by-hand"),
        (9, "tank/photos@autosnap_old_monthly"),
        (9, "tank/photos@autosnap_old_hourly"),
    )
    age(master, *others, *names.items())
    master.sh(f"zfs hold keep {names[9]} && zfs clone {names[8]} tank/clone")
    declare(master, "daily = 2")
    told = run(master)
    assert told["outcome"] == "done", told
    left = [name.rpartition("@")[2] for name in (*(name for _, name in others), names[9], names[8], names[1])]
    assert sorted(snapshots(master)["tank/photos"][:-1]) == sorted(left)
    assert kinds(snapshots(master)["tank/photos"][-1:]) == ["daily"]


@BOTH
@pytest.mark.virtual  # it sets the clock
@pytest.mark.long
def test_a_clock_that_was_ahead_for_one_run_is_said_until_what_it_dated_is_renamed(master: Machine) -> None:
    master.pool("tank")
    master.sh("zfs create -p tank/photos/a")
    declare(master, "daily = 7")
    master.sh('date -s "@$(($(date +%s) + 30 * 86400))" >/dev/null')
    assert run(master)["outcome"] == "done"
    (wrong,) = snapshots(master)["tank/photos"]
    master.sh('date -s "@$(($(date +%s) - 30 * 86400))" >/dev/null')
    told = run(master)
    assert (told["outcome"], "is dated 29 d 23 h after now" in told["why"]) == ("refused", True), told["why"]
    master.sh(told["hint"].partition("another name: ")[2])
    again = run(master)
    assert again["outcome"] == "done", again
    names = snapshots(master)["tank/photos"]
    assert (len(names), f"misdated-{wrong}" in names) == (2, True), names


@pytest.mark.long
def test_a_pool_that_cannot_be_written_is_a_failure_with_its_words(master: Machine) -> None:
    master.pool("tank", disk=True)
    master.sh("zfs create tank/photos && zpool export tank && zpool import -o readonly=on tank")
    declare(master, "daily = 2")
    told = run(master)
    assert told["outcome"] == "failed"
    assert "read-only" in told["why"], told


@pytest.mark.long
def test_without_sanoid_or_its_dataset_the_run_says_so(master: Machine) -> None:
    master.pool("tank")
    declare(master, "daily = 2", source="tank/nowhere")
    assert "dataset is not there" in run(master)["why"]
    master.sh("mv /usr/sbin/sanoid /usr/sbin/sanoid.away")
    try:
        told = run(master)
    finally:
        master.sh("mv /usr/sbin/sanoid.away /usr/sbin/sanoid")
    assert "sanoid is not installed" in told["why"], told
    assert told["hint"].startswith("apt install sanoid")


def test_rules_of_ones_own(master: Machine) -> None:
    master.pool("tank")
    master.sh("zfs create -p tank/photos && zfs create tank/mail")
    master.write("/root/rules/sanoid.conf", "[tank/mail]\nweekly = 3\nhourly = 0\ndaily = 0\nmonthly = 0\n")
    declare(master, 'use = "/root/rules"')
    assert run(master)["outcome"] == "done"
    assert {name: kinds(found) for name, found in snapshots(master, "tank").items()} == {"tank/mail": ["weekly"]}
    master.write("/root/rules/sanoid.conf", "[tank/mail]\nhighly = 3\n")
    assert "highly" in run(master)["why"]


def act(machine: Machine, step: Step) -> Ended:
    """Does a step as the runner would, from that machine."""
    assert isinstance(step.work, Pipeline)
    for path, content in step.needs:
        machine.write(path, content)
    return machine.sh(list(ssh_argv(step.work.stages[0])))


@pytest.mark.virtual  # it sets the clock
def test_on_a_host_and_on_the_copy(pair: Pair) -> None:
    """The source on another machine is taken there, and the copy here is pruned by [keep], down to the newest of a kind."""
    source, copy = Location(path="tank/photos", host=Host(name="master", user="root")), Location(path="vault/photos")
    pair.master.pool("tank")
    pair.backup.pool("vault")
    pair.master.sh("zfs create -p tank/photos/a")
    pair.backup.sh("zfs create -p vault/photos")
    job = Job(
        name="photos", file="photos.toml", engine="sanoid", source=source, target=Place(name="vault", location=copy),
        options=SanoidOptions(), keep=KeepRules(daily=2), snapshots=SnapshotRules(hourly=24),
    )  # fmt: skip
    look = pair.backup.sh(list(ssh_argv(survey_command(source, downward=True))))
    world: SanoidSurvey = ENGINE.survey_snapshots(job, ScriptedExecutor([(lambda _: True, scripted_result(look.out))]))
    (take,) = ENGINE.take(job, world, "/var/lib/poolferry/sanoid/photos")
    assert "taking snapshot tank/photos@" in act(pair.backup, take).text
    assert {name: kinds(found) for name, found in snapshots(pair.master).items()} == {
        "tank/photos": ["hourly"],
        "tank/photos/a": ["hourly"],
    }
    assert pair.master.sh("ls -d /tmp/tmp.*", check=False).text == ""
    dated = [(days, f"vault/photos@autosnap_{days}_daily") for days in (5, 4, 1)]
    hours = [(days, f"vault/photos@autosnap_{days}_hourly") for days in (5, 4)]
    age(pair.backup, *dated[:2], *hours, dated[2])
    (prune,) = ENGINE.prune_target(job, "/var/lib/poolferry/sanoid/photos")
    act(pair.backup, prune)
    assert snapshots(pair.backup, "vault")["vault/photos"] == [
        "autosnap_4_daily",
        "autosnap_4_hourly",
        "autosnap_1_daily",
    ]


def newest(machine: Machine, dataset: str) -> str:
    """The guid of its newest snapshot."""
    return machine.sh(
        ["zfs", "list", "-Hp", "-t", "snapshot", "-o", "guid", "-s", "createtxg", "-d", "1", dataset]
    ).lines[-1]


@pytest.mark.long
def test_a_chain_that_syncoid_began_goes_on(master: Machine) -> None:
    master.pool("tank")
    master.pool("vault")
    master.sh("zfs create tank/photos && head -c 8M /dev/urandom > /tank/photos/first && zfs create tank/photos/a")
    line = "syncoid -r tank/photos vault/replica"
    master.sh(line, seconds=200)
    master.sh("head -c 1M /dev/urandom > /tank/photos/second && zfs snapshot -r tank/photos@next")
    master.sh("rm -rf /etc/poolferry")
    master.write("/root/cron", f"30 2 * * * root {line}\n")
    master.write("/root/sanoid.conf", "[tank/photos]\nrecursive = yes\nhourly = 0\ndaily = 3\nmonthly = 0\n")
    files = ("--crontab", "/root/cron", "--sanoid-conf", "/root/sanoid.conf")
    told = master.poolferry("import-syncoid", *files, "--to", "/etc/poolferry")
    assert "jobs/photos.toml" in told.text, told.complaint
    first = master.poolferry("run", "photos", "--json").json  # syncoid left the copy mounted, a child's folder in it
    assert first.get("outcome") == "done", first
    assert first["moved_bytes"] < 3 << 20, first
    assert newest(master, "vault/replica") == newest(master, "tank/photos")
    assert newest(master, "vault/replica/a") == newest(master, "tank/photos/a")
    assert kinds(snapshots(master, "vault/replica")["vault/replica"][-1:]) == ["daily"]
    let_go = "zfs list -H -o name -t snapshot -r {} | grep @syncoid_ | xargs -r -d '\\n' -n 1 zfs destroy"
    master.sh(f"{let_go.format('tank/photos')} && {let_go.format('vault/replica')}")
    master.sh("head -c 1M /dev/urandom > /tank/photos/third && zfs snapshot -r tank/photos@last")
    second = master.poolferry("run", "photos", "--json").json
    assert second.get("outcome") == "done", second
    assert second["moved_bytes"] < 3 << 20, second
    assert newest(master, "vault/replica") == newest(master, "tank/photos")


def test_hooks_stand_around_the_instant_and_a_renamed_job_continues_its_chain(master: Machine) -> None:
    for pool in ("tank", "vault"):
        master.pool(pool)
    master.sh("zfs create -p tank/photos/a && zfs create vault/replicas && echo one > /tank/photos/one")
    count = 'echo "$POOLFERRY_EVENT $(zfs list -H -t snapshot -o name -r tank | wc -l)" >> /root/heard'
    master.write("/root/hear", f"#!/bin/sh\n{count}\n", mode=0o755)
    job = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n[snapshots]\nhourly = 2\n'
    hooks = '[hooks]\nsnapshot-before = "/root/hear"\nsnapshot-after = "/root/hear"\n'
    master.job("photos", job + hooks, targets='[place.vault]\ndataset = "vault/replicas"\n')
    first = master.poolferry("run", "photos", "--json").json
    assert first["outcome"] == "done", first
    assert master.read("/root/heard").decode().splitlines() == ["snapshot-before 0", "snapshot-after 2"]

    known = target_ids(master)
    assert len(known) == 1, known
    master.sh(["poolferry", "rename", "photos", "pictures"])
    master.sh("zfs snapshot -r tank/photos@more")
    second = master.poolferry("run", "pictures", "--json").json
    assert second["outcome"] == "done", second
    sent = [step["action"] for step in second["steps"] if step["action"].startswith("send")]
    assert len(sent) == 2, second
    assert all("incremental" in action for action in sent), sent
    assert master.read("/root/heard").decode().count("snapshot-before") == 1, "none was due"
    assert target_ids(master) == known


def target_ids(machine: Machine) -> set[str]:
    """Return the ids of copies in the names of the bookmarks below tank."""
    names = machine.sh("zfs list -H -t bookmark -o name -r tank").lines
    return {name.partition("#")[2].rpartition("_")[0] for name in names}


@pytest.mark.long
def test_what_is_not_carried_over_is_done_by_hand_as_it_is_printed(master: Machine) -> None:
    master.pool("tank")
    master.pool("vault")
    master.sh("zfs create -p tank/photos/a; zfs create vault/copies")
    line = "syncoid -r --use-hold --recvoptions='o compression=gzip' tank/photos vault/copies/photos"
    master.sh(line, seconds=200)
    held = "zfs list -Ho name -t snapshot -r tank vault | tr '\\n' '\\0' | xargs -0 zfs holds -H"
    tags = {tuple(each.split("\t")[:2]) for each in master.sh(held).lines}
    assert len(tags) == 4, tags
    master.write("/root/cron", f"30 2 * * * root {line}\n")
    told = master.poolferry("import-syncoid", "--crontab", "/root/cron", "--to", "/root/made")
    (release,) = re.findall(r"`(zfs list .* zfs release)`", told.text + told.complaint)
    (settle,) = re.findall(r"`(zfs set compression=gzip \S+)`", told.text + told.complaint)
    master.sh(settle)
    assert master.sh("zfs get -Ho value,source compression vault/copies/photos").text == "gzip\tlocal"
    master.sh(f"{release}; {release.replace('tank/photos', 'vault/copies/photos')}")
    assert master.sh(held).lines == ()
