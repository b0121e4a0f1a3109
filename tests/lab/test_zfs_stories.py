"""Datasets in other hands, and what is said of them: copies that were written to, renamed pools, promoted clones, what was set aside."""

import re
from typing import Any

import pytest

from tests.lab.common import Machine
from tests.lab.pools import guids, restore_pool

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
def test_what_a_run_set_aside_comes_back_only_where_that_is_asked_for(master: Machine) -> None:
    """It came back beside what replaced it, and took as much of the source's pool."""
    prepare(
        master,
        "zfs create tank/photos; zfs create tank/photos/sub; head -c 4M /dev/urandom >/tank/photos/sub/one; zfs snapshot -r tank/photos@a",
    )
    master.sh("zfs snapshot vault/copies/photos/sub@own; zfs snapshot -r tank/photos@b")
    assert run(master)["outcome"] == "failed"
    assert run(master, "--aside")["outcome"] == "done"
    (aside,) = [name for name in master.sh("zfs list -H -o name -r vault").lines if "_aside_" in name]
    before = guids(master, "tank/photos")
    master.sh("zfs destroy -r tank/photos")
    to = ("photos", "--to", "tank/photos", "--json")
    planned = master.poolferry("restore", "plan", *to).json
    told = master.poolferry("restore", "run", *to, seconds=300).json
    assert (told["outcome"], guids(master, "tank/photos")) == ("done", before), told
    for warnings in (planned["warnings"], told["warnings"]):
        (line,) = [one for one in warnings if aside in one]
    master.sh(re.findall(r"to bring it back, too: (poolferry restore run .*)$", line)[0], seconds=300)
    name = aside.removeprefix("vault/copies")
    assert guids(master, f"tank{name}") == guids(master, aside)
    assert run(master)["outcome"] == "nothing-to-do"


@pytest.mark.timeout(900)
def test_what_a_source_lost_by_a_rollback_is_brought_back_before_its_copy_begins_anew(master: Machine) -> None:
    """Seen: it was called the copy's own, or that of a sanoid there, and the hint was to roll the copy back, too."""
    prepare(master, "zfs create tank/photos; head -c 1M /dev/urandom >/tank/photos/one; zfs snapshot tank/photos@a")
    master.sh("echo two >/tank/photos/two; zfs snapshot tank/photos@autosnap_b")
    assert run(master)["outcome"] == "done"
    held = guids(master, "tank/photos")
    master.sh("zfs rollback -r tank/photos@a; zfs snapshot tank/photos@c")
    told = run(master)
    why = "vault/copies/photos holds 1 snapshot that the source lost since @a: it, or its pool, was rolled back"
    assert (told["outcome"], told["why"]) == ("refused", why), told
    looks, back, aside = re.findall(r"(poolferry (?:try|restore run|run) photos[^);]*)", told["hint"])
    master.sh(looks)
    master.sh("poolferry end photos", check=False)
    master.sh(back.replace("PATH", "two").replace("FOLDER", "/root/two"))
    assert master.sh("cat /root/two").text == "two"
    ran = master.poolferry(*aside.split()[1:], "--json", seconds=300).json
    assert (ran["outcome"], holds_the_same(master)) == ("done", True), ran
    (kept,) = [name for name in master.sh("zfs list -H -o name -r vault").lines if re.search("_aside_[^/]*$", name)]
    assert guids(master, kept) == held


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


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("source", "below"), [("tank", ""), ("tank/photos", "/photos")])
def test_a_pool_that_was_imported_under_another_name_is_known_by_its_guid(
    master: Machine, source: str, below: str
) -> None:
    """Each of the printed hints: the lines of the job file, and the commands; the next run is an increment each time."""
    prepare(
        master,
        f"zfs create tank/photos; head -c 4M /dev/urandom >/tank/photos/one; zfs snapshot -r {source}@a",
        source=source, disk=True, more="[snapshots]\nhourly = 2\n",
    )  # fmt: skip
    copy, name = f"vault/copies/{source.rpartition('/')[2]}", master.config + "/jobs/photos.toml"
    master.job("health", 'engine = "pool"\nsource = "tank"\n')
    assert master.poolferry("run", "health", "--json").json["outcome"] == "nothing-to-do"
    master.sh("zpool export tank; zpool import tank lake; zfs snapshot -r lake@b")
    for words in (("plan", "photos"), ("verify", "photos"), ("run", "photos")):
        told = master.poolferry(*words, "--json").json
        assert "the pool tank is imported as lake now, guid " in told["why"], told
    (job,) = [one for one in master.poolferry("status", "--json").json["jobs"] if one["job"] == "photos"]
    assert (job["source_state"]["state"], "imported as lake" in job["source_state"]["why"]) == ("renamed", True), job
    (checked,) = [one for one in master.poolferry("check", "--system", "--json").json["jobs"] if one["job"] == "photos"]
    (line,) = [one["text"] for one in checked["advice"] if one["subject"] == f"source {source}"]
    assert told["hint"] in line, checked

    told_pool = master.poolferry("run", "health", "--json").json
    assert told_pool["why"] == "the pool tank is imported as lake now, by its guid", told_pool
    (health,) = re.findall(r"write (source = .*?) into", told_pool["hint"])
    master.job("health", f'engine = "pool"\n{health}\n')
    assert master.poolferry("run", "health", "--json").json["outcome"] == "nothing-to-do"
    master.sh("rm /etc/poolferry/jobs/health.toml")

    # The lines of the job file.
    before = master.read(name).decode()
    (written,) = re.findall(r"write (source = \S+?) into", told["hint"])
    more = re.findall(r"and (name = .*?) into its \[zfs\]", told["hint"])
    assert (written, len(more)) == (f'source = "lake{below}"', int(not below)), told
    master.write(name, before.replace(f'source = "{source}"', written) + "".join(f"[zfs]\n{line}\n" for line in more))
    ran = run(master)
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    (job,) = master.poolferry("status", "--json").json["jobs"]
    assert (job["state"], job["source_state"]) == ("up", None), job

    # And the commands, from the other name back: the file says lake, the pool is called tank.
    master.sh("zpool export lake; zpool import lake tank; zfs snapshot -r tank@c")
    told = run(master)
    assert "the pool lake is imported as tank now" in told["why"], told
    (back,) = re.findall(r"give the former one back: (zpool export .*)$", told["hint"])
    master.sh(back)
    ran = run(master)
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    assert {one.partition("@")[2] for one in guids(master, copy)} >= {"a", "b", "c"}


