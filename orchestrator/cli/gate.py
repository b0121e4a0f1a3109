"""`poolferry gate`: the forced command of a key that can do one thing."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "gate",
    cls=CliCommand,
    examples=(
        ('setup gate laptop --reads /srv/photos --key "$(cat laptop.pub)"', "make a gate, and let a key through it"),
        ("gate laptop", "what sshd calls; by hand it only says what the gate would refuse"),
    ),
    section="set-up",
    short_help="Answer one request of a key (sshd calls this).",
)
@click.argument("name")
@pass_terminal
def gate(terminal: Terminal, *, name: str) -> int:
    """Answer the one request that ssh brought, if gates/NAME.toml in the configuration allows it.

    sshd calls this for a key whose line in authorized_keys begins with `command="poolferry gate NAME",restrict`, as
    `poolferry setup gate` writes it. The key can read below one folder or dataset, which is what a copy from here needs, or
    only add to copies below one folder or dataset, and can do nothing else: no shell, nothing elsewhere, no change. Each request is in
    the system's journal (`journalctl -t poolferry-gate`).
    """
    from orchestrator.cli.terminal.runs import answer_and_show

    return answer_and_show(terminal, name)


COMMAND = gate
