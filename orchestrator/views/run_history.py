"""Runs, run details, points and verifications of history, as tables and as JSON."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from orchestrator.domain.command_line import brief_text, quoted
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.problem import UNREAD_OR_UNSTORED_WORDS, UNSTORED_WORDS
from orchestrator.domain.units import show_duration, show_size
from orchestrator.history.values import AttemptRecord, PointRecord, RunDetails, RunRecord, StepRecord
from orchestrator.views.format import (
    format_clock,
    format_iso,
    format_table,
    indent,
    shorten,
    unseen_sentence,
    unseen_value,
)

if TYPE_CHECKING:  # few runs are restore tests
    from orchestrator.domain.drill import DrillRecord
    from orchestrator.domain.problem import Problem, UnseenCopies


def run_value(run: RunRecord) -> dict[str, Any]:
    """Render one run for `history --json`."""
    return {
        "run": run.id,
        "job": run.job,
        "kind": run.kind.value,
        "engine": run.engine,
        "source": show_name(run.source),
        "target": show_name(run.target),
        "begun": format_iso(run.begun_at),
        "requested": run.begun_why,
        "ended": format_iso(run.ended_at),
        "outcome": run.outcome,
        "why": run.why,
        "hint": run.hint,
        "moved_bytes": run.moved_bytes,
        "took_s": None if run.took_s is None else round(run.took_s, 3),
        "resumed": run.resumed,
        "attempts": run.attempts,
        "points": list(run.points),
        "warnings": list(run.warnings),
        "evidence": list(run.evidence),
    }


def runs_lines(runs: Sequence[RunRecord], *, now: datetime, job: str | None) -> list[str]:
    """Render the table of runs, newest first."""
    if not runs:
        return [f"no run{f' of {job}' if job else ''} yet"]
    head = ("RUN", "JOB", "KIND", "BEGUN", "OUTCOME", "TOOK", "MOVED", "WHY")
    rows = [
        (
            str(run.id),
            run.job,
            run.kind.value,
            format_clock(run.begun_at, now=now),
            run.outcome or "open",
            "" if run.took_s is None else show_duration(run.took_s),
            "" if run.moved_bytes is None else show_size(run.moved_bytes),
            shorten(_describe_end(run)),
        )
        for run in runs
    ]
    return ["  ".join(row).rstrip() for row in format_table(head, rows, right=frozenset({"RUN", "TOOK", "MOVED"}))]


def _describe_end(run: RunRecord) -> str:
    """Return the reason of a run's end, or of an open run's start; a delay and its cause come first."""
    late = run.begun_why.partition("; ")[0] if run.begun_why.startswith("late: ") else ""
    return f"{late}; {run.why}" if late and run.why else run.why or run.begun_why


def run_details_value(story: RunDetails, drilled: "DrillRecord | None" = None) -> dict[str, Any]:
    """Render one run for `show --json`. `drilled`: its findings, when it was a restore test."""
    return {
        **run_value(story.run),
        **({"drill": _drilled_value(drilled)} if drilled else {}),
        "attempt": [_attempt_value(attempt) for attempt in story.attempts],
        "said": [{"at": format_iso(each.said_at), "level": each.level, "text": each.text} for each in story.events],
        "hooks": [
            {
                "at": format_iso(hook.called_at),
                "event": hook.event,
                "argv": [show_name(word) for word in hook.argv],
                "exit": hook.exit,
                "took_s": round(hook.took_s, 3),
                "output": hook.output,
            }
            for hook in story.hooks
        ],
    }


def _drilled_value(drilled: "DrillRecord") -> dict[str, Any]:
    from orchestrator.views.drills import drill_result_value

    return drill_result_value(drilled.drilled)


def _attempt_value(attempt: AttemptRecord) -> dict[str, Any]:
    decided = attempt.plan or attempt.refusal
    return {
        "number": attempt.number,
        "begun": format_iso(attempt.begun_at),
        "ended": format_iso(attempt.ended_at),
        "why": attempt.why,
        "decision": json.loads(decided) if decided else None,
        "steps": [_step_value(step) for step in attempt.steps],
    }


def _step_value(step: StepRecord) -> dict[str, Any]:
    return {
        "action": step.action,
        "why": step.why,
        "worker": step.worker,
        "commands": list(step.commands),
        "expected_bytes": step.expected,
        "moved_bytes": step.moved,
        "begun": format_iso(step.begun_at),
        "ended": format_iso(step.ended_at),
        "confirmed": step.confirmed,
        "exits": list(step.exits),
        "last_output": list(step.last_output),
        "error": step.error,
    }


def run_details_lines(
    story: RunDetails, *, now: datetime, drilled: "DrillRecord | None" = None, verbose: bool = False
) -> list[str]:
    """Render one run from its beginning to its end. `verbose`: with the whole text of each command."""
    run = story.run
    lines = [
        f"run {run.id}: {run.job}, {run.outcome or 'open'}" + (f": {run.why}" if run.why else ""),
        f"  from {show_name(run.source)} to {show_name(run.target)} ({run.engine})",
        f"  begun {format_clock(run.begun_at, now=now)}, {run.begun_why}; on {run.host}, process {run.pid}",
    ]
    if run.took_s is not None:
        resumed = ", went on from an earlier run" if run.resumed else ""
        lines.append(f"  took {show_duration(run.took_s)}, moved {show_size(run.moved_bytes)}{resumed}")
    lines += [f"  made point {point}" for point in run.points]
    if drilled is not None:
        from orchestrator.views.drills import drill_lines

        lines += drill_lines(drilled)
    for attempt in story.attempts:
        lines += _attempt_lines(attempt, many=len(story.attempts) > 1, verbose=verbose)
    if run.attempts and not story.attempts:
        lines.append(
            "  its steps, commands and output were removed: [history] keep in poolferry.toml says how long they are kept"
        )
    for hook in story.hooks:
        lines.append(f"  hook for {hook.event}: {' '.join(map(show_name, hook.argv))}: exit {_exit(hook.exit)}")
        lines += indent(hook.output.strip().splitlines()[-5:], 4)
    lines += [f"  {each.level}: {each.text}" for each in story.events]
    lines += [f"  what to do: {run.hint}"] if run.hint else []
    return lines + indent(run.evidence, 4)


def _attempt_lines(attempt: AttemptRecord, *, many: bool, verbose: bool) -> list[str]:
    lines = [f"  attempt {attempt.number}" + (f": {attempt.why}" if attempt.why else ": well")] if many else []
    for step in attempt.steps:
        took = show_duration((step.ended_at - step.begun_at).total_seconds()) if step.ended_at else "not ended"
        moved = f", {show_size(step.moved)} moved" if step.moved is not None else ""
        confirmed = {True: "", False: ", NOT VERIFIED", None: ""}[step.confirmed]
        lines.append(f"  {step.number}. {step.action} ({took}{moved}{confirmed})")
        commands = step.commands if verbose else map(brief_text, step.commands)
        lines += indent([f"why:  {step.why}", *(f"runs: {command}" for command in commands)], 5)
        words = [line for said in step.last_output for line in said.split("\n") if line]
        lines += indent([step.error, *words], 5) if step.error else []
    return lines


def _exit(code: int | None) -> str:
    return "none, it was ended" if code is None else str(code)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointTable:
    """Restore points by job. `used`: by job, where its place was when it was last used; `problems`: of its copies, ended ones too.

    `unseen`: by job and place, that the last look did not find the copies there. `earlier`: by job, the files of histories from before its
    own was lost, which lie beside copies that were looked at.
    """

    jobs: Sequence[Job]
    known: Mapping[str, Sequence[PointRecord]]
    used: Mapping[str, str]
    problems: "Mapping[str, Sequence[Problem]]"
    unseen: "Mapping[str, Mapping[str, UnseenCopies | None]]"
    earlier: Mapping[str, Sequence[str]]

    def is_unseen(self, point: PointRecord) -> "UnseenCopies | None":
        """Return that the last look at the point's place did not find the copies there; None: it did."""
        return self.unseen[point.job].get(point.place)

    def left_out(self, point: PointRecord) -> int:
        """Return how many entries the point lacks, as they could not be read, or has otherwise than the source."""
        return max((each.count for each in self._of(point) if each.kind == "left-out"), default=0)

    def lacks(self, point: PointRecord) -> str:
        """Return what of the source the point lacks or has otherwise, as words behind its count of entries; empty: nothing."""
        told = {UNSTORED_WORDS: ", {} otherwise", UNREAD_OR_UNSTORED_WORDS: ", {} lacking or otherwise"}
        found = max(
            (each for each in self._of(point) if each.kind == "left-out"), key=lambda each: each.count, default=None
        )
        return told.get(found.why, ", without {}").format(found.count) if found else ""

    def has_bad_manifest(self, point: PointRecord) -> bool:
        """Return True when the point's manifest is missing or cannot be believed, accepted or not."""
        found = [each for each in self._of(point) if each.kind == "manifest"]
        return bool(found) and (found[-1].ended is None or found[-1].ended_by == "accepted by a person")

    def _of(self, point: PointRecord) -> "list[Problem]":
        return [each for each in self.problems[point.job] if (each.place, each.point) == (point.place, point.name)]


