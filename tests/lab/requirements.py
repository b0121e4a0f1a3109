"""Packages that poolferry needs at run time, out of requirements.lock: for the guest's Python, hashes and all.

Reads, and downloads.
"""

import importlib.metadata
import itertools
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from tests.lab.common import CHECKOUT, LabError

# Wheels for any Linux with a C library not newer than Debian 12's.
_PLATFORMS = tuple(f"manylinux_2_{minor}_x86_64" for minor in (36, 35, 34, 31, 28, 27, 24, 17, 12, 5))
# What runs and the daemon may use; pages and importers are tested outside of machines.
_EXTRAS = ("metrics", "notices")
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def runtime_requirements() -> str:
    """The part of requirements.lock that runs need, with the extras of these tests, in the lock's own order."""
    locked = _locked((CHECKOUT / "requirements.lock").read_text())
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    wanted: set[str] = set()
    extras = [project["optional-dependencies"][extra] for extra in _EXTRAS]
    ask = [_name(text) for text in (*project["dependencies"], *itertools.chain(*extras))]
    while ask:
        name = ask.pop()
        if name in locked and name not in wanted:
            wanted.add(name)
            ask += _needs(name)
    return "".join(block for name, block in locked.items() if name in wanted)


def _needs(package: str) -> list[str]:
    """Return what a package needs on this kind of machine, without its extras."""
    told = [Requirement(line) for line in importlib.metadata.requires(package) or []]
    return [_name(need.name) for need in told if not need.marker or need.marker.evaluate({"extra": ""})]


def unpack(listed: str, folder: Path, *, python: str) -> None:
    """Fills a folder with the packages of a requirements file, for that Python; pip checks every hash. Raises LabError."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(listed)
        file.flush()
        argv = [
            sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps",
            "--no-compile", "--require-hashes", "--only-binary=:all:", "--implementation=cp", f"--python-version={python}",
            *(f"--platform={platform}" for platform in _PLATFORMS), f"--target={folder}", "-r", file.name,
        ]  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"pip could not fetch what the guest needs, for Python {python}:\n{done.stderr}")


def _name(text: str) -> str:
    found = _NAME.match(text)
    return re.sub(r"[-_.]+", "-", found.group()).lower() if found else ""


def _locked(text: str) -> dict[str, str]:
    """Name to its block of lines: the version, and one line for each hash."""
    blocks: dict[str, str] = {}
    name = ""
    for line in text.splitlines(keepends=True):
        if line.startswith("#"):
            continue
        if not line[0].isspace():
            name = _name(line)
        blocks[name] = blocks.get(name, "") + line
    return blocks
