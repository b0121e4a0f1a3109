"""A job that prunes what came is for what came through a gate, and for nothing else."""

from pathlib import Path

import pytest

from orchestrator.config.load import load_configuration
from orchestrator.domain.errors import DeclarationError
from tests.config.given import written
from tests.config.shipped import SHIPPED

JOB = 'engine = "prune"\nsource = "{source}"\n[keep]\ndaily = 14\n'
GATES = {
    "gates/laptop.toml": 'receives = "vault/in/laptop"\n',
    "gates/other.toml": 'reads = "/srv"\n',
    "gates/bad.toml": "x",
}


def mistakes(folder: Path, source: str, gates: dict[str, str]) -> list[str]:
    try:
        load_configuration(written(folder, {"jobs/in.toml": JOB.format(source=source), **gates}), SHIPPED)
    except DeclarationError as error:
        return [str(mistake).rpartition("in.toml:")[2] for mistake in error.mistakes]
    return []


@pytest.mark.parametrize("source", ["vault/in/laptop", "vault/in/laptop/photos"])
def test_what_a_gate_receives_may_be_pruned(tmp_path: Path, source: str) -> None:
    assert mistakes(tmp_path, source, GATES) == []


@pytest.mark.parametrize("source", ["vault", "vault/in", "vault/in/laptop2", "tank"])
def test_nothing_else_is(tmp_path: Path, source: str) -> None:
    expected = "a dataset into which a gate receives: vault/in/laptop"
    assert mistakes(tmp_path, source, GATES) == [f"2: source: no gate receives into {source}, expected {expected}"]
    (told,) = mistakes(tmp_path / "without", source, {})
    assert "gates/NAME.toml with receives" in told


def test_what_lies_elsewhere_is_pruned_there(tmp_path: Path) -> None:
    (told,) = mistakes(tmp_path, "ssh://root@server/vault/in/laptop", GATES)
    assert "lies on another machine" in told


def test_the_folder_to_which_a_gate_adds_may_be_pruned_and_no_other(tmp_path: Path) -> None:
    gates = {**GATES, "gates/folder.toml": 'adds = "/backup/laptop"\n'}
    assert mistakes(tmp_path, "/backup/laptop", gates) == []
    for source in ("/backup", "/backup/laptop/points", "/srv"):
        expected = "a folder to which a gate adds: /backup/laptop"
        assert mistakes(tmp_path, source, gates) == [f"2: source: no gate adds to {source}, expected {expected}"]
    (told,) = mistakes(tmp_path / "without", "/backup/laptop", {})
    assert "gates/NAME.toml with adds" in told
