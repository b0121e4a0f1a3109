"""`poolferry fleet order`: ask hosts for an act."""

import getpass
import os
from collections.abc import Sequence
from datetime import timedelta

import click

from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal, read_span
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "order",
    cls=CliCommand,
    examples=(
        ("fleet order run photos --host web-1", "run the job photos of the host web-1 now"),
        ("fleet order verify photos --all", "read the newest point of photos again, on all hosts that declare it"),
        ("fleet order pause photos --all --for 3d", "let it rest for three days everywhere"),
        (
            "fleet order evacuate tank --host web-1",
            "copy what lies on its pool tank to the places of its own job files, and verify it",
        ),
        ("fleet order cancel 17", "take back an order that its host has not fetched yet"),
    ),
)
@click.argument("verb", type=click.Choice(("run", "plan", "pause", "resume", "verify", "drill", "evacuate", "cancel")))
@click.argument("subject", metavar="JOB|POOL")
@click.option("--host", "hosts", multiple=True, metavar="HOST", help="for this host (repeatable)")
@click.option(
    "--all",
    "everywhere",
    is_flag=True,
    help="for all hosts that declare the job, or one whose source is a dataset of the pool",
)
@click.option("--within", default="1h", show_default=True, metavar="TIME", help="not later than this")
@click.option(
    "--for", "span", default="", metavar="SPAN", help="of pause: 1d, 3d, 7d, 14d or 30d; else until it is resumed"
)
@click.option("--point", default="", metavar="POINT", help="of verify: this point; else the newest")
@click.option(
    "--guid", default="", metavar="GUID", help="of evacuate: the pool with this guid, and no other one of its name"
)
@centre_option
@pass_terminal
def order(
    terminal: Terminal, verb: str, subject: str, hosts: Sequence[str], within: str, span: str, point: str, guid: str, centre: str | None, *, everywhere: bool,
) -> int:  # fmt: skip
    """Ask hosts for VERB of JOB, or to evacuate POOL. Each host fetches its orders by itself, and checks them against its own job files.

    Nothing that destroys can be ordered: the list is that of the buttons on the status page, of restore tests, and of
    `poolferry evacuate`, which copies only where the host's own job files say.
    """
    from orchestrator.app.fleet_orders import cancel_order, place_orders
    from orchestrator.views.orders import order_lines, order_value

    if verb == "cancel":
        if not subject.isdigit():
            raise click.UsageError(
                f"cancel {subject!r}: expected the number of an order; poolferry fleet orders lists them"
            )
        cancel_order(terminal, int(subject), centre=centre)
        terminal.answer({"cancelled": int(subject)}, [f"order {subject}: cancelled"])
        return 0
    if bool(hosts) == everywhere:
        raise click.UsageError("expected --host HOST or --all")
    try:
        deadline = timedelta(seconds=read_span(within) or 0)
    except OverflowError as error:
        raise click.UsageError(f"--within {within}: expected {error}") from None
    placed = place_orders(
        terminal, verb, subject, hosts=None if everywhere else tuple(hosts), point=point, span=span, asked_by=_who(), within=deadline,
        centre=centre, guid=guid,
    )  # fmt: skip
    terminal.answer({"orders": [order_value(each) for each in placed]}, lambda: order_lines(placed))
    return 0


def _who() -> str:
    """Return the name of who asks, also behind sudo."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"


COMMAND = order
