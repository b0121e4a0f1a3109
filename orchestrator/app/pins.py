"""Pins: holds and bookmarks that keep snapshots on the pools for later copies, and the release of unneeded ones."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.session import open_session, stop_on_signals
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.engines.contract.engine import implements
from orchestrator.engines.contract.holds import PinInspector, PinReport

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.domain.plan import Step
    from orchestrator.domain.run import RunReport


@dataclass(frozen=True, slots=True, kw_only=True)
class PinListing:
    """All pins, and the release of unneeded ones: for each pool a job that represents it, and its steps."""

    pins: PinReport
    planned: "tuple[tuple[Job, tuple[Step, ...]], ...]"

    @property
    def steps(self) -> "tuple[Step, ...]":
        """Return all steps."""
        return tuple(step for _, own in self.planned for step in own)


def survey_pins(settings: Settings, name: str | None) -> PinListing:
    """Return the pins on the pools of a job; without a name on those of all. Raises: WrongRequest."""
    from orchestrator.engines.registry import load_engine

    known = settings.configuration()
    requested = known.jobs if name is None else (known.job(name),)
    jobs = tuple(one for one in known.jobs if implements(load_engine(one.engine), PinInspector))
    if name is not None and requested[0] not in jobs:
        raise WrongRequest(f"job {name} copies no datasets, so it pins nothing")
    return _look(settings, jobs, tuple(one for one in requested if one in jobs))


def _look(settings: Settings, jobs: "Sequence[Job]", requested: "tuple[Job, ...]") -> PinListing:
    from orchestrator.engines.registry import load_engine

    pinner: object = load_engine(requested[0].engine) if requested else None
    if not implements(pinner, PinInspector):
        return PinListing(pins=PinReport(pins=()), planned=())
    stop = compose.make_stop_request(None)
    with stop_on_signals(stop), ExitStack() as open_ends:
        seen = pinner.survey_pins(
            requested, lambda one: open_ends.enter_context(compose.make_reader(one, stop, settings.log))
        )
    found = pinner.judge_pins(tuple(jobs), seen, compose.now())
    return PinListing(pins=found, planned=pinner.plan_release(seen, found))


def release_pins(settings: Settings, found: PinListing) -> "tuple[RunReport, ...]":
    """Release unneeded pins, pool by pool."""
    from orchestrator.runner.execute import release_holds

    reports: list[RunReport] = []
    with open_session(settings) as session:
        for job, steps in found.planned:
            reports.append(session.do(job, release_holds, steps))
            settings.subscriber.ended(reports[-1])
            if session.stopped:
                break
    return tuple(reports)
