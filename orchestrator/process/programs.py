"""Programs that the owner names in job files: hooks, and the check of a restore test."""

import os
from collections.abc import Iterable

from orchestrator.domain.plan import Command, Effect
from orchestrator.process.pipeline import child_environment, is_missing


def find_program(program: str, folders: Iterable[str]) -> str:
    """Return the program's path: a bare name is searched in these folders; else it is left to PATH.

    Why a file that is not executable counts too: the owner means this one, not another of its name later in PATH.
    """
    if "/" in program:
        return program
    candidates = (os.path.join(folder, program) for folder in folders)
    return next((path for path in candidates if os.path.isfile(path)), program)


def explain_unusable(path: str) -> tuple[str, str]:
    """Return why a program that `find_program` gave cannot be run, and what would help; two empty texts when it can."""
    if "/" not in path:
        environment = child_environment(Command(argv=(path,), effect=Effect.READS))
        if not is_missing(path, environment):
            return "", ""
        return f"there is no program {path}", "the whole path of an executable file"
    if not os.path.lexists(path):
        return f"{path} does not exist", "the path of an executable file"
    if not os.path.exists(path):
        return f"{path} is a link to a file that does not exist", "the path of an executable file"
    if not os.path.isfile(path):
        return f"{path} is not a file", "the path of an executable file"
    return (
        ("", "") if os.access(path, os.X_OK) else (f"{path} is not executable", f"an executable file: chmod +x {path}")
    )
