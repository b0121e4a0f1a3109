"""`poolferry setup systemd`: install the systemd units of this installation."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal
from orchestrator.cli.terminal.units import answer_installed, show_units

_INTO, _RULES_INTO = "/etc/systemd/system", "/etc/udev/rules.d"


@click.command(
    "systemd",
    cls=CliCommand,
    examples=(
        ("setup systemd", "install the units and udev's rule"),
        ("setup systemd --print", "show them, and write nothing"),
    ),
    short_help="Install the systemd units.",
)
@click.option("--timer", is_flag=True, help="a timer that looks each five minutes, in place of the daemon")
@click.option("--into", default=_INTO, show_default=True, metavar="DIR", help="where the units go")
@click.option("--rules-into", default=_RULES_INTO, show_default=True, metavar="DIR", help="where udev's rule goes")
@click.option("--print", "show", is_flag=True, help="print the units; write nothing")
@click.option("--remove", is_flag=True, help="take the units away again")
@pass_terminal
def systemd(terminal: Terminal, *, timer: bool, into: str, rules_into: str, show: bool, remove: bool) -> int:
    """Install the systemd units: the daemon, single runs as poolferry-run@JOB, visits of disks that are plugged in.

    Nothing is enabled or started; udev's rule begins visits as soon as a disk is enrolled.
    """
    from orchestrator.app.systemd_state import SystemdSetup, install_units, unit_files

    request = SystemdSetup(into=into, rules_into=rules_into, timer=timer, remove=remove)
    if show:
        units, rule = unit_files(terminal.where, request)
        show_units(terminal, units | rule)
        return 0
    changed = install_units(terminal.where, request)
    unit = "poolferry-due.timer" if timer else "poolferry.service"
    answer_installed(terminal, into, changed, [] if remove else [f"systemctl enable --now {unit}"])
    return 0


COMMAND = systemd
