"""The scripts of the package: each is sound and used, and each arrives at a far host as it is, whatever shell logs in there."""

import re
import subprocess
from pathlib import Path

import pytest

import orchestrator
from orchestrator.domain.command_line import ssh_argv
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Effect
from orchestrator.process.scripts import script, script_command

PACKAGE = Path(orchestrator.__file__).parent
FILES = sorted(PACKAGE.glob("**/scripts/*.sh"))
BOX = Host(name="box")


def test_there_are_some() -> None:
    assert {"publish.sh", "sizes-and-times.sh"} <= {file.name for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_script_begins_with_what_it_does_and_is_used(file: Path) -> None:
    lines = file.read_text().splitlines()
    assert lines[0] == "#!/bin/sh"
    assert any(re.match(r"# (For other scripts|[A-Z])", line) for line in lines[1:4])
    subprocess.run(["sh", "-n", str(file)], check=True)
    room = file.parent.parent
    used = "".join(module.read_text() for module in room.rglob("*.py"))
    assert f'"{file.name}"' in used or f"'{file.name}'" in used, "nobody runs it"


def test_shellcheck_is_content() -> None:
    try:
        done = subprocess.run(["shellcheck", *map(str, FILES)], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("shellcheck is not here; `make check` runs it")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_script_travels_on_one_line_that_any_login_shell_passes_on(file: Path) -> None:
    """csh knows no newline inside quotes and takes ! for its history, fish takes two backslashes there for one."""
    room = str(file.parent.parent.relative_to(PACKAGE))
    remote = ssh_argv(script_command(room, file.name, "one", effect=Effect.READS, host=BOX))[-1]
    assert not re.search(r"\n|!|\\\\|\\'", remote)


@pytest.mark.parametrize("login", ["sh", "bash"])
@pytest.mark.parametrize(
    "text", ['printf \'%s|\' "$0" "$@"\n# it\'s !\n', "printf 'a\\\\b\\0134\\n%s' \"$2\"\n\n[ ! -e / ] || exit 7\n"]
)
def test_a_far_script_does_what_it_does_here(login: str, text: str) -> None:
    argv = ("sh", "-c", text, "show.sh", "two words", "it's\\n")
    here = subprocess.run(argv, capture_output=True, check=False)
    command = Command(argv=argv, effect=Effect.READS, host=BOX)
    there = subprocess.run([login, "-c", ssh_argv(command)[-1]], capture_output=True, check=False)
    assert (there.returncode, there.stdout, there.stderr) == (here.returncode, here.stdout, here.stderr)
    assert here.stdout


def test_a_script_is_read_as_it_is() -> None:
    assert script("engines/rsync", "publish.sh") == (PACKAGE / "engines/rsync/scripts/publish.sh").read_text()
