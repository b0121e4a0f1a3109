"""Drills of datasets: what is made and dropped, and the scripts that read and damage, run on folders in place of datasets."""

import json
import os
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.drill import DrillDataset, DrillPlan
from orchestrator.domain.job import DrillRules, Job
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect, Pipeline, Refusal, Step
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import Bytes
from orchestrator.engines.zfs.drill import drill as rehearsing
from orchestrator.engines.zfs.model import Bookmark, Dataset, DatasetType, SideSurvey
from orchestrator.engines.zfs.verify.checksum import ChecksumSupport, ComparisonSurvey
from orchestrator.verify.compare_sides import SortedListing, compare_sides
from orchestrator.verify.entry import split_records
from tests.engines.zfs.sides import ASKED, COPY, SOURCE, A, B, dataset, job, side, world

PLACE = "vault/copies/poolferry-drill"
# Stands in for mount(8): a folder in place of a snapshot, a clone as a folder that may be written.
MOUNT = """#!/bin/sh
case $2 in remount,*) exec {mount} "$@";; esac
while [ $# -gt 2 ]; do shift; done
exec {mount} --bind "$1" "$2"
"""


def planned(
    *copy: Dataset,
    whole: bool = False,
    scratch: str | None = None,
    source: tuple[Dataset, ...] | None = None,
    kit: str | None = None,
) -> DrillPlan | Refusal:
    """`source`: what is there, when not the same as in the copy."""
    own = copy or (dataset("", A, B, written=0), dataset("x y", A, written=0))
    there = tuple(replace(each, written=None) for each in own) if source is None else source
    both = ComparisonSurvey(
        world=world(side(SOURCE, *there), side(COPY, *own)), able=(ChecksumSupport(), ChecksumSupport())
    )
    requested = replace(job(), drill=DrillRules(scratch=scratch))
    return rehearsing.plan_drill(requested, both, ASKED, whole=whole, kit=kit)


def rehearsal(*copy: Dataset, **more: Any) -> DrillPlan:
    found = planned(*copy, **more)
    assert isinstance(found, DrillPlan), found
    return found


def kit(*snapshots: tuple[str, int]) -> str:
    return json.dumps({"snapshots": [[f"{SOURCE.path}{name}", str(guid), "1"] for name, guid in snapshots]})


def lines(found: DrillPlan) -> list[str]:
    return [str(step.work) for stage in found.make for step in stage]


def test_clones_lie_beside_the_copy_and_carry_our_mark() -> None:
    found = rehearsal()
    made = "zfs create -p -u -o canmount=off -o mountpoint=none -o poolferry:drill=yes"
    clone = "zfs clone -o mountpoint=legacy -o canmount=noauto -o readonly=off"
    assert lines(found) == [
        f"{made} {PLACE}",
        f"{made} {PLACE}/photos",
        f"{clone} {COPY.path}@b {PLACE}/photos/0",
        f"{clone} '{COPY.path}/x y@a' {PLACE}/photos/1",
    ]
    assert (found.point, found.of, found.left_out) == ("b", 2, "")
    assert [(part.name, part.source) for part in found.parts] == [
        (b"@b", "tank/photos@b"),
        (b"x y@a", "tank/photos/x y@a"),
    ]
    assert found.drop.effect is Effect.DESTROYS
    assert str(found.drop.work).endswith(f"sh {PLACE}/photos poolferry:drill")


def test_a_dataset_that_lacks_the_point_is_named() -> None:
    source = tuple(dataset(name, A, B) for name in ("", "x", "y"))
    found = rehearsal(dataset("", A, B, written=0), dataset("x", A, written=0), source=source)
    assert (found.point, found.lacking) == ("b", ("tank/photos/x", "tank/photos/y"))
    assert rehearsal().lacking == ()


def test_a_whole_one_is_received_below_the_scratch_dataset() -> None:
    *_, sent = lines(rehearsal(dataset("", A, written=0), whole=True, scratch="tank/drill"))
    assert sent.startswith(f"zfs send -PLce {COPY.path}@a | mbuffer ")
    assert sent.endswith("zfs receive -u -o mountpoint=legacy -o canmount=noauto tank/drill/photos/0")


