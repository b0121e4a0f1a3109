"""Scratch copies: what is cloned and how, what is listed, and that nothing else is ever dropped."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Effect
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.contract.drills import ScratchClone
from orchestrator.engines.zfs.drill import scratch_clone as trying
from orchestrator.engines.zfs.model import DatasetType, SideSurvey
from tests.engines.zfs.sides import COPY, NOW, A, B, dataset, job, side

PLACE = "vault/copies/poolferry-try"
POINT = RestorePoint(name="b", taken=NOW, tree=Location(path=f"{COPY.path}@b"), manifest=None)


def made(copy: SideSurvey) -> list[str]:
    steps = trying._make(job(), copy, PLACE, "photos-now", POINT, NOW + timedelta(days=2))
    return [str(step.work) for step in steps]


def test_each_dataset_is_cloned_and_mounted_apart() -> None:
    lines = made(
        side(COPY, dataset("", A, B), dataset("x y", A), dataset("v", B, kind=DatasetType.VOLUME), dataset("bare"))
    )
    assert lines[0] == f"zfs create -p -u -o canmount=off -o mountpoint=none {PLACE}"
    assert lines[1] == (
        "zfs clone -o readonly=off -o canmount=noauto -o mountpoint=/run/poolferry/try/photos-now -o sharenfs=off "
        "-o sharesmb=off -o poolferry:try=photos@b -o poolferry:until=2026-03-06T05:06:07+00:00 "
        f"{COPY.path}@b {PLACE}/photos-now"
    )
    assert lines[2] == f"zfs create -u -o canmount=off {PLACE}/photos-now/bare"
    assert lines[3] == f"zfs clone -o readonly=off {COPY.path}/v@b {PLACE}/photos-now/v"
    assert "'-o' " not in lines[4]
    assert lines[4].endswith(f"'{COPY.path}/x y@a' '{PLACE}/photos-now/x y'")
    assert lines[5].endswith(f"sh /run/poolferry/try {PLACE}/photos-now '{PLACE}/photos-now/x y'")


def test_what_is_locked_is_cloned_and_not_mounted() -> None:
    lines = made(side(COPY, dataset("", A, encrypted=True), dataset("x", A, encrypted=True, key_loaded=True)))
    assert lines[-1].endswith(f"sh /run/poolferry/try {PLACE}/photos-now/x")


def test_only_what_has_our_mark_is_a_scratch_copy() -> None:
    lines = [
        f"{PLACE}\t1\tnone\t-\t-\t{PLACE}",
        f"{PLACE}/photos-now\t4096\t/run/poolferry/try/photos-now\tphotos@b c\t2026-03-06T05:06:07+00:00\t{PLACE}/photos-now",
        f"{PLACE}/mine\t1\t/mine\t-\t-\t{PLACE}/mine",
        f"{PLACE}/other\t1\tnone\tmusic@a\t\t{PLACE}/other",
    ]
    assert tuple(trying.parse_scratch(lines, Location(path=PLACE))) == (
        ScratchClone(
            name="photos-now", at=Location(path=f"{PLACE}/photos-now"), job="photos", of="b c",
            until=datetime(2026, 3, 6, 5, 6, 7, tzinfo=UTC), used=4096, mountpoint="/run/poolferry/try/photos-now",
        ),
        ScratchClone(
            name="other", at=Location(path=f"{PLACE}/other"), job="music", of="a", until=None, used=1, mountpoint="none"
        ),
    )  # fmt: skip


def test_a_value_of_several_lines_makes_no_scratch_copy() -> None:
    value = f"x\t-\t{PLACE}/eve\n{PLACE}/ann\t1\tnone\tphotos@a\t2000-01-01\t{PLACE}/ann\nx"
    lines = f"{PLACE}/eve\t1\tnone\t{value}\t-\t{PLACE}/eve".split("\n")
    with pytest.raises(ValueError, match="several lines"):
        tuple(trying.parse_scratch(lines, Location(path=PLACE)))


def test_a_drop_needs_consent_and_the_mark() -> None:
    scratch = ScratchClone(
        name="x", at=Location(path=f"{PLACE}/x"), job="photos", of="a", until=None, used=0, mountpoint="none"
    )
    step = trying.drop_step(job(), scratch)
    assert step.effect is Effect.DESTROYS
    line = str(step.work)
    assert "zfs get -Ho source" in line
    assert line.endswith(f"{PLACE}/x poolferry:try")
