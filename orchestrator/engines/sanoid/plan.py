"""The plan for sanoid, decided from the survey: take, prune the source, prune the copy."""

import shlex
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase

from orchestrator.domain.job import Job
from orchestrator.domain.plan import Command, Decision, Effect, NothingToDo, Pipeline, Plan, Refusal, Step
from orchestrator.domain.source_state import SourceState
from orchestrator.domain.units import Seconds, show_duration
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.sanoid import commands
from orchestrator.engines.sanoid.model import FLAGS, INTERVAL_SECONDS, QUARTER, SanoidRules, SanoidSurvey
from orchestrator.engines.sanoid.options import excluded_patterns, is_recursive, rules_of, rules_on_target, snapshots_of

SOURCE, TARGET = "source", "target"
MISDATED = "misdated-"  # before the name of a snapshot that a wrong clock dated: sanoid knows its own by how they begin
_CLOCK_TOLERANCE = timedelta(hours=1)
_SHOWN = 5


def plan(job: Job, world: SanoidSurvey, request: RunRequest) -> Decision:
    """Return the decision of a job that only takes snapshots: the steps, nothing, or a refusal."""
    snapshots = snapshots_of(job)
    if snapshots is None:
        return Refusal(
            why="no snapshots are configured",
            evidence=(f"{job.file} has no [snapshots]",),
            hint="write how many stay, such as [snapshots] daily = 14",
        )
    if refusal := _refuse_unfinished(world) or refuse_misdated(job, world):
        return refusal
    folder = f"{request.notes}/sanoid"
    stages = (take_steps(job, world, folder), prune_source_steps(job, world, folder))
    if not any(stages):
        newest = world.snapshots[-1].name if world.snapshots else None
        return NothingToDo(why="no snapshot is due and none is to go", current=newest)
    done = " and ".join(step.action for stage in stages for step in stage)
    waits = (
        (f"{_first(world.unfinished)}: being restored, and left out until that is finished",)
        if world.unfinished
        else ()
    )
    return Plan(summary=done, stages=tuple(stage for stage in stages if stage), warnings=waits)


def _refuse_unfinished(world: SanoidSurvey) -> Refusal | None:
    """Return a refusal while the root is being restored: what is received next would not fit onto a snapshot that was taken meanwhile."""
    if not world.restoring:
        return None
    owned = Command(argv=("zfs", "inherit", FLAGS, world.root.path), effect=Effect.DESTROYS, host=world.root.host)
    return Refusal(
        why=f"{world.root} is being brought back from a copy, and is not whole yet: no snapshot of it is taken or removed before that",
        evidence=(f"its property {FLAGS} says so",),
        hint=f"`poolferry status` names the restore, to be said again until it is done; where nobody restores it, its owner has set that: {owned}",
        source=SourceState.RESTORING,
    )


