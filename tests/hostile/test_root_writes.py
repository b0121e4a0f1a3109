"""Test what root writes where others own the names: scratch, folders of theirs, sockets. Nothing goes through a name of theirs."""

import os
import shutil
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.app.metrics import write_whole
from orchestrator.app.past import RecoveryKit, write_recovery_kit
from orchestrator.daemon.metrics_server import serve_metrics
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.kit import KitContents
from orchestrator.runner.drill.scratch_dir import sweep_scratch
from orchestrator.trees.beneath import Untrusted
from tests.hostile.conftest import STRANGER, tries
from tests.whole.house import House, facts

pytestmark = pytest.mark.root


@pytest.fixture
def hers(house: House) -> Path:
    """A folder of the stranger's."""
    folder = house.folder / "hers"
    folder.mkdir()
    os.chown(folder, STRANGER, STRANGER)
    return folder


@pytest.mark.parametrize("whole", [True, False])
def test_a_drill_that_damages_what_came_back_damages_nothing_else(house: House, *, whole: bool) -> None:
    """A target that was taken over: a folder of its point has become a link, while the manifest is as it was."""
    root_owned = house.folder / "root"
    for name in ("passwd", "second", "third"):
        house.write(root_owned / name, "root's own\n")
        house.write(f"w/{name}", "root's own\n")
    before = facts(root_owned)
    house.run(house.job())
    shutil.rmtree(house.point() / "w")
    (house.point() / "w").symlink_to(root_owned)
    ran = house.call("drill", "photos", "--self-test", *(["--whole"] if whole else []))
    assert facts(root_owned) == before
    assert ran.code == 1, ran


@pytest.mark.parametrize("command", ["export", "metrics", "kit"])
@pytest.mark.parametrize("planted", ["link", "link to a folder", "fifo", "hard link"])
@pytest.mark.sample(4)
def test_what_is_written_for_a_person_goes_through_no_name_of_hers(
    house: House, hers: Path, victim: Path, command: str, planted: str
) -> None:
    """Each name that is written, or was written on the way by an earlier version, is hers already."""
    house.write("file", "content")
    house.run(house.job())
    names = {
        "export": ["sums", "sums.part"],
        "metrics": ["x.prom", "x.prom.new"],
        "kit": ["RECOVERY.md", "kit.json", "guids.tsv"],
    }[command]
    for name in names:
        if planted == "fifo":
            assert tries("mkfifo", hers / name)
        elif planted == "hard link":
            os.link(victim / "passwd", hers / name)
        else:
            assert tries("ln", "-s", victim / ("passwd" if planted == "link" else ""), hers / name)
    if command == "export":
        assert house.call("points", "export", "photos", "--to", str(hers / "sums")).code == 0
    elif command == "metrics":
        write_whole(str(hers / "x.prom"), b"1\n")
    else:
        kit = KitContents(content="{}", layout="", recovery="page", guids="")
        write_recovery_kit(RecoveryKit(job="photos", kit=kit, made_at=datetime.now(UTC)), str(hers))
    assert not (hers / names[0]).is_symlink()
    assert (hers / names[0]).is_file()


def test_a_link_of_hers_to_the_folder_is_not_followed(house: House, hers: Path, victim: Path) -> None:
    assert tries("ln", "-s", victim, hers / "way")
    with pytest.raises(Untrusted, match="another user"):
        write_whole(str(hers / "way/x.prom"), b"x")


def test_a_link_of_roots_is_followed_where_nobody_else_can_exchange_it(house: House, hers: Path) -> None:
    (house.folder / "real").mkdir()
    (house.folder / "way").symlink_to("real/../real")
    write_whole(str(house.folder / "way/x.prom"), b"x")
    assert (house.folder / "real/x.prom").read_bytes() == b"x"
    assert (house.folder / "real/x.prom").stat().st_mode & 0o777 == 0o644
    (hers / "way").symlink_to("../real")
    with pytest.raises(Untrusted, match="another user"):
        write_whole(str(hers / "way/y.prom"), b"x")


def test_a_socket_takes_no_files_place_and_no_files_mode(house: House, victim: Path) -> None:
    with pytest.raises(OSError, match="no socket"):
        serve_metrics(f"unix:{victim / 'passwd'}", bytes)
    link = house.folder / "link"
    link.symlink_to(victim / "passwd")
    with pytest.raises(OSError, match="no socket"):
        serve_metrics(f"unix:{link}", bytes)
    path = house.folder / "socket"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    server = serve_metrics(f"unix:{path}", bytes)
    try:
        assert path.stat().st_mode & 0o777 == 0o660
    finally:
        server.close()
    assert not path.exists()


def test_scratch_that_is_hers_is_not_emptied(house: House, hers: Path, victim: Path) -> None:
    """She made it just before we did, with our marker in it, and may exchange it at any time."""
    assert tries("mkdir", hers / "poolferry-drill-photos")
    assert tries("touch", hers / "poolferry-drill-photos/poolferry-drill")
    assert tries("ln", "-s", victim, hers / "poolferry-drill-photos/x")
    with pytest.raises(OrchestratorError, match="another user"):
        sweep_scratch(str(hers / "poolferry-drill-photos"))
    assert (hers / "poolferry-drill-photos/x").is_symlink()
