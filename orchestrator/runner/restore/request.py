"""The request of a person for a restore."""

import os
import shlex
from collections.abc import Mapping
from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.hint_phrases import phrases_of_restore
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.planners.restore import OwnFolder
from orchestrator.runner.context import RunContext


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreOptions:
    """The request for a restore. `path`: below the point, b"" all of it; `content`: verify contents, not only guids.

    `owners`: warn of accounts whose numbers have changed; False when the caller compares them itself. `stays`: mount
    points whose filesystem was restored separately, so that files of the point are not restored into it. `lost_keys`: datasets whose
    keys are lost. `typed`: the command line that a person types to say the same again; empty: that of `restore run` for this job.
    `apart`: folders on the destination's machine that stay as they are, by their real paths where it is this one.
    """

    to: Location
    path: bytes = b""
    point: str | None = None
    at: datetime | None = None
    aside: bool = False
    content: bool = False
    stays: tuple[str, ...] = ()
    owners: bool = True
    lost_keys: tuple[str, ...] = ()
    typed: str = ""
    apart: tuple[OwnFolder, ...] = ()


def needs_datasets(tools: RunContext, restore_request: RestoreOptions) -> bool:
    """Return True when a request is for datasets, not for files."""
    return tools.engine.needs_datasets and not restore_request.to.path.startswith("/")


def restore_command(job: Job, request: RestoreOptions, point: str | None) -> str:
    """Return the command line of the same restore; `point`: None for the one that was asked for, by its name or a time."""
    path = ("--path", os.fsdecode(request.path)) if request.path else ()
    lost = (word for name in request.lost_keys for word in ("--lost-key", name))
    more = (*(("--aside",) if request.aside else ()), *(("--content",) if request.content else ()))
    point = point or request.point
    at = ("--point", point) if point else ("--at", request.at.isoformat()) if request.at else ()
    return shlex.join(("poolferry", "restore", "run", job.name, "--to", str(request.to), *path, *at, *lost, *more))


def restore_phrases(job: Job, request: RestoreOptions) -> Mapping[str, str]:
    """Return what this restore's hints say in place of a run's words."""
    typed = request.typed or restore_command(job, request, None)
    return phrases_of_restore(typed, rename_away(request.to))


def rename_away(to: Location) -> str:
    """Return the command that keeps a restored dataset under another name; empty for a folder, and for a pool's root, which has none."""
    if to.path.startswith("/") or "/" not in to.path:
        return ""
    return str(Command(argv=("zfs", "rename", to.path, f"{to.path}_doubtful"), effect=Effect.WRITES, host=to.host))


def restore_reason(path: bytes, to: Location) -> str:
    """Return the reason of a restore for its record."""
    return f"restore {f'{show_name(path)} ' if path else ''}to {to}"
