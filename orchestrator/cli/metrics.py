"""`poolferry metrics`: numbers for Prometheus."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "metrics",
    cls=CliCommand,
    examples=(
        ("metrics", "print the metrics in Prometheus' text format"),
        ("metrics --textfile /var/lib/prometheus/node-exporter/poolferry.prom", "write them for node_exporter"),
    ),
    section="looking closer",
    short_help="Numbers for Prometheus.",
)
@click.option(
    "--textfile",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="write them there, whole or not at all; needs no reader",
)
@pass_terminal
def metrics(terminal: Terminal, textfile: str | None) -> int:
    """The state of each job, as numbers in Prometheus's text format.

    [metrics] in poolferry.toml has them written after each run, or served by the daemon.
    """
    from orchestrator.app.metrics import metrics_text, write_whole

    text = metrics_text(terminal.where, terminal.configuration().jobs, compose.now())
    if textfile is not None:
        write_whole(textfile, text)
        terminal.answer({"textfile": textfile, "bytes": len(text)}, [])
        return 0
    told = text.decode()
    terminal.answer({"metrics": told}, told.splitlines)
    return 0


COMMAND = metrics
