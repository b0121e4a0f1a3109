"""`setup man`: a page of each command, from its help; groff reads all of them without a warning."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from orchestrator.cli.terminal.options import CliCommand
from orchestrator.cli.terminal.root import root
from tests.ferry import Ferry
from tests.tour import is_command


def test_each_command_gets_a_page_that_renders(tmp_path: Path) -> None:
    into = tmp_path / "share" / "man" / "man1"
    ferry = Ferry(tmp_path)
    written = ferry.run("setup", "man", "--into", str(into), "--json").value["written"]
    assert sorted(written) == sorted(str(path) for path in into.iterdir())
    names = {path.name for path in into.iterdir()}
    assert {f"poolferry-{name}.1" for name in root.list_commands(root.make_context("poolferry", ["status"]))} <= names
    assert {"poolferry.1", "poolferry-restore-run.1", "poolferry-setup-man.1"} <= names
    for path in into.iterdir():
        made = subprocess.run(
            ["groff", "-k", "-man", "-ww", "-Tutf8", "-P-cbou", str(path)], capture_output=True, check=True
        )
        assert (made.stderr, made.stdout.count(b"DESCRIPTION")) == (b"", 1), (path.name, made.stderr.decode())


def test_the_page_of_restore_run_tells_each_of_its_options(tmp_path: Path) -> None:
    into = tmp_path / "man1"
    Ferry(tmp_path).run("setup", "man", "--into", str(into))
    page = (into / "poolferry-restore-run.1").read_text()
    assert r".B \-\-lost\-key DATASET" in page
    assert r".BR poolferry\-restore\-plan (1)," in page


def test_pages_are_taken_away_again_and_nothing_else(tmp_path: Path) -> None:
    into = tmp_path / "man1"
    into.mkdir()
    (into / "other.1").write_text("mine\n")
    ferry = Ferry(tmp_path)
    ferry.run("setup", "man", "--into", str(into))
    told = ferry.run("setup", "man", "--into", str(into), "--remove")
    assert (told.code, [path.name for path in into.iterdir()]) == (0, ["other.1"]), told
    assert f"pages from {into}" in told.out


def commands(group: click.Group, path: str = "poolferry") -> Iterator[tuple[str, CliCommand]]:
    """Yield every command with its words."""
    for name in group.list_commands(click.Context(group)):
        each = group.get_command(click.Context(group), name)
        if isinstance(each, click.Group):
            yield from commands(each, f"{path} {name}")
        elif isinstance(each, CliCommand):
            yield f"{path} {name}", each


@pytest.mark.parametrize(
    ("path", "command"), list(commands(root)), ids=lambda each: each if isinstance(each, str) else ""
)
def test_each_command_has_two_examples_or_more_that_are_commands(path: str, command: CliCommand) -> None:
    assert len(command.examples) >= 2
    for typed, does in command.examples:
        shown = typed.partition("poolferry ")[2].partition(" > ")[0]
        assert is_command(shown), typed
        assert does
    assert any(typed.partition("poolferry")[2].split()[:1] == path.split()[1:2] for typed, _ in command.examples)
