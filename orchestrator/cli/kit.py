"""kit: what is needed when a pool is lost."""

import os
from typing import TYPE_CHECKING

import click

from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, complete_job, pass_frame

if TYPE_CHECKING:
    from orchestrator.domain.kit import Kit


@click.command(cls=Command, short_help="What to do when the source is lost.")
@click.argument("job", shell_complete=complete_job)
@click.option("--to", metavar="FOLDER", type=click.Path(file_okay=False), help="write the kit's files there")
@pass_frame
def kit(frame: Frame, job: str, to: str | None) -> int:
    """The recovery kit of a job's source: its pool's layout, properties, snapshots, and the page that tells what to do.

    Runs renew it once a day and carry it beside the copy, into the dataset poolferry-kit.
    """
    import json

    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.views.format import iso

    declared = frame.configuration().job(job)
    name = declared.name
    with frame.views() as views:
        found = views.kits.of(name)
    if found is None:
        page = f"; what to do with a copy of files lies beside it: {declared.target.location}/.poolferry/RECOVERY.md"
        raise OrchestratorError(
            f"there is no recovery kit of {name}",
            cure=f"poolferry run {name}: a copy of datasets makes one{page if declared.engine == 'rsync' else ''}",
        )
    written = _written(to, found.kit) if to is not None else []
    value = {"job": name, "made": iso(found.made_at), "files": written, "kit": json.loads(found.kit.content)}
    frame.answer({**value, "recovery": found.kit.recovery}, written or found.kit.recovery.splitlines())
    return 0


def _written(folder: str, kit: "Kit") -> list[str]:
    from orchestrator.runner.recovery_kit import files_of

    os.makedirs(folder, mode=0o700, exist_ok=True)
    paths = []
    for name, content in files_of(kit):
        paths.append(os.path.join(os.path.abspath(folder), name))
        with open(paths[-1], "wb") as file:
            file.write(content)
    return paths


COMMANDS: tuple[click.Command, ...] = (kit,)
