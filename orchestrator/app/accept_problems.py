"""Acceptance of damage and loss by a person: the problem is over for status and notices, and nothing else changes."""

from orchestrator import compose
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.problem import Problem, ProblemType, problem_hint

_TO_ACCEPT = (ProblemType.DAMAGED, ProblemType.MANIFEST, ProblemType.POINTS_GONE, ProblemType.SOURCE_ROTTEN)


def accept_problems(settings: Settings, name: str, point: str | None) -> tuple[Problem, ...]:
    """End the problems of one point, or the loss of points; return them. Raises: WrongRequest when there is none."""
    job = settings.configuration().job(name)
    with compose.open_history(settings.where) as history:
        known = history.problems.open_of(job.name)
        chosen = tuple(each for each in known if each.point == (point or "") and each.kind in _TO_ACCEPT)
        if not chosen:
            what = f"point {point}" if point else f"the points or the source of {name}"
            left = [each for each in known if each.kind is ProblemType.LEFT_OUT and each.point == point]
            more = f"; files that were left out: {problem_hint(left[0], newest=point)}" if left else ""
            raise WrongRequest(f"nothing is wrong with {what} that could be accepted{more}")
        with history.together():
            for each in chosen:
                history.problems.end(
                    job.name, each.place, (each.kind,), each.point, by="accepted by a person", now=compose.now()
                )
    return chosen
