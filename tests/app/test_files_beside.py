"""Test what is said of the files beside copies: damage is over only when all of them are stored anew, and no file is read without end."""

import os
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
    ("RECOVERY.md", "RECOVERY.md.new"), ("SHA256SUMS", "configuration.tar.new"), ("history.sqlite", "history.sqlite.next"),
])  # fmt: skip
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
