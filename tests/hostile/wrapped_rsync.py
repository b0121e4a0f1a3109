"""The real rsync with a script before or after it: what an owner, or a target, does at that moment."""

import shutil

from tests.whole.house import House


def after_rsync(house: House, script: str) -> None:
    """Let a script run after each call of the real rsync: what a target does that does not keep what it is given."""
    _wrap(house, f'{shutil.which("rsync")} "$@"; code=$?\n{{ {script}; }} 2>/dev/null\nexit $code\n')


def before_copies(house: House, script: str) -> None:
    """Let a script run before each copy of the real rsync: what an owner does once the source was looked at."""
    look = "*--version*|*--dry-run*"
    _wrap(house, f'case "$*" in {look}) ;; *) {script} ;; esac\nexec {shutil.which("rsync")} "$@"\n')


def _wrap(house: House, script: str) -> None:
    tools = house.folder / "tools"
    tools.mkdir()
    (tools / "rsync").write_text(f"#!/bin/sh\n{script}")
    (tools / "rsync").chmod(0o755)
    house.environment["PATH"] = f"{tools}:{house.environment['PATH']}"