@pytest.mark.timeout(900)
def test_a_source_and_a_target_that_were_renamed_are_known_by_their_guids(master: Machine) -> None:
    prepare(
        master,
        "zfs create tank/photos; head -c 4M /dev/urandom >/tank/photos/one; zfs snapshot tank/photos@a",
        disk=True,
    )
    # The dataset of the source, both ways.
    master.sh("zfs rename tank/photos 'tank/my pictures'; zfs snapshot 'tank/my pictures@b'")
    told = run(master)
    assert told["why"] == "the source tank/photos is called tank/my pictures now", told
    assert (
        'write source = "tank/my pictures" into /etc/poolferry/jobs/photos.toml, and name = "photos" into its [zfs]'
        in told["hint"]
    )
    (back,) = re.findall(r"give the former one back: (zfs rename .*)$", told["hint"])
    master.sh(back)
    assert run(master)["outcome"] == "done"

    # Another one has its name meanwhile: the former one is named.
    master.sh("zfs rename tank/photos tank/other; zfs create tank/photos; zfs snapshot tank/other@c")
    told = run(master)
    assert ("was made anew" in told["why"], "to copy tank/other on: write source" in told["hint"]) == (True, True), told
    master.sh("zfs destroy tank/photos; zfs rename tank/other tank/photos")
    assert run(master)["outcome"] == "done"

    # The pool of the target, both ways.
    master.sh("zpool export vault; zpool import vault attic; zfs snapshot tank/photos@d")
    told = run(master)
    assert "the copy is attic/copies/photos now, by its guid" in told["why"], told
    (back,) = re.findall(r"give the pool its name back: (zpool export .*?); then", told["hint"])
    master.sh(back)
    ran = run(master)
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    master.sh("zpool export vault; zpool import vault attic; zfs snapshot tank/photos@e")
    (line,) = re.findall(r"write (dataset = .*?) into \[place.vault\]", run(master)["hint"])
    master.write("/etc/poolferry/targets.toml", f"[place.vault]\n{line}\n")
    ran = run(master)
    assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
    assert holds_the_same(master, copy="attic/copies/photos")


def advice(master: Machine, job: str) -> dict[str, str]:
    """The lines of `check --system` on one job, by what they are about."""
    jobs = master.poolferry("check", "--system", "--json").json["jobs"]
    return {each["subject"]: each["text"] for one in jobs if one["job"] == job for each in one["advice"]}


