"""The README's tour is run: each `$` line of its console blocks, in order, and what it prints must be what is shown.

Numbers, times and durations may differ. `WRITE_README=1 pytest tests/test_readme.py` writes the output anew.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tour import CHECKOUT, README, shape, written_into

TOUR = "/tmp/tour"
_BLOCK = re.compile(r"^```console\n(\$ .*?)^```$", re.MULTILINE | re.DOTALL)  # as # needs datasets: tests/lab has those


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder with a short name, so that no column is cut."""
    with tempfile.TemporaryDirectory(prefix="tour", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.slow
def test_the_tour_prints_what_the_readme_shows(short_path: Path) -> None:
    text = README.read_text()
    blocks = list(_BLOCK.finditer(text))
    assert blocks, "the README has no console block"
    written = _tour([block[1] for block in blocks], short_path)
    if os.environ.get("WRITE_README"):
        README.write_text(written_into(text, blocks, written))
        return
    for block, came in zip(blocks, written, strict=True):
        assert shape(came) == shape(block[1])


def _tour(blocks: list[str], folder: Path) -> list[str]:
    """Return what each block's commands print, with the commands."""
    (folder / "bin").mkdir()
    executable = folder / "bin/poolferry"
    executable.write_text(f'#!/bin/sh\nPYTHONPATH={CHECKOUT} exec {sys.executable} -m orchestrator "$@"\n')
    executable.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "COLUMNS": "200",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }
    environment |= {"POOLFERRY_CONFIG": f"{folder}/etc", "POOLFERRY_STATE": f"{folder}/var"}
    return ["".join(_run(command, folder, environment) for command in _commands(block)) for block in blocks]


def _commands(block: str) -> Iterator[str]:
    """The lines after `$`."""
    return (line[2:] for line in block.splitlines() if line.startswith("$ "))


def _run(command: str, folder: Path, environment: dict[str, str]) -> str:
    real = command.replace(TOUR, str(folder))
    done = subprocess.run(
        ["sh", "-c", real],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=folder,
    )
    return f"$ {command}\n" + done.stdout.replace(str(folder), TOUR)


@pytest.mark.parametrize(
    "target", sorted(set(re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", README.read_text(), re.MULTILINE)))
)
def test_every_make_target_that_the_readme_names_exists(target: tuple[str, str]) -> None:
    assert re.search(rf"^{''.join(target)}:", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
