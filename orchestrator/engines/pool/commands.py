"""Every command line of the pool engine, each with its reason."""

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.process.scripts import own_process_function, script_command

_ROOM = "engines/pool"


def survey_command(root: Location) -> Command:
    """Build the command that prints all data that a health check needs: one call, so one login."""
    return _look(root.path, root=root)


def status_command(root: Location) -> Command:
    """Build the command that prints the status of a pool alone: quicker than all that a health check needs."""
    return _look(root.path, "scan", root=root)


def _look(*values: str, root: Location) -> Command:
    before = own_process_function()
    return script_command(_ROOM, "look.sh", *values, effect=Effect.READS, host=root.host, before=before)


def scrub_command(root: Location, *, pause: bool) -> Command:
    """Build the command that starts or resumes a scrub, or pauses it: a paused scrub keeps its progress."""
    words = ("scrub", *(("-p",) if pause else ()), root.path)
    if root.host is None:
        return Command(argv=("zpool", *words), effect=Effect.WRITES)
    return script_command(_ROOM, "zpool.sh", *words, effect=Effect.WRITES, host=root.host)