def _first(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")


def take_steps(job: Job, world: SanoidSurvey, folder: str) -> tuple[Step, ...]:
    """Return the steps that take due snapshots on the source, if any. `folder`: a local one that stays between runs.

    With the owner's own rules (`use`) only sanoid knows what is due, so it always runs.
    """
    snapshots = snapshots_of(job)
    if snapshots is None or not snapshots.autosnap:
        return ()
    rules = rules_of(snapshots)
    due = () if snapshots.use else due_intervals(rules, world)
    if not due and not snapshots.use:
        return ()
    place = f"{folder}/{SOURCE}-take"
    left = _left_out(job, world)
    text = commands.sanoid_conf(world.root.path, rules, take=True, downward=is_recursive(job), left_out=left)
    expected = tuple((kind, interval_start(kind, world.at)) for kind in due)
    command = commands.take_command(world.root, text, place, due=expected, use=snapshots.use)
    action = f"take {' and '.join(due)} snapshots of {world.root}" if due else f"take the snapshots of {snapshots.use}"
    why = _why_due(world, due) if due else "sanoid knows by its own rules what is due"
    return (_step(action, why, command, place, None if snapshots.use else text, freezes=True),)


def prune_source_steps(job: Job, world: SanoidSurvey, folder: str) -> tuple[Step, ...]:
    """Return the steps that remove snapshots that [snapshots] no longer keeps from the source; none if the survey found none.

    Its limit: snapshots of the datasets below the root count as old as the root's.
    """
    snapshots = snapshots_of(job)
    if snapshots is None or not snapshots.autoprune:
        return ()
    rules = rules_of(snapshots)
    due = due_intervals(rules, world) if snapshots.autosnap else ()
    if not snapshots.use and not outlived_intervals(rules, world, coming=due):
        return ()
    place = f"{folder}/{SOURCE}-prune"
    left = _left_out(job, world)
    text = commands.sanoid_conf(world.root.path, rules, take=False, downward=is_recursive(job), left_out=left)
    command = commands.prune_command(world.root, text, place, use=snapshots.use)
    kept = f"the rules in {snapshots.use}" if snapshots.use else str(rules)
    return (
        _step(f"prune snapshots of {world.root}", f"kept are {kept}", command, place, None if snapshots.use else text),
    )


def prune_target_steps(job: Job, folder: str) -> tuple[Step, ...]:
    """Return the steps that remove snapshots that [keep] does not keep from the copy; none when [keep] is empty.

    Only snapshots that sanoid named, whichever machine took them; it never takes any there.
    """
    snapshots = snapshots_of(job)
    if job.keep.everything or (snapshots is not None and not snapshots.autoprune):
        return ()
    root = job.target.location
    rules = rules_on_target(snapshots, job.keep)
    place = f"{folder}/{TARGET}-prune"
    text = commands.sanoid_conf(root.path, rules, take=False, downward=is_recursive(job), spare=False)
    command = commands.prune_command(root, text, place, use=None)
    return (_step(f"prune snapshots of {root}", f"[keep], and the newest of each kind: {rules}", command, place, text),)


def due_intervals(rules: SanoidRules, world: SanoidSurvey) -> tuple[str, ...]:
    """Return the kinds without a snapshot in the present quarter, hour, day, week, month or year (UTC)."""
    return tuple(
        kind for kind in rules.kinds if all(taken.at < interval_start(kind, world.at) for taken in world.of(kind))
    )


def outlived_intervals(rules: SanoidRules, world: SanoidSurvey, *, coming: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the kinds of which sanoid would remove a snapshot, after one of each kind in `coming` is taken."""
    soon = set(coming)
    return tuple(
        kind
        for kind in rules.kinds
        if (there := world.of(kind))
        and len(there) + (kind in soon) > rules.of(kind)
        and there[0].at < world.at - timedelta(seconds=rules.of(kind) * INTERVAL_SECONDS[kind])
    )


def interval_start(kind: str, now: datetime) -> datetime:
    """Return the start of the present quarter, hour, day, week (on Monday), month or year, in UTC."""
    instant = now.astimezone(UTC).replace(second=0, microsecond=0)
    if kind == "frequently":
        return instant.replace(minute=instant.minute // QUARTER * QUARTER)
    hour = instant.replace(minute=0)
    day = hour.replace(hour=0)
    match kind:
        case "hourly":
            return hour
        case "weekly":
            return day - timedelta(days=day.weekday())
        case "monthly":
            return day.replace(day=1)
        case "yearly":
            return day.replace(month=1, day=1)
    return day


def find_excluded_datasets(world: SanoidSurvey, patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Return the excluded datasets by full name; their descendants are excluded with them and not listed."""
    found: dict[str, None] = {}
    above = len(world.root.path) + 1
    for name in sorted(world.datasets):
        parts = name[above:].split("/")
        outer = (f"{name[:above]}{'/'.join(parts[:count])}" for count in range(1, len(parts)))
        told = name[above:] and any(fnmatchcase(name[above:], pattern) for pattern in patterns)
        if told and not any(each in found for each in outer):
            found[name] = None
    return tuple(found)


def _left_out(job: Job, world: SanoidSurvey) -> tuple[str, ...]:
    """Return the datasets that sanoid leaves alone: excluded ones, and those whose restore is not finished, which a snapshot would hold up."""
    return tuple(dict.fromkeys((*find_excluded_datasets(world, excluded_patterns(job)), *world.unfinished)))


def refuse_misdated(job: Job, world: SanoidSurvey) -> Refusal | None:
    """Return a refusal when snapshots of a wanted kind are dated after now, as by a clock that was wrong; else None.

    Why: until then sanoid takes none of that kind, and each night would find nothing to do. Under another name they stay, and
    do not count.
    """
    snapshots = snapshots_of(job)
    if snapshots is None or snapshots.use or not snapshots.autosnap:
        return None
    kinds = rules_of(snapshots).kinds
    later = [taken for taken in world.snapshots if taken.kind in kinds and taken.at - world.at > _CLOCK_TOLERANCE]
    if not later:
        return None
    root, last = world.root.path, later[-1]
    ahead = show_duration(Seconds((last.at - world.at).total_seconds()))
    downward = "-r " if is_recursive(job) else ""
    renames = (
        f"zfs rename {downward}{shlex.quote(f'{root}@{taken.name}')} {shlex.quote(f'@{MISDATED}{taken.name}')}"
        for taken in later
    )
    where = f" on {world.root.host}" if world.root.host else ""
    return Refusal(
        why=f"{world.root}@{last.name} is dated {ahead} after now: until then sanoid takes no {last.kind} snapshot",
        evidence=(
            f"the clock there says {world.at:%Y-%m-%d %H:%M:%S} UTC",
            *(f"{root}@{taken.name}" for taken in later),
        ),
        hint=f"if that clock is right, give what is dated wrongly another name{where}: {'; '.join(renames)}",
    )


def _why_due(world: SanoidSurvey, due: tuple[str, ...]) -> str:
    told = []
    for kind in due:
        there = world.of(kind)
        told.append(f"the newest {kind} one is {there[-1].name}" if there else f"there is no {kind} one")
    return "; ".join(told)


def _step(action: str, why: str, command: Command, place: str, text: str | None, *, freezes: bool = False) -> Step:
    """Return one call of sanoid; locally its configuration is written first, for a host it is part of the command."""
    here = text is not None and command.host is None
    needs = ((f"{place}/sanoid.conf", (text or "").encode()),) if here else ()
    work = Pipeline(stages=(command,))
    return Step(action=action, why=why, worker="main", work=work, expected=None, needs=needs, freezes=freezes)
