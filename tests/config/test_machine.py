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


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('centre = "postgresql://me:secret@c.example.org/fleet"', "without a password"),
        ('centre = "postgresql://c.example.org/fleet?password=x"', "without a password"),
        ('centre = "postgresql://c.example.org/fleet?sslmode=require"', "sslmode=verify-full"),
        ('centre = "postgresql:///fleet?host=c.example.org&sslmode=disable"', "sslmode=verify-full"),
        ('centre = "postgresql:///fleet?options=-crole%3Dx"', "no options in the address"),
        ('centre = "mysql://c.example.org/fleet"', 'an address such as "postgresql://'),
        ('centre = "postgresql://c.example.org"', 'an address such as "postgresql://'),
    ],
)
def test_a_centre_that_a_network_could_forge_is_a_mistake(tmp_path: Path, line: str, what: str) -> None:
    ((number, key, _, expected),) = mistakes(tmp_path, f"[fleet]\n{line}\n")
    assert (number, key) == (2, "fleet.centre")
    assert what in expected


def test_a_centre_on_this_machine_needs_no_tls(tmp_path: Path) -> None:
    for address in (
        "postgresql:///fleet",
        "postgresql:///fleet?host=/run/pg&port=5433",
        "postgresql://127.0.0.1:5/f?sslmode=disable",
    ):
        (tmp_path / "poolferry.toml").write_text(f'[fleet]\ncentre = "{address}"\n')
        assert load_machine_config(str(tmp_path)).fleet.centre == address


def test_a_key_that_others_may_read_is_a_mistake(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "fleet.pem"
    for path in (key, certificate):
        path.write_text("PEM\n")
        path.chmod(0o644)
    text = f'[fleet]\ncentre = "postgresql://c.example.org/fleet"\nkey = "{key}"\n'
    found = mistakes(tmp_path, text)
    assert [(line, at) for line, at, _, _ in found] == [(1, "fleet.certificate"), (3, "fleet.key")]
    assert found[1][2:] == (f"others may read {key} (mode 0644)", f"its owner alone: chmod 600 {key}")
    key.chmod(0o600)
    text += f'certificate = "{certificate}"\n'
    (tmp_path / "poolferry.toml").write_text(text + 'root-certificate = "/nowhere.pem"\n')
    with pytest.raises(DeclarationError, match=r"fleet\.root-certificate: there is no /nowhere\.pem"):
        load_machine_config(str(tmp_path), ["photos"])
    assert load_machine_config(str(tmp_path)).fleet.root_certificate == "/nowhere.pem", "no run stops for want of it"
    (tmp_path / "poolferry.toml").write_text(text)
    assert load_machine_config(str(tmp_path)).fleet.key == str(key)
