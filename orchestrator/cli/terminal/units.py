"""Answers of the commands that install units of systemd."""

from collections.abc import Mapping, Sequence

from orchestrator.cli.terminal.screen import Terminal


def show_units(terminal: Terminal, texts: Mapping[str, str]) -> None:
    """Print what would be written. `texts`: each by its path."""
    lines = [line for path, text in texts.items() for line in (f"# {path}", *text.split("\n"))]
    terminal.answer({"units": dict(texts)}, lines)


def answer_installed(
    terminal: Terminal, into: str, changed: tuple[Sequence[str], Sequence[str]], following: Sequence[str]
) -> None:
    """Tell what was done. `changed`: the paths that were written, and those that are gone; `following`: commands to type next."""
    written, gone = changed
    told = [f"removed {path}" for path in gone] + [f"wrote {path}" for path in written]
    then = ["", "Then type:", *(f"  {line}" for line in following)] if following else []
    value = {"into": into, "written": list(written), "removed": list(gone), "next": list(following)}
    terminal.answer(value, [*(told or ["there is nothing to remove"]), *then])
