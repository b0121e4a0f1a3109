"""A restore works from the target alone: a state directory that is full, read-only or damaged does not stop it."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.whole.house import House, facts


@pytest.fixture
def small_state(house: House) -> Iterator[Path]:
    """A state directory on a filesystem of its own, of 8 MiB."""
    house.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "small", str(house.state)], check=True)
    try:
        yield house.state
    finally:
        subprocess.run(["umount", str(house.state)], check=True)


@pytest.mark.root
@pytest.mark.parametrize("trouble", ["full", "read-only", "damaged", "damaged in part"])
def test_a_state_that_cannot_be_used(house: House, small_state: Path, trouble: str) -> None:
    house.write("file", "content")
    assert house.run(house.job()).outcome == "done"
    if trouble == "full":
        with contextlib.suppress(OSError), (small_state / "filler").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 12))
    elif trouble == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", str(small_state)], check=True)
    elif trouble == "damaged":
        (small_state / "history.sqlite").write_bytes(b"no database at all" * 999)
    else:  # so that it can be opened and written to
        pages = bytearray((small_state / "history.sqlite").read_bytes())
        for at in range(2 << 12, 5 << 12, 7):
            pages[at] ^= 0xFF
        (small_state / "history.sqlite").write_bytes(pages)
    for words in ((), ("--to", str(house.folder / "back"))):
        assert (plan := house.call("restore", "plan", "photos", *words)).code == 0, plan
    for number, origin in enumerate((("photos",), ("--from", str(house.target)))):
        to = house.folder / f"back{number}"
        ran = house.call("restore", "run", *origin, "--to", str(to))
        assert (ran.code, ran.outcome) == (0, "done"), ran
        assert "verified" in ran["why"]
        assert ran["run"] == 0, "it was recorded nowhere"
        assert "--state" in ran.errors
        assert facts(to) == facts(house.source)
