"""systemd's services and timers as scheduled commands. Source: systemd.service(5), systemd.timer(5), systemd.exec(5)."""

import re
from collections.abc import Iterator, Sequence

from orchestrator.config.migrate.crontab import ScheduledCommand
from orchestrator.config.migrate.result import Lost
from orchestrator.config.migrate.time_span import parse_calendar
from orchestrator.domain.fast_dataclass import dataclass

_COMMANDS = ("ExecCondition", "ExecStartPre", "ExecStart", "ExecStartPost", "ExecStopPost")
_LOST = {
    "Nice": "Nice= in `systemctl edit poolferry` holds for all runs",
    "IOSchedulingClass": "IOSchedulingClass= in `systemctl edit poolferry` holds for all runs",
    "TimeoutStartSec": "[pipe] stall-after ends a transfer that stands still, stop-at ends a run at a time of day",
    "RuntimeMaxSec": "[pipe] stall-after ends a transfer that stands still, stop-at ends a run at a time of day",
    "OnFailure": "write a [notice.NAME] in poolferry.toml, or [hooks] failed in the job",
    "OnSuccess": "[hooks] done in the job calls a program",
    "ConditionACPower": "the hook battery of poolferry does that: [hooks] before",
    "RandomizedDelaySec": 'jobs begin at their time; `spread = "2h"` beside a schedule delays each by a part of it that stays the same',
    "EnvironmentFile": "it was not read; what it sets is unknown here",
}
_UNIT = re.compile(r"(?P<name>[^/]+)\.(?P<kind>service|timer)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemdFile:
    """One unit file: where it lies, and its settings, each with its line."""

    file: str
    name: str
    kind: str
    settings: tuple[tuple[int, str, str], ...]

    def of(self, key: str) -> tuple[str, ...]:
        """Return all values of a setting; an empty one takes those before it away."""
        found: list[str] = []
        for _, name, value in self.settings:
            if name == key:
                found = [*found, value] if value else []
        return tuple(found)


def parse_unit(file: str, text: str) -> SystemdFile:
    """Parse a unit file. Raises: ValueError for another name than NAME.service and NAME.timer."""
    match = _UNIT.fullmatch(file.rpartition("/")[2])
    if match is None:
        raise ValueError("the name of a unit ends in .service or .timer")
    settings = []
    lines = iter(enumerate(text.split("\n"), start=1))
    for number, line in lines:
        whole = line.strip()
        while whole.endswith("\\"):
            whole = whole[:-1].rstrip() + " " + next(lines, (0, ""))[1].strip()
        key, sign, value = whole.partition("=")
        if sign and not whole.startswith(("#", ";")):
            settings.append((number, key.strip(), value.strip()))
    return SystemdFile(file=file, name=match["name"], kind=match["kind"], settings=tuple(settings))


def scheduled_units(units: Sequence[SystemdFile]) -> Iterator[tuple[ScheduledCommand, tuple[tuple[str, str], ...]]]:
    """Yield each service with the commands that it calls, at the times of its timer, and messages (where, text) about the rest."""
    services = {unit.name: unit for unit in units if unit.kind == "service"}
    for unit in services.values():
        timers = [each for each in units if each.kind == "timer" and _of(each, unit.name)]
        yield _scheduled(unit, timers[0] if timers else None), tuple(_notes(unit, timers))


def _of(timer: SystemdFile, service: str) -> bool:
    return (timer.of("Unit") or (f"{timer.name}.service",))[-1] == f"{service}.service"


def _scheduled(unit: SystemdFile, timer: SystemdFile | None) -> ScheduledCommand:
    lines: dict[int, list[str]] = {}
    for number, key, value in unit.settings:
        if key in _COMMANDS and value:
            lines.setdefault(number, []).append(_plain(key, value))
    last = max(lines, default=0)
    text = "\n".join("; ".join(lines.get(number, [])) for number in range(1, last + 1))
    variables = dict(
        pair.split("=", 1)
        for value in unit.of("Environment")
        for quoted in re.findall(r'"([^"]*=[^"]*)"|(\S*=\S*)', value)
        for pair in [quoted[0] or quoted[1]]
    )
    when, schedule, every = _times(timer)
    return ScheduledCommand(
        where=f"{unit.file}:1", command=text, when=when, schedule=schedule, every=every,
        user=(unit.of("User") or ("",))[-1], variables=variables,
    )  # fmt: skip


def _plain(key: str, value: str) -> str:
    """Return a command as a shell would read it: a failed ExecStart ends the unit, and "-" before it lets that pass."""
    bare = value.lstrip("-@:+!|")
    tied = "-" not in value[: len(value) - len(bare)] and key in ("ExecStart", "ExecStartPost")
    return f"set {'-e' if tied else '+e'}; {bare}"


def _times(timer: SystemdFile | None) -> tuple[str, str | None, str | None]:
    """Return how the timer says it, five fields, and a span: at most one of the last two."""
    if timer is None:
        return "no timer", None, None
    calendars, spans = timer.of("OnCalendar"), timer.of("OnUnitActiveSec")
    if len(calendars) == 1 and not spans:
        return f"OnCalendar={calendars[0]}", parse_calendar(calendars[0]), None
    if spans and not calendars:
        return f"OnUnitActiveSec={spans[-1]}", None, _span(spans[-1])
    return ", ".join(f"OnCalendar={each}" for each in calendars) or "no time", None, None


def _span(text: str) -> str | None:
    """Return a span of systemd as a job file writes it; None when it has none."""
    units = {
        "s": "s",
        "sec": "s",
        "m": "m",
        "min": "m",
        "h": "h",
        "hr": "h",
        "hour": "h",
        "d": "d",
        "day": "d",
        "w": "w",
    }
    parts = re.findall(r"([0-9]+)\s*([a-z]*)\s*", text)
    if not parts or "".join(number + unit for number, unit in parts) != re.sub(r"\s", "", text):
        return None
    named = [(number, units.get(unit.removesuffix("s") or "s" if unit else "s")) for number, unit in parts]
    return " ".join(f"{number}{unit}" for number, unit in named) if all(unit for _, unit in named) else None


def _notes(unit: SystemdFile, timers: Sequence[SystemdFile]) -> Iterator[tuple[str, str]]:
    for each in (unit, *timers[:1]):
        for number, key, value in each.settings:
            if key in _LOST and value:
                yield f"{each.file}:{number}", Lost(f"{key}={value} is not carried over: {_LOST[key]}")
    for timer in timers[1:]:
        yield f"{timer.file}:1", Lost("is not carried over: a job has one schedule, and another timer has it already")
    if not timers:
        yield (
            f"{unit.file}:1",
            "no timer of it was given (--unit NAME.timer): the job runs by hand until it has a schedule",
        )
