"""The command line: what people and scripts type. Click alone is imported here; all else when a command needs it.

Changes things.
"""

import sys
from importlib import import_module

import click

from orchestrator import __version__
from orchestrator.interfaces import door
from orchestrator.interfaces.cli.failing import explained
from orchestrator.interfaces.cli.frame import Frame, Group, pass_frame

NAME = "poolferry"
ROOMS = {
    "init": "setting_up", "check": "setting_up", "config": "setting_up", "completion": "setting_up",
    "plan": "running", "run": "running",
    "status": "looking", "history": "looking", "show": "looking", "points": "looking",
    "verify": "bringing", "restore": "bringing", "kit": "kits", "try": "trying", "drill": "drilling",
    "pins": "pinning",
    "disks": "disking",
    "setup": "installing",
    "notices": "notifying",
    "metrics": "measuring",
    "import-syncoid": "importing",
    "schedule": "scheduling", "pause": "scheduling", "resume": "scheduling", "daemon": "scheduling",
}  # fmt: skip


class Commands(Group):
    """The commands, each imported when it is called or told of."""

    def list_commands(self, _: click.Context) -> list[str]:
        """All names."""
        return sorted(ROOMS)

    def get_command(self, _: click.Context, name: str) -> click.Command | None:
        """The command of that name."""
        if name not in ROOMS:
            return None
        commands: tuple[click.Command, ...] = import_module(f"{__name__}.{ROOMS[name]}").COMMANDS
        return next(command for command in commands if command.name == name)


@click.group(
    cls=Commands,
    hidden_options=False,
    invoke_without_command=True,
    epilog="Exit: 0 fine, 1 failed, 2 wrong usage or configuration, 3 refused (nothing was changed), "
    "4 status: late or failing, 75 waiting.",
)
@click.option("--version", is_flag=True, help="print the version")
@click.pass_context
@pass_frame
def cli(frame: Frame, context: click.Context, *, version: bool) -> int:
    """poolferry carries data between pools, and proves that it arrived."""
    if version:
        frame.answer({"version": __version__}, [f"{NAME} {__version__}"])
        return 0
    if context.invoked_subcommand is None:
        if frame.json:
            raise click.UsageError("no command")
        click.echo(context.get_help(), err=True)
        return 2
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Runs one command line; returns its exit code. Nothing comes out of here but that."""
    given = sys.argv[1:] if arguments is None else arguments
    frame = Frame(json="--json" in given)
    door.set_up()
    with explained(frame) as end:
        code = cli.main(given, prog_name=NAME, standalone_mode=False, obj=frame)
        end.code = code if isinstance(code, int) else 0
    with explained(frame) as flushed:
        door.flush()
    return end.code or flushed.code