@pytest.mark.parametrize("scratch", [None, "/srv/scratch"])
def test_a_whole_one_without_a_dataset_for_it_is_refused(scratch: str | None) -> None:
    refused = planned(whole=True, scratch=scratch)
    assert isinstance(refused, Refusal)
    assert "scratch" in refused.hint


def test_what_has_no_files_is_left_out_and_told() -> None:
    volume = dataset("volume", A, kind=DatasetType.VOLUME, written=0)
    found = rehearsal(dataset("", A, written=0), volume)
    assert ([part.name for part in found.parts], found.left_out) == ([b"@a"], "volumes have no files")
    assert isinstance(planned(volume), Refusal)
    assert isinstance(planned(dataset("")), Refusal), "a copy without a snapshot"


def test_what_is_encrypted_is_cloned_with_its_key_and_read_as_it_lies_without() -> None:
    opened = dataset("", A, encrypted=True, key_loaded=True, written=0)
    found = rehearsal(opened)
    assert ([part.alone for part in found.parts], found.encrypted_steps) == ([False], ())
    locked = dataset("locked", A, encrypted=True, written=0)
    found = rehearsal(opened, locked)
    assert [part.name for part in found.parts] == [b"@a"]
    (read,) = found.encrypted_steps
    assert str(read.work).endswith(f"sh {COPY.path}/locked@a {1 << 30}")
    assert (read.effect, "zfs send -w" in str(read.work)) == (Effect.READS, True)
    assert found.verifies == (
        "of 1 encrypted dataset without its key no file was seen: at most 1.0 GiB of each raw stream was read; only a scrub "
        "(zpool scrub vault) and a trial receive (poolferry drill photos --whole) verify all of it"
    )
    alone = rehearsal(locked)
    assert (alone.parts, alone.make, len(alone.encrypted_steps)) == ((), (), 1), (
        "nothing is made where nothing can be cloned"
    )


def test_whole_encrypted_datasets_are_received_as_they_lie_with_a_look_for_the_guid() -> None:
    opened = dataset("", A, encrypted=True, key_loaded=True, written=0)
    volume = dataset("v", A, encrypted=True, kind=DatasetType.VOLUME, written=0)
    found = rehearsal(opened, volume, whole=True, scratch="tank/drill")
    first, look, second, _ = found.encrypted_steps
    assert str(first.work).startswith(f"zfs send -PwLce {COPY.path}@a | mbuffer ")
    assert str(first.work).endswith("zfs receive -u -o mountpoint=legacy -o canmount=noauto tank/drill/photos/0")
    assert str(second.work).endswith("zfs receive -u tank/drill/photos/1"), "a volume is mounted nowhere"
    assert str(look.work).endswith(f"sh tank/drill/photos/0@a {A.guid}")
    assert [stage[0].action for stage in found.make] == [
        f"make {name}, if it is not there" for name in ("tank/drill", "tank/drill/photos")
    ]
    assert found.verifies.startswith("2 encrypted datasets came as they lie, and their snapshots by guid; ")


def test_what_the_source_has_no_more_is_held_against_what_was_recorded() -> None:
    own = dataset("", A, written=0)
    (part,) = (found := rehearsal(own, source=(), kit=kit(("@a", A.guid)))).parts
    assert (part.source, part.alone) == (f"{COPY.path}@a", True)
    assert found.remarks == (
        "1 dataset could only be compared with the copy itself, as the source has the snapshot no more",
        "by guid 1 snapshot of those is what the source had",
    )
    marked = replace(dataset("", B), bookmarks=(Bookmark(name="m", guid=A.guid, createtxg=1),))
    assert rehearsal(own, source=(marked,)).remarks == found.remarks, "a bookmark tells it too"
    unknown = rehearsal(own, source=(dataset("", B),), kit=kit(("@other", A.guid + 7)))
    assert unknown.remarks[-1].startswith("nothing shows whether @a is what the source had")
    locked = replace(own, encrypted=True, key_loaded=True)
    source = replace(locked, key_loaded=False)
    assert rehearsal(locked, source=(source,)).remarks == (
        "1 dataset could only be compared with the copy itself, as the source's key is not loaded",
    )