def points_value(table: PointTable) -> dict[str, Any]:
    """Render the restore points for `points --json`."""
    return {
        "points": [_point_value(table, job, point) for job in table.jobs for point in table.known[job.name]],
        "earlier_histories": [
            {"job": job, "file": show_name(file)} for job, files in table.earlier.items() for file in files
        ],
    }


def _point_value(table: PointTable, job: Job, point: PointRecord) -> dict[str, Any]:
    here = point.place == job.target.name
    return {
        "job": job.name,
        "point": point.name,
        "place": point.place,
        "location": show_name(table.used[job.name]) if here else None,
        "taken": format_iso(point.taken_at),
        "run": point.run,
        "entries": point.entries,
        "bytes": point.bytes,
        "verified_at": format_iso(point.verified_at),
        "as_of": format_iso(point.confirmed_at or point.taken_at),
        "sound": point.sound,
        "verified": format_iso(point.whole_at),
        "left_out": table.left_out(point),
        "manifest": not table.has_bad_manifest(point),
        "unseen": unseen_value(table.is_unseen(point)),
    }


def points_lines(table: PointTable, *, now: datetime) -> list[str]:
    """Render the table of restore points, job by job, oldest first."""
    head = ("JOB", "POINT", "TAKEN", "FILES AND FOLDERS", "SIZE", "VERIFIED", "READ AGAIN", "PLACE")
    known = table.known
    rows = [_point_row(table, job, point, now) for job in table.jobs for point in known[job.name]]
    cells = format_table(head, rows, right=frozenset({"FILES AND FOLDERS", "SIZE"})) if rows else []
    none = [
        f"{job.name}: history knows of no point; --look asks the target" for job in table.jobs if not known[job.name]
    ]
    return [*("  ".join(row).rstrip() for row in cells), *none, *_unseen_lines(table), *_earlier_lines(table)]


