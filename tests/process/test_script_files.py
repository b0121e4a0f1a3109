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
from tests.process.script_names import (
    CHANGING,
    FAR,
    NEAR,
    NOT_CHANGING,
    far_names,
    first_change,
    is_entered_before,
    led_by_a_listing,
    without_comments,
)

PACKAGE = Path(orchestrator.__file__).parent
FILES = sorted(PACKAGE.glob("**/scripts/*.sh"))
OTHERS = sorted((*PACKAGE.glob("**/scripts/*.lua"), *PACKAGE.glob("**/scripts/*.pl")))
BOX = Host(name="box")


def test_there_are_some() -> None:
    assert {"publish.sh", "sizes-and-times.sh"} <= {file.name for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_script_begins_with_what_it_does_and_is_used(file: Path) -> None:
    lines = file.read_text().splitlines()
    assert lines[0] == "#!/bin/sh"
    assert any(re.match(r"# (For other scripts|[A-Z])", line) for line in lines[1:4])
    for shell in ("sh", "bash"):
        subprocess.run([shell, "-n", str(file)], check=True)
    assert _is_used(file), "nobody runs it"


@pytest.mark.parametrize("file", OTHERS, ids=lambda file: file.name)
def test_a_program_of_another_language_begins_with_what_it_does_and_is_used(file: Path) -> None:
    assert re.match(r"(?:-- |#!/usr/bin/perl\n# )[A-Z]", file.read_text())
    assert _is_used(file), "nobody runs it"


def _is_used(file: Path) -> bool:
    used = "".join(module.read_text() for module in file.parent.parent.rglob("*.py"))
    return f'"{file.name}"' in used


@pytest.mark.slow
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


# Scripts that change something before they have entered a folder, each with the reason why no stranger's name is in it.
MAKES_ITS_FOLDER = {
    "engines/rsync/enter-place.sh": "it enters part by part, and makes what lacks where it stands",
    "engines/rsync/sync-noted.sh": "a function for those that are in our own folder by then",
    "engines/sanoid/run-sanoid.sh": "a folder of ours below the state directory, or of mktemp",
    "engines/sanoid/take.sh": "a folder of ours, from run-sanoid.sh",
    "engines/zfs/hide-snapshot.sh": "a folder of ours below /run, 0700",
    "engines/zfs/read-copy.sh": "dd writes to /dev/null alone",
    "engines/zfs/list-some.sh": "the folder of mktemp",
    "engines/zfs/list-tree.sh": "the folder of mktemp",
    "engines/zfs/damage-files.sh": "the folder of mktemp, and a clone that nobody else has mounted",
    "engines/zfs/mount-scratch.sh": "a folder of ours below /run, 0700",
    "engines/zfs/run-check.sh": "a folder of ours, 0700",
    "engines/zfs/show-snapshot.sh": "a folder of ours below /run, 0700",
    "engines/zfs/work-alone.sh": "the folder of mktemp",
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_nothing_is_changed_by_a_name_before_its_folder_is_entered(file: Path) -> None:
    text = file.read_text()
    at = first_change(text)
    name = "/".join((*file.parent.parent.relative_to(PACKAGE).parts, file.name))
    needs_reason = at is not None and not is_entered_before(text, at)
    assert needs_reason == (name in MAKES_ITS_FOLDER), f"enter the folder first ({text[at or 0 :][:60]!r})"


# Names in rsync's scripts that begin with a value, each with the reason why it is a name in the folder that was entered.
VALUES = {
    ("resume-mirror.sh", '"$half"'): "from a pattern in a folder of ours that was entered",
    ("sweep.sh", '"$1"'): "from -execdir: ./ and the name, in the folder that find is in",
    ("enter-own-folder.sh", '"$probe"'): "from mktemp ./probe.XXXXXX",
    ("try-abilities.sh", "user.rsync.%stat"): "an attribute's name",
    ("try-abilities.sh", '"104755 0,0 4294967294:4294967294"'): "its value",
    ("enter-place.sh", 'cd -P "${POOLFERRY_ROOT-}/" '): "/, or that of without-links.pl",
    ("link-tree.sh", '"$1/."'): "a folder that without-links.pl opened",
    (
        "mend-point.sh",
        '"$2"',
    ): "in the point that was entered, which nobody else can enter, where no link leads anywhere",
    ("mend-point.sh", "xargs -0 -r -n 2 touch"): "the same",
    ("mend-point.sh", 'cd -P "$1/." '): "a folder that without-links.pl opened",
    (
        "link-tree.sh",
        "xargs -0 -r rm",
    ): "in the work tree that was entered, which nobody else can enter, where no link leads anywhere",
    (
        "link-tree.sh",
        """cd -P "$2/." && [ -z "$(ls -A)" ] """,
    ): "the same",
}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_only_names_in_the_entered_folder_are_changed(file: Path) -> None:
    """A path from an argument or a listing leads through folders that somebody may exchange for links."""
    if file.parent.parent.name != "rsync":
        assert led_by_a_listing(file.read_text()) == []
        return
    found = [word for word in far_names(file.read_text()) if (file.name, word) not in VALUES]
    assert found == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_script_starts_rsync_without_the_wall(file: Path) -> None:
    """The door of those that are no scripts is held by tests/test_house.py."""
    lines = [
        line
        for line in without_comments(file.read_text()).splitlines()
        if re.search(r"(^|[\s;|&(])rsync\s+(?!--version)", line)
    ]
    assert [line for line in lines if not re.match(r"\s*without_links .* -- rsync ", line)] == []


@pytest.mark.parametrize("line", CHANGING)
def test_the_rule_sees_what_changes_something(line: str) -> None:
    assert first_change(line) is not None
    assert first_change(f"# {line}") is None


@pytest.mark.parametrize("line", NOT_CHANGING)
def test_the_rule_passes_what_changes_nothing(line: str) -> None:
    assert first_change(line) is None


@pytest.mark.parametrize("line", FAR)
def test_the_rule_sees_a_name_that_leads_elsewhere(line: str) -> None:
    assert far_names(line)


@pytest.mark.parametrize("line", NEAR)
def test_the_rule_passes_names_in_the_entered_folder(line: str) -> None:
    assert far_names(line) == []


# Who may build a command that changes files by a name: what is changed is a device, or a disk's own root.
MAY_CHANGE = {"disks/commands.py", "disks/marker.py", "disks/power.py"}


def test_commands_that_change_files_are_built_in_few_places() -> None:
    programs = '"(?:mv|rm|rmdir|truncate|touch|chmod|chown|ln|tee|install|mkdir|cp|unlink)", |"dd", f?"of='
    built = re.compile(rf"(?:argv=\(|single_command\()(?:{programs})")
    found = {str(module.relative_to(PACKAGE)) for module in PACKAGE.rglob("*.py") if built.search(module.read_text())}
    assert found == MAY_CHANGE