def test_a_source_that_cannot_be_looked_at_is_told_apart_from_one_that_lost_it() -> None:
    copy = (dataset("", A, written=0), dataset("x", B, encrypted=True, written=0))
    both = ComparisonSurvey(
        world=world(side(SOURCE), side(COPY, *copy)), able=None, away="the source's host nas cannot be reached"
    )
    found = rehearsing.plan_drill(job(), both, ASKED, whole=False, kit=kit(("@a", A.guid), ("/x@b", B.guid)))
    assert isinstance(found, DrillPlan)
    assert found.remarks == (
        "1 dataset could only be compared with the copy itself, as the source's host nas cannot be reached",
        "by guid 1 snapshot of those is what the source had",
    )
    assert len(found.encrypted_steps) == 1
    none = replace(both, world=world(side(SOURCE), side(COPY)))
    refused = rehearsing.plan_drill(job(), none, ASKED, whole=False, kit=None)
    assert isinstance(refused, Refusal)
    assert refused.why == f"{COPY} holds no snapshot", "and not that the source is gone"


def test_another_snapshot_under_a_recorded_name_is_a_failure_without_reading() -> None:
    refused = planned(dataset("", A, written=0), source=(), kit=kit(("@a", A.guid + 1)))
    assert isinstance(refused, Refusal)
    assert (refused.outcome, refused.evidence) == (
        Outcome.FAILED, (f"guid {A.guid} in the copy, {A.guid + 1} in the newest recovery kit",),
    )  # fmt: skip


def test_the_owners_look_sees_all_parts_in_their_folders() -> None:
    owner = Command(argv=("look", "-x"), effect=Effect.WRITES, environment=(("POOLFERRY_JOB", "photos"),))
    command = rehearsing.user_check_command(job(), rehearsal(), "/notes/tree", owner)
    assert isinstance(command, Command)
    assert command.argv[:4] == ("unshare", "--mount", "--propagation", "slave")
    assert command.argv[8:] == (
        "/notes/tree", f"{PLACE}/photos/0", ".", f"{PLACE}/photos/1", "x y", "-", "env", "POOLFERRY_JOB=photos", "look", "-x",
    )  # fmt: skip
    far = replace(rehearsal(), where=Location(path="vault/x", host=Host(name="backup")))
    refused = rehearsing.user_check_command(job(), far, "/notes/tree", owner)
    assert isinstance(refused, Refusal)
    assert "on backup" in refused.why


