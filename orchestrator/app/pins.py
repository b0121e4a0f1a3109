"""Pins: what keeps snapshots on the pools for copies to come, and letting go of what nobody wants."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.session import heard_by, opened
from orchestrator.app.settings import Frame, WrongRequest
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.engines.contract import Pinner, Pins

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.domain.plan import Step
    from orchestrator.domain.run import RunReport


@dataclass(frozen=True, slots=True, kw_only=True)
class PinsFound:
    """All pins, and how those that nobody wants would be let go: for each pool a job that stands for it, and its steps."""

    pins: Pins
    planned: "tuple[tuple[Job, tuple[Step, ...]], ...]"

    @property
    def steps(self) -> "tuple[Step, ...]":
        """All steps."""
        return tuple(step for _, own in self.planned for step in own)


def survey_pins(frame: Frame, name: str | None) -> PinsFound:
    """Return the pins on the pools of a job, without a name on those of all. Raises: WrongRequest."""
    from orchestrator.engines.registry import engine

    known = frame.configuration()
    asked = known.jobs if name is None else (known.job(name),)
    jobs = tuple(one for one in known.jobs if isinstance(engine(one.engine), Pinner))
    if name is not None and asked[0] not in jobs:
        raise WrongRequest(f"job {name} copies no datasets, so it pins nothing")
    return _look(frame, jobs, tuple(one for one in asked if one in jobs))


def _look(frame: Frame, jobs: "Sequence[Job]", asked: "tuple[Job, ...]") -> PinsFound:
    from orchestrator.engines.registry import engine

    pinner: object = engine(asked[0].engine) if asked else None
    if not isinstance(pinner, Pinner):
        return PinsFound(pins=Pins(pins=()), planned=())
    stop = compose.stop_for(None)
    with heard_by(stop), ExitStack() as open_ends:
        seen = pinner.survey_pins(asked, lambda one: open_ends.enter_context(compose.reader(one, stop, frame.log)))
    found = pinner.judge_pins(tuple(jobs), seen, compose.now())
    return PinsFound(pins=found, planned=pinner.plan_letting_go(seen, found))


def release_pins(frame: Frame, found: PinsFound) -> "tuple[RunReport, ...]":
    """Let go of what nobody wants, pool by pool."""
    from orchestrator.runner.release_holds import let_go

    reports: list[RunReport] = []
    with opened(frame) as desk:
        for job, steps in found.planned:
            reports.append(desk.do(job, let_go, steps))
            frame.subscriber.ended(reports[-1])
            if desk.stopped:
                break
    return tuple(reports)
