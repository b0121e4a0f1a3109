"""A restored folder gets its own metadata by descriptors: all that the point's folder has, nothing besides, and no other folder."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.place import Location
from orchestrator.domain.plan import FolderOpening
from orchestrator.domain.point import RestorePoint
from orchestrator.runner.open_folder import open_folder

pytestmark = pytest.mark.root
MARKER = ".poolferry-restoring.json"


@pytest.fixture
def work(tmp_path: Path) -> FolderOpening:
    tree, to = tmp_path / "point", tmp_path / "to"
    inside = tree / "in/side"
    inside.mkdir(parents=True)
    to.mkdir(mode=0o700)
    (to / MARKER).touch()
    subprocess.run(["setfacl", "-m", "u:1234:rx", inside], check=True)
    subprocess.run(["setfacl", "-m", "d:u:4321:rwx", to], check=True)
    os.setxattr(inside, "user.note", b"any\0bytes")
    os.setxattr(to, "user.other", b"1")
    os.chown(inside, 1234, 4321)
    inside.chmod(0o2751)
    os.utime(inside, ns=(1, 987654321_123456789))
    point = RestorePoint(name="x", tree=Location(path=str(tree)), manifest=None, taken=datetime(2026, 1, 1, tzinfo=UTC))
    return FolderOpening(
        point=point, path=b"in/side", to=Location(path=str(to)), marker=MARKER, owners=True, modes=True, acls=True,
        xattrs=True,
    )  # fmt: skip


def facts(folder: Path) -> tuple[object, ...]:
    seen = folder.stat()
    attributes = {name: os.getxattr(folder, name) for name in os.listxattr(folder)}
    return seen.st_mode, seen.st_uid, seen.st_gid, seen.st_mtime_ns, attributes


def test_it_gets_all_and_keeps_nothing_else(work: FolderOpening, tmp_path: Path) -> None:
    open_folder(work)
    assert facts(tmp_path / "to") == facts(tmp_path / "point/in/side")
    assert str(work) == f"(poolferry) give {tmp_path}/to the metadata of {tmp_path}/point/in/side"


def test_it_gets_only_what_the_job_carries(work: FolderOpening, tmp_path: Path) -> None:
    before = facts(tmp_path / "to")
    bare = {"owners": False, "modes": False, "acls": False, "xattrs": False}
    open_folder(FolderOpening(point=work.point, path=work.path, to=work.to, marker=MARKER, **bare))
    after = facts(tmp_path / "to")
    assert (after[:3], after[4]) == (before[:3], before[4])
    assert after[3] == 987654321_123456789


@pytest.mark.parametrize("why", ["no marker", "a link", "hers", "her marker"])
def test_another_folder_stays_as_it_is(work: FolderOpening, tmp_path: Path, why: str) -> None:
    marker = tmp_path / "to" / MARKER
    match why:
        case "no marker":
            marker.unlink()
        case "a link":
            marker.rename(tmp_path / "elsewhere")
            marker.symlink_to(tmp_path / "elsewhere")
        case "hers":
            os.chown(marker, 1234, 1234)
            os.chown(tmp_path / "to", 1234, 1234)
        case _:
            os.chown(marker, 1234, 1234)
    before = facts(tmp_path / "to")[:3]
    with pytest.raises(VerificationFailed, match="is not the folder that this restore has marked"):
        open_folder(work)
    assert facts(tmp_path / "to")[:3] == before
