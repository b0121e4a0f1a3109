"""`poolferry fleet watch`: what only the centre can see."""

from datetime import timedelta

import click

from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal
from orchestrator.domain.units import Seconds, parse_duration


def _parse_span(_: click.Context, __: click.Parameter, text: str | None) -> Seconds | None:
    try:
        return None if text is None else parse_duration(text)
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(f"expected {error}") from None


@click.command(
    "watch",
    cls=CliCommand,
    examples=(
        ("fleet watch", "look once, and send notices: for cron, each five minutes"),
        ("fleet watch --every 5m", "go on until Ctrl-C or SIGTERM"),
    ),
)
@click.option("--every", callback=_parse_span, metavar="TIME", help="go on, and wait so long between two looks")
@click.option("--keep", callback=_parse_span, default="730d", show_default=True, metavar="TIME",
              help="remove runs with their steps, visits, notices and orders that are older; points and restore tests stay")  # fmt: skip
@centre_option
@pass_terminal
def watch(terminal: Terminal, every: Seconds | None, keep: Seconds, centre: str | None) -> int:
    """Look for silent hosts, two owners of one target, and one disk at two hosts; send notices, and remove old rows.

    Notices go through the channels of this machine's poolferry.toml. Exit: 4 when something needs a person.
    """
    from orchestrator.app.fleet_watch import watch_again_and_again, watch_once
    from orchestrator.views.fleet_watch import watch_lines, watch_value

    if every is not None:
        watch_again_and_again(terminal, centre=centre, keep=timedelta(seconds=keep), every_s=every)
    found = watch_once(terminal, centre=centre, keep=timedelta(seconds=keep))
    terminal.answer(watch_value(found), lambda: watch_lines(found))
    return 4 if found.bad else 0


COMMAND = watch
