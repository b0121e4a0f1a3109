"""Bookmarks that are destroyed together by a program of ours, and one by one where that cannot."""

from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from tests.engines.zfs.script_runner import run
from tests.engines.zfs.sides import HOST, SOURCE, side

HERE = CommandHost()
FAR = side(Location(path="tank/photos", host=HOST))


@pytest.mark.parametrize(("ends", "asked"), [("true", 0), ("false", 5)])
def test_bookmarks_are_destroyed_one_by_one_only_where_they_could_not_be_together(
    ends: str, asked: int, tmp_path: Path
) -> None:
    names = tuple(f"t#{n}" for n in range(5))
    log = tmp_path / "asked"
    command = commands.script_command(
        "destroy-bookmarks.sh", *names, effect=Effect.WRITES, where=HERE,
        before=f'destroy_together() {{ echo "$@" > {tmp_path}/together; {ends}; }}\n',
    )  # fmt: skip
    assert run(command, tmp_path, {"zfs": f"echo $2 >> {log}"}).returncode == 0
    assert (tmp_path / "together").read_text().split() == list(names)
    assert len(log.read_text().split() if log.exists() else ()) == asked


def test_only_several_bookmarks_of_roots_own_machine_go_together() -> None:
    names = tuple(f"t#{n}" for n in range(4))
    for many, where, together in (
        (names, side(SOURCE), True), (names[:3], side(SOURCE), False), (names, side(SOURCE, programs=False), False),
        (names, side(SOURCE, sudo=True), False), (names, FAR, False),
    ):  # fmt: skip
        (command,) = commands.destroy_bookmark_commands(many, where)
        assert ("bookmark_removal" in command.argv[2]) is together, where


@pytest.mark.parametrize("names", [("nosuchpool/t#a",), ("nosuchpool/t@a", "nosuchpool/t#a")])
def test_the_program_for_bookmarks_says_what_it_cannot_do(names: tuple[str, ...], tmp_path: Path) -> None:
    """Without /dev/zfs, and for what is no bookmark."""
    (command,) = commands.destroy_bookmark_commands(("t#1", "t#2", "t#3", "t#4"), side(SOURCE))
    function = command.argv[2].partition("#!/bin/sh")[0].replace("2> /dev/null", "")
    done = run(
        Command(argv=("sh", "-c", f'{function}destroy_together "$@"', "x", *names), effect=Effect.WRITES), tmp_path, {}
    )
    assert (done.returncode, done.stderr) == (1, "")
