"""Every command line of the prune engine."""

from collections.abc import Iterable

from orchestrator.domain.arrival import ReceivedPoint
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.prune.model import parse_snapshot
from orchestrator.process.scripts import script_command

_ROOM = "engines/prune"


def survey_command(root: Location) -> Command:
    """Build the command that prints the machine's time and all snapshots of the root and of what lies below it."""
    return script_command(_ROOM, "look.sh", root.path, effect=Effect.READS, host=None)


def find_points_command(root: Location) -> Command:
    """Build the command that prints the machine's time, all points in a folder, and whether a removal of some was cut."""
    return script_command(_ROOM, "look-at-folder.sh", root.path, effect=Effect.READS, host=None)


def destroy_command(points: Iterable[ReceivedPoint]) -> Command:
    """Build the command that destroys snapshots one by one, each by its guid; the numbers in [keep] are the consent.

    Never -r, -R or -d: a snapshot that a hold keeps, or a clone needs, is refused by zfs itself. Raises: ValueError for what is no
    name of one snapshot: zfs takes some signs for a list or a range.
    """
    values = [word for point in points for word in (parse_snapshot(f"{point.series}@{point.name}"), point.identity)]
    return script_command(_ROOM, "destroy-received.sh", *values, effect=Effect.DESTROYS, host=None)
