"""The directories of the configuration and of the state: those that are named, else the defaults of root or of a home."""

import os
from collections.abc import Mapping

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Directories:
    """The directories of the configuration and the state."""

    config: str
    state: str

    @property
    def history(self) -> str:
        """Return the path of the database file."""
        return os.path.join(self.state, "history.sqlite")


def find_directories(
    config: str | None, state: str | None, environment: Mapping[str, str], *, root: bool
) -> Directories:
    """Return the given directories, else the environment's, else the default: system-wide for root, else a home."""
    return Directories(
        config=_directory(config or environment.get("POOLFERRY_CONFIG"), "/etc/poolferry", "CONFIG", environment, root),
        state=_directory(state or environment.get("POOLFERRY_STATE"), "/var/lib/poolferry", "STATE", environment, root),
    )


def _directory(told: str | None, of_root: str, kind: str, environment: Mapping[str, str], root: bool) -> str:
    if told:
        return os.path.abspath(told)
    if root:
        return of_root
    named = environment.get(f"XDG_{kind}_HOME", "")
    usual = os.path.expanduser({"CONFIG": "~/.config", "STATE": "~/.local/state"}[kind])
    # Source: XDG Base Directory Specification: a relative path is invalid and to be ignored.
    return os.path.join(named if os.path.isabs(named) else usual, "poolferry")
