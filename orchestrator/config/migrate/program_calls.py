"""The times at which crontabs and systemd's units call another program, themselves or by way of scripts."""

from collections.abc import Iterator, Mapping, Sequence

from orchestrator.config.migrate.calls import (
    CalledScripts,
    ProgramCall,
    explain_unread,
    find_calls,
    script_schedule,
    why_not,
)
from orchestrator.config.migrate.crontab import ScheduledCommand, parse_crontab
from orchestrator.config.migrate.job_text import Value
from orchestrator.config.migrate.neighbours import tell_neighbours, tell_schedule
from orchestrator.config.migrate.result import ImportBuilder, Lost
from orchestrator.config.migrate.systemd_units import parse_unit, scheduled_units
from orchestrator.config.migrate.time_span import late_after
from orchestrator.domain.fast_dataclass import dataclass, field

File = tuple[str, str]
"""How a file is called, and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedSettings:
    """The texts of an import: the program's own settings, and what says when it is called. `scripts`: those that nothing calls."""

    files: Sequence[File]
    crontabs: Sequence[File] = ()
    units: Sequence[File] = ()
    scripts: Sequence[File] = ()
    called: CalledScripts = field(default_factory=CalledScripts)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSchedule:
    """One command of a schedule that calls the program. `calls`: all of its commands; `at`: the indexes of the calls."""

    scheduled: ScheduledCommand
    calls: tuple[ProgramCall, ...]
    at: tuple[int, ...]
    notes: tuple[tuple[str, str], ...] = ()

    @property
    def arguments(self) -> tuple[tuple[str, ...], ...]:
        """Return the arguments of each call."""
        return tuple(self.calls[index].words for index in self.at)

    @property
    def keys(self) -> dict[str, Value]:
        """Return the keys of a job at these times."""
        found = self.scheduled
        late = late_after(found.schedule, found.every)
        keys = (("schedule", found.schedule), ("every", found.every), ("late-after", late))
        return {name: value for name, value in keys if value}


def program_schedules(work: ImportBuilder, settings: ImportedSettings, program: str) -> Iterator[ProgramSchedule]:
    """Yield each schedule that calls a program here, by way of scripts too. Raises: ValueError for an unreadable unit."""
    found: list[tuple[ScheduledCommand, tuple[tuple[str, str], ...]]] = []
    for file, text in settings.crontabs:
        found += [(each, ()) for each in parse_crontab(file, text) if isinstance(each, ScheduledCommand)]
    found += scheduled_units([parse_unit(file, text) for file, text in settings.units])
    for file, text in settings.scripts:
        scheduled, note = script_schedule(file, text)
        found.append((scheduled, (note,)))
    for scheduled, notes in found:
        try:
            calls = find_calls(scheduled, settings.called.texts)
        except ValueError as error:
            if program in scheduled.command:
                work.say(scheduled.where, Lost(f"is not carried over: {error}"))
            continue
        named = [index for index, call in enumerate(calls) if call.program == program]
        at = tuple(index for index in named if why_not(calls[index]) is None)
        for call in (calls[index] for index in named if index not in at):
            work.say(call.where, Lost(f"its call of {program} is not carried over: {why_not(call)}"))
        if at:
            yield ProgramSchedule(scheduled=scheduled, calls=calls, at=at, notes=notes)
        elif not named:
            for told, lost in explain_unread(scheduled, settings.called, program):
                work.say(scheduled.where, Lost(told) if lost else told)


def tell_program_schedule(work: ImportBuilder, found: ProgramSchedule, jobs: Sequence[str]) -> None:
    """Carry over what a schedule does beside its calls, and say what is lost of its time."""
    tell_neighbours(work, found.calls, found.at, jobs)
    tell_schedule(work, found.scheduled, jobs)
    for where, text in (
        *found.notes,
        *((found.calls[index].where, note) for index in found.at for note in found.calls[index].notes),
    ):
        work.say(where, text)
    when = found.scheduled
    if jobs and when.when and when.schedule is None and when.every is None:
        work.say(when.where, Lost(f'its time is not carried over: "{when.when}" is no schedule for a job file'))
    if when.user not in ("", "root"):
        work.say(when.where, f"runs as the user {when.user}: poolferry's jobs run as whoever calls poolferry")


def without_schedule(program: str) -> str:
    """Return the message about jobs whose times were not given."""
    return f"when {program} is called was not said (--crontab, --unit, --script): the jobs run by hand until they have a schedule"


def sections_of(**sections: Mapping[str, Value]) -> dict[str, Mapping[str, Value]]:
    """Return the sections of a job file; `head` stands before the first one."""
    return {"" if name == "head" else name: keys for name, keys in sections.items()}
