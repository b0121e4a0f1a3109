"""`poolferry fleet send`: tell the centre now."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal
from orchestrator.domain.units import Seconds, parse_duration, show_count


def _parse_every(_: click.Context, __: click.Parameter, text: str | None) -> Seconds | None:
    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(f"expected {error}") from None


@click.command(
    "send",
    cls=CliCommand,
    examples=(
        ("fleet send", "tell the centre what it does not know yet, for cron each day"),
        ("fleet send --every 5m", "go on and tell it again each five minutes, as the daemon does"),
    ),
)
@click.option(
    "--every", callback=_parse_every, metavar="TIME", help="go on until Ctrl-C or SIGTERM, and wait so long between"
)
@click.option("--within", callback=_parse_every, default="26h", show_default=True, metavar="TIME",
              help="within what time the next call comes; a host that is silent for three times as long is named")  # fmt: skip
@pass_terminal
def send(terminal: Terminal, every: Seconds | None, within: Seconds) -> int:
    """Tell the centre what this host's history knows and it does not: each row once, however often a line was cut."""
    from orchestrator.app.fleet_sender import send_again_and_again, send_once

    if every is not None:
        from orchestrator.app.fleet_orders import EVERY_S, begin_fetching

        begin_fetching(terminal, every_s=min(EVERY_S, every))
        send_again_and_again(terminal, every_s=every)
    sent = send_once(terminal, every_s=within)
    told = (
        f"{sent.host}: {show_count(sent.rows, 'row')} told, {f'{sent.waiting} wait' if sent.waiting else 'none waits'}"
    )
    value = {"host": sent.host, "rows": sent.rows, "waiting": sent.waiting, "unfit": list(sent.unfit)}
    terminal.answer(value, [told])
    return 1 if sent.unfit else 0


COMMAND = send
