"""Crontab lines as values: time, user, and the command; in a user's own form, and in the form of /etc/cron.d with a user."""

import re
from collections.abc import Iterator, Mapping

from orchestrator.config.migrate.time_span import parse_when
from orchestrator.domain.fast_dataclass import dataclass, field

_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)")
_FIELD = re.compile(r"[-0-9A-Za-z*,/~]+")
_USER = re.compile(r"[a-z_][a-z0-9_-]*")
# A first word that is no user: what people begin a line of their own with.
_BEGINS = frozenset(
    "sudo doas nice ionice chrt flock timeout env ssh sh bash dash exec time nohup setsid chronic cronic systemd-cat systemd-inhibit "
    "curl wget test command cd echo sleep mail logger if for while set export zfs zpool syncoid sanoid rsnapshot borgmatic "
    "btrbk zrepl pgrep pidof run-parts true".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledCommand:
    """A command and when it is called. `where`: its file and line, as "crontab:3"; `schedule`: five fields, None for another form,
    which `when` shows; `every`: a span between two calls; `mailto`: who gets its output.
    """

    where: str
    command: str
    when: str = ""
    schedule: str | None = None
    every: str | None = None
    user: str = ""
    mailto: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)


def parse_crontab(file: str, text: str) -> Iterator[ScheduledCommand | tuple[int, str]]:
    """Yield each command of a crontab; or (line, why) for a line that is none."""
    variables: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        if setting := _SETTING.fullmatch(bare):
            variables = variables | {setting[1]: _unquoted(setting[2])}
            continue
        when, command = _when(bare)
        if not when:
            yield number, "is no line of a crontab"
            continue
        user, command = _user(file, command)
        yield ScheduledCommand(
            where=f"{file}:{number}", command=_unescaped(command), when=when, schedule=parse_when(when),
            user=user, mailto=variables.get("MAILTO", ""), variables=variables,
        )  # fmt: skip


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _when(line: str) -> tuple[str, str]:
    """Split the time from the rest of a line; ("", "") for a line without a time."""
    if line.startswith("@"):
        when, *rest = line.split(None, 1)
        return when, (rest or [""])[0]
    fields = line.split(None, 5)
    if len(fields) < 6 or not all(_FIELD.fullmatch(each) for each in fields[:5]):
        return "", ""
    return " ".join(fields[:5]), fields[5]


def _user(file: str, command: str) -> tuple[str, str]:
    """Split the user from a command of the system's own crontabs; ("", command) elsewhere."""
    first, *rest = command.split(None, 1) or [""]
    system = file.startswith(("/etc/cron", "/etc/anacron"))
    if rest and _USER.fullmatch(first) and (system or first not in _BEGINS):
        return first, rest[0]
    return "", command


def _unescaped(command: str) -> str:
    r"""Return the command as cron gives it to the shell: a bare % begins its input, and \% is a literal %."""
    return re.split(r"(?<!\\)%", command)[0].replace("\\%", "%")
