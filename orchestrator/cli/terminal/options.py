"""Options that every command shares, and the lookup of a command by its file's name."""

import functools
import os
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from orchestrator.app.settings import WrongRequest
from orchestrator.cli.terminal.screen import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

    from orchestrator.app.restore import RestoreCommand
    from orchestrator.domain.units import Seconds

SECTIONS = ("every day", "restore", "disks", "set-up", "looking closer")
_NO_COMMANDS = ("terminal",)


def _take(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Store only a given option. Why: in `poolferry --json status` the command's unset --json must not replace it."""
    if value and parameter.name:
        setattr(context.find_root().ensure_object(Terminal), parameter.name, value)


@functools.cache
def _options(*, hidden: bool) -> tuple[click.Parameter, ...]:
    """Build the options of every command, the same for all: building one takes as long as a small import."""
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


class CliCommand(click.Command):
    """A command that takes the common options too. `section`: its section in the help; `examples`: (what to type, what it does)."""

    def __init__(
        self, *arguments: Any, section: str = "", examples: tuple[tuple[str, str], ...] = (), **about: Any
    ) -> None:
        about.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        about.setdefault("epilog", "Options of every command: poolferry --help")
        super().__init__(*arguments, **about)
        self.section = section
        self.examples = tuple(
            (typed if "poolferry " in typed else f"poolferry {typed}", does) for typed, does in examples
        )
        self.params += _options(hidden=True)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples before the closing line."""
        with formatter.section("Examples"):
            for typed, does in self.examples:
                formatter.write(f"{'':{formatter.current_indent}}{typed}\n")
                with formatter.indentation():
                    formatter.write_text(does)
        super().format_epilog(ctx, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command; a WrongRequest becomes wrong usage."""
        try:
            return super().invoke(ctx)
        except WrongRequest as error:
            raise ExplainedUsage(str(error), ctx, hint=error.hint) from error


class ExplainedUsage(click.UsageError):
    """Wrong usage of which more may be known than where its help is. `hint`: what to do; empty: that help."""

    def __init__(self, why: str, ctx: click.Context, *, hint: str) -> None:
        super().__init__(why, ctx)
        self.hint = hint


class NoCommand(click.UsageError):
    """A group that was called without one of its commands: its help is the answer."""


class CliGroup(click.Group):
    """Commands in the folder of `package`, each in the file of its name, imported when it is called or listed.

    A Python keyword gets an underscore at the end of the file's name, and a dash becomes an underscore: `try_`.
    """

    def __init__(
        self, *arguments: Any, package: str, section: str = "", hidden_options: bool = True, **about: Any
    ) -> None:
        about.setdefault("context_settings", {"help_option_names": ["-h", "--help"]})
        super().__init__(*arguments, **about)
        self.section = section
        self._package = package
        self.params += _options(hidden=hidden_options)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words before the command's name. Raises: NoCommand; UsageError."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            raise NoCommand("no command", ctx)
        return super().parse_args(ctx, args)

    @functools.cached_property
    def _modules(self) -> dict[str, str]:
        """Return the files of the commands, by the commands' names."""
        folder = import_module(self._package).__path__[0]
        names = (entry.removesuffix(".py") for entry in os.listdir(folder) if not entry.startswith("_"))
        found = (name for name in names if name.isidentifier() and name not in _NO_COMMANDS)
        return {name.rstrip("_").replace("_", "-"): name for name in sorted(found)}

    def list_commands(self, _: click.Context) -> list[str]:
        """Return all names."""
        return sorted(self._modules)

    def get_command(self, _: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name."""
        if cmd_name not in self._modules:
            return None
        command: click.Command = import_module(f"{self._package}.{self._modules[cmd_name]}").COMMAND
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first word; an unknown one fails with the most similar name."""
        word = args[0]
        if word not in self._modules and not ctx.resilient_parsing and word[:1].isalnum():
            import difflib

            near = difflib.get_close_matches(word, self._modules, n=1)
            ctx.fail(f"No such command {word!r}" + (f"; did you mean {near[0]}?" if near else "."))
        return super().resolve_command(ctx, args)


class DefaultCommandGroup(CliGroup):
    """A group with a default command: `points photos` means `points list photos`."""

    usual = "list"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command's name when no command is named; not while a shell completes its name."""
        words = [word for word, before in zip(args, ["", *args], strict=False) if before not in ("--config", "--state")]
        named = next((word for word in words if not word.startswith("-")), None)
        completing = ctx.resilient_parsing and named is None
        if named not in self._modules and not {"-h", "--help"} & set(args) and not completing and self._fits(ctx, args):
            args = [self.usual, *args]
        return super().parse_args(ctx, args)

    def _fits(self, ctx: click.Context, args: list[str]) -> bool:
        """Return False for more plain words than the default command takes: the first is then a command that there is not."""
        usual = self.get_command(ctx, self.usual)
        takes = [each.nargs for each in usual.params if isinstance(each, click.Argument)] if usual else []
        return -1 in takes or len(args) <= sum(takes) or any(word.startswith("-") for word in args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Return the commands' names, and the completions of the default command."""
        found = super().shell_complete(ctx, incomplete)
        usual = self.get_command(ctx, self.usual)
        if usual is None or incomplete.startswith("-"):
            return found
        arguments = (each for each in usual.get_params(ctx) if isinstance(each, click.Argument))
        return [*found, *(item for each in arguments for item in each.shell_complete(ctx, incomplete))]


pass_terminal = click.make_pass_decorator(Terminal, ensure=True)
centre_option = click.option(
    "--centre", metavar="ADDRESS", help="the centre, as its administrator; else [fleet] in poolferry.toml"
)


def complete_job_name(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Return the jobs whose names begin with a text, for a shell; from the names of their files, as this must not fail."""
    terminal = context.find_root().ensure_object(Terminal)
    try:
        files = os.listdir(os.path.join(terminal.where.config, "jobs"))
    except OSError:
        return []
    names = (file.removesuffix(".toml") for file in files if file.endswith(".toml") and not file.startswith("."))
    return sorted(name for name in names if name.startswith(begun))


def complete_pool_name(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Return the pools on which sources lie, for a shell; this must not fail."""
    try:
        from orchestrator.app.evacuate_pool import source_pools

        pools = source_pools(context.find_root().ensure_object(Terminal).configuration().jobs)
    except Exception:  # noqa: BLE001 - a shell would show the error amid the command line
        return []
    return [name for name in pools if name.startswith(begun)]


def complete_point_name(context: click.Context, _: click.Parameter, begun: str) -> list[str]:
    """Return the points of the named job that history knows, for a shell, newest first; this must not fail."""
    given = (
        context.params.get("job") or context.args
    )  # where an option still waits for its value, nothing is parsed yet
    try:
        with context.find_root().ensure_object(Terminal).views() as views:
            known = [
                point.name for job in ((given,) if isinstance(given, str) else given) for point in views.points(job)
            ]
    except Exception:  # noqa: BLE001 - a shell would show the error amid the command line
        return []
    return sorted({name for name in known if name.startswith(begun)}, reverse=True)


# Options and values that several commands take.

POINT = click.option(
    "--point",
    metavar="POINT",
    help="a restore point's name, or its beginning; else the newest",
    shell_complete=complete_point_name,
)
AT = click.option("--at", metavar="TIME", help='the newest point not later, such as "2024-11-03 02:31"')
ALLOW = click.option(
    "--allow", multiple=True, metavar="GUARD", help="let this guard pass once; a refusal names it (repeatable)"
)
ASIDE = click.option(
    "--aside", is_flag=True, help="datasets of the target that do not fit get another name, and are sent again in full"
)


def read_instant(text: str | None) -> datetime | None:
    """Return the instant of --at. Raises: UsageError."""
    from orchestrator.views.format import parse_instant

    try:
        return parse_instant(text) if text else None
    except ValueError as error:
        raise click.UsageError(f"--at {text!r}: expected {error}") from None


def read_span(text: str | None) -> "Seconds | None":
    """Return the duration of --for. Raises: UsageError."""
    from orchestrator.domain.units import parse_duration

    try:
        return parse_duration(text) if text else None
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"--for {text!r}: expected {error}") from None


LOST_KEY = click.option(
    "--lost-key",
    "lost_keys",
    multiple=True,
    metavar="DATASET",
    help="its key is lost for ever: nothing waits for it any more; nothing is destroyed (repeatable)",
)


def restore_options(command: "Callable[..., int]") -> "Callable[..., int]":
    """Add the options that `restore plan` and `restore run` share."""
    for option in (
        click.option("--from", "origin", metavar="PLACE", help="a target itself, where no configuration is left"),
        click.option("--aside", is_flag=True, help="what lies at the destination is renamed and kept"),
        click.option(
            "--content", is_flag=True, help="of datasets, read again every file that came back, not only guids"
        ),
        LOST_KEY,
        click.option("--to", metavar="PLACE", help="where to: a path, a dataset, or either on ssh://user@host/"),
        click.option("--path", metavar="PATH", help="only this file, folder or dataset, relative to the source's root"),
        AT,
        POINT,
        click.argument("job", required=False, shell_complete=complete_job_name),
    ):
        command = option(command)
    return command


def restore_request(*, at: str | None, path: str | None, **words: Any) -> "RestoreCommand":
    """Return the request of these options. Raises: UsageError."""
    from orchestrator.app.restore import RestoreCommand

    return RestoreCommand(at=read_instant(at), path=path or "", **words)
