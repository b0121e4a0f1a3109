"""Type the commands of README.md and of the tour into a shell: each `$` line, in order, and what comes must be what is shown.

A block of commands alone shows nothing: there each must end well. Numbers, times and durations may differ.
`WRITE_README=1 pytest tests/test_readme.py` writes the output of the tour anew.
"""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tour import (
    CHECKOUT,
    OTHER_PROGRAMS,
    README,
    TOUR,
    clean_environment,
    commands_of,
    console_blocks,
    is_command,
    run_in_one_shell,
    shape,
    written_into,
)

PAGES = [
    *CHECKOUT.glob("*.md"),
    *(page for folder in ("jobs", "hooks", "systemd", "orchestrator") for page in (CHECKOUT / folder).glob("*.md")),
]
_MOST_WORDS = 2000


@pytest.fixture
def checkout() -> Iterator[Path]:
    """A folder with a short name, so that no column is cut, in which `.venv/bin/poolferry` is the command, as in a checkout."""
    with tempfile.TemporaryDirectory(prefix="tour", dir="/tmp") as folder:
        executable = Path(folder) / ".venv/bin/poolferry"
        executable.parent.mkdir(parents=True)
        executable.write_text(f'#!/bin/sh\nPYTHONPATH={CHECKOUT} exec {sys.executable} -m orchestrator "$@"\n')
        executable.chmod(0o755)
        yield Path(folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "place"),
    [
        pytest.param(README, "/tmp/first", id="README"),
        pytest.param(
            TOUR, "/tmp/tour", id="tour", marks=pytest.mark.namespace
        ),  # it shows all that `check --system` says
        pytest.param(OTHER_PROGRAMS, "/tmp/move", id="other-programs"),
    ],
)
def test_what_a_page_shows_is_what_comes(checkout: Path, page: Path, place: str) -> None:
    text = page.read_text()
    blocks = console_blocks(page, "$")
    commands = [commands_of(block[1], "$") for block in blocks]
    typed = [command.replace(place, str(checkout)) for each in commands for command in each]
    came = run_in_one_shell(typed, cwd=checkout, environment=clean_environment())
    assert len(came) == len(typed), came[-1:]
    results = iter(came)
    written = []
    for block, each in zip(blocks, commands, strict=True):
        pairs = [(command, *next(results)) for command in each]
        if block[1].count("\n") == len(each):  # it shows no output
            assert [pair for pair in pairs if pair[2]] == []
            written.append(block[1])
        else:
            written.append("".join(f"$ {command}\n{said.replace(str(checkout), place)}" for command, said, _ in pairs))
    if os.environ.get("WRITE_README"):
        page.write_text(written_into(text, blocks, written))
        return
    for block, now in zip(blocks, written, strict=True):
        assert shape(now) == shape(block[1])


def test_the_readme_is_short() -> None:
    assert len(README.read_text().split()) <= _MOST_WORDS


def _shown_commands(page: Path) -> Iterator[str]:
    """The commands of ours in the blocks for a shell, and between backticks, of a page."""
    text = page.read_text()
    for block in re.findall(r"^```(?:sh|console)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            typed = re.sub(r"^[$#] ", "", line).partition("   #")[0]
            yield from re.findall(
                r"(?:^|[|;&] *)(?:sudo )?(?:\S*/)?poolferry ((?:[^|;&<>'\"]|'[^']*'|\"[^\"]*\")*)", typed
            )
    for found in re.findall(r"`(?:sudo )?poolferry (?!on \S+:)([^`]*)`", text):  # "poolferry on nas:" begins a notice
        yield found.replace("\n", " ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_command_that_a_page_names_exists_with_its_options(page: Path) -> None:
    assert [shown for shown in _shown_commands(page) if not is_command(shown)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_row_stands_in_a_table(page: Path) -> None:
    """An empty line ends a table, and rows after it are shown as plain text."""
    fenced = re.sub(r"(?ms)^```.*?^```$", "", page.read_text())
    heads = re.findall(r"(?m)(?<!\|)\n(\|.*)\n(.*)", f"\n{fenced}")
    assert [head for head, rule in heads if not re.fullmatch(r"\|( ?:?-+:? \|)+", rule)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]*)#?[^)]*\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    "target", sorted(set(re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)`", README.read_text(), re.MULTILINE)))
)
def test_every_make_target_that_the_readme_names_exists(target: tuple[str, str]) -> None:
    assert re.search(rf"^{''.join(target)}:", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
