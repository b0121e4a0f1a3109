"""What every command shares: the options that stand before or after it."""

import functools
import os
from typing import Any

import click

from orchestrator.app.settings import Frame


def _take(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Why only when told: `poolferry --json status` must not lose its --json to the command's own, untold one."""
    if value and parameter.name:
        setattr(context.find_root().ensure_object(Frame), parameter.name, value)


@functools.cache
def _options(*, hidden: bool) -> tuple[click.Parameter, ...]:
    """The options of every command: the same ones for all, as making one takes as long as a small import."""
    folder = click.Path(file_okay=False, resolve_path=False)
    told: list[tuple[list[str], dict[str, Any], str]] = [
        (["--config"], {"type": folder, "metavar": "DIR"}, "where targets.toml and jobs/ lie"),
        (["--state"], {"type": folder, "metavar": "DIR"}, "where the history lies"),
        (["--json"], {"is_flag": True}, "one JSON object on stdout, all else on stderr"),
        (["-v", "--verbose"], {"is_flag": True}, "show every command line that is run, on stderr"),
        (["-q", "--quiet"], {"is_flag": True}, "say only what is wrong"),
    ]
    return tuple(
        click.Option(names, **about, help=says, hidden=hidden, expose_value=False, callback=_take)
        for names, about, says in told
    )


class Command(click.Command):
    """A command that takes the common options too."""

    def __init__(self, *arguments: Any, **about: Any) -> None:
        about.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        about.setdefault("epilog", "Options of every command: poolferry --help")
        super().__init__(*arguments, **about)
        self.params += _options(hidden=True)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command

    def __init__(self, *arguments: Any, hidden_options: bool = True, **about: Any) -> None:
        about.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*arguments, **about)
        self.params += _options(hidden=hidden_options)


Group.group_class = Group


class GroupWithUsual(Group):
    """A group whose usual command needs no name: `points photos` is `points list photos`."""

    usual = "list"

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Puts the usual command's name in front where no command is named."""
        words = [word for word, before in zip(args, ["", *args], strict=False) if before not in ("--config", "--state")]
        named = next((word for word in words if not word.startswith("-")), None)
        if named not in self.commands and not {"-h", "--help"} & set(args):
            args = [self.usual, *args]
        return super().parse_args(context, args)


pass_frame = click.make_pass_decorator(Frame, ensure=True)


def complete_job(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """The jobs whose names begin so, for a shell; from the names of their files, as nothing may go wrong here."""
    frame = context.find_root().ensure_object(Frame)
    try:
        files = os.listdir(os.path.join(frame.where.config, "jobs"))
    except OSError:
        return []
    names = (file.removesuffix(".toml") for file in files if file.endswith(".toml") and not file.startswith("."))
    return sorted(name for name in names if name.startswith(begun))
