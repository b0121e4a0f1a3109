"""Drills of datasets: what is made and dropped, and the scripts that read and damage, run on folders in place of datasets.

Changes things.
"""

import os
import shutil
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.command import Effect, Pipeline
from orchestrator.domain.drill import Drill
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Refusal, Step
from orchestrator.domain.rehearsal import Part, Rehearsal
from orchestrator.engines.zfs import rehearsing
from orchestrator.engines.zfs.digesting import Able, Both
from orchestrator.engines.zfs.words import Dataset, Kind, Side
from orchestrator.verify.listing import split_records
from orchestrator.verify.sides import Side as Listed
from orchestrator.verify.sides import compare_sides
from tests.engines.zfs.sides import ASKED, COPY, SOURCE, A, B, dataset, job, side, world

PLACE = "vault/copies/poolferry-drill"
# Stands in for mount(8): a folder in place of a snapshot, a clone as a folder that may be written.
MOUNT = '#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\nexec {mount} --bind "$1" "$2"\n'


def planned(*copy: Dataset, whole: bool = False, scratch: str | None = None) -> Rehearsal | Refusal:
    own = copy or (dataset("", A, B, written=0), dataset("x y", A, written=0))
    source = tuple(replace(each, written=None) for each in own)
    both = Both(world=world(side(SOURCE, *source), side(COPY, *own)), able=(Able(), Able()))
    asked = replace(job(), drill=Drill(scratch=scratch))
    return rehearsing.plan_rehearsal(asked, both, ASKED, whole=whole)


def rehearsal(*copy: Dataset, whole: bool = False, scratch: str | None = None) -> Rehearsal:
    found = planned(*copy, whole=whole, scratch=scratch)
    assert isinstance(found, Rehearsal), found
    return found


def lines(found: Rehearsal) -> list[str]:
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


def test_a_whole_one_is_received_below_the_scratch_dataset() -> None:
    *_, sent = lines(rehearsal(dataset("", A, written=0), whole=True, scratch="tank/drill"))
    assert sent.startswith(f"zfs send -PLce {COPY.path}@a | mbuffer ")
    assert sent.endswith("zfs receive -u -o mountpoint=legacy -o canmount=noauto tank/drill/photos/0")


@pytest.mark.parametrize("scratch", [None, "/srv/scratch"])
def test_a_whole_one_without_a_dataset_for_it_is_refused(scratch: str | None) -> None:
    refused = planned(whole=True, scratch=scratch)
    assert isinstance(refused, Refusal)
    assert "scratch" in refused.cure


def test_what_cannot_be_read_is_left_out_and_told() -> None:
    locked = dataset("locked", A, encrypted=True, written=0)
    volume = dataset("volume", A, kind=Kind.VOLUME, written=0)
    found = rehearsal(dataset("", A, written=0), locked, volume)
    assert [part.name for part in found.parts] == [b"@a"]
    assert found.left_out == "what is encrypted is read only in clones, with its key loaded; volumes have no files"
    assert isinstance(planned(volume), Refusal)
    opened = dataset("", A, encrypted=True, key_loaded=True, written=0)
    assert len(rehearsal(opened).parts) == 1
    assert isinstance(planned(opened, whole=True, scratch="tank/drill"), Refusal)


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
    """What a step prints; `given` comes in from a file, as the runner has it."""
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


def of(tree: Path) -> tuple[Job, Both, Rehearsal]:
    """A rehearsal of which source and scratch are folders."""
    own = replace(rehearsal(), parts=(Part(name=b"@b", number=0, source=str(tree), scratch=str(tree)),))
    # The mark of a snapshot is part of the source's name already.
    return job(), Both(world=world(Side(root=SOURCE, pool_guid=0, version=()), side(COPY)), able=None), own


def test_files_are_listed_with_their_sizes(tree: Path) -> None:
    asked, _, own = of(tree)
    out = ran(rehearsing.listing_step(asked, own, own.parts[0], "/nowhere"))
    found = dict(record.split(b"\t", 1)[::-1] for record in split_records([out]))
    assert found[b"with space"] == b"13"
    assert set(found) == {b"a", b"with space", b"back\\slash", b"-dash", b"in/deep", b"empty"}


def test_exactly_the_named_files_are_read_and_compared(tree: Path, tmp_path: Path) -> None:
    asked, both, own = of(tree)
    names = b"".join(b"./" + name + b"\0" for name in (b"with space", b"back\\slash", b"-dash", b"in/deep"))
    plan = rehearsing.plan_reading(asked, both, own, {0: str(tmp_path / "names")}, str(tmp_path))
    ((pair,),) = plan.stages
    first = ran(pair.target, names)
    (tree / "in" / "deep").write_text("other words")
    (tree / "-dash").unlink()
    second = ran(pair.source, names)
    before, after = (Listed(sorted(split_records([out]))) for out in (first, second))
    found = {finding.path: finding.verdict.value for finding, _ in compare_sides(before, after)}
    assert found[b"in/deep"] == "edited"
    assert found[b"-dash"] == "missing"
    assert set(found) - {b""} == {b"in/deep", b"-dash"}
    assert before.files == 4


def test_damage_on_purpose_is_damage(tree: Path, tmp_path: Path) -> None:
    asked, _, own = of(tree)
    before = {name: (tree / name).stat() for name in ("with space", "in/deep")}
    step = rehearsing.harming_step(asked, own, own.parts[0], str(tmp_path / "names"))
    ran(step, b"./with space\0./back\\slash\0./in/deep\0")
    assert (tree / "with space").read_text() == "nf with space"
    assert (tree / "with space").stat().st_mtime_ns == before["with space"].st_mtime_ns
    assert not (tree / "back\\slash").exists()
    assert (tree / "in/deep").read_text() == "of in/dee"
    assert (tree / "in/deep").stat().st_mtime_ns == before["in/deep"].st_mtime_ns
    assert stat.S_ISREG((tree / "a").stat().st_mode)
    assert (tree / "a").read_text() == "of a"
