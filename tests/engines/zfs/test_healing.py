"""What heals a damaged snapshot: the same one by guid on the other side, and only where that side's OpenZFS can.

Pure.
"""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.point import Finding, Verdict
from orchestrator.engines.zfs.case import Case
from orchestrator.engines.zfs.healing import heal
from tests.engines.zfs.sides import ASKED, COPY, HOST, SOURCE, A, B, dataset, job, side, world

RENAMED = replace(B, name="renamed")


def unreadable(path: bytes) -> tuple[Finding, ...]:
    return (Finding(path=path, verdict=Verdict.UNREADABLE, detail="Input/output error"),)


def case(*, copy: Location = COPY, **more: Any) -> Case:
    here = side(SOURCE, dataset("", A, B), dataset("sub", B))
    there = side(copy, dataset("", A, B), dataset("sub", RENAMED, **more))
    return Case(job(), world(here, there), ASKED)


def test_the_copy_is_healed_from_the_source() -> None:
    (line,) = heal(case(), unreadable(b"@b/file"), ())
    assert line == (
        "vault/copies/photos@b: the source holds the same snapshot (guid 2): "
        "zfs send tank/photos@b | zfs receive -c vault/copies/photos@b"
    )


def test_the_source_is_healed_from_the_copy() -> None:
    (line,) = heal(case(), (), unreadable(b"sub@renamed/x"))
    assert line.startswith("tank/photos/sub@b: the copy holds the same snapshot (guid 2)")
    assert line.endswith("zfs send vault/copies/photos/sub@renamed | zfs receive -c tank/photos/sub@b")


def test_by_guid_whatever_it_is_called_and_wherever_it_lies() -> None:
    (line,) = heal(case(copy=Location(path=COPY.path, host=HOST)), unreadable(b"sub@renamed"), ())
    assert line.endswith(
        "zfs send tank/photos/sub@b | ssh root@backup 'zfs receive -c vault/copies/photos/sub@renamed'"
    )


def test_what_is_encrypted_travels_raw() -> None:
    (line,) = heal(case(encrypted=True), unreadable(b"sub@renamed"), ())
    assert "zfs send -w tank/photos/sub@b" in line


@pytest.mark.parametrize(("version", "told"), [((2, 1, 11), "2.1.11"), ((), "unknown")])
def test_an_older_openzfs_cannot_heal(version: tuple[int, ...], told: str) -> None:
    known = case()
    old = world(known.world.source, replace(known.world.target, version=version))
    (line,) = heal(Case(job(), old, ASKED), unreadable(b"@b/file"), ())
    assert f"OpenZFS there is {told}, and heals since 2.2: poolferry run photos --aside" in line


def test_where_checksums_hold_only_a_new_copy_helps() -> None:
    (line,) = heal(case(), (Finding(path=b"@b/file", verdict=Verdict.ROTTEN, detail=""),), ())
    assert line.endswith("only a new copy heals it: poolferry run photos --aside")
    assert "receive" not in line


def test_one_line_for_each_snapshot_and_none_where_nobody_has_it() -> None:
    many = unreadable(b"@b/one") + unreadable(b"@b/two") + unreadable(b"@a/one")
    assert len(heal(case(), many, ())) == 2
    gone = Finding(path=b"@b/three", verdict=Verdict.MISSING, detail="")
    assert heal(case(), (*unreadable(b"@nobodys/x"), *unreadable(b"sub"), gone), ()) == ()
