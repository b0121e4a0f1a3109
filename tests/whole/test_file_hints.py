"""Hints about files of ours are typed as they are printed, in folders whose names have blanks; and they end the trouble."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.whole.house import House, Ran

pytestmark = [pytest.mark.root, pytest.mark.slow]
STRANGER = 1234


@pytest.fixture
def house() -> Iterator[House]:
    """A house in a folder that only root may write, up to the top."""
    with TemporaryDirectory(dir="/var/tmp") as folder:
        own = Path(folder, "my house")
        own.mkdir()
        yield House(own)


def type_command(ran: Ran, pattern: str) -> None:
    """Types the part of a message that the pattern's group finds."""
    found = re.search(pattern, "\n".join(str(value) for value in (ran.value.get("hint"), ran.errors)))
    assert found, ran
    subprocess.run(["sh", "-c", found[1]], check=True)


def foreign_link(link: Path, to: Path) -> None:
    link.symlink_to(to)
    os.lchown(link, STRANGER, 0)


def test_configuration_that_others_may_change(house: House) -> None:
    house.write("a b", "content")
    hook = house.write(house.folder / "my hooks/tell", "#!/bin/sh\n")
    house.job(hooks={"done": [str(hook)]})
    file = house.config / "jobs/photos.toml"
    link = house.config / "jobs/other.toml"
    type_command(house.call("check"), r": (chmod \+x .*)$")
    for spoil, words in (
        (lambda: os.chmod(file, 0o666), r": (chmod go-w .*)"),
        (lambda: os.chmod(house.config / "jobs", 0o777), r": (chmod go-w .*)"),
        (lambda: os.chown(file, STRANGER, 0), r": (chown root .*)"),
        (lambda: subprocess.run(["setfacl", "-m", f"u:{STRANGER}:rwx", file], check=True), r": (setfacl -b .*)"),
        (lambda: foreign_link(link, file), r": (chown -h root .*)"),
    ):
        spoil()
        ran = house.call("check")
        assert ran.code == 2, ran
        type_command(ran, words)
        if link.is_symlink():
            link.unlink()
        assert house.call("check").code == 0


def test_a_key_that_others_may_read_and_a_history_that_is_damaged(house: House) -> None:
    house.write("a b", "content")
    assert house.run(house.job()).outcome == "done"
    (house.state / "authentication.key").chmod(0o666)
    house.write("c", "content")
    ran = house.run()
    assert ran.outcome == "failed", ran
    type_command(ran, r"(chown 0 .*? && chmod 600 .*?);")
    assert house.run().outcome == "done"
    history = house.state / "history.sqlite"
    history.write_bytes(history.read_bytes()[:4096] + bytes(8192))
    ran = house.run()
    assert "is damaged" in str(ran.value.get("error")), ran
    type_command(ran, r"set it aside \((mv .*?);")
    assert house.run().outcome == "nothing-to-do"
    assert Path(f"{history}.broken").exists()


def test_a_secret_that_others_may_read(house: House) -> None:
    house.job()
    secret = house.write(house.config / "my token", "tk_1")
    house.write(
        house.config / "poolferry.toml",
        f'[notice.room]\nkind = "ntfy"\ntopic = "https://example.org/x"\ntoken-file = "{secret}"\n',
    )
    secret.chmod(0o644)
    ran = house.call("check", "--system")
    type_command(Ran(code=0, value={}, errors=str(ran.value)), r"its secret: (chmod 600 '.*?')")
    assert secret.stat().st_mode & 0o77 == 0
