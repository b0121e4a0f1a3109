"""Test that what means nothing to an engine is a mistake with its line: to the loader, to the command, and to editors."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import compose
from orchestrator.config.load import load_configuration
from orchestrator.config.schema import job_schema
from orchestrator.domain.errors import DeclarationError
from tests.config.given import ENGINES, JOB, TARGETS, written
from tests.config.schema import fits
from tests.ferry import Ferry

UNUSED = {**ENGINES, "tree": replace(ENGINES["tree"], without=("guard", "pipe.buffer", "pipe.transport"))}
SETS = 'engine = "sets"\nsource = "tank/photos"\ntarget = "vault"\n[sets]\nlabel = "a"\n'


def mistakes(folder: Path, text: str) -> list[str]:
    files = {"targets.toml": TARGETS + '[place.vault]\ndataset = "vault"\n', "jobs/a.toml": text}
    try:
        load_configuration(written(folder, files), UNUSED)
    except DeclarationError as error:
        return [str(mistake).rpartition("a.toml:")[2] for mistake in error.mistakes]
    return []


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("[pipe]\nrate-limit = 5", []),
        ('[pipe]\nbuffer = "1M"', ["5: pipe.buffer: the engine tree has no streams of datasets, expected no such key"]),
        (
            '[pipe]\nrate-limit = 5\ntransport = "mbuffer"',
            ["6: pipe.transport: the engine tree has no streams of datasets, expected no such key"],
        ),
        ("[guard]", ["4: guard: means nothing to the engine tree, expected no such section"]),
        ("pipe = 7", ["4: pipe: 7 does not fit, expected a section: [pipe] on a line of its own"]),
    ],
)
def test_a_key_that_the_engine_does_not_use_is_a_mistake(tmp_path: Path, more: str, told: list[str]) -> None:
    text = JOB + more
    assert mistakes(tmp_path, text) == told
    assert fits(job_schema(UNUSED), tomllib.loads(text)) == (not told)


def test_a_public_address_is_no_second_mistake_of_it(tmp_path: Path) -> None:
    text = JOB.replace("/srv/photos", "ssh://root@198.51.100.7/srv") + '[pipe]\ntransport = "mbuffer"'
    assert len(mistakes(tmp_path, text)) == 1


def test_other_engines_use_it(tmp_path: Path) -> None:
    text = f'{SETS}[guard]\n[pipe]\nbuffer = "1M"\n'
    assert mistakes(tmp_path, text) == []
    assert fits(job_schema(UNUSED), tomllib.loads(text))


@pytest.mark.parametrize(
    ("name", "unused"), [("rsync", {"buffer", "transport"}), ("zfs", set()), ("sanoid", {"buffer", "transport"})]
)
def test_what_the_engines_themselves_do_not_use(name: str, unused: set[str]) -> None:
    without = compose.EngineSections()[name].without
    assert {f"pipe.{key}" in without for key in unused} <= {True}
    assert {"pipe.stall-after", "pipe.ssh-options"}.isdisjoint(without)
    assert bool(without) is bool(unused)


def test_the_command_says_where_and_ends_with_2(tmp_path: Path) -> None:
    ferry = Ferry(tmp_path)
    ferry.job(more='[pipe]\nrate-limit = "1M"\ntransport = "mbuffer"\n')
    ended = ferry.run("check")
    assert ended.code == 2
    assert "photos.toml:6: pipe.transport: the engine rsync has no streams of datasets" in ended.out + ended.err
