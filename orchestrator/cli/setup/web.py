"""`poolferry setup web`: install the units of the status page."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal
from orchestrator.cli.terminal.units import answer_installed, show_units


@click.command(
    "web",
    cls=CliCommand,
    examples=(
        ("setup web", "install the socket and the service of the status page"),
        ("setup web --print", "show them, and write nothing"),
    ),
    short_help="Install the status page's units.",
)
@click.option("--into", default="/etc/systemd/system", show_default=True, metavar="DIR", help="where the units go")
@click.option(
    "--users-into", default="/etc/sysusers.d", show_default=True, metavar="DIR", help="where the group's file goes"
)
@click.option("--print", "show", is_flag=True, help="print the units; write nothing")
@click.option("--remove", is_flag=True, help="take the units away again")
@pass_terminal
def web(terminal: Terminal, *, into: str, users_into: str, show: bool, remove: bool) -> int:
    """Install a socket for the status page, the service that it begins, and the group that may ask the daemon.

    The service is a user of its own, which reads, and asks the daemon for what has a button. Nothing is enabled or started.
    """
    from orchestrator.app.systemd_state import SystemdSetup, install_units, unit_files

    request = SystemdSetup(into=into, users_into=users_into, remove=remove, web=True)
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
            "systemctl try-reload-or-restart poolferry.service",  # it listens for the new group
            "systemctl enable --now poolferry-web.socket",
        ]
    )
    answer_installed(terminal, into, changed, following)
    return 0


COMMAND = web
