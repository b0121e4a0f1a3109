"""`poolferry setup man`: install manual pages of all commands, from the same texts as --help."""

from collections.abc import Iterator

import click

from orchestrator import __version__
from orchestrator.app.manual import USUAL_FOLDER, documents, install_pages
from orchestrator.cli.terminal.options import SECTIONS, CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal
from orchestrator.domain.units import show_count
from orchestrator.views.manual import CommandHelp, render_document, render_page

_FILES = ("man5/poolferry-jobs.5", "man5/poolferry.toml.5", "man5/targets.toml.5", "man7/poolferry-hooks.7")


@click.command(
    "man",
    cls=CliCommand,
    examples=(
        ("setup man", "install the manual pages for all users"),
        ("setup man --into ~/.local/share/man", "for this user"),
    ),
    short_help="Install the manual pages.",
)
@click.option("--into", default=USUAL_FOLDER, show_default=True, metavar="DIR", help="where man1, man5 and man7 lie")
@click.option("--remove", is_flag=True, help="take the pages away again")
@click.pass_context
@pass_terminal
def man(terminal: Terminal, context: click.Context, *, into: str, remove: bool) -> int:
    """Install the manual pages: poolferry(1), one for each command, such as poolferry-restore-run(1), those of the
    configuration, poolferry-jobs(5), targets.toml(5) and poolferry.toml(5), and poolferry-hooks(7).

    After an upgrade the same command renews them.
    """
    found = tuple(_commands(context.find_root().command, "poolferry", None))
    written, gone = install_pages(into, _pages(found), remove=remove)
    value = {"into": into, "written": list(written), "removed": list(gone)}
    told = (
        f"removed {show_count(len(gone), 'page')} from {into}"
        if remove
        else f"wrote {show_count(len(written), 'page')} to {into}: man poolferry"
    )
    terminal.answer(value, [told])
    return 0


def _pages(found: tuple[CommandHelp, ...]) -> dict[str, str]:
    """Return the source of each page by its file's name; a page refers to those beside, above and below it."""
    pages = {}
    for command in found:
        above = command.path.rpartition(" ")[0]
        around = {above, command.path}
        near = (one.file for one in found if one.path == above or one.path.rpartition(" ")[0] in around)
        pages[command.file] = render_page(command, __version__, (*near, *_FILES))
    for file, summary, markdown in documents():
        pages[file] = render_document(file, __version__, summary, markdown, ("man1/poolferry.1", *_FILES))
    return pages


def _commands(command: click.Command, name: str, above: click.Context | None) -> Iterator[CommandHelp]:
    """Yield a command and all below it that are not hidden."""
    context = click.Context(command, info_name=name, parent=above, **command.context_settings)
    below = [] if not isinstance(command, click.Group) else _below(command, context)
    yield CommandHelp(
        path=_path(context),
        synopsis=" ".join(command.collect_usage_pieces(context)),
        summary=command.short_help or (command.help or "").strip().split("\n")[0],
        text=command.help or "",
        groups=tuple(_groups(command, context, below)),
        closing=command.epilog or "",
    )
    for word, each in below:
        yield from _commands(each, word, context)


def _path(context: click.Context) -> str:
    """Return the words of a command, without the arguments of those above it."""
    names = []
    at: click.Context | None = context
    while at is not None:
        names.append(at.info_name or "")
        at = at.parent
    return " ".join(reversed(names))


def _below(group: click.Group, context: click.Context) -> list[tuple[str, click.Command]]:
    known = ((word, group.get_command(context, word)) for word in group.list_commands(context))
    return [(word, each) for word, each in known if each is not None and not each.hidden]


def _groups(
    command: click.Command, context: click.Context, below: list[tuple[str, click.Command]]
) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    """Yield the options, then the commands below, by the sections of their use where they have one."""
    options = (each.get_help_record(context) for each in command.get_params(context))
    if rows := tuple(each for each in options if each and each[1]):
        yield "options", rows
    if isinstance(command, CliCommand):
        yield "examples", command.examples
    for section in (*SECTIONS, ""):
        rows = tuple(
            (word, each.get_short_help_str(1000)) for word, each in below if getattr(each, "section", "") == section
        )
        if rows:
            yield (f"commands: {section}" if section else "commands"), rows


COMMAND = man