# The scripts, on folders.


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Files of every kind of name, and a mount that takes folders."""
    if os.geteuid() != 0:
        pytest.skip("mounts need root")
    folder = tmp_path / "tree"
    (folder / "in").mkdir(parents=True)
    for name in ("a", "with space", "back\\slash", "-dash", "in/deep", "empty"):
        (folder / name).write_text("" if name == "empty" else f"of {name}")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "mount").write_text(MOUNT.format(mount=shutil.which("mount")))
    (programs / "mount").chmod(0o755)
    return folder


def ran(step: Step, given: bytes = b"") -> bytes:
    """Return what a step prints; `given` comes in from a file, as the runner has it."""
    assert isinstance(step.work, Pipeline)
    (command,) = step.work.stages
    if step.work.reads:
        Path(step.work.reads).write_bytes(given)
    known = next(Path(word).parent / "bin" for word in command.argv if word.startswith("/") and Path(word).is_dir())
    environment = {"PATH": f"{known}:{os.environ['PATH']}", "TMPDIR": str(known.parent)}
    with open(step.work.reads or os.devnull, "rb") as stdin:
        done = subprocess.run(command.argv, stdin=stdin, capture_output=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def of(tree: Path) -> tuple[Job, ComparisonSurvey, DrillPlan]:
    """A rehearsal of which source and scratch are folders."""
    own = replace(rehearsal(), parts=(DrillDataset(name=b"@b", number=0, source=str(tree), scratch=str(tree)),))
    # The mark of a snapshot is part of the source's name already.
    return (
        job(),
        ComparisonSurvey(world=world(SideSurvey(root=SOURCE, pool_guid=0, version=()), side(COPY)), able=None),
        own,
    )


@pytest.mark.namespace
def test_files_are_listed_with_their_sizes(tree: Path) -> None:
    requested, _, own = of(tree)
    out = ran(rehearsing.listing_step(requested, own, own.parts[0], "/nowhere"))
    found = dict(record.split(b"\t", 1)[::-1] for record in split_records([out]))
    assert found[b"with space"] == b"13"
    assert set(found) == {b"a", b"with space", b"back\\slash", b"-dash", b"in/deep", b"empty"}


@pytest.mark.namespace
def test_exactly_the_named_files_are_read_and_compared(tree: Path, tmp_path: Path) -> None:
    requested, both, own = of(tree)
    names = b"".join(b"./" + name + b"\0" for name in (b"with space", b"back\\slash", b"-dash", b"in/deep"))
    plan = rehearsing.plan_drill_comparison(requested, both, own, {0: str(tmp_path / "names")}, str(tmp_path))
    ((pair,),) = plan.stages
    first = ran(pair.target, names)
    (tree / "in" / "deep").write_text("other words")
    (tree / "-dash").unlink()
    second = ran(pair.source, names)
    before, after = (SortedListing(sorted(split_records([out]))) for out in (first, second))
    found = {finding.path: finding.verdict.value for finding, _ in compare_sides(before, after)}
    assert found[b"in/deep"] == "edited"
    assert found[b"-dash"] == "missing"
    assert set(found) - {b""} == {b"in/deep", b"-dash"}
    assert before.files == 4


@pytest.mark.namespace
def test_what_is_no_file_of_the_dataset_is_told_of_and_never_opened(tree: Path, tmp_path: Path) -> None:
    """A pipe would hold the reader for ever; a link, or a folder that is one, would give it another file's bytes."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_text("secret")
    os.mkfifo(tree / "pipe")
    (tree / "link").symlink_to(tmp_path / "elsewhere" / "secret")
    (tree / "away").symlink_to(tmp_path / "elsewhere")
    requested, both, own = of(tree)
    plan = rehearsing.plan_drill_comparison(requested, both, own, {0: str(tmp_path / "names")}, str(tmp_path))
    ((pair,),) = plan.stages
    out = ran(pair.target, b"./a\0./pipe\0./link\0./away/secret\0")
    records = list(split_records([out]))
    assert [record.partition(b"//=")[0] for record in records if b"//=" in record] == [b"a"]
    assert {(b"pipe", b"p"), (b"link", b"l")} <= {
        (record.split(b"//")[0], record.split(b"//")[1][:1]) for record in records
    }
    assert not any(record.startswith(b"away/secret//f") for record in records)


@pytest.mark.namespace
def test_damage_on_purpose_is_damage(tree: Path, tmp_path: Path) -> None:
    requested, _, own = of(tree)
    before = {name: (tree / name).stat() for name in ("with space", "in/deep")}
    step = rehearsing.damage_step(requested, own, own.parts[0], str(tmp_path / "names"))
    ran(step, b"./with space\0./back\\slash\0./in/deep\0")
    assert (tree / "with space").read_text() == "nf with space"
    assert (tree / "with space").stat().st_mtime_ns == before["with space"].st_mtime_ns
    assert not (tree / "back\\slash").exists()
    assert (tree / "in/deep").read_text() == "of in/dee"
    assert (tree / "in/deep").stat().st_mtime_ns == before["in/deep"].st_mtime_ns
    assert stat.S_ISREG((tree / "a").stat().st_mode)
    assert (tree / "a").read_text() == "of a"


@pytest.mark.parametrize(
    ("sends", "most", "well"),
    [
        ("printf 12345", 5, True), ("printf 12345", 9, True), ("yes", 100_000, True),
        ("printf 123; exit 1", 9, False), ("exit 1", 9, False),
    ],
)  # fmt: skip
def test_a_stream_is_read_as_far_as_was_asked_and_a_failing_sender_is_a_failure(
    tmp_path: Path, sends: str, most: int, well: bool
) -> None:
    (tmp_path / "zfs").write_text(f"#!/bin/sh\n{sends}\n")
    (tmp_path / "zfs").chmod(0o755)
    locked = replace(job(), drill=DrillRules(size=Bytes(most)))
    own = dataset("", A, encrypted=True, written=0)
    both = ComparisonSurvey(world=world(side(SOURCE, own), side(COPY, own)), able=None)
    found = rehearsing.plan_drill(locked, both, ASKED, whole=False, kit=None)
    assert isinstance(found, DrillPlan)
    (work,) = (step.work for step in found.encrypted_steps)
    assert isinstance(work, Pipeline)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(work.stages[0].argv, capture_output=True, env=environment, timeout=60)
    assert (done.returncode == 0) is well, done
