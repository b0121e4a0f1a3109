"""`poolferry setup gate`: let a key of another machine do one thing here."""

import getpass
import os
import socket
import sys
from urllib.parse import quote_from_bytes

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "gate",
    cls=CliCommand,
    examples=(
        ('setup gate vault --reads /srv/photos --key "$(cat vault.pub)"', "another machine may copy from /srv/photos"),
        ("setup gate vault --remove", "it may not any more"),
    ),
    short_help="Let a key read one folder, and do nothing else.",
)
@click.argument("name")
@click.option("--reads", default="", metavar="DIR", help="the folder that the other machine copies from")
@click.option("--key", default="", metavar="KEY", help="its public key: the line, or - to read it from the input")
@click.option("--into", default="", metavar="FILE", help="the file of keys  [default: ~/.ssh/authorized_keys]")
@click.option("--remove", is_flag=True, help="take key and gate away again")
@click.pass_context
@pass_terminal
def gate(
    terminal: Terminal, context: click.Context, *, name: str, reads: str, key: str, into: str, remove: bool
) -> int:
    """Write gates/NAME.toml, and a line in authorized_keys by which a key goes through it.

    The other machine copies from here with a job whose source is ssh://USER@THIS-HOST/DIR. Its key can read what is below DIR as
    the user who runs this command, which for the files of others must be root, and can change nothing.
    """
    from orchestrator.app.gate import USUAL_KEYS, GateSetup, install_gate, remove_gate

    if not remove and not (reads and key):
        raise click.UsageError("--reads DIR and --key KEY are needed, or --remove", context)
    given = sys.stdin.read(20_000) if key == "-" else key
    request = GateSetup(name=name, keys=into or USUAL_KEYS, reads=reads, key=given, remove=remove)
    if remove:
        gone = remove_gate(terminal, request)
        terminal.answer(
            {"gate": name, "changed": list(gone)},
            [f"removed from {path}" for path in gone] or ["there is no such gate"],
        )
        return 0
    written = install_gate(terminal, request)
    line = f'source = "ssh://{getpass.getuser()}@{socket.gethostname()}{quote_from_bytes(os.fsencode(reads))}"'
    told = [
        *(f"wrote {path}" for path in written),
        "",
        "On the other machine, in the job that copies from here:",
        f"  {line}",
    ]
    terminal.answer({"gate": name, "written": list(written), "source": line}, told)
    return 0


COMMAND = gate
