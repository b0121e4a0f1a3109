"""All commands, each imported when it is called or told of, and the library that reads their words."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

import click

from orchestrator import __version__
from orchestrator.app.errors import WrongUsage
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Group, pass_frame

NAME = "poolferry"
ROOMS = {
    "init": "init", "check": "init", "config": "init", "completion": "init",
    "plan": "run", "run": "run",
    "status": "status", "history": "status", "show": "status", "points": "status",
    "verify": "restore", "restore": "restore", "kit": "kit", "try": "try_", "drill": "drill",
    "pins": "pins",
    "disks": "disks",
    "setup": "setup",
    "notices": "notices",
    "metrics": "metrics",
    "import-syncoid": "import_syncoid",
    "schedule": "schedule", "pause": "schedule", "resume": "schedule", "daemon": "schedule",
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
        commands: tuple[click.Command, ...] = import_module(f"{__package__}.{ROOMS[name]}").COMMANDS
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


def call(words: list[str], frame: Frame) -> int:
    """Reads the words and does what they ask for: the exit code. Raises: WrongUsage, and whatever the command does."""
    with _own_words():
        code = cli.main(words, prog_name=NAME, standalone_mode=False, obj=frame)
    return code if isinstance(code, int) else 0


@contextmanager
def _own_words() -> Iterator[None]:
    """What the library raises, as errors of ours."""
    try:
        yield
    except click.UsageError as error:
        usage = error.ctx.get_usage() if error.ctx else None
        cure = f"see {error.ctx.command_path if error.ctx else NAME} --help"
        raise WrongUsage(error.format_message(), cure, usage) from error
    except click.ClickException as error:
        raise WrongUsage(error.format_message(), "") from error
    except click.Abort as error:
        raise KeyboardInterrupt from error
