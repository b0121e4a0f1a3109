"""The end of a restore, a kit of another machine, and scratch copies, as lines and as JSON."""

import os.path
from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.domain.command_line import quoted
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.kit import SET_ASIDE, KitReview
from orchestrator.domain.names import JOB_NAME
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.contract.drills import ScratchClone
from orchestrator.history.values import RunRecord
from orchestrator.views.format import format_iso

Files = Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetNextBase:
    """One target. `base`: the snapshot that the next run starts from; None: a full copy. `seen`: the target was read now."""

    job: str
    target: str
    base: str | None
    seen: bool
    why: str


def next_base_lines(found: Sequence[TargetNextBase]) -> list[str]:
    """Render the next bases for people."""
    return [f"  {link.job} to {link.target}: {link.why}" for link in found]


def next_base_values(found: Sequence[TargetNextBase]) -> list[dict[str, Any]]:
    """Render the next bases for programs."""
    return [
        {"job": each.job, "target": each.target, "base": each.base, "seen": each.seen, "why": each.why}
        for each in found
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapKit:
    """A recovery kit at a place. `folder`: inside the place; `configuration`: by path; `last`: newest run; `runs`: count.

    `warnings`: what is wrong with it, and was no reason to refuse it.
    """

    folder: str
    configuration: Files
    history: bytes
    last: RunRecord | None
    runs: int
    warnings: tuple[str, ...] = ()

    @property
    def jobs(self) -> tuple[str, ...]:
        """Return the names of the jobs that the kit declares."""
        names = (
            path.removeprefix("jobs/").removesuffix(".toml") for path in self.configuration if path.startswith("jobs/")
        )
        return tuple(sorted(name for name in names if JOB_NAME.fullmatch(name)))


def kit_value(kit: BootstrapKit, place: str) -> dict[str, Any]:
    """Render the kit that was found for programs."""
    last = kit.last
    return {
        "place": place, "folder": kit.folder, "host": last.host if last else None, "runs": kit.runs, "jobs": list(kit.jobs),
        "last_run": format_iso(last.begun_at) if last else None, "warnings": list(kit.warnings),
    }  # fmt: skip


def review_value(review: KitReview) -> dict[str, Any]:
    """Render the files that are not trusted yet, and those left out, for programs."""
    return {
        "not_trusted": [{"name": each.name, "acts": list(each.acts)} for each in review.set_aside],
        "left_out": list(review.left_out),
    }


def review_lines(review: KitReview, config: str) -> Sequence[str]:
    """Render the kit's copies and commands, and how to accept the files that are set aside."""
    lines = [f"  {line}" for line in review.copies]
    for each in review.set_aside:
        path = os.path.join(config, each.path)
        lines.append(f"not trusted yet: {each.name} would run or send:")
        lines += [f"  {act}" for act in each.acts]
        lines.append(
            f"  to accept it: say --trust {each.name}; or afterwards: mv {quoted(path + SET_ASIDE)} {quoted(path)}"
        )
    if review.left_out:
        lines.append(f"left out, as no configuration of ours: {', '.join(review.left_out)}")
    return lines


def kit_lines(kit: BootstrapKit, place: str) -> Sequence[str]:
    """Render the kit for people."""
    last = kit.last
    told = f"of {last.host}, last run {last.begun_at:%Y-%m-%d %H:%M} UTC ({last.job})" if last else "without any run"
    return (
        f"the kit at {os.path.join(place, kit.folder) if kit.folder else place} is {told}; {show_count(kit.runs, 'run')}",
        f"jobs: {', '.join(kit.jobs) or 'none'}",
        *(f"warning: {each}" for each in kit.warnings),
    )


def scratch_lines(found: Sequence[ScratchClone]) -> list[str]:
    """Render scratch copies, one line each."""
    return [_scratch_line(each) for each in found] or ["there are no scratch copies"]


def _scratch_line(each: ScratchClone) -> str:
    until = f", until {each.until:%Y-%m-%d %H:%M} UTC" if each.until else ""
    place = each.mountpoint if each.mountpoint.startswith("/") else str(each.at)
    return f"{each.name}: {each.job} as of {each.of}, at {place}, {show_size(each.used)} written{until}"


def scratch_values(found: Sequence[ScratchClone]) -> list[dict[str, Any]]:
    """Render scratch copies for programs."""
    return [
        {"name": each.name, "dataset": str(each.at), "job": each.job, "point": each.of, "until": format_iso(each.until),
         "used_bytes": each.used, "mountpoint": each.mountpoint} for each in found
    ]  # fmt: skip
