"""`poolferry setup fleet`: install the unit that watches a fleet, on its centre."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal
from orchestrator.cli.terminal.units import answer_installed, show_units


@click.command(
    "fleet",
    cls=CliCommand,
    examples=(
        ("setup fleet", "on the centre of a fleet: install the unit that watches all hosts"),
        ("setup fleet --print", "show it, and write nothing"),
        ("setup web --fleet", "beside it: a status page with pages over all hosts"),
    ),
    short_help="Install the unit that watches a fleet.",
)
@click.option("--into", default="/etc/systemd/system", show_default=True, metavar="DIR", help="where the unit goes")
@click.option("--print", "show", is_flag=True, help="print the unit; write nothing")
@click.option("--remove", is_flag=True, help="take the unit away again")
@pass_terminal
def fleet(terminal: Terminal, *, into: str, show: bool, remove: bool) -> int:
    """Install the service that calls `fleet watch` each five minutes, on the machine of the centre. Nothing is enabled or started.

    It watches the centre that [fleet] in poolferry.toml names, as root, who needs a role there that administers it.
    """
    from orchestrator.app.fleet_members import declared_fleet
    from orchestrator.app.systemd_state import FLEET_UNITS, SystemdSetup, install_units, unit_files

    request = SystemdSetup(into=into, remove=remove, fleet=True)
    if show:
        units, _ = unit_files(terminal.where, request)
        show_units(terminal, units)
        return 0
    if not remove:
        declared_fleet(terminal)
    changed = install_units(terminal.where, request)
    answer_installed(terminal, into, changed, [] if remove else [f"systemctl enable --now {FLEET_UNITS[0]}"])
    return 0


COMMAND = fleet
