"""Hints about files of ours are typed as they are printed, in folders whose names have blanks; and they end the trouble."""

import os
import re
import shlex
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


@pytest.mark.namespace
def test_configuration_that_the_members_of_its_group_may_change(house: House) -> None:
    """Root's own group has a member, in a namespace with another /etc/group."""
    house.write("a b", "content")
    file = house.config / f"jobs/{house.job()}.toml"
    groups = house.write(house.folder / "groups", "root:x:0:nobody\n")
    os.chown(file, 0, 0)
    file.chmod(0o664)
    mounted = f'mount --bind {shlex.quote(str(groups))} /etc/group && exec "$@"'
    before = ("unshare", "--mount", "sh", "-c", mounted, "sh")
    ran = house.call("check", before=before)
    assert (ran.code, "nobody may write it (members of the group 0)" in str(ran)) == (2, True), ran
    type_command(ran, r": (chmod g-w .*)$")
    assert house.call("check", before=before).code == 0


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


def test_a_record_of_a_rename_that_nobody_can_read(house: House) -> None:
    house.write("a b", "content")
    assert house.run(house.job()).outcome == "done"
    record = house.write(house.state / "locks/rename", "{")
    ran = house.run()
    assert ran.code == 75, ran
    type_command(ran, r"^(rm .*)")
    assert not record.exists()
    assert house.run().outcome == "nothing-to-do"


def test_a_state_directory_into_which_somebody_laid_a_link(house: House) -> None:
    house.write("a b", "content")
    house.job()
    house.state.mkdir()
    house.state.chmod(0o777)
    planted = house.state / "history.sqlite"
    planted.symlink_to("/etc/passwd")
    os.lchown(planted, STRANGER, STRANGER)
    ran = house.run()
    assert "others may write the state directory" in str(ran.value.get("error")), ran
    planted.unlink()
    type_command(ran, r"close the directory: (chmod go-w .*)")
    assert house.state.stat().st_mode & 0o022 == 0
    assert house.run().outcome == "done"


def test_a_job_of_a_kit_is_accepted(house: House) -> None:
    """After a bootstrap, by the command that it shows."""
    house.write("a b", "content")
    hook = house.write(house.folder / "tell", "#!/bin/sh\n")
    hook.chmod(0o755)
    assert house.run(house.job(hooks={"done": [str(hook)]})).outcome == "done"
    folder = house.folder / "new house"
    folder.mkdir()
    new = House(folder)
    (new.config / "jobs").rmdir()
    argv = [word for word in new.argv("restore", "bootstrap", str(house.target)) if word != "--json"]
    told = subprocess.run(argv, env=new.environment, capture_output=True, text=True, check=True)
    assert new.call("run", "photos").code == 2, "it is no job yet"
    type_command(Ran(code=0, value={}, errors=told.stdout + told.stderr), r"or afterwards: (mv .*)")
    assert new.call("check").value["jobs"][0]["job"] == "photos"
