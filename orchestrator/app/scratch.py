"""Scratch copies of a restore point: made, listed, dropped."""

from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.session import open_session
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.engines.contract.engine import implements

if TYPE_CHECKING:
    from orchestrator.domain.run import RunReport
    from orchestrator.domain.units import Seconds
    from orchestrator.engines.contract.drills import ScratchClone


def try_point(
    settings: Settings, name: str, *, point: str | None, at: datetime | None, path: str, keep: "Seconds | None"
) -> "RunReport":
    """Clone a point of datasets; expired clones are dropped first. Raises: WrongRequest."""
    from orchestrator.runner import scratch_clones as trying

    if point and at:
        raise WrongRequest("use either --point or --at")
    job = settings.configuration().job(name)
    trial = trying.ScratchRequest(below=path.strip("/"), point=point, at=at, keep=keep)
    with open_session(settings) as session:
        session.do(job, trying.drop_scratch_clones, None)
        report = session.do(job, trying.run_try, trial)
    settings.subscriber.ended(report)
    return report


def drop_scratch(settings: Settings, name: str, drop: str) -> "RunReport":
    """Drop a scratch copy of a job by its own name."""
    from orchestrator.runner import scratch_clones as trying

    with open_session(settings) as session:
        report = session.do(settings.configuration().job(name), trying.drop_scratch_clones, drop)
    settings.subscriber.ended(report)
    return report


def list_scratch(settings: Settings, name: str) -> "tuple[ScratchClone, ...]":
    """Return the scratch copies beside a job's copy."""
    from orchestrator.engines.contract.drills import ScratchCloner
    from orchestrator.engines.registry import load_engine

    job = settings.configuration().job(name)
    found: object = load_engine(job.engine)
    if not implements(found, ScratchCloner):
        return ()
    with compose.make_reader(job, compose.make_stop_request(None), settings.log) as reader:
        return found.survey_scratch(job, reader)
