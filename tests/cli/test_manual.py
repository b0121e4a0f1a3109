"""`setup man`: a page of each command, from its help; groff reads all of them without a warning."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from orchestrator.app.config_check import read_schemas
from orchestrator.cli.terminal.options import CliCommand
from orchestrator.cli.terminal.root import root
from tests.ferry import Ferry
from tests.tour import is_command


def test_each_command_gets_a_page_that_renders(tmp_path: Path) -> None:
    into = tmp_path / "share" / "man"
    ferry = Ferry(tmp_path)
    written = ferry.run("setup", "man", "--into", str(into), "--json").value["written"]
    assert sorted(written) == sorted(str(path) for path in into.glob("*/*"))
    names = {path.name for path in into.glob("*/*")}
    assert {f"poolferry-{name}.1" for name in root.list_commands(root.make_context("poolferry", ["status"]))} <= names
    assert {"poolferry.1", "poolferry-restore-run.1", "poolferry-setup-man.1"} <= names
    for path in into.glob("*/*"):
        made = subprocess.run(
            ["groff", "-k", "-man", "-ww", "-Tutf8", "-P-cbou", str(path)], capture_output=True, check=True
        )
        assert made.stderr == b"", (path.name, made.stderr.decode())
        assert made.stdout.count(b"DESCRIPTION") == (path.suffix != ".5"), path.name


def test_the_page_of_restore_run_tells_each_of_its_options(tmp_path: Path) -> None:
    into = tmp_path / "man"
    Ferry(tmp_path).run("setup", "man", "--into", str(into))
    page = (into / "man1" / "poolferry-restore-run.1").read_text()
    assert r".B \-\-lost\-key DATASET" in page
    assert r".BR poolferry\-restore\-plan (1)," in page


def _shown(page: Path) -> str:
    made = subprocess.run(["groff", "-k", "-man", "-Tutf8", "-P-cbou", str(page)], capture_output=True, check=True)
    return made.stdout.decode()


def _keys(schema: dict[str, Any]) -> Iterator[str]:
    for name, each in schema.get("properties", {}).items():
        yield name
        yield from _keys(each)


@pytest.mark.parametrize(
    ("page", "kind"),
    [("poolferry-jobs.5", "jobs/*.toml"), ("targets.toml.5", "targets.toml"), ("poolferry.toml.5", "poolferry.toml")],
)
def test_every_key_of_the_configuration_is_in_its_page(tmp_path: Path, page: str, kind: str) -> None:
    Ferry(tmp_path).run("setup", "man", "--into", str(tmp_path / "man"))
    shown = _shown(tmp_path / "man" / "man5" / page).replace("\u2010", "-")
    assert [key for key in _keys(read_schemas()[kind]) if not re.search(rf"\b{re.escape(key)}\b", shown)] == []


def test_the_contract_of_hooks_is_a_page(tmp_path: Path) -> None:
    Ferry(tmp_path).run("setup", "man", "--into", str(tmp_path / "man"))
    shown = _shown(tmp_path / "man" / "man7" / "poolferry-hooks.7")
    assert "POOLFERRY_JOB" in shown


def test_pages_are_taken_away_again_and_nothing_else(tmp_path: Path) -> None:
    into = tmp_path / "man"
    (into / "man1").mkdir(parents=True)
    (into / "man1" / "other.1").write_text("mine\n")
    ferry = Ferry(tmp_path)
    ferry.run("setup", "man", "--into", str(into))
    told = ferry.run("setup", "man", "--into", str(into), "--remove")
    assert (told.code, [path.name for path in into.glob("*/*")]) == (0, ["other.1"]), told
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
