"""Test what is said of a damaged snapshot: who holds the same one by guid, and the commands that bring it back."""

from dataclasses import replace
from typing import Any

from orchestrator.domain.place import Location
from orchestrator.domain.point import Finding, Verdict
from orchestrator.engines.zfs.model import DatasetType
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.restore.repair import explain_repair
from tests.engines.zfs.sides import ASKED, COPY, HOST, SOURCE, A, B, dataset, job, side, world

RENAMED = replace(B, name="renamed")


def unreadable(path: bytes) -> tuple[Finding, ...]:
    return (Finding(path=path, verdict=Verdict.UNREADABLE, detail="Input/output error"),)


def case(*, copy: Location = COPY, **more: Any) -> PlanContext:
    here = side(SOURCE, dataset("", A, B), dataset("sub", B))
    there = side(copy, dataset("", A, B), dataset("sub", RENAMED, **more))
    return PlanContext(job(), world(here, there), ASKED)


def test_a_damaged_copy_is_put_aside_and_sent_anew() -> None:
    (line,) = explain_repair(case(), unreadable(b"sub@renamed/file"), ())
    assert line == (
        "vault/copies/photos/sub@renamed: the source holds the same snapshot (guid 2): "
        "zfs rename -u vault/copies/photos/sub vault/copies/photos/sub.damaged && poolferry run photos (it is sent again in full; "
        "the damaged copy stays until you destroy it)"
    )


def test_the_rename_of_a_volume_and_of_an_odd_name_works_as_it_is_printed() -> None:
    (line,) = explain_repair(case(kind=DatasetType.VOLUME), unreadable(b"sub@renamed"), ())
    assert ": zfs rename vault/copies/photos/sub vault/copies/photos/sub.damaged && " in line, (
        "-u is for filesystems alone"
    )
    (line,) = explain_repair(case(copy=Location(path="vault/a b")), unreadable(b"@b/file"), ())
    assert ": zfs rename -u 'vault/a b' 'vault/a b.damaged' && " in line


def test_wherever_it_lies() -> None:
    (line,) = explain_repair(case(copy=Location(path=COPY.path, host=HOST)), unreadable(b"@b"), ())
    assert f"ssh root@backup 'zfs rename -u {COPY.path} {COPY.path}.damaged'" in line


def test_a_file_of_the_source_comes_back_from_the_copy() -> None:
    (line,) = explain_repair(case(), (), unreadable(b"sub@renamed/x y"))
    assert line.startswith("tank/photos/sub as of @renamed, x y: the copy holds the same snapshot (guid 2): ")
    assert line.endswith("poolferry restore run photos --point renamed --path 'sub/x y' --to FOLDER")


def test_what_reads_otherwise_is_damage_too() -> None:
    (line,) = explain_repair(case(), (Finding(path=b"@b/file", verdict=Verdict.ROTTEN, detail=""),), ())
    assert line.startswith("vault/copies/photos@b: the source holds the same snapshot")


def test_no_corrective_receive() -> None:
    """It would leave the snapshot inconsistent."""
    assert "receive" not in "".join(explain_repair(case(), unreadable(b"@b/file"), unreadable(b"@a/file")))


def test_one_line_for_each_snapshot_and_none_where_nobody_has_it() -> None:
    many = unreadable(b"@b/one") + unreadable(b"@b/two") + unreadable(b"@a/one")
    assert len(explain_repair(case(), many, ())) == 2
    gone = Finding(path=b"@b/three", verdict=Verdict.MISSING, detail="")
    assert explain_repair(case(), (*unreadable(b"@nobodys/x"), *unreadable(b"sub"), gone), ()) == ()
