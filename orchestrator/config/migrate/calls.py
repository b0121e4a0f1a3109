"""Calls of a program among the commands of crontabs, units and scripts, and the commands around them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from orchestrator.config.migrate.crontab import ScheduledCommand
from orchestrator.config.migrate.shell import ShellCommand, parse_commands
from orchestrator.config.migrate.wrappers import program_of, unwrap
from orchestrator.domain.fast_dataclass import dataclass, field, replace

_SHELLS = ("sh", "bash", "dash", "source", ".")
_PROGRAMS = ("syncoid", "sanoid", "rsnapshot", "borgmatic", "btrbk", "zrepl")
_SCRIPT = re.compile(r".*/.*|.*\.(sh|bash|py|pl)")
_DEEPEST = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramCall:
    """One command of a schedule, without the programs before it. `where`: its file and line; `line`: the line of the schedule."""

    where: str
    command: ShellCommand
    scheduled: ScheduledCommand
    notes: tuple[str, ...] = ()
    host: str = ""

    @property
    def program(self) -> str:
        """Return the name of the program."""
        return program_of(self.command.words)

    @property
    def words(self) -> tuple[str, ...]:
        """Return the arguments of the program."""
        return self.command.words[1:]


def find_calls(scheduled: ScheduledCommand, scripts: Mapping[str, str]) -> tuple[ProgramCall, ...]:
    """Return all commands of a schedule; a script that it calls is replaced by its own. Raises: ValueError."""
    file, _, number = scheduled.where.rpartition(":")
    commands = parse_commands(scheduled.command, scheduled.variables, int(number))
    return tuple(_unwrapped(commands, scheduled, file, scripts, 0))


def _unwrapped(
    commands: Sequence[ShellCommand], scheduled: ScheduledCommand, file: str, scripts: Mapping[str, str], depth: int
) -> Iterator[ProgramCall]:
    for command in commands:
        bare = unwrap(command.words)
        script = next((word for word in _files(bare.words) if word in scripts), None) if depth < _DEEPEST else None
        where = f"{file}:{command.line}"
        if script is not None and not bare.host:
            found = parse_commands(scripts[script], scheduled.variables)
            yield from _unwrapped(_behind(command, found), scheduled, script, scripts, depth + 1)
        elif bare.text and depth < _DEEPEST:
            found = parse_commands(bare.text, {} if bare.host else scheduled.variables, command.line)
            for call in _unwrapped(_behind(command, found), scheduled, file, scripts, depth + 1):
                yield replace(call, where=where, notes=(*bare.notes, *call.notes), host=bare.host or call.host)
        else:
            plain = replace(command, words=bare.words)
            yield ProgramCall(where=where, command=plain, scheduled=scheduled, notes=bare.notes, host=bare.host)


def _behind(command: ShellCommand, found: Sequence[ShellCommand]) -> list[ShellCommand]:
    """Return commands in the place of the one that calls them."""
    return [
        replace(each, joined=each.joined if at else command.joined, inside=command.inside or each.inside)
        for at, each in enumerate(found)
    ]


def _files(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the word that may be a script: the program, or what a shell is given."""
    if program_of(words) in _SHELLS:
        return tuple(word for word in words[1:] if not word.startswith("-"))[:1]
    return words[:1]


def called_files(scheduled: ScheduledCommand) -> tuple[str, ...]:
    """Return the programs that a schedule calls, and what a shell is given; none where it cannot be read.

    Why not the programs themselves: they are scripts too, and speak of themselves.
    """
    try:
        commands = parse_commands(scheduled.command, scheduled.variables, 1)
    except ValueError:
        return ()
    bare = (unwrap(command.words) for command in commands)
    found = (word for each in bare if not each.host for word in _files(each.words))
    return tuple(word for word in found if word.rpartition("/")[2] not in _PROGRAMS)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledScripts:
    """The scripts of an import. `texts`: those that crontabs, units and other scripts call, by path; `passed_over`: programs that are
    here; `foreign`: of those, the ones in other languages that name the imported program.
    """

    texts: Mapping[str, str] = field(default_factory=dict)
    passed_over: frozenset[str] = frozenset()
    foreign: frozenset[str] = frozenset()


def scripts_called(schedules: Iterable[ScheduledCommand]) -> tuple[str, ...]:
    """Return the programs that schedules call: one of them may be a script that calls another program."""
    return tuple(dict.fromkeys(path for each in schedules for path in called_files(each)))


def explain_unread(scheduled: ScheduledCommand, scripts: CalledScripts, program: str) -> Iterator[tuple[str, bool]]:
    """Yield (message, lost) for each script of a schedule that may call the program, and was not read."""
    for path in called_files(scheduled):
        if path in scripts.foreign:
            told = f"calls {path}, which names {program} and is no script of a shell: import its calls as lines of a crontab"
            yield told, True
        elif path not in scripts.passed_over and _SCRIPT.fullmatch(path):
            yield f"calls {path}, which was not read: if it calls {program}, add --script {path}", False


def script_schedule(file: str, text: str) -> tuple[ScheduledCommand, tuple[str, str]]:
    """Return a script that nothing calls as a schedule without a time, with the message about that."""
    what = "when this script is called was not said (--crontab): its jobs run by hand until they have a schedule"
    return ScheduledCommand(where=f"{file}:1", command=text), (f"{file}:1", what)


def why_not(call: ProgramCall) -> str | None:
    """Return why a call becomes no job: it runs elsewhere, only sometimes, or on words that only its shell knows."""
    if call.host:
        return f"it runs on {call.host}, through ssh: install poolferry there, and import it there"
    if call.command.inside:
        return f'it stands in a "{call.command.inside}" of its script, so only the script knows when it runs'
    if call.command.unknown:
        return f"only its shell knows what {call.command.unknown} is"
    return None
