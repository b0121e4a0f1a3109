"""`poolferry setup gate`: let a key of another machine do one thing here."""

import getpass
import os
import shlex
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
        ('setup gate vault --reads /etc --reads /home --key "$(cat vault.pub)"', "the same of two folders"),
        ('setup gate vault --sends tank --key "$(cat vault.pub)"', "another machine may copy the datasets of tank"),
        ('setup gate laptop --receives vault/in/laptop --key "$(cat laptop.pub)"', "a laptop may add to its copies"),
        ("setup gate vault --remove", "it may not any more"),
    ),
    short_help="Let a key read one folder or dataset, or only add to its copies.",
)
@click.argument("name")
@click.option(
    "--reads", multiple=True, metavar="DIR", help="the folder that the other machine copies from (repeatable)"
)
@click.option("--sends", default="", metavar="DATASET", help="the dataset that the other machine copies from")
@click.option("--receives", default="", metavar="DATASET", help="the dataset below which it adds to its copies")
@click.option("--at-most", default="", metavar="SIZE", help="how much may lie below --receives")
@click.option("--key", default="", metavar="KEY", help="its public key: the line, or - to read it from the input")
@click.option("--into", default="", metavar="FILE", help="the file of keys  [default: ~/.ssh/authorized_keys]")
@click.option("--remove", is_flag=True, help="take key and gate away again")
@click.pass_context
@pass_terminal
def gate(
    terminal: Terminal,
    context: click.Context,
    *,
    name: str,
    reads: tuple[str, ...],
    sends: str,
    receives: str,
    at_most: str,
    key: str,
    into: str,
    remove: bool,
) -> int:
    """Write gates/NAME.toml, and a line in authorized_keys by which a key goes through it.

    With --reads and --sends the other machine copies from here, with a job whose source is ssh://USER@THIS-HOST/DIR or /DATASET;
    its key can read what is below that, and change nothing but poolferry's own bookmarks and holds. With --receives it copies
    to here, and its key can add to the copies below that dataset, and can neither change nor remove any. All as the user who
    runs this command, which for the files and datasets of others must be root.
    """
    from orchestrator.app.gate import USUAL_KEYS, GateSetup, install_gate, remove_gate

    if not remove and not ((reads or sends or receives) and key):
        raise click.UsageError(
            "--reads DIR, --sends or --receives DATASET, and --key KEY are needed, or --remove", context
        )
    given = sys.stdin.read(20_000) if key == "-" else key
    request = GateSetup(
        name=name, keys=into or USUAL_KEYS, reads=reads, sends=sends, receives=receives, at_most=at_most, key=given,
        remove=remove,
    )  # fmt: skip
    if remove:
        gone = remove_gate(terminal, request)
        terminal.answer(
            {"gate": name, "changed": list(gone)},
            [f"removed from {path}" for path in gone] or ["there is no such gate"],
        )
        return 0
    written = install_gate(terminal, request)
    lines = {word: _line(word, path) for word, path in (("sends", sends), ("receives", receives)) if path}
    if reads:
        urls = [_url(folder) for folder in reads]
        lines["reads"] = f"sources = [{', '.join(urls)}]" if len(urls) > 1 else f"source = {urls[0]}"
    told = [f"wrote {path}" for path in written]
    if reads or sends:
        told += ["", "On the other machine, in the job that copies from here:"]
        told += [f"  {lines[word]}" for word in ("reads", "sends") if word in lines]
    if receives:
        made = f"zfs create -p -o mountpoint=none -o canmount=off {shlex.quote(receives)}"
        told += ["", f"Here, where {receives} is not there yet:", f"  {made}"]
        told += ["", "On the other machine, in a [place.NAME] of targets.toml:", f"  {lines['receives']}"]
    source = lines.get("reads") or lines.get("sends")
    terminal.answer({"gate": name, "written": list(written), "source": source, "target": lines.get("receives")}, told)
    return 0


def _line(word: str, path: str) -> str:
    """Return the line by which the other machine names the folder or dataset."""
    return f"{'dataset' if word == 'receives' else 'source'} = {_url(path)}"


def _url(path: str) -> str:
    return f'"ssh://{getpass.getuser()}@{socket.gethostname()}/{quote_from_bytes(os.fsencode(path.removeprefix("/")))}"'


COMMAND = gate
