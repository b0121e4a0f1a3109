"""`poolferry fleet quota`: how much a host may tell the centre."""

import click

from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal
from orchestrator.domain.units import Bytes, parse_size, show_size


def _parse_most(_: click.Context, __: click.Parameter, text: str) -> Bytes:
    try:
        return parse_size(text)
    except ValueError as error:
        raise click.BadParameter(f"expected {error}") from None


@click.command(
    "quota",
    cls=CliCommand,
    examples=(
        ("fleet quota web-1 --most 4G", "let web-1 tell up to 4 GiB; without this 2 GiB, some six million runs"),
        ("fleet quota web-1 --most 0", "take nothing new of it: it still gives signs of life"),
    ),
)
@click.argument("host")
@click.option("--most", required=True, callback=_parse_most, metavar="SIZE", help="so many bytes of rows, such as 4G")
@centre_option
@pass_terminal
def quota(terminal: Terminal, host: str, most: Bytes, centre: str | None) -> int:
    """Say how much HOST may tell the centre, so that one that was taken over cannot fill it. `fleet hosts` shows what each told.

    What is more waits at the host; what it told stays.
    """
    from orchestrator.app.fleet_members import change_quota

    change_quota(terminal, host, most, centre=centre)
    terminal.answer({"host": host, "quota_bytes": most}, [f"{host}: may tell {show_size(most)}"])
    return 0


COMMAND = quota
