"""A pool's rebuild: the copies of its datasets elsewhere, and the restored ones, as lines and as JSON."""

from typing import Any

from orchestrator.domain.evacuation import DatasetCopy, DatasetStatus, PoolEvacuation
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import show_count
from orchestrator.planners.evacuation import KITS
from orchestrator.views.restore import TargetNextBase, next_base_values


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildPart:
    """The progress of one source: `copy` it is restored from; None: none can be reached, `why` has the reason.

    `mounted` False: it is a folder that does not lie on the pool yet; before that nothing comes back, as datasets are mounted in it.
    """

    source: Location
    job: Job | None
    copy: DatasetCopy | None
    back: bool
    why: str = ""
    mounted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildStep:
    """One step, and its state."""

    number: int
    title: str
    state: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildEnd:
    """Result of a rebuild so far. None: not reached. `next`: the user's next commands; `anew`: jobs that send everything."""

    pool: str
    outcome: Outcome
    steps: tuple[RebuildStep, ...]
    datasets: tuple[DatasetStatus, ...] | None
    next: tuple[str, ...] | None
    parts: tuple[RebuildPart, ...] | None
    differences: tuple[str, ...] | None
    links: tuple[TargetNextBase, ...] | None
    anew: tuple[str, ...] | None


def rebuild_value(end: RebuildEnd) -> dict[str, Any]:
    """Render the rebuild for `restore pool --json`."""
    steps = [{"step": s.number, "title": s.title, "state": s.state, "lines": list(s.lines)} for s in end.steps]
    value = {
        "datasets": None if end.datasets is None else [standing_value(one) for one in end.datasets],
        "next": None if end.next is None else list(end.next),
        "parts": None if end.parts is None else [part_value(part) for part in end.parts],
        "differences": None if end.differences is None else list(end.differences),
        "chains": None if end.links is None else next_base_values(end.links),
        "anew": None if end.anew is None else list(end.anew),
    }
    return {"pool": end.pool, "steps": steps, **{key: one for key, one in value.items() if one is not None}}


def step_lines(step: RebuildStep) -> list[str]:
    """Render one step for people."""
    return [f"{step.number}. {step.title}: {step.state}", *(f"     {line}" for line in step.lines)]


def part_value(part: RebuildPart) -> dict[str, Any]:
    """Render a part for programs."""
    return {
        "source": str(part.source), "job": part.copy.job if part.copy else None,
        "place": part.copy.place if part.copy else None, "where": (part.copy.where or None) if part.copy else None,
        "back": part.back, "why": part.why,
    }  # fmt: skip


def part_told(part: RebuildPart) -> tuple[str, list[str]]:
    """Return the state of a part, and the lines below it."""
    if not part.mounted:
        return "your turn", [part.why, "then run the same command again"]
    if part.copy is None:
        return "no copy of it can be reached", [
            part.why,
            "plug in, attach or import one, and run the same command again",
        ]
    known = f", as of {part.copy.known_at:%Y-%m-%d %H:%M} UTC" if part.copy.known_at else ""
    point = f", point {part.copy.point}" if part.copy.point else ""
    return ("it is back" if part.back else "to be done"), [f"from {part.copy.called} ({part.copy.job}{point}{known})"]


def evacuation_lines(leaving: PoolEvacuation) -> list[str]:
    """Render the status of each dataset, one line each, and the copies that could not be read."""
    lines = [f"{one.dataset}: {_dataset_line(one)}" for one in leaving.standings]
    for copy in leaving.unseen:
        known = f"; history knows it as of {copy.known_at:%Y-%m-%d %H:%M} UTC" if copy.known_at else ""
        lines.append(f"not counted: {copy.job} on {copy.called} ({copy.why}{known})")
    return lines


def _dataset_line(one: DatasetStatus) -> str:
    held = [f"{count} on {_holder(copy)}" for copy, count in one.copies]
    held += [
        f"its files on {copy.called} ({copy.job}, point {copy.point})"
        for copy in one.files
        if not copy.files[one.dataset]
    ]
    nothing = "recovery kits alone, made again by the next runs" if one.dataset.endswith(f"/{KITS}") else "empty"
    kept = f"; it holds the copies of job {', '.join(one.keeps)}" if one.keeps else ""
    may = ", and may be lost" if one.lost and one.let_go else ""
    if not one.snapshots:
        told = f"{'; '.join(held)}{'; ' if held and one.lost else ''}{one.lost}" or nothing
        return f"{told}{kept}{may}"
    if not held:
        return f"{one.lost}{kept}{may}"
    return f"{show_count(one.snapshots, 'snapshot')}: {', '.join(held)}{f'; {one.lost}' if one.lost else ''}{kept}{may}"


def _holder(copy: DatasetCopy) -> str:
    """Render the place and the job of a copy; for a disk that is away, also the date of the information."""
    if copy.held is not None or copy.known_at is None:
        return f"{copy.called} ({copy.job})"
    return f"{copy.called} ({copy.job}; not looked at: as history knows it, as of {copy.known_at:%Y-%m-%d %H:%M} UTC)"


def standing_value(one: DatasetStatus) -> dict[str, Any]:
    """Render one dataset for programs."""
    copies = [
        {"job": copy.job, "place": copy.place, "where": copy.where or None, "disk": copy.disk or None,
         "seen": copy.held is not None, "snapshots": count} for copy, count in one.copies
    ]  # fmt: skip
    files = [
        {"job": copy.job, "place": copy.place, "where": copy.where or None, "point": copy.point,
         "lacks": copy.files[one.dataset] or None} for copy in one.files
    ]  # fmt: skip
    return {
        "dataset": one.dataset, "snapshots": one.snapshots, "copies": copies, "files": files, "keeps": list(one.keeps),
        "lost": one.lost or None, "may_be_lost": one.let_go,
    }  # fmt: skip
