"""`poolferry setup web`: install the units of the status page."""

import re
from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal
from orchestrator.cli.terminal.units import answer_installed, show_units

# The page looks as a user of its own, which PostgreSQL must know; the names are those of the unit and of the schema.
_ROLE = ("runuser -u postgres -- createuser -g poolferry_reader poolferry-web",)
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")


@click.command(
    "web",
    cls=CliCommand,
    examples=(
        ("setup web", "install the socket and the service of the status page"),
        ("setup web --print", "show them, and write nothing"),
        ("setup web --host backup.example.org --proxy-user X-Remote-User", "the same, behind a reverse proxy"),
        ("setup web --fleet", "on the centre of a fleet: with pages over all hosts"),
    ),
    short_help="Install the status page's units.",
)
@click.option("--into", default="/etc/systemd/system", show_default=True, metavar="DIR", help="where the units go")
@click.option(
    "--users-into", default="/etc/sysusers.d", show_default=True, metavar="DIR", help="where the group's file goes"
)
@click.option(
    "--host", "names", multiple=True, metavar="NAME", help="a name under which a reverse proxy serves it (repeatable)"
)
@click.option("--proxy-user", "header", metavar="HEADER", help="the header in which a reverse proxy names who asks")
@click.option("--fleet", is_flag=True, help="with pages over all hosts, at the centre of a fleet")
@click.option("--print", "show", is_flag=True, help="print the units; write nothing")
@click.option("--remove", is_flag=True, help="take the units away again")
@pass_terminal
def web(
    terminal: Terminal, *, into: str, users_into: str, names: Sequence[str], header: str | None, fleet: bool, show: bool, remove: bool
) -> int:  # fmt: skip
    """Install a socket for the status page, the service that it begins, and the group that may ask the daemon.

    The service is a user of its own, which reads, and asks the daemon for what has a button. Nothing is enabled or started.
    """
    from orchestrator.app.systemd_state import SystemdSetup, has_service, install_units, unit_files

    request = SystemdSetup(
        into=into,
        users_into=users_into,
        remove=remove,
        web=True,
        web_options=(*_options(names, header), *(["--fleet"] if fleet else [])),
    )
    if fleet and not remove:
        from orchestrator.app.fleet_members import require_centre_here

        require_centre_here(terminal)
    if show:
        units, group = unit_files(terminal.where, request)
        show_units(terminal, units | group)
        return 0
    if not remove:
        from orchestrator.web.libraries import require_libraries

        require_libraries()
    changed = install_units(terminal.where, request)
    following = (
        []
        if remove
        else [
            *(
                ["systemctl try-reload-or-restart poolferry.service"] if has_service(into) else []
            ),  # it listens for the new group
            *(_ROLE if fleet else ()),
            "systemctl enable --now poolferry-web.socket",
        ]
    )
    answer_installed(terminal, into, changed, following)
    return 0


def _options(names: Sequence[str], header: str | None) -> tuple[str, ...]:
    """Return the options of the page's command in its unit. Raises: UsageError for what is no plain word."""
    given = [("--host", name) for name in names] + ([] if header is None else [("--proxy-user", header)])
    for option, word in given:
        if not _PLAIN.fullmatch(word):
            raise click.UsageError(f"{option} {word!r}: expected letters, digits, dots and hyphens")
    return tuple(word for each in given for word in each)


COMMAND = web
