"""Datasets in other hands, and what is said of them: copies that were written to, renamed pools, promoted clones, what was set aside."""

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


@pytest.mark.timeout(900)
def test_what_a_restore_set_aside_is_not_copied_and_told_everywhere(master: Machine) -> None:
    prepare(
        master,
        """zfs create tank/photos; zfs create tank/photos/sub; head -c 4M /dev/urandom >/tank/photos/sub/one; zfs create tank/photos/sub/kid
        zfs snapshot -r tank/photos@a""",
        more="[zfs]\nfollow-renames = true\n",
    )
    master.sh("head -c 4M /dev/urandom >/tank/photos/sub/two; zfs snapshot -r tank/photos@b")
    words = ("restore", "run", "photos", "--path", "sub", "--to", "tank/photos/sub", "--aside", "--json")
    told = master.poolferry(*words, seconds=300).json
    for free in re.findall(r"unmount that \((.*?)\), and run", told["hint"]):
        master.sh(free)
        told = master.poolferry(*words, seconds=300).json
    assert told["outcome"] == "done", told
    (aside,) = [name for name in master.sh("zfs list -H -o name -r tank").lines if re.search("_aside_[^/]*$", name)]
    ran = run(master)
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    (line,) = [one for one in ran["warnings"] if aside in one]
    assert "set-aside = true in [zfs] of /etc/poolferry/jobs/photos.toml" in line
    assert not [name for name in master.sh("zfs list -H -o name -r vault").lines if "_aside_" in name]
    assert run(master)["outcome"] == "nothing-to-do"
    verified = master.poolferry("verify", "photos", "--json", seconds=300).json
    assert (verified["outcome"], aside.rpartition("/")[2] in str(verified)) == ("done", True), verified
    assert master.poolferry("uncovered", "--json").json["datasets"] == [aside]

    # The line sends it, too.
    master.sh("echo 'set-aside = true' >>/etc/poolferry/jobs/photos.toml")
    ran = run(master)
    assert (ran["outcome"], ran["moved_bytes"] > 8 << 20) == ("done", True), ran
    name = aside.removeprefix("tank/photos")
    assert holds_the_same(master, aside, f"vault/copies/photos{name}")
    assert master.poolferry("uncovered", "--json").json["datasets"] == []


@pytest.mark.timeout(900)
def test_a_clone_that_was_promoted_keeps_every_chain(master: Machine) -> None:
    """Before and after its first copy: by the hint of the run, or of the verification, both sides are alike."""
    prepare(
        master,
        """zfs create tank/photos; zfs create tank/photos/db; head -c 4M /dev/urandom >/tank/photos/db/one; zfs snapshot -r tank/photos@a
        zfs snapshot -r tank/photos@b; zfs clone tank/photos/db@b tank/photos/new""",
    )
    # Promoted before it was copied: the copy of the one that gave its snapshots is renamed.
    master.sh("zfs promote tank/photos/new; echo x >/tank/photos/db/x; zfs snapshot -r tank/photos@c")
    told = run(master)
    assert "tank/photos/new has the snapshots of tank/photos/db" in told["why"], told
    (allow,) = re.findall(r"^to rename the copy: poolferry run photos (--allow follow-renames),", told["hint"])
    ran = run(master, *allow.split())
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    for name in ("db", "new"):
        assert holds_the_same(master, f"tank/photos/{name}", f"vault/copies/photos/{name}"), name

    # And back, now that both are copied: what the copy is a clone of has the older snapshots.
    master.sh("zfs promote tank/photos/db; zfs snapshot -r tank/photos@d")
    ran = run(master)
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    verified = master.poolferry("verify", "photos", "--json", seconds=300).json
    assert verified["outcome"] == "done", verified
    (promote,) = {found for one in verified["warnings"] for found in re.findall(r"(zfs promote .*)$", one)}
    assert promote == "zfs promote vault/copies/photos/db"
    master.sh(promote)
    for name in ("db", "new"):
        assert holds_the_same(master, f"tank/photos/{name}", f"vault/copies/photos/{name}"), name
    verified = master.poolferry("verify", "photos", "--json", seconds=300).json
    assert (verified["outcome"], verified["warnings"]) == ("done", []), verified
    assert (run(master)["outcome"], run(master)["warnings"]) == ("nothing-to-do", [])


@pytest.mark.timeout(900)
@pytest.mark.parametrize("way", ["back", "other source"])
def test_a_source_whose_clone_elsewhere_was_promoted_says_where_its_snapshots_are(master: Machine, way: str) -> None:
    prepare(
        master,
        "zfs create tank/photos; head -c 4M /dev/urandom >/tank/photos/one; zfs snapshot tank/photos@a; zfs clone tank/photos@a 'tank/new one'",
    )
    master.sh("zfs promote 'tank/new one'")
    for script in ("true", "zfs snapshot tank/photos@b"):  # without a snapshot, and with one
        master.sh(script)
        told = run(master)
        assert told["why"].startswith("the snapshots of tank/photos belong to tank/new one now"), told
    (job,) = master.poolferry("status", "--json").json["jobs"]
    assert job["state"] == "failing"
    pattern = r": (zfs promote [^;]*); .* write (source = .*?) into \S+, and (name = .*?) into its"
    promote, source, name = re.findall(pattern, told["hint"])[0]
    if way == "back":
        master.sh(promote)
    else:
        master.sh("zfs snapshot 'tank/new one@c'; zfs destroy -r tank/photos")
        master.job("photos", f'engine = "zfs"\n{source}\ntarget = "vault"\n[zfs]\n{name}\n')
    ran = run(master)
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    assert holds_the_same(master, "tank/photos" if way == "back" else "tank/new one")
