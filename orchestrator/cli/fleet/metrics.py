"""`poolferry fleet metrics`: numbers of all hosts for Prometheus."""

import click

from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "metrics",
    cls=CliCommand,
    examples=(
        ("fleet metrics", "print the metrics of all hosts in Prometheus' text format"),
        ("fleet metrics --textfile /var/lib/prometheus/node-exporter/fleet.prom", "write them for node_exporter"),
    ),
)
@click.option(
    "--textfile", type=click.Path(dir_okay=False), metavar="FILE", help="write them there, whole or not at all"
)
@centre_option
@pass_terminal
def metrics(terminal: Terminal, textfile: str | None, centre: str | None) -> int:
    """Numbers of the whole fleet: silent hosts, bad jobs, the oldest copies; a few series for each host."""
    from orchestrator.app.fleet_overview import fleet_metrics
    from orchestrator.app.metrics import write_whole

    text = fleet_metrics(terminal, centre)
    if textfile is not None:
        write_whole(textfile, text)
        terminal.answer({"textfile": textfile, "bytes": len(text)}, [])
        return 0
    told = text.decode()
    terminal.answer({"metrics": told}, told.splitlines)
    return 0


COMMAND = metrics
