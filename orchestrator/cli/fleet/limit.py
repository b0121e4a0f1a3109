"""`poolferry fleet limit`: how much of something the hosts of a fleet may use at once."""

import click

from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "limit",
    cls=CliCommand,
    examples=(
        ("fleet limit link-nas --slots 4", "four runs at once over the link to the NAS"),
        ("fleet limit lab --slots 1 --between 18:00-07:00", "the laboratory: one run, and none by day"),
        ("fleet limit lab --remove", "jobs that name it go on without it"),
    ),
)
@click.argument("name")
@click.option("--slots", type=click.IntRange(1, 100_000), metavar="N", help="how many slots it has")
@click.option("--between", metavar="WINDOW", help="begin runs only in this span of each day, such as 18:00-07:00")
@click.option("--zone", metavar="ZONE", help="the time zone of that span, such as Europe/Berlin; else this machine's")
@click.option("--remove", is_flag=True, help="forget it")
@centre_option
@pass_terminal
def limit(
    terminal: Terminal, name: str, slots: int | None, between: str | None, zone: str | None, centre: str | None, *, remove: bool
) -> int:  # fmt: skip
    """Declare the limit NAME at the centre, or change it: runs whose job names it in `permits` take turns.

    What is lent stays lent, and a run that has begun is not ended at the end of the span: stop-at in its job file does that.
    """
    from orchestrator.app.fleet_limits import change_limit, drop_limit
    from orchestrator.views.permits import limit_line, limit_value

    if remove == (slots is not None):
        raise click.UsageError("expected one of --slots N and --remove")
    if remove:
        drop_limit(terminal, name, centre=centre)
        terminal.answer({"removed": name}, [f"{name}: is no limit any more"])
        return 0
    made = change_limit(terminal, name, slots=slots or 1, between=between, zone=zone, centre=centre)
    terminal.answer(limit_value(made), [limit_line(made)])
    return 0


COMMAND = limit
