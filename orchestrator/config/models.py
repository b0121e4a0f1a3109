"""The form of the configuration: the keys of each file, the engine's keys, and the result after reading."""

import os.path
from collections.abc import Callable, Iterable
from datetime import time
from typing import TYPE_CHECKING, Any

from orchestrator.config.times import parse_daily, parse_every, parse_schedule, parse_span, parse_spread
from orchestrator.domain.errors import ConfigMistake, DeclarationError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import (
    DrillRules,
    GuardLimits,
    Job,
    KeepRules,
    PipeOptions,
    RetryRules,
    SnapshotRules,
    TimeWindow,
    VerifyRules,
    config_key,
    parse_clock,
    parse_window,
)
from orchestrator.domain.names import JOB_NAME
from orchestrator.domain.place import Location, Place, parse_location, url_of_ssh_place
from orchestrator.domain.source_tree import SourceTree
from orchestrator.domain.units import Seconds

if TYPE_CHECKING:  # most configurations have none, and each run reads this
    from orchestrator.domain.rotation import RotationSet

Check = Callable[[Any, SourceTree, Location, VerifyRules], Iterable[tuple[str, str, str]]]
"""From options, source, target and [verify] to keys that contradict each other: ("rsync.delete", mistake, expected value).

Of a list a key may name one element, counted from 0: "rsync.excludes[2]".
"""

Rules = Callable[[SnapshotRules, Location, Location | None], Iterable[tuple[str, str, str]]]
"""From [snapshots], the source and the copy, if there is one, to keys that contradict each other, in the same form."""

