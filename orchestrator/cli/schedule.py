"""schedule, pause, resume, daemon: when jobs run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from orchestrator import compose
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, complete_job, pass_frame
from orchestrator.views import output as door

if TYPE_CHECKING:
    from datetime import datetime


@click.command(cls=Command, short_help="When each job runs, and what is owed.")
@click.argument("job", nargs=-1, shell_complete=complete_job)
@pass_frame
def schedule(frame: Frame, job: Sequence[str]) -> int:
    """What each schedule means, its next three runs in local time, what is owed now, and why it waits."""
    from orchestrator.app.schedule_report import promises, promises_lines, promises_value

    known, names = frame.configuration(), frame.jobs(job)
    with frame.views() as views:
        found = promises(
            known.jobs, views.owing, parallel=compose.machine(frame.where).clock.parallel, now=compose.now()
        )
    chosen = found.only(tuple(one.name for one in names))
    frame.answer(promises_value(chosen), lambda: promises_lines(chosen))
    return 0


@click.command(cls=Command, short_help="Let a job rest.")
@click.argument("job", nargs=-1, required=True, shell_complete=complete_job)
@click.option("--for", "span", default=None, metavar="SPAN", help="for so long, such as 3d; else until it is resumed")
@click.option("--why", default="", metavar="TEXT", help="what to remember")
@pass_frame
def pause(frame: Frame, job: Sequence[str], span: str | None, why: str) -> int:
    """Begin no run of these jobs; what goes on goes on, and what comes due is made up for by one run afterwards."""
    now = compose.now()
    until = _until(span, now)
    names = [one.name for one in frame.jobs(job)]
    with compose.open_history(frame.where) as history:
        for name in names:
            history.owing.pause(name, now=now, until=until, why=why)
    told = f" until {_calendar_shows(until)}" if until else f" until `{frame.repeat(f'resume {names[0]}')}`"
    value = {"paused": names, "until": _iso(until), "why": why}
    frame.answer(value, [f"{name}: rests{told}" for name in names])
    return 0


def _until(span: str | None, now: "datetime") -> "datetime | None":
    from datetime import timedelta

    from orchestrator.domain.units import parse_duration

    if span is None:
        return None
    try:
        return now + timedelta(seconds=parse_duration(span))
    except (ValueError, OverflowError) as error:
        raise click.UsageError(f"--for {span}: expected {error}") from None


def _calendar_shows(instant: "datetime") -> str:
    from orchestrator.app import local_clock as timekeeping

    return timekeeping.calendar().show(instant)


def _iso(instant: "datetime | None") -> str | None:
    from orchestrator.views.format import iso

    return iso(instant)


@click.command(cls=Command, short_help="Let a job run again.")
@click.argument("job", nargs=-1, required=True, shell_complete=complete_job)
@pass_frame
def resume(frame: Frame, job: Sequence[str]) -> int:
    """Let jobs run again that were told to rest."""
    names = [one.name for one in frame.jobs(job)]
    with compose.open_history(frame.where) as history:
        rested = {name: history.owing.resume(name) for name in names}
    lines = [f"{name}: runs again" if was else f"{name}: did not rest" for name, was in rested.items()]
    frame.answer({"resumed": [name for name, was in rested.items() if was]}, lines)
    return 0


@click.command(cls=Command, short_help="The clock: run jobs at their time.")
@pass_frame
def daemon(frame: Frame) -> int:
    """Run jobs at their time, one into each place, until SIGTERM; SIGHUP reads the configuration anew."""
    from orchestrator.daemon.loop import Daemon

    return Daemon(frame.where, door.say).live()


COMMANDS: tuple[click.Command, ...] = (schedule, pause, resume, daemon)
