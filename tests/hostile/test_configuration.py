"""Files that decide what root runs, and that others may write or exchange: `check` and each run refuse them, and name the command that helps."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator import compose
from orchestrator.domain.errors import ConfigMistake, DeclarationError
from tests.hostile.conftest import STRANGER, tries
from tests.whole.house import House

pytestmark = pytest.mark.root
Loosen = Callable[[Path], object]


def grant(path: Path) -> None:
    """An access list by which the stranger may write; the owner, the group and the mode look as always."""
    subprocess.run(["setfacl", "-m", f"u:{STRANGER}:rwx", str(path)], check=True)


def to_a_group(path: Path) -> None:
    os.chown(path, 0, STRANGER)
    path.chmod(path.stat().st_mode | 0o020)


WAYS: dict[str, Loosen] = {
    "all may write": lambda path: path.chmod(path.stat().st_mode | 0o002),
    "a group may write": to_a_group,
    "it is hers": lambda path: os.chown(path, STRANGER, STRANGER),
    "an access list": grant,
}


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return path


def hers_behind(house: House) -> Path:
    """A folder of root's above the configuration's parts, such as /srv."""
    folder = house.folder / "above/srv"
    folder.mkdir(parents=True)
    return folder


def plain(house: House) -> None:
    house.write("file", "content")
    house.job()


def with_hook(house: House) -> Path:
    hook = program(hers_behind(house) / "hook")
    house.job(hooks={"done": [str(hook)]})
    return hook


def with_script(house: House) -> Path:
    hook = program(hers_behind(house) / "hook")
    house.job(hooks={"done": ["sh", str(hook)]})
    return hook


def with_own_hook(house: House) -> Path:
    hook = program(house.config / "hooks/mine")
    house.job(hooks={"done": ["mine"]})
    return hook


def with_check(house: House) -> Path:
    check = program(hers_behind(house) / "check")
    house.job(drill={"check_command": [str(check)]})
    return check


def with_ssh(house: House, *words: str) -> Path:
    file = hers_behind(house) / "file"
    file.write_text("")
    house.job(source="ssh://127.0.0.1/x", pipe={"ssh_options": [word.replace("FILE", str(file)) for word in words]})
    return file


def with_rules(house: House) -> Path:
    folder = hers_behind(house) / "sanoid"
    folder.mkdir()
    (folder / "sanoid.conf").write_text("[template_x]\n")
    house.job(engine="sanoid", source="tank/x", snapshots={"use": str(folder)})
    file = house.config / "jobs/photos.toml"
    file.write_text(re.sub("target = .*\n", "", file.read_text()))
    return folder / "sanoid.conf"


def with_disk_key(house: House) -> Path:
    file = hers_behind(house) / "key"
    file.write_text("secret")
    file.chmod(0o600)
    house.job(target="/x")
    (house.config / "targets.toml").write_text(
        f'[set.photos]\n[disk.red]\nset = "photos"\nidentity = "0b7f2c1e-8a55-4c1d-9f5e-3f0c6a1b2d4e"\nkey-file = "{file}"\n'
    )
    return file


def with_secret(house: House) -> Path:
    file = hers_behind(house) / "secret"
    file.write_text("https://example.org/x\n")
    (house.config / "poolferry.toml").write_text(f'[notice.me]\nkind = "webhook"\nurl = "@{file}"\n')
    return file


FILES: dict[str, Callable[[House], Path]] = {
    "job": lambda house: house.config / "jobs/photos.toml",
    "jobs": lambda house: house.config / "jobs",
    "targets": lambda house: house.config / "targets.toml",
    "folder": lambda house: house.config,
    "above": lambda house: house.folder,
    "machine": lambda house: house.write(house.config / "poolferry.toml", "[history]\nkeep = '400d'\n"),
    "hook": with_hook,
    "hook's folder": lambda house: with_hook(house).parent,
    "above hook's folder": lambda house: with_hook(house).parent.parent,
    "script of a hook": with_script,
    "own hook": with_own_hook,
    "hooks": lambda house: with_own_hook(house).parent,
    "check-command": with_check,
    "ssh's key": lambda house: with_ssh(house, "-i", "FILE"),
    "ssh's configuration": lambda house: with_ssh(house, "-F", "FILE"),
    "ssh's library": lambda house: with_ssh(house, "-4I", "FILE"),
    "ssh's key by name": lambda house: with_ssh(house, "-oIdentityFile FILE"),
    "ssh's certificate": lambda house: with_ssh(house, "-o", "CertificateFile=FILE"),
    "ssh's proxy": lambda house: with_ssh(house, "-oProxyCommand=FILE %h"),
    "ssh's known hosts": lambda house: with_ssh(house, "-o", 'UserKnownHostsFile="/dev/null" FILE'),
    "sanoid.conf": with_rules,
    "disk's key": with_disk_key,
    "secret": with_secret,
}


def mistakes(house: House) -> list[ConfigMistake]:
    """All that is wrong with the configuration, without another program."""
    where = compose.Directories(config=str(house.config), state=str(house.state))
    found: list[ConfigMistake] = []
    for read in (compose.read_configuration, compose.read_machine_config):
        try:
            read(where)
        except DeclarationError as error:
            found += error.mistakes
    return found


def close(path: Path, mistake: str) -> None:
    """Do what the mistake tells to do."""
    closing = mistake.partition(" alone to write it: ")[2]
    subprocess.run(["sh", "-c", closing], check=True)
    if path.stat().st_gid == STRANGER and path.stat().st_mode & 0o020:  # the next look would say so
        path.chmod(path.stat().st_mode & ~0o020)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("file", FILES)
def test_what_others_may_write_is_refused_until_it_is_closed(house: House, file: str, way: str) -> None:
    plain(house)
    path = FILES[file](house)
    assert mistakes(house) == []
    WAYS[way](path)
    assert way not in ("all may write", "an access list") or tries("test", "-w", path)
    (found,) = mistakes(house)
    assert found.file == str(path), found
    close(path, found.expected)
    assert mistakes(house) == [], found
    assert not tries("test", "-w", path)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sample(2)
def test_check_and_each_run_refuse_it(house: House, way: str) -> None:
    plain(house)
    hook = with_hook(house)
    WAYS[way](hook)
    for command in (["check"], ["run", "photos"], ["plan", "photos"]):
        ended = house.call(*command)
        assert ended.code == 2, ended
        assert ended["mistakes"][0]["file"] == str(hook), ended
    close(hook, ended["mistakes"][0]["expected"])
    assert house.run().outcome == "done"


@pytest.mark.parametrize("file", ["machine", "secret"])
def test_a_copy_needs_no_notices_and_nothing_of_such_a_file_is_used(house: House, file: str) -> None:
    plain(house)
    path = FILES[file](house)
    path.chmod(0o666)
    ended = house.run()
    assert ended.outcome == "done", ended
    assert f"{path}: " in ended.errors
    assert "no notice is sent for this run" in ended.errors


def test_a_link_on_the_way_that_is_hers_is_refused(house: House) -> None:
    """Root's link leads to one of hers, which leads to root's file for now."""
    plain(house)
    real = program(house.folder / "real/hook")
    hers = house.folder / "hers"
    hers.mkdir()
    os.chown(hers, STRANGER, STRANGER)
    assert tries("ln", "-s", real, hers / "link")
    (house.folder / "first").symlink_to(hers / "link")
    house.job(hooks={"done": [str(house.folder / "first")]})
    ended = house.call("run", "photos")
    assert ended.code == 2, ended
    assert {mistake["file"] for mistake in ended["mistakes"]} == {str(hers), str(hers / "link")}


def test_links_of_roots_are_as_good_as_files(house: House) -> None:
    plain(house)
    real = program(house.folder / "real/hook")
    (house.folder / "second").symlink_to("real/../real")
    (house.folder / "first").symlink_to("second/hook")
    house.job(hooks={"done": [str(house.folder / "first")]})
    assert house.run().outcome == "done"
    real.chmod(0o777)
    assert house.run()["mistakes"][0]["file"] == str(real)


@pytest.mark.parametrize("event", ["before", "done"])
@pytest.mark.parametrize("how", ["missing", "not executable", "a folder", "a link to nothing"])
def test_a_hook_that_cannot_be_run_is_a_mistake(house: House, how: str, event: str) -> None:
    plain(house)
    path = house.folder / "hook"
    if how == "not executable":
        program(path).chmod(0o644)
    elif how == "a folder":
        path.mkdir()
    elif how == "a link to nothing":
        path.symlink_to("nothing")
    house.job(hooks={event: [str(path)]})
    ended = house.call("check")
    assert ended.code == 2, ended
    assert ended["mistakes"][0]["key"] == f"hooks.{event}"
    assert ended["mistakes"][0]["line"] is not None


@pytest.mark.parametrize("key", ["hooks", "drill"])
def test_a_relative_path_is_no_program(house: House, key: str) -> None:
    """In a drill it would be a file of the data's owner, in the folder of what came back."""
    house.write("check/it", "#!/bin/sh\ntouch /PWNED\n")
    house.job(**{key: {"done" if key == "hooks" else "check_command": ["check/it"]}})
    ended = house.call("check")
    assert ended.code == 2, ended
    assert "relative" in ended["mistakes"][0]["what"]
