"""Copies of a job's source, findings of verifications, and good copies of damaged files, as lines and as JSON."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.point import VerificationResult, VerifyJobResult
from orchestrator.domain.rotation import describe_place
from orchestrator.domain.run_values import report_value
from orchestrator.domain.units import Seconds, show_count, show_duration, show_size
from orchestrator.planners.choose_copy import CandidatePoint, CopyCandidate, CopyChoice, PastTransfer, fetch_sentence
from orchestrator.views.format import format_ago, format_clock, format_iso

_FINDINGS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreGoal:
    """One thing to bring back. `path`: below the point, empty: all of it; `to`: as `--to` takes it; `in_the_way`: what is there now."""

    path: str
    to: str
    in_the_way: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySearchResult:
    """The copies of a source, the choice among them, the estimated time of a whole restore, and what is to be brought back."""

    job: Job
    copies: tuple[CopyCandidate, ...]
    choice: CopyChoice
    takes: tuple[Seconds, PastTransfer] | None
    goals: tuple[RestoreGoal, ...]

    @property
    def in_the_way(self) -> str:
        """Return what exists where something is to go; empty: nothing, or places that only the restore itself checks."""
        return ", ".join(goal.in_the_way for goal in self.goals if goal.in_the_way)


def copy_search_lines(found: CopySearchResult, *, now: datetime) -> list[str]:
    """Render every copy, the choice, the newer points elsewhere, and the restore command for people."""
    lines = [f"{found.job.name}: copies of {found.job.tree}"]
    lines += [f"  {_describe_duration(copy, now)}" for copy in found.copies]
    choice = found.choice
    if choice.copy is None or choice.point is None:
        lines.append(f"  {choice.why}")
    else:
        lines.append(f"  chosen: {choice.copy.place} (job {choice.copy.job}), point {choice.point.name}: {choice.why}")
        lines.append(
            f"    it is as the source was {format_ago(choice.point.at, now=now)}; what changed since is not in it"
        )
    lines += [f"  elsewhere: {fetch_sentence(copy, point, choice.point)}" for copy, point in choice.newer]
    if found.takes is not None and choice.point is not None:
        took, went = found.takes
        lines.append(
            f"    {show_size(choice.point.bytes)}, about {show_duration(took)}, as fast as {went.kind} {went.run} was"
        )
    if found.in_the_way:
        lines.append(f"    in the way: {found.in_the_way}; --aside renames what is there, or use another --to")
    return [*lines, *(f"  restore: {command}" for command in restore_commands(found))]


def restore_commands(found: CopySearchResult) -> tuple[str, ...]:
    """Return the commands that bring back what is wanted of the chosen point, each with --aside only where something is in its way."""
    import shlex

    choice = found.choice
    if choice.copy is None or choice.point is None:
        return ()
    words = ("poolferry", "restore", "run", choice.copy.job, "--point", choice.point.name)
    return tuple(
        shlex.join((*words, *(("--path", goal.path) if goal.path else ()), "--to", goal.to))
        + (" --aside" if goal.in_the_way else "")
        for goal in found.goals
    )


def newer_copy_lines(others: Sequence[tuple[CopyCandidate, CandidatePoint, str]]) -> list[str]:
    """Render the newer copies, to be printed beside the plan of one copy."""
    return [f"  {_where_newer(copy, point)}: {do}" for copy, point, do in others]


def _where_newer(copy: CopyCandidate, point: CandidatePoint) -> str:
    where = f"disk {copy.disk}" if copy.disk else copy.place
    return "elsewhere" if copy.away else f"newer on {where} (job {copy.job}), point {point.name}"


def newer_copy_values(others: Sequence[tuple[CopyCandidate, CandidatePoint, str]]) -> list[dict[str, Any]]:
    """Render the newer copies for programs."""
    return [
        {"job": copy.job, "place": copy.place, "disk": copy.disk or None, "point": point.name, "as_of": format_iso(point.at),
         "away": copy.away or None, "do": do} for copy, point, do in others
    ]  # fmt: skip


def _describe_duration(copy: CopyCandidate, now: datetime) -> str:
    name = f"disk {copy.disk}" if copy.disk else copy.place
    head = f"{name} (job {copy.job}): "
    newest = copy.newest()
    if newest is None:
        what = "no verified and sound point" if copy.points else "no point"
    else:
        size = f", {show_size(newest.bytes)}" if newest.bytes is not None else ""
        read = f", read again {format_ago(newest.read_at, now=now)}" if newest.read_at else ""
        what = f"{show_count(len(copy.points), 'point')}, the newest good one {newest.name}{size}, verified{read}"
    part = [each for each in copy.points if each.missing]
    lacks = f"; NOT WHOLE: {part[-1].name} lacks {', '.join(part[-1].missing)}" if part else ""
    bad = [each.name for each in copy.points if each.sound is False]
    damaged = lacks + (f"; DAMAGED: {', '.join(bad[-3:])}" if bad else "")
    doubtful = [each.name for each in copy.points if not each.verified and each.sound is not False and not each.missing]
    damaged += f"; NOT VERIFIED: {', '.join(doubtful[-3:])}" if doubtful else ""
    gap = copy.gap()
    hole = f"; none from {format_clock(gap[0].at, now=now)} to {format_clock(gap[1].at, now=now)}" if gap else ""
    where = f"; {describe_place(copy.where)}" if copy.where and copy.away else ""
    return f"{head}{what}{damaged}{hole}" + (f"; {copy.away}{where}" if copy.away else "")


def copy_search_value(found: CopySearchResult) -> dict[str, Any]:
    """Render the copies and the choice for programs."""
    choice = found.choice
    return {
        "source": show_name(str(found.job.tree)),
        "copies": [_copy_value(copy) for copy in found.copies],
        "chosen": None if choice.copy is None or choice.point is None else {
            "job": choice.copy.job, "place": choice.copy.place, "point": choice.point.name, "as_of": format_iso(choice.point.at),
            "bytes": choice.point.bytes,
        },
        "why": choice.why,
        "elsewhere": [
            {"job": copy.job, "place": copy.place, "point": point.name, "as_of": format_iso(point.at), "where": copy.where or None,
             "do": fetch_sentence(copy, point, choice.point)} for copy, point in choice.newer
        ],
        "takes_s": round(found.takes[0], 1) if found.takes else None,
        "in_the_way": found.in_the_way or None,
        "command": " && ".join(restore_commands(found)) or None,
    }  # fmt: skip


def _copy_value(copy: CopyCandidate) -> dict[str, Any]:
    newest, gap = copy.newest(), copy.gap()
    return {
        "job": copy.job, "place": copy.place, "disk": copy.disk or None, "away": copy.away or None,
        "where": copy.where or None, "points": len(copy.points), "newest": newest.name if newest else None,
        "as_of": format_iso(newest.at) if newest else None, "bytes": newest.bytes if newest else None,
        "entries": newest.entries if newest else None,
        "damaged": [each.name for each in copy.points if each.sound is False],
        "not_whole": {each.name: list(each.missing) for each in copy.points if each.missing},
        "gap": [format_iso(each.at) for each in gap] if gap else None,
    }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairSource:
    """A place with the same bytes, and the command; `command` empty: a person must do something first."""

    path: bytes
    job: str
    place: str
    point: str | None
    says: str
    command: str


def repair_source_lines(found: Sequence[RepairSource]) -> list[str]:
    """Render the places with good bytes for people."""
    return [f"  to heal {each.says}" + (f": {each.command}" if each.command else "") for each in found]


def repair_source_values(found: Sequence[RepairSource]) -> list[dict[str, Any]]:
    """Render the places with good bytes for programs."""
    return [
        {"path": show_name(each.path), "job": each.job, "place": each.place, "point": each.point, "says": each.says,
         "command": each.command or None} for each in found
    ]  # fmt: skip


def verification_value(verified: VerifyJobResult) -> dict[str, Any]:
    """Render one verification for `verify --json`."""
    return {
        **report_value(verified.report),
        "point": verified.point,
        "reading": verification_result_value(verified.reading),
        "source": verification_result_value(verified.source),
    }


def verification_result_value(reading: VerificationResult | None) -> dict[str, Any] | None:
    """Render the findings of a reading."""
    if reading is None:
        return None
    return {
        "sound": reading.sound,
        "entries": reading.entries,
        "files_read": reading.files_read,
        "bytes_read": reading.bytes_read,
        "took_s": round(reading.took_s, 3),
        "counts": {verdict.value: count for verdict, count in reading.counts},
        "findings": [
            {"path": show_name(found.path), "verdict": found.verdict.value, "detail": found.detail}
            for found in reading.findings[:_FINDINGS]
        ],
    }
