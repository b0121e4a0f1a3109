"""Every command line of the sanoid engine, and the configuration for sanoid, each line with its reason."""

from collections.abc import Iterable
from datetime import datetime

from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.sanoid.model import ALL, INTERVALS, QUARTER, SanoidRules
from orchestrator.process.scripts import script_command

_ROOM, _RUN = "engines/sanoid", "run-sanoid.sh"
_BOUNDARIES = """\
frequent_period = {quarter}
hourly_min = 0
daily_hour = 0
daily_min = 0
weekly_wday = 1
weekly_hour = 0
weekly_min = 0
monthly_mday = 1
monthly_hour = 0
monthly_min = 0
yearly_mon = 1
yearly_mday = 1
yearly_hour = 0
yearly_min = 0
prune_defer = 0
"""


def survey_command(root: Location, *, downward: bool, apart: bool = False) -> Command:
    """Build the command that prints the machine's time, the datasets with their guids, an empty line, the root's dated snapshots.

    Why only the root's: ZFS must read each snapshot for its time, and sanoid decides for the other datasets by itself. `apart`:
    each of our marks by itself, as one has several lines.
    """
    values = (root.path, "-r" if downward else "-d0", "apart" if apart else "together")
    return script_command(_ROOM, "look.sh", *values, effect=Effect.READS, host=root.host)


def space_command(root: Location, *, downward: bool) -> Command:
    """Build the command that prints the free space, and what the snapshots take."""
    return script_command(
        _ROOM, "space.sh", root.path, "-r" if downward else "-d0", effect=Effect.READS, host=root.host
    )


def version_command(host: Host | None) -> Command:
    """Build the command that prints sanoid's version."""
    return Command(argv=("sanoid", "--version"), effect=Effect.READS, host=host)


def take_command(
    root: Location, text: str, folder: str, *, due: Iterable[tuple[str, datetime]], use: str | None
) -> Command:
    """Build the command by which sanoid takes due snapshots; it checks for one of each `due` kind afterwards.

    Source: sanoid 2.1.0 and 2.2.0.
    """
    expected = (f"{kind}={int(since.timestamp())}" for kind, since in due)
    values = (*_values(root, text, folder, use), root.path, *expected)
    return script_command(_ROOM, "take.sh", *values, effect=Effect.WRITES, host=root.host, with_functions=_RUN)


def prune_command(root: Location, text: str, folder: str, *, use: str | None) -> Command:
    """Build the command by which sanoid removes snapshots that no rule keeps; the numbers in the job file are the consent.

    A snapshot that a hold keeps, or a clone needs, stays and is reported; any other that could not be removed is a failure.
    """
    values = _values(root, text, folder, use)
    return script_command(_ROOM, "prune.sh", *values, effect=Effect.DESTROYS, host=root.host, with_functions=_RUN)


def sanoid_conf(
    root: str, rules: SanoidRules, *, take: bool, downward: bool, spare: bool = True, left_out: Iterable[str] = ()
) -> str:
    """Render the sanoid.conf of one dataset, either for taking or for pruning.

    Why one for each: for sanoid 0 means both to take none and to keep none. `spare`: pruning does not touch a kind of 0. Why
    every boundary is set: sanoid's own defaults come from another file, its days end at 23:59, and its years are wrong with any
    boundary but the first of January. `left_out`: full names; with any, each dataset gets its own snapshot instead of all at
    one instant (zfs snapshot -r).
    """
    left = tuple(left_out)
    recursive = "no" if not downward or " " in root else "zfs" if take and not left else "yes"
    numbers = "".join(f"{kind} = {rules.of(kind) or (ALL if spare and not take else 0)}\n" for kind in INTERVALS)
    head = f"[{root}]\nrecursive = {recursive}\nautosnap = {_word(take)}\nautoprune = {_word(not take)}\n"
    others = "".join(f"\n[{name}]\nrecursive = yes\nautosnap = no\nautoprune = no\n" for name in left)
    return "# Written by poolferry for each run.\n" + head + numbers + _BOUNDARIES.format(quarter=QUARTER) + others


def _word(yes: bool) -> str:
    return "yes" if yes else "no"


def _values(root: Location, text: str, folder: str, use: str | None) -> tuple[str, str, str]:
    """Return the script's first arguments: a local folder that holds the text, or for a host the text itself."""
    return ("", text, use or "") if root.host else (folder, "", use or "")


def other_timer_command(timer: str, host: Host | None) -> Command:
    """Build the command that prints `both` when a timer of sanoid's own runs with rules of its own."""
    return script_command(_ROOM, "other-timer.sh", timer, effect=Effect.READS, host=host)
