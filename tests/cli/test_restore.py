"""verify, restore and export by the real command."""

import os
import shutil
import subprocess

import pytest

from tests.ferry import Ferry


@pytest.fixture
def carried(ferry: Ferry) -> Ferry:
    """A job that has run once."""
    ferry.job()
    assert ferry.run("run", "photos").code == 0
    return ferry


def test_verify_reads_every_job(carried: Ferry) -> None:
    carried.job("music")
    carried.run("run", "music")
    told = carried.run("verify")
    assert told.code == 0
    assert [line.split(":")[:2] for line in told.out.splitlines()] == [["music", " done"], ["photos", " done"]]
    value = carried.run("verify", "photos", "--json").value
    assert value["reading"]["sound"] is True
    assert value["reading"]["files_read"] == 2
    assert value["source"] is None
    assert [each["outcome"] for each in carried.run("verify", "--json").value["verified"]] == ["done", "done"]


def test_verify_finds_a_rotten_file(carried: Ferry) -> None:
    rot(carried)
    told = carried.run("verify", "photos", "--json")
    assert told.code == 1
    found = told.value["reading"]["findings"]
    assert [(each["path"], each["verdict"]) for each in found] == [("b.bin", "rotten")]
    again = carried.run("verify", "photos")
    assert "b.bin" in again.out
    assert "what to do: " in again.out
    assert "DAMAGED" in carried.run("points").out
    assert carried.run("status").code == 4


def rot(ferry: Ferry) -> None:
    """Turns one byte of a copy, with size and time as before."""
    [file] = ferry.target().glob("points/*/b.bin")
    about = file.stat()
    file.write_bytes(b"\xff" + file.read_bytes()[1:])
    os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))


def test_verify_reads_the_source_too(carried: Ferry) -> None:
    value = carried.run("verify", "photos", "--source", "--json").value
    assert value["source"]["sound"] is True


def test_one_point_of_several_jobs_is_wrong_usage(carried: Ferry) -> None:
    carried.job("music")
    assert carried.run("verify", "--point", "2024").code == 2


def test_restore_brings_everything_back(carried: Ferry) -> None:
    back = carried.root / "back"
    planned = carried.run("restore", "plan", "photos", "--to", str(back))
    assert planned.code == 0
    assert " | in-folder.sh " in planned.out, planned.out  # the rest is left out of a long line
    assert not back.exists()
    told = carried.run("restore", "run", "photos", "--to", "back", "--json")
    assert told.code == 0
    assert told.value["outcome"] == "done"
    assert (back / "deep" / "a.txt").read_text() == "some words\n"
    assert sorted(os.listdir(back)) == ["b.bin", "deep"]


def test_restore_overwrites_nothing(carried: Ferry) -> None:
    back = carried.root / "back"
    back.mkdir()
    (back / "mine").write_text("mine\n")
    told = carried.run("restore", "run", "photos", "--to", str(back))
    assert told.code == 3
    assert "--aside" in told.out
    assert os.listdir(back) == ["mine"]
    assert carried.run("restore", "run", "photos", "--to", str(back), "--aside").code == 0
    [aside] = [name for name in os.listdir(carried.root) if name.startswith("back.aside-")]
    assert os.listdir(carried.root / aside) == ["mine"]


def test_restore_of_one_file_at_a_time(carried: Ferry) -> None:
    back = carried.root / "back"
    told = carried.run(
        "restore", "run", "photos", "--path", "/deep/a.txt", "--at", "2100-01-01 00:00", "--to", str(back / "a.txt")
    )
    assert told.code == 0
    assert (back / "a.txt").read_text() == "some words\n"
    early = carried.run("restore", "plan", "photos", "--at", "2001-01-01", "--to", str(back / "b"), "--json")
    assert early.code == 3
    assert early.value["decision"] == "refused"


def test_restore_without_a_configuration(carried: Ferry) -> None:
    shutil.rmtree(carried.config)
    shutil.rmtree(carried.state)
    told = carried.run("restore", "run", "--from", str(carried.target()), "--to", "back", "--json")
    assert told.code == 0
    assert told.value["job"] == "photos"
    assert (carried.root / "back" / "deep" / "a.txt").exists()


def test_restore_from_what_is_no_target(carried: Ferry) -> None:
    told = carried.run("restore", "run", "--from", str(carried.root), "--to", "back")
    assert told.code == 1
    assert "does not say that it holds copies of poolferry" in told.err
    assert not (carried.root / "back").exists()


@pytest.mark.parametrize("digest", ["xxh128", "sha256"])
def test_export_is_for_sha256sum(ferry: Ferry, digest: str) -> None:
    ferry.job(more=f'[verify]\ndigest = "{digest}"\n')
    [point] = ferry.run("run", "photos", "--json").value["points"]
    value = ferry.run("points", "export", "photos", "--point", point, "--to", "sums", "--json").value
    assert (value["lines"], value["file"]) == (2, str(ferry.root / "sums"))
    tree = ferry.target() / "points" / point
    subprocess.run(["sha256sum", "--strict", "-c", str(ferry.root / "sums")], cwd=tree, check=True, capture_output=True)
    assert ferry.run("points", "export", "photos", "--to", "/nowhere/at/all").code == 1