def _unseen_lines(table: PointTable) -> list[str]:
    return [
        f"{job}: what lay on {place} was {unseen_sentence(found)}{', and may be gone' if found.looked else ''}"
        for job, places in table.unseen.items()
        for place, found in places.items()
        if found and any(point.place == place for point in table.known[job])
    ]


def _earlier_lines(table: PointTable) -> list[str]:
    return [
        f"{job}: beside the copies lies the history from before this one began; no command needs it, and once nobody asks for the runs "
        f"of that time: `rm -- {show_name(quoted(file))}`"
        for job, files in table.earlier.items()
        for file in files
    ]


def _point_row(table: PointTable, job: Job, point: PointRecord, now: datetime) -> tuple[str, ...]:
    verdict = {True: "sound", False: "DAMAGED", None: "never"}[point.sound]
    if point.sound and point.whole_at is None:  # a restore test reads a part; a comparison by guid nothing
        verdict = "in part" if point.reading and point.reading.scope == "part" else "never"
    read = verdict if point.whole_at is None else f"{verdict} {format_clock(point.whole_at, now=now)}"
    here = point.place == job.target.name
    return (
        job.name,
        point.name,
        format_clock(point.taken_at, now=now),
        "" if point.entries is None else f"{point.entries}{table.lacks(point)}",
        "" if point.bytes is None else show_size(point.bytes),
        ("yes" if point.verified_at else "no") + (", unseen" if table.is_unseen(point) else ""),
        "NO GOOD MANIFEST" if table.has_bad_manifest(point) else read,
        f"{point.place}, {show_name(table.used[job.name])}" if here else point.place,
    )
