"""What every command shares: the options that stand before or after it, and its way to speak.

Changes things.
"""

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from orchestrator import compose
from orchestrator.interfaces import door

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.job import Job
    from orchestrator.history.views import Views


@dataclass(slots=True, kw_only=True)
class Frame:
    """What was asked for besides the command itself."""

    config: str | None = None
    state: str | None = None
    json: bool = False
    verbose: bool = False
    quiet: bool = False
    version: bool = False

    @property
    def where(self) -> compose.Directories:
        """Where configuration and state lie."""
        return compose.directories(self.config, self.state, os.environ, root=os.geteuid() == 0)

    def configuration(self) -> "Configuration":
        """All jobs and places. Raises: DeclarationError."""
        return compose.configuration(self.where)

    def jobs(self, names: Sequence[str]) -> "tuple[Job, ...]":
        """The jobs of these names, each once; without a name all. Raises: DeclarationError."""
        known = self.configuration()
        return tuple(known.job(name) for name in dict.fromkeys(names)) if names else known.jobs

    def views(self) -> "Views":
        """A look into the history. Raises: HistoryError."""
        return compose.open_views(self.where)

    def answer(self, value: Mapping[str, Any], lines: Callable[[], Sequence[str]] | Sequence[str]) -> None:
        """The result: the object with --json, else the lines."""
        if self.json:
            door.answer_value(value)
        else:
            door.answer(lines() if callable(lines) else lines)

    def log(self, line: str) -> None:
        """A command line that is about to run, where somebody wants to see it."""
        if self.verbose:
            door.say(f"+ {line}")

    def repeat(self, command: str) -> str:
        """A command of ours as one would type it, with the same directories."""
        import shlex

        told = [("--config", self.config), ("--state", self.state)]
        options = [f"{option} {shlex.quote(value)}" for option, value in told if value]
        return " ".join(["poolferry", command, *options])


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
