"""poolferry.toml: its defaults, its sections, and every mistake at once."""

from pathlib import Path

import pytest

from orchestrator.config.machine import load_machine_config
from orchestrator.domain.errors import DeclarationError
from orchestrator.domain.machine import MachineConfig


def mistakes(folder: Path, text: str) -> list[tuple[int | None, str, str, str]]:
    (folder / "poolferry.toml").write_text(text)
    with pytest.raises(DeclarationError) as caught:
        load_machine_config(str(folder))
    return [(each.line, each.key, each.what, each.expected) for each in caught.value.mistakes]


def test_without_the_file_the_defaults_hold(tmp_path: Path) -> None:
    assert load_machine_config(str(tmp_path)) == MachineConfig()


def test_a_section_is_read(tmp_path: Path) -> None:
    (tmp_path / "poolferry.toml").write_text("[clock]\nparallel = 3\n")
    assert load_machine_config(str(tmp_path)).clock.parallel == 3


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    found = mistakes(tmp_path, "[clock]\nparallel = 0\n[clocks]\n[clock.deeper]\n")
    assert [(line, key) for line, key, _, _ in found] == [(2, "clock.parallel"), (3, "clocks"), (4, "clock.deeper")]
    assert found[1][2:] == ("unknown key", "[clock], the nearest name")


def test_a_section_that_is_no_section_is_told(tmp_path: Path) -> None:
    assert mistakes(tmp_path, "clock = 2\n")[0][2:] == ("2 does not fit", "a section: [clock] on a line of its own")


def test_a_broken_file_is_one_mistake(tmp_path: Path) -> None:
    assert len(mistakes(tmp_path, "[clock\n")) == 1