SECTIONS: dict[str, type[Any]] = {
    "keep": KeepRules, "snapshots": SnapshotRules, "verify": VerifyRules, "guard": GuardLimits, "pipe": PipeOptions, "retry": RetryRules, "drill": DrillRules,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSection:
    """Engine part of a job file: its section, and whether the engine copies datasets instead of paths.

    `rules`: returns the mistakes in a job's [snapshots]. `lands`: returns the location of a copy inside a place, when it is not
    the place itself. `stays`: it works on the source alone, so its jobs name no target. `without`: sections, and keys such as
    "pipe.transport", that it does not use. `arrivals`: it prunes what came through a gate, and nothing else.
    """

    name: str
    options: type[Any]
    datasets: bool = False
    check: Check | None = None
    lands: Callable[[Any, Location, Location], Location] | None = None
    stays: bool = False
    without: tuple[str, ...] = ()
    rules: Rules | None = None
    arrivals: bool = False

    def prunes_folder(self, source: Location) -> bool:
        """Return whether it prunes what came into a folder of this machine, and not into a dataset."""
        return self.arrivals and source.host is None and source.path.startswith("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The whole configuration, without a mistake."""

    directory: str
    jobs: tuple[Job, ...]
    places: tuple[Place, ...]
    sets: "tuple[RotationSet, ...]" = ()

    def job(self, name: str) -> Job:
        """Return the job of this name. Raises: DeclarationError."""
        found = next((job for job in self.jobs if job.name == name), None)
        if found is None:
            file = os.path.join(self.directory, "jobs")
            raise DeclarationError(
                (ConfigMistake(file=file, line=None, key="", what=f'no job "{name}"', expected=self._names(name)),)
            )
        return found

    def rotation(self, name: str) -> "RotationSet":
        """Return the rotation set of this name. Raises: KeyError."""
        return {each.name: each for each in self.sets}[name]

    def _names(self, wrong: str) -> str:
        from difflib import get_close_matches  # only a mistyped name needs it

        names = [job.name for job in self.jobs]
        near = get_close_matches(wrong, names, n=1)
        return "one of " + ", ".join(names) + (f"; did you mean {near[0]}?" if near else "")


def parse_job_name(text: str) -> str:
    """Return the text, if it may name a job. Raises: ValueError."""
    if not JOB_NAME.fullmatch(text):
        raise ValueError("a name of letters, digits, dots, - and _, the first a letter or a digit")
    return text


def parse_any_location(text: str) -> Location:
    """Parse like `parse_location`, also root@nas:/srv as scp writes it, with our own message for a host that urllib refuses.

    Raises: ValueError.
    """
    if ":/" in text and "://" not in text:
        text = url_of_ssh_place(text) or text
    if "://" not in text:
        return parse_location(text)  # most places are paths, and urllib costs a start 3 ms
    from urllib.parse import urlsplit

    try:
        urlsplit(text)
    except ValueError:
        raise ValueError('a host as in "ssh://user@host[:port]/path"') from None
    return parse_location(text)


def parse_folder(text: str) -> Location:
    """Parse one of several folders, also as scp writes it: root@nas:/srv. Raises: ValueError."""
    return parse_any_location(url_of_ssh_place(text) or text)


def _parse_limit_name(text: str) -> str:
    """Parse a limit's name. Imported late, as the next one: few jobs need a permit. Raises: ValueError."""
    from orchestrator.domain.permit import parse_limit_name

    return parse_limit_name(text)


def _parse_permit_away(text: str) -> Seconds | None:
    """Parse what a run does while the centre is away. Raises: ValueError."""
    from orchestrator.domain.permit import parse_permit_away

    return parse_permit_away(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobKeys:
    """The keys of a job file before its first section."""

    engine: str = config_key("the way of copying", example="rsync")
    source: Location | None = config_key(
        'what to copy: an absolute path, "ssh://user@host[:port]/path" or "user@host:/path" for another machine',
        default=None, parse=parse_any_location, example="/srv/photos",
    )  # fmt: skip
    sources: tuple[Location, ...] = config_key(
        "in place of it, several folders of one machine: one restore point holds all of them, by their whole paths",
        default=(), parse=parse_folder, example='["/home", "/etc", "/srv/www"]',
    )  # fmt: skip
    target: str | None = config_key(
        "where the copies go: the name of a place or of a rotation set in targets.toml; none for jobs that only take snapshots",
        default=None, example="backup",
    )  # fmt: skip
    schedule: str | None = config_key(
        "when to run, as five cron fields in local time; without any of schedule, every, daily and on: only by hand",
        default=None, parse=parse_schedule, example="30 2 * * *",
    )  # fmt: skip
    every: str | None = config_key(
        "run again so long after the last run began", default=None, parse=parse_every, example="15m"
    )
    daily: str | None = config_key("run each day at this local time", default=None, parse=parse_daily, example="02:30")
    on: str | None = config_key(
        'run when this happens; "attach": the target was plugged in', default=None, choices=("attach",)
    )
    spread: Seconds | None = config_key(
        "with schedule or daily: begin up to so much later, each machine and job at its own time, which stays the same",
        default=None, parse=parse_spread, example="2h",
    )  # fmt: skip
    late_after: Seconds | None = config_key(
        "the job is late when its newest verified copy is older than this",
        default=None,
        parse=parse_span,
        example="26h",
    )
    after: tuple[str, ...] = config_key(
        "run only when these jobs have ended well", default=(), example='["mail-store"]'
    )
    stop_at: time | None = config_key(
        "stop a run at this local time; the next one continues from there",
        default=None,
        parse=parse_clock,
        example="06:30",
    )
    window: TimeWindow | None = config_key(
        "the daemon begins runs only in this span of each day, and stops them at its end; the next span continues from there",
        default=None, parse=parse_window, example="22:00-06:00",
    )  # fmt: skip
    min_interval: Seconds | None = config_key(
        'with on = "attach": not again within so long after the last run began',
        default=None, parse=parse_span, example="20h",
    )  # fmt: skip
    priority: int = config_key(
        "which of several jobs that are due begins first: the higher number", default=0, example="10"
    )
    known_as: str | None = config_key(
        "the name by which its copies know it, when it has another now; `poolferry rename` writes it", default=None,
        parse=parse_job_name, example="photos",
    )  # fmt: skip
    permits: tuple[str, ...] = config_key(
        "limits of the fleet's centre that a run counts against, and waits for", default=(), parse=_parse_limit_name,
        example='["link-nas", "lab"]',
    )  # fmt: skip
    permit_weight: int = config_key("slots that a run takes of each of them", default=1, least=1, example="2")
    permit_away: Seconds | None = config_key(
        'while the centre is away: "go-on" at once, as without this key, or "wait 30m" and then go on', default=None,
        parse=_parse_permit_away, example="wait 30m",
    )  # fmt: skip


SCHEDULE_KEYS = ("schedule", "every", "daily", "on")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceKeys:
    """The keys of one [place.NAME] in targets.toml: exactly one of the two."""

    path: Location | None = config_key(
        'a directory that this place has for itself: an absolute path, "ssh://user@host[:port]/path" or "user@host:/path"',
        default=None, parse=parse_any_location, example="/backup/photos",
    )  # fmt: skip
    dataset: Location | None = config_key(
        'a dataset, for engines that copy datasets: its name, or "ssh://user@host[:port]/pool/data"',
        default=None, parse=parse_any_location, example="vault/replicas",
    )  # fmt: skip
