"""Test what is said of the files beside copies: damage is over only when all of them are stored anew, and no file is read without end."""

import os
import shutil
from pathlib import Path

import pytest

from tests.ferry import Ferry


@pytest.fixture
def beside(ferry: Ferry) -> Path:
    """The folder beside the copies of a job that ran."""
    ferry.job()
    assert ferry.run("run", "photos").code == 0
    return ferry.target() / ".poolferry"


def state(ferry: Ferry) -> str:
    (job,) = ferry.run("status", "--json").value["jobs"]
    return str(job["state"])


@pytest.mark.parametrize("verified", [True, False])
@pytest.mark.parametrize(("name", "in_the_way"), [
    ("RECOVERY.md", "RECOVERY.md.new"), ("SHA256SUMS", "configuration.tar.new"), ("history.sqlite", "history.sqlite.new"),
])  # fmt: skip
@pytest.mark.sample(2)
def test_damage_is_over_only_when_all_is_stored(
    ferry: Ferry, beside: Path, name: str, in_the_way: str, verified: bool
) -> None:
    (beside / name).write_bytes(b"not ours")
    if verified:
        assert ferry.run("verify", "photos").code == 1
        assert state(ferry) == "failing"
    (beside / in_the_way).mkdir()
    told = ferry.run("run", "photos")
    assert told.code == 0, told
    assert "; written anew" not in told.out + told.err, told
    assert state(ferry) == "failing", told
    (beside / in_the_way).rmdir()
    assert ferry.run("run", "photos").code == 0
    assert state(ferry) == "up"
    assert ferry.run("verify", "photos").code == 0


@pytest.mark.parametrize("name", ["RECOVERY.md", "history.sqlite"])
def test_a_file_without_an_end_is_damage_and_is_not_read(ferry: Ferry, beside: Path, name: str) -> None:
    os.truncate(beside / name, 1 << 40)
    told = ferry.run("verify", "photos")
    assert (told.code, f"{name} beside the copies" in told.out + told.err) == (1, True), told
    assert ferry.run("run", "photos").code == 0
    assert (beside / name).stat().st_size < 1 << 20
    assert ferry.run("verify", "photos").code == 0


def test_stores_that_fail_one_after_another_are_no_damage(ferry: Ferry, beside: Path) -> None:
    place = ferry.config / "targets.toml"
    (beside / "configuration.tar.new").mkdir()
    for number in range(3):
        place.write_text(f"{place.read_text()}# {number}\n")
        (ferry.root / "photos-source/new").write_text(f"words {number}")
        assert ferry.run("run", "photos").code == 0
    assert ferry.run("verify", "photos").code == 0, "the old files lie there, whole"


def test_an_earlier_history_or_an_earlier_set_beside_the_copies_is_no_damage(ferry: Ferry, beside: Path) -> None:
    """The first as a hint says to put it back; the second as a power cut leaves it, which takes back what no disk had yet."""
    earlier = ferry.root / "earlier"
    shutil.copytree(beside, earlier)
    place = ferry.config / "targets.toml"
    for number in range(2):
        place.write_text(f"{place.read_text()}# {number}\n")
        (ferry.root / "photos-source/new").write_text(f"words {number}")
        assert ferry.run("run", "photos").code == 0
    shutil.copy2(earlier / "history.sqlite", ferry.state / "history.sqlite")
    assert ferry.run("verify", "photos").code == 0
    for word in ("run", "run", "verify"):
        (ferry.root / "photos-source/new").write_text(f"words {word}")
        told = ferry.run(word, "photos")
        assert (told.code, "not as this host wrote" in told.out + told.err) == (0, False), told
    for name in ("RECOVERY.md", "configuration.tar", "history.sqlite", "SHA256SUMS"):
        shutil.copy2(earlier / name, beside / name)
    for word in ("verify", "run", "verify"):
        told = ferry.run(word, "photos")
        assert (told.code, "not as this host wrote" in told.out + told.err) == (0, False), told
