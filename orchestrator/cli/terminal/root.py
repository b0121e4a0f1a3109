"""The command poolferry itself: its options, its help by sections, and the errors of the library that parses arguments."""

from collections.abc import Iterator
from contextlib import contextmanager

import click

from orchestrator import __version__
from orchestrator.cli.terminal.errors import WRONG, WrongUsage
from orchestrator.cli.terminal.options import SECTIONS, CliGroup, ExplainedUsage, NoCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal

NAME = "poolferry"
_OLDER = {"import-syncoid": ("import", "syncoid")}  # an older spelling in somebody's notes still works


class Root(CliGroup):
    """All commands; help shows them by sections, in the order of their use."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first word, also in an older spelling."""
        return super().resolve_command(ctx, [*_OLDER.get(args[0], args[:1]), *args[1:]])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, section by section."""
        known = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        limit = formatter.width - 6 - max(len(name) for name, _ in known)
        with formatter.section("Commands"):
            for section in SECTIONS:
                rows = [
                    (name, command.get_short_help_str(limit))
                    for name, command in known
                    if command and not command.hidden and getattr(command, "section", "") == section
                ]
                with formatter.section(section):
                    formatter.write_dl(rows)


@click.group(
    NAME,
    cls=Root,
    package="orchestrator.cli",
    hidden_options=False,
    invoke_without_command=True,
    epilog="Exit: 0 fine, 1 failed, 2 wrong usage or configuration, 3 refused (nothing was changed), "
    "4 status: late, failing or incomplete, 5 done with files left out or stored otherwise, 75 waiting, 130 Ctrl-C.",
)
@click.option("--version", is_flag=True, help="print the version")
@click.pass_context
@pass_terminal
def root(terminal: Terminal, context: click.Context, *, version: bool) -> int:
    """poolferry carries data between pools, and verifies that it arrived."""
    if version:
        terminal.answer({"version": __version__}, [f"{NAME} {__version__}"])
        return 0
    if context.invoked_subcommand is None:
        if terminal.json:
            raise click.UsageError("no command")
        click.echo(context.get_help(), err=True)
        return WRONG
    return 0


def call(words: list[str], terminal: Terminal) -> int:
    """Parse the words and run their command; return the exit code. Raises: WrongUsage, and the command's own errors."""
    with _explain_click_errors():
        try:
            code = root.main(words, prog_name=NAME, standalone_mode=False, obj=terminal)
        except NoCommand as error:
            if terminal.json or error.ctx is None:
                raise
            click.echo(error.ctx.get_help(), err=True)
            return WRONG
    return code if isinstance(code, int) else 0


@contextmanager
def _explain_click_errors() -> Iterator[None]:
    """Convert the library's errors to errors of ours."""
    try:
        yield
    except click.UsageError as error:
        usage = error.ctx.get_usage() if error.ctx else None
        told = error.hint if isinstance(error, ExplainedUsage) else ""
        hint = told or f"see {error.ctx.command_path if error.ctx else NAME} --help"
        raise WrongUsage(error.format_message(), hint, usage) from error
    except click.ClickException as error:
        raise WrongUsage(error.format_message(), "") from error
    except click.Abort as error:
        raise KeyboardInterrupt from error
