"""`poolferry config schema`: the JSON Schema of the files, for editors."""

from typing import Any

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal

_FILES = {"job": "jobs/*.toml", "targets": "targets.toml", "machine": "poolferry.toml"}


@click.command(
    "schema",
    cls=CliCommand,
    examples=(
        ("config schema job", "the JSON Schema of a job file, for an editor"),
        ("config schema targets > targets.schema.json", "that of targets.toml, into a file"),
    ),
)
@click.argument("file", type=click.Choice([*_FILES]), required=False)
@pass_terminal
def schema(terminal: Terminal, file: str | None) -> int:
    """Print the JSON Schema of the files, or of one kind of them, for editors."""
    import json

    from orchestrator.app.config_check import read_schemas

    found = read_schemas()
    chosen: Any = found[_FILES[file]] if file else found
    terminal.answer({"schemas": {_FILES[file]: chosen} if file else found}, json.dumps(chosen, indent=2).splitlines())
    return 0


COMMAND = schema
