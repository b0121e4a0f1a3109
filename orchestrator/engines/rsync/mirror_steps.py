"""The steps around the copy of a mirror: files of others are kept out of it, an interrupted one goes on, all is written to the disk. Pure."""

from datetime import datetime, timedelta

from orchestrator.domain.answers import NOT_READ, parse_count, parse_instant
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Command, Pipeline, Step
from orchestrator.domain.point import MIRROR_FILE_TIME, MIRROR_MADE
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync import script_commands
from orchestrator.engines.rsync.model import MOST_ALTERED, RsyncSurvey
from orchestrator.engines.rsync.options import options_of

Stage = tuple[Step, ...]
_GRAIN_S = 2  # of a file's time, on FAT; whole seconds are remembered
_ROOM = 16 << 20  # bytes that the manifest, the history and the folders of a copy may take
_SAME_CLOCK, _OTHER_CLOCK = timedelta(seconds=2), timedelta(minutes=10)


def resume_mirror(job: Job, world: RsyncSurvey) -> Stage:
    """Return the stage that prepares an interrupted mirror. Where there is no room for the copy, half-copied files go, and begin anew.

    Why no file is resumed by its name: users own folders of a mirror; rsync continues from the files in our own folder. Why not always with
    them: those of files that have left the source would fill a target for ever, and no look tells which they are.
    """
    moving, free = world.changes.moving if world.changes else None, world.target.free_bytes
    tight = moving is not None and free is not None and free < moving + _ROOM
    command = script_commands.resume_mirror_command(job.target.location, anew=tight)
    why = "what a killed rsync left must not stay between the files"
    return _alone(
        "tidy up after the cut",
        f"{why}; there is little room, so half-copied files begin anew" if tight else why,
        command,
    )


def end_mirror(job: Job) -> Stage:
    """Return the stage that writes all remaining data to the disk."""
    command = script_commands.end_mirror_command(job.target.location)
    (step,) = _alone("write everything to the disk", "only then the mirror is as the source", command)
    return (replace(step, settles=True),)


def _alone(action: str, why: str, command: Command) -> Stage:
    return (Step(action=action, why=why, worker="main", work=Pipeline(stages=(command,)), expected=None),)


def separate_files(job: Job, world: RsyncSurvey, request: RunRequest) -> tuple[Stage, ...]:
    """Return the stage that keeps files of others out of what rsync changes in place.

    Why a mirror's alone: in a point every such file is made anew.
    """
    options, altered = options_of(job), world.changes.altered if world.changes else ()
    whole = options.in_place or len(altered) >= MOST_ALTERED
    if not (whole or altered):
        return ()
    names = f"{request.notes}/altered-mirror"
    command = script_commands.separate_files_command(job.target.location, whole=whole)
    step = Step(
        action="separate the mirror from files of others",
        why="a user may have given another file a name in her folder, and its owner and mode would be changed",
        worker="main",
        work=Pipeline(stages=(command,), reads=None if whole else names),
        expected=None,
        needs=() if whole else ((names, b"".join(b"./" + path + b"\0" for path in altered)),),
    )
    return ((step,),)


def is_last_mirror(job: Job, mirrored: datetime, request: RunRequest) -> bool:
    """Return whether a mirror's manifest may be the last that a run wrote; else its place was put back, or another copy lies there.

    Then a manifest is made anew, which believes nothing of the older one. The file's own time is that of the clock of the machine that holds it: it is
    compared with the time that the same file had when the run had written it; two clocks only where an earlier version, or its gate, told none.
    """
    own = request.remembered.get(MIRROR_FILE_TIME + job.target.name)
    if own:
        try:
            return abs(mirrored.timestamp() - parse_count(own.encode())) <= _GRAIN_S
        except NOT_READ:
            return False  # a damaged record: the new manifest writes another one
    told = request.remembered.get(MIRROR_MADE + job.target.name)
    if told is None:
        return True
    try:
        last = parse_instant(told)
    except ValueError:
        return False  # a damaged record: the new manifest writes another one
    return mirrored >= last - (_SAME_CLOCK if job.target.location.host is None else _OTHER_CLOCK)
