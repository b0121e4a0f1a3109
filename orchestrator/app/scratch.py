"""Scratch copies of a restore point: made, listed, dropped."""

from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.session import opened
from orchestrator.app.settings import Frame, WrongRequest

if TYPE_CHECKING:
    from orchestrator.domain.run import RunReport
    from orchestrator.domain.scratch import Scratch
    from orchestrator.domain.units import Seconds


def try_point(
    frame: Frame, name: str, *, point: str | None, at: datetime | None, path: str, keep: "Seconds | None"
) -> "RunReport":
    """Clone a point of datasets; those whose time is over go first. Raises: WrongRequest."""
    from orchestrator.runner import scratch_clones as trying

    if point and at:
        raise WrongRequest("tell either --point or --at")
    job = frame.configuration().job(name)
    trial = trying.Trial(below=path.strip("/"), point=point, at=at, keep=keep)
    with opened(frame) as desk:
        desk.do(job, trying.drop, None)
        report = desk.do(job, trying.run_try, trial)
    frame.subscriber.ended(report)
    return report


def drop_scratch(frame: Frame, name: str, drop: str) -> "RunReport":
    """Drop a scratch copy of a job by its own name."""
    from orchestrator.runner import scratch_clones as trying

    with opened(frame) as desk:
        report = desk.do(frame.configuration().job(name), trying.drop, drop)
    frame.subscriber.ended(report)
    return report


def list_scratch(frame: Frame, name: str) -> "tuple[Scratch, ...]":
    """Return the scratch copies beside a job's copy."""
    from orchestrator.engines.registry import engine
    from orchestrator.runner.scratch_clones import Scratcher

    job = frame.configuration().job(name)
    found: object = engine(job.engine)
    if not isinstance(found, Scratcher):
        return ()
    with compose.reader(job, compose.stop_for(None), frame.log) as reader:
        return found.survey_scratch(job, reader)
