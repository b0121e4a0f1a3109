"""The progress of a run that goes on, as another process sees it."""

from datetime import datetime

from orchestrator.domain.run_progress import RunProgress
from orchestrator.domain.units import show_duration, show_size
from orchestrator.history.values import StepRecord
from orchestrator.planners.throughput import show_pace
from orchestrator.views.format import shorten

_FRESH = 15  # seconds; a copy reports twice a second


def progress_lines(step: str, progress: RunProgress | None, *, now: datetime) -> list[str]:
    """Render the step that goes on and the bytes so far, one line or none."""
    told = [shorten(step)] if step else []
    if progress is not None:
        told.append(pace_words(progress, now=now))
    return [": ".join(told)] if told else []


def pace_words(progress: RunProgress, *, now: datetime) -> str:
    """Render bytes, speed and time left; or since when no bytes were reported; or what the run waits for."""
    if progress.waits:
        return progress.waits
    silent = (now - progress.at).total_seconds()
    if silent > _FRESH:
        pace = show_pace(progress.done, progress.expected, None, None)
        return f"{pace}; no more for {show_duration(silent)}"
    return show_pace(progress.done, progress.expected, progress.rate, progress.left_s)


def begun_step_line(step: StepRecord) -> str:
    """Render a step as it was begun."""
    expected = f" ({show_size(step.expected)})" if step.expected else ""
    return f"{step.begun_at.astimezone():%H:%M:%S} {shorten(step.action)}{expected}"
