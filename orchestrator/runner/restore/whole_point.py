"""The choice of a point that each dataset has, for a restore that names none; and what newer, partial ones exist."""

from orchestrator.domain.job import Job
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.restore import DatasetRestorer
from orchestrator.planners.restore import WholePoint, choose_whole_point
from orchestrator.process.executor import Reader
from orchestrator.runner.context import RunContext
from orchestrator.runner.last_look import find_points
from orchestrator.runner.problems import missing_parts
from orchestrator.runner.restore.request import RestoreOptions, restore_command

_SHOWN = 3


def find_whole_point(
    job: Job,
    tools: RunContext,
    engine: DatasetRestorer,
    restore_request: RestoreOptions,
    kit: str | None,
    reader: Reader,
) -> WholePoint | None:
    """Return the newest point that each requested dataset has, where a newer one is partial. Raises: OrchestratorError."""
    if restore_request.point not in (None, "latest"):
        return None
    points = find_points(job, tools, reader)
    if not points:
        return None
    seen = engine.partial_points(job, kit, reader)
    memory, place = tools.history.memory(job.name), job.target.name
    records = tools.history.views.points(job.name)
    verified = {each.name for each in records if each.place == place and each.verified_at is not None}
    lacking = {
        each.name: _requested(job, restore_request, missing_parts(memory, place, each.name))
        # Why: what a run verified lacks only what the source itself had not.
        or (() if each.name in verified else _requested(job, restore_request, seen.get(each.name, ())))
        for each in points
    }
    return choose_whole_point(points, lacking, at=restore_request.at)


def _requested(job: Job, restore_request: RestoreOptions, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the source's datasets that the request is for."""
    top = job.source / restore_request.path.decode("utf-8", "surrogateescape") if restore_request.path else job.source
    return tuple(each for each in names if f"{each}/".startswith(f"{top.path}/"))


def newer_point_lines(job: Job, restore_request: RestoreOptions, whole: WholePoint) -> tuple[str, ...]:
    """Return a line for the newest point that was passed over, with the command that restores it all the same."""
    newest, lacking = whole.passed[0]
    names = ", ".join(lacking[:_SHOWN]) + (" …" if len(lacking) > _SHOWN else "")
    more = len(whole.passed) - 1
    others = f" ({show_count(more, 'more point')} between them and {whole.point.name} {'is' if more == 1 else 'are'} partial, too)"
    line = (
        f"{whole.point.name} is the newest point that every dataset has. {newest.name} is newer and partial, "
        f"{show_count(len(lacking), 'dataset')} {'lacks' if len(lacking) == 1 else 'lack'} it: {names}{others if more else ''}. "
        f"To restore what there is of it: {restore_command(job, restore_request, newest.name)}"
    )
    return (line,)
