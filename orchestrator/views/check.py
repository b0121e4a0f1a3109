"""The meaning of the configuration and the findings about the machine, as lines and as JSON."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.units import show_duration
from orchestrator.engines.contract.engine import SystemCheckResult
from orchestrator.views.format import format_iso
from orchestrator.views.schedule import describe_schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedJob:
    """A job without a mistake. `next`: its next runs at fixed times; `shown`: the same in the machine's own time."""

    job: Job
    next: tuple[datetime, ...]
    shown: tuple[str, ...]
    advice: tuple[SystemCheckResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigCheck:
    """All jobs. `machine` None: a check of the machine was not requested."""

    config: str
    jobs: tuple[CheckedJob, ...]
    machine: tuple[SystemCheckResult, ...] | None

    @property
    def well(self) -> bool:
        """Return True when nothing hinders a run."""
        advice = [*(each for one in self.jobs for each in one.advice), *(self.machine or ())]
        return not any(each.hinders and not each.good for each in advice)


def check_value(found: ConfigCheck) -> dict[str, Any]:
    """Return the check for `check --json`."""
    machine = {} if found.machine is None else {"machine": [_advice_value(each) for each in found.machine]}
    return {"config": found.config, "jobs": [_job_value(each) for each in found.jobs], **machine}


def _job_value(each: CheckedJob) -> dict[str, Any]:
    job = each.job
    return {
        "job": job.name,
        "file": show_name(job.file),
        "engine": job.engine,
        "source": show_name(str(job.tree)),
        "target": show_name(str(job.target.location)),
        "schedule": job.schedule,
        "meaning": _meaning(job),
        "next": [format_iso(scheduled_at) or "" for scheduled_at in each.next],
        "advice": [_advice_value(one) for one in each.advice],
    }


def check_lines(found: ConfigCheck) -> Iterator[str]:
    """Return the check as lines for people."""
    for each in found.jobs:
        yield _meaning(each.job)
        if each.shown:
            yield "  next: " + ", ".join(each.shown)
        yield from map(_advice_line, each.advice)
    if found.machine:
        yield "this machine:"
        yield from map(_advice_line, found.machine)


def _advice_value(advice: SystemCheckResult) -> dict[str, object]:
    hinders = advice.hinders and not advice.good
    return {"good": advice.good, "hinders": hinders, "subject": advice.subject, "text": advice.text}


def _advice_line(advice: SystemCheckResult) -> str:
    sign = "ok" if advice.good else "!!" if advice.hinders else "hm"
    return f"  {sign}  {advice.subject}: {advice.text}"


_ALONE = {"pool": "watches the pool", "prune": "removes by its rules what came into", "sanoid": "takes snapshots of"}


def _meaning(job: Job) -> str:
    late = f", late after {show_duration(job.late_after)}" if job.late_after else ""
    if not job.copies:
        action = _ALONE.get(job.engine, "works on")
        return f"{job.name}: {job.engine} {action} {show_name(str(job.tree))}, {describe_schedule(job)}{late}"
    kept = {name: getattr(job.keep, name) for name in ("hourly", "daily", "weekly", "monthly", "yearly")}
    keeps = ", ".join(f"{number} {name}" for name, number in kept.items() if number) or "every point"
    if not getattr(job.options, "points", True):
        keeps = "no points: it is a mirror"
    to = f"{show_name(str(job.target.location))} ({job.target.name})"
    if job.target.rotates:
        to = f"the set {job.target.name}"
    return f"{job.name}: {job.engine} copies {show_name(str(job.tree))} to {to}, {describe_schedule(job)}{late}; keeps {keeps}"