@pytest.mark.timeout(900)
def test_a_copy_that_was_renamed_is_not_sent_again_and_each_hint_finds_it(master: Machine) -> None:
    """After one run alone; seen: all of it was sent once more, and `check --system` said that it may not be mounted."""
    prepare(master, "zfs create tank/photos; head -c 4M /dev/urandom >/tank/photos/one; zfs snapshot tank/photos@a")
    config = master.config
    for before, now, pattern, file in (
        ("vault/copies/photos", "vault/copies/old", r"write (name = .*?) into \[zfs\]", f"{config}/jobs/photos.toml"),
        ("vault/copies", "vault/my backup", r"write (dataset = .*?) into \[place.vault\]", f"{config}/targets.toml"),
    ):
        master.sh(f"zfs rename {before} '{now}'; zfs snapshot 'tank/photos@of {now.rpartition('/')[2]}'")
        for words in (("plan",), ("verify",), ("run",)):
            told = master.poolferry(*words, "photos", "--json").json
            assert "the copy vault/copies/photos is called " in told["why"], told
        assert told["outcome"] == "refused", told
        seen = advice(master, "photos")["target vault/copies/photos"]
        assert f"{told['why']}: {told['hint']}".startswith(f"{seen}; to send all of it again"), seen
        (line,) = re.findall(pattern, told["hint"])
        kept = master.read(file).decode()
        master.write(file, f"{kept}[zfs]\n{line}\n" if "name" in line else f"[place.vault]\n{line}\n")
        ran = run(master)
        assert (ran["outcome"], ran["moved_bytes"] < 1 << 20) == ("done", True), ran
        master.write(file, kept)
        (back,) = re.findall(r"give the former name back: (zfs rename .*?); then", told["hint"])
        master.sh(back)
        assert run(master)["outcome"] == "nothing-to-do"
    master.sh("zfs rename vault/copies/photos vault/copies/old")
    ran = run(master, *re.findall(r"poolferry run photos (--aside)$", run(master)["hint"]))
    assert (ran["outcome"], ran["moved_bytes"] > 4 << 20) == ("done", True), ran
    assert holds_the_same(master)
    assert guids(master, "vault/copies/old"), "the former one is kept"


@pytest.mark.timeout(900)
def test_what_is_only_snapshotted_or_pruned_is_known_by_its_guid_too(master: Machine) -> None:
    for pool in ("tank", "vault"):
        master.pool(pool, "300M")
    master.sh("zfs create tank/photos; zfs create -p vault/in/laptop")
    master.write(f"{master.config}/gates/laptop.toml", 'receives = "vault/in"\n')
    master.job("snaps", 'engine = "sanoid"\nsource = "tank/photos"\n[snapshots]\nhourly = 2\n', targets=PLACE)
    master.job("gone", 'engine = "prune"\nsource = "vault/in"\n[keep]\ndaily = 3\n')
    for job, subject, before, now in (
        ("snaps", "source tank/photos", "tank/photos", "tank/pictures"),
        ("gone", "dataset vault/in", "vault/in", "vault/incoming"),
    ):
        master.poolferry("run", job, check=True)
        master.sh(f"zfs rename {before} '{now}'")
        assert f"is called {now} now, by its guid" in master.poolferry("plan", job).complaint
        told = master.poolferry("run", job, "--json").json
        assert (told["outcome"], f"is called {now} now, by its guid" in told["why"]) == ("refused", True), told
        (known,) = [one for one in master.poolferry("status", "--json").json["jobs"] if one["job"] == job]
        assert known["source_state"]["state"] == "renamed", known
        assert advice(master, job)[subject] == f"{told['why']}: {told['hint']}"
        file = f"{master.config}/jobs/{job}.toml"
        kept = master.read(file).decode()
        (line,) = re.findall(r"write (source = .*?) into", told["hint"])
        master.write(file, kept.replace(f'source = "{before}"', line))
        if job == "gone":
            master.write(f"{master.config}/gates/laptop.toml", f'receives = "{now}"\n')
        ran = master.poolferry("run", job, "--json").json
        assert ran["outcome"] in ("done", "nothing-to-do"), ran
        (known,) = [one for one in master.poolferry("status", "--json").json["jobs"] if one["job"] == job]
        assert (known["state"], known["source_state"]) == ("up", None), known
        if job == "snaps":
            master.write(file, kept)
            assert master.poolferry("run", job, "--json").json["outcome"] == "failed"  # it knows that name no more
            (back,) = re.findall(r"give the former one back: (zfs rename .*)$", told["hint"])
            master.sh(back)
            assert master.poolferry("run", job, "--json").json["outcome"] in ("done", "nothing-to-do")


@pytest.mark.timeout(900)
def test_a_pool_with_another_name_is_not_made_anew_for_a_restore(master: Machine) -> None:
    for pool in ("tank", "vault"):
        master.pool(pool, "300M", disk=True)
    master.sh("zfs create vault/copies; zfs create tank/photos; zfs snapshot -r tank@a")
    master.job("photos", 'engine = "zfs"\nsource = "tank"\ntarget = "vault"\n', targets=PLACE)
    assert run(master)["outcome"] == "done"  # with a kit
    master.sh("zpool export tank; zpool import tank lake")
    told = restore_pool(master, "--plan")[1]
    assert (told["steps"][0]["state"], told["steps"][0]["lines"][0]) == (
        "look first", "tank is imported as lake now, by its guid: nothing of it is lost",
    )  # fmt: skip
    (back,) = re.findall(r"to give it its name back, in place of all that follows: (.*)$", told["steps"][0]["lines"][1])
    master.sh(back)
    assert run(master)["outcome"] == "nothing-to-do"
