"""import-syncoid: job files out of what sanoid and syncoid were told."""

import os
import sys
from collections.abc import Mapping, Sequence

import click

from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, pass_frame

_USUAL = "/etc/sanoid/sanoid.conf"
_FILE = click.Path(dir_okay=False, exists=True, allow_dash=True)


@click.command("import-syncoid", cls=Command, short_help="Write job files for syncoid and sanoid.")
@click.option("--sanoid-conf", "conf", type=_FILE, metavar="FILE", help=f"sanoid's rules; {_USUAL} where it is there")
@click.option(
    "--crontab",
    "crontabs",
    type=_FILE,
    metavar="FILE",
    multiple=True,
    help="a crontab, or a file of /etc/cron.d; - is stdin",
)
@click.option("--to", "folder", default="poolferry-import", metavar="DIR", help="where to write; ./poolferry-import")
@pass_frame
def import_syncoid(frame: Frame, conf: str | None, crontabs: Sequence[str], folder: str) -> int:
    """Write job files and places for the syncoid lines of crontabs and the rules of sanoid.conf.

    Overwrites nothing, and tells of each line what it became and what of it could not be carried over.
    """
    from orchestrator.config.migrate import import_all

    if conf is None and os.path.exists(_USUAL):
        conf = _USUAL
    if conf is None and not crontabs:
        raise click.UsageError(f"nothing to read: tell --crontab or --sanoid-conf (there is no {_USUAL})")
    try:
        found = import_all([(_called(path), _text(path)) for path in crontabs], (conf, _text(conf)) if conf else None)
    except ValueError as error:
        raise click.ClickException(f"{conf}: {error}") from None
    written, existing = _write(os.path.abspath(folder), found.files)
    told = [f"{each.where}: {each.text}" for each in found.told]
    lines = [*told, "", *(f"wrote {path}" for path in written)]
    lines += [f"is there already, left as it is: {path}" for path in existing]
    following = [*found.then, f"poolferry check --config {os.path.abspath(folder)}"] if found.files else []
    lines += ["", "Then, by hand:", *(f"  {line}" for line in following)] if following else ["nothing to make a job of"]
    value = {
        "to": os.path.abspath(folder), "written": written, "existing": existing, "next": following,
        "told": [{"where": each.where, "job": each.job, "text": each.text} for each in found.told],
    }  # fmt: skip
    frame.answer(value, lines)
    return 0 if found.files else 1


def _called(path: str) -> str:
    return "crontab" if path == "-" else path


def _text(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def _write(folder: str, files: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The paths that were written, and those where something lies already."""
    written, existing = [], []
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
            written.append(path)
        except FileExistsError:
            existing.append(path)
    return written, existing


COMMANDS: tuple[click.Command, ...] = (import_syncoid,)
