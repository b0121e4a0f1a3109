"""Copies over ssh, to a host and from one: every step of the way of a run, with names that break lesser programs.

Changes things.
"""

import os
import sqlite3
from pathlib import Path

import pytest

from tests.whole.house import House, facts, trees_equal
from tests.whole.sshd import Sshd, sshd

__all__ = ["sshd"]

NAMES = (
    b"plain", b"with space", b" leading", b"trailing ", b"-dash", b"--delete", b"new\nline", b"tab\there", b"cr\rhere",
    b"latin-\xe9", b"utf-\xc3\xa9", b"quote'one", b'quote"two', b"$(touch PWNED)", b"`touch PWNED`", b"star*", b"[1]",
    b"1", b"back\\slash", b"\\#012", b"a:b", b"#hash", b";semi", b"\x1b[31m", b"x" * 255, b".x.AbC123", b"~", b"host:1",
)  # fmt: skip
ROOTS = (b"with space", b"new\nline", b"""quote'one"two""", b"[1]", b"latin-\xe9", b"-dash", b"$(touch PWNED)", b"star*")


def fill(folder: Path) -> None:
    """A small tree that holds every name as a file, a folder and a link's target."""
    top = os.fsencode(folder)
    for name in NAMES:
        for path in (top + b"/" + name, top + b"/in/" + name + b"/file"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(b"of " + name)
        os.makedirs(top + b"/links", exist_ok=True)
        os.symlink(name, top + b"/links/" + name)
    os.link(top + b"/plain", top + b"/plain-again")


def push(house: House, sshd: Sshd, **toml: object) -> str:
    """A job whose target lies on the host."""
    return house.job(target=sshd.url(house.target), pipe=sshd.pipe, **toml)


def pull(house: House, sshd: Sshd, **toml: object) -> str:
    """A job whose source lies on the host."""
    return house.job(source=sshd.url(house.source), pipe=sshd.pipe, **toml)


@pytest.mark.parametrize("way", [push, pull])
def test_first_nothing_changed_and_deleted(house: House, sshd: Sshd, way: object) -> None:
    fill(house.source)
    way(house, sshd)
    first = house.run()
    assert (first.code, first.outcome) == (0, "done"), first
    assert trees_equal(house.source, house.point())
    assert facts(house.source) == facts(house.point())
    assert house.run().outcome == "nothing-to-do"
    house.write("plain", "changed")
    os.unlink(house.source / "-dash")
    third = house.run()
    assert third.outcome == "done", third
    assert facts(house.source) == facts(house.point())
    old, new = house.point(0), house.point()
    assert (old / "-dash").exists()
    assert (old / "1").stat().st_ino == (new / "1").stat().st_ino
    assert (old / "plain").read_text() == "of plain"
    assert not list(house.folder.rglob("PWNED"))
