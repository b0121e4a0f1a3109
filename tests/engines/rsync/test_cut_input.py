"""A link that is cut ends the input of a program there as its true end does: nothing of that passes for whole."""

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.engines.rsync.script_commands import mend_point_command, store_command


def run(argv: tuple[str, ...], given: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(argv, input=given, capture_output=True, check=False)


@pytest.mark.parametrize(
    ("came", "stored"), [(b"", False), (b"a good", False), (b"a good one", True), (b"a good one!", False)]
)
def test_a_small_file_is_stored_whole_or_not_at_all(tmp_path: Path, came: bytes, stored: bool) -> None:
    file = tmp_path / "target.json"
    file.write_bytes(b"before")
    done = run(store_command(Location(path=str(file)), len(b"a good one")).argv, came)
    assert (done.returncode == 0, b"is not whole" in done.stderr) == (stored, not stored), done
    assert (file.read_bytes(), os.listdir(tmp_path)) == (came if stored else b"before", ["target.json"])


def test_an_earlier_version_stores_what_comes(tmp_path: Path) -> None:
    done = run(store_command(Location(path=str(tmp_path / "note")), None).argv, b"some")
    assert (done.returncode, (tmp_path / "note").read_bytes()) == (0, b"some"), done


@pytest.mark.parametrize(
    "came", [b"deep/o\0deep/other", b"deep/o\0deep/other.of-old\0", b"deep/o\0deep/other.of-old\0e"]
)
def test_half_a_name_is_mended_as_no_other_file(tmp_path: Path, came: bytes) -> None:
    """The point has a sound file of that shorter name, an older version of what the newest has."""
    for point, content in (("new", "new"), ("old", "old")):
        (tmp_path / "points" / point / "deep").mkdir(parents=True)
        for name in ("o", "other", "other.of-old"):
            (tmp_path / "points" / point / "deep" / name).write_text(content)
    (tmp_path / "points").chmod(0o700)
    done = run(mend_point_command(Location(path=str(tmp_path)), "new", "old", "contents", ()).argv, came)
    assert done.returncode == 0, done
    mended = {
        name for name in ("o", "other", "other.of-old") if (tmp_path / "points/old/deep" / name).read_text() == "new"
    }
    assert mended == ({"o", "other.of-old"} if came.endswith(b"e") else {"o"}), done


def test_a_mended_folder_has_its_time_to_the_last_digit(tmp_path: Path) -> None:
    """A folder in which a file was made within the second of its own time: rsync took it for one that has that time."""
    for point, digits in (("new", 123_456_789), ("old", 987_654_321)):
        (folder := tmp_path / "points" / point / "deep").mkdir(parents=True)
        os.utime(folder, ns=(0, 1_700_000_000_000_000_000 + digits))
    (tmp_path / "points").chmod(0o700)
    done = run(mend_point_command(Location(path=str(tmp_path)), "new", "old", "contents", ()).argv, b"deep\0end")
    assert done.returncode == 0, done
    assert (tmp_path / "points/old/deep").stat().st_mtime_ns % 1_000_000_000 == 123_456_789
