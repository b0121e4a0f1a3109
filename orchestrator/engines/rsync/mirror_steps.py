"""The step that keeps files of others out of a mirror. Pure."""

from orchestrator.domain.job import Job
from orchestrator.domain.plan import Pipeline, Step
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync import script_commands
from orchestrator.engines.rsync.model import MOST_ALTERED, RsyncSurvey
from orchestrator.engines.rsync.options import options_of


def separate_files(job: Job, world: RsyncSurvey, request: RunRequest) -> tuple[tuple[Step, ...], ...]:
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
