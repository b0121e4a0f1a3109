"""`poolferry setup gate`: let a key of another machine do one thing here."""

import os
import pwd
import shlex
import socket
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote_from_bytes

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal

if TYPE_CHECKING:
    from orchestrator.app.gate_setup import GateSetup


_KEEP = ("daily = 14", "weekly = 8", "monthly = 12")


@click.command(
    "gate",
    cls=CliCommand,
    examples=(
        ('setup gate vault --reads /srv/photos --key "$(cat vault.pub)"', "another machine may copy from /srv/photos"),
        ('setup gate vault --reads /etc --reads /home --key "$(cat vault.pub)"', "the same of two folders"),
        ('setup gate vault --sends tank --key "$(cat vault.pub)"', "another machine may copy the datasets of tank"),
        ('setup gate laptop --receives vault/in/laptop --key "$(cat laptop.pub)"', "a laptop may add to its copies"),
        ('setup gate laptop --adds /backup/laptop --key "$(cat laptop.pub)"', "the same for its folders"),
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
@click.option("--adds", default="", metavar="DIR", help="the folder in which it adds to its restore points")
@click.option("--at-most", default="", metavar="SIZE", help="how much may lie below --receives")
@click.option("--keep-free", default="", metavar="SIZE", help="how much of the disk of --adds stays free")
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
    adds: str,
    at_most: str,
    keep_free: str,
    key: str,
    into: str,
    remove: bool,
) -> int:
    """Write gates/NAME.toml, and a line in authorized_keys by which a key goes through it.

    With --reads and --sends the other machine copies from here, with a job whose source is ssh://USER@THIS-HOST/DIR or /DATASET;
    its key can read what is below that, and change nothing but poolferry's own bookmarks and holds. With --receives and --adds it
    copies to here, and its key can add to the copies below that dataset, or to the restore points in that folder, and can neither
    change nor remove any. All as the user who runs this command, which for the files and datasets of others must be root.
    """
    from orchestrator.app.gate_setup import USUAL_KEYS, GateSetup, install_gate, remove_gate, warn_of_left_key

    if not remove and not ((reads or sends or receives or adds) and key):
        raise click.UsageError(
            "--reads or --adds DIR, --sends or --receives DATASET, and --key KEY are needed, or --remove", context
        )
    given = sys.stdin.read(20_000) if key == "-" else key
    request = GateSetup(
        name=name, keys=into or USUAL_KEYS, reads=reads, sends=sends, receives=receives, adds=adds, at_most=at_most,
        keep_free=keep_free, key=given, remove=remove,
    )  # fmt: skip
    if remove:
        gone = remove_gate(terminal, request)
        left = warn_of_left_key(terminal, request, gone)
        told = [f"removed from {path}" for path in gone] or ["there is no such gate"]
        told += [f"Warning: {left}."] if left else []
        terminal.answer({"gate": name, "changed": list(gone), "warnings": [left] if left else []}, told)
        return 0
    _show(terminal, request, install_gate(terminal, request))
    return 0


def _show(terminal: Terminal, request: "GateSetup", written: tuple[str, ...]) -> None:
    """Print what was written, and what the other machine needs."""
    from orchestrator.app.gate_setup import describe_receiver, warn_of_variables

    user = pwd.getpwuid(os.geteuid()).pw_name
    paths = {word: getattr(request, word) for word in ("sends", "receives", "adds")}
    lines = {word: _line(word, path) for word, path in paths.items() if path}
    if request.reads:
        urls = [_url(folder) for folder in request.reads]
        lines["reads"] = f"sources = [{', '.join(urls)}]" if len(urls) > 1 else f"source = {urls[0]}"
    told = [f"wrote {path}" for path in written]
    if "reads" in lines or "sends" in lines:
        told += ["", "On the other machine, in the job that copies from here:"]
        told += [f"  {lines[word]}" for word in ("reads", "sends") if word in lines]
    if request.receives:
        made = f"zfs create -p -o mountpoint=none -o canmount=off {shlex.quote(request.receives)}"
        told += ["", f"Here, where {request.receives} is not there yet:", f"  {made}"]
        if os.geteuid() != 0:
            told += ["", *describe_receiver(request.receives, user)]
        else:
            told += [
                "",
                "Nothing that came goes by itself. Here, for a job that prunes it; change the numbers as you like:",
            ]
            told += _pruning(terminal.where.config, request.name, request.receives)
    if request.adds:
        told += [
            "",
            "Nothing that came goes by itself. Here, for a job that prunes it; change the numbers as you like:",
        ]
        told += _pruning(terminal.where.config, request.name, request.adds)
    for word in ("receives", "adds"):
        if word in lines:
            told += ["", "On the other machine, in a [place.NAME] of targets.toml:", f"  {lines[word]}"]
    warning = warn_of_variables(user)
    told += ["", f"Warning: {warning}."] if warning else []
    source, target = lines.get("reads") or lines.get("sends"), lines.get("receives") or lines.get("adds")
    answer = {"gate": request.name, "written": list(written), "source": source, "target": target}
    terminal.answer({**answer, "warnings": [warning] if warning else []}, told)


def _pruning(config: str, gate: str, source: str) -> list[str]:
    """Return the commands that write a job which prunes what comes through the gate."""
    lines = ('engine = "prune"', f'source = "{source}"', 'daily = "04:00"', "[keep]", *_KEEP)
    file = os.path.join(config, "jobs", f"{gate}-in.toml")
    written = shlex.join(("printf", r"%s\n", *lines))
    folder = os.path.dirname(file)
    made = [] if os.path.isdir(folder) else [f"  mkdir -p {shlex.quote(folder)}"]
    return [*made, f"  {written} > {shlex.quote(file)}"]


def _line(word: str, path: str) -> str:
    """Return the line by which the other machine names the folder or dataset."""
    key = {"receives": "dataset", "adds": "path"}.get(word, "source")
    return f"{key} = {_url(path)}"


def _url(path: str) -> str:
    return f'"ssh://{pwd.getpwuid(os.geteuid()).pw_name}@{socket.gethostname()}/{quote_from_bytes(os.fsencode(path.removeprefix("/")))}"'


COMMAND = gate
