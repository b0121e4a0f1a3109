"""hooks/README.md: its examples are valid, name hooks that exist, and its own hook in three lines works."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

from orchestrator.domain.job import EVENTS

FOLDER = Path(__file__).parents[2] / "hooks"
TEXT = (FOLDER / "README.md").read_text(encoding="utf-8")
SHIPPED = {path.name for path in FOLDER.iterdir() if path.is_file() and not path.suffix}


def blocks(language: str) -> list[str]:
    """The fenced examples in one language."""
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def commands() -> list[tuple[str, list[str]]]:
    """Every command of every example, with its event."""
    found: list[tuple[str, list[str]]] = []
    for block in blocks("toml"):
        for event, written in tomllib.loads(block)["hooks"].items():
            if event != "timeout":
                lists = written if isinstance(written[0], list) else [written]
                found += [(event, [each] if isinstance(each, str) else each) for each in lists]
    return found


def test_every_example_names_an_event_and_a_hook_that_is_shipped() -> None:
    assert {event for event, _ in commands()} <= set(EVENTS)
    assert {argv[0] for _, argv in commands() if "/" not in argv[0]} == SHIPPED


def test_every_event_and_every_hook_is_described() -> None:
    assert [event for event in EVENTS if f"`{event}`" not in TEXT] == []
    assert [name for name in SHIPPED if f"[`{name}`]({name})" not in TEXT] == []
    assert [name for name in SHIPPED if not os.access(FOLDER / name, os.X_OK)] == []


def test_the_hook_in_three_lines_decides(tmp_path: Path) -> None:
    (text,) = blocks("sh")
    assert len(text.splitlines()) == 3
    hook = tmp_path / "my-hook"
    hook.write_text(text.replace("/srv/photos", str(tmp_path)), encoding="utf-8")
    hook.chmod(0o755)
    statuses = [subprocess.run([hook], env={"POOLFERRY_EVENT": event}).returncode for event in ("before", "done")]
    assert statuses == [75, 0]
