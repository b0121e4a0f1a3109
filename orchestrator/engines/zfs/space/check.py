"""The check of a target's free space for a plan: a refusal before any transfer if certainly too small, else a warning.

A dry send reports the size on the source. A block that is compressed there, or raw, takes as much space on the target; any
other may be compressed by the target, so its size there cannot be known before.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from orchestrator.domain.answers import instant_at, text_lines
from orchestrator.domain.errors import OrchestratorError, Stopped
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Effect, Plan, Refusal, Step
from orchestrator.domain.units import Bytes, Seconds, show_count, show_size
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.model import SendFlags, ZfsSurvey, parse_flags
from orchestrator.engines.zfs.survey import parse
from orchestrator.engines.zfs.survey.confirm import estimate_sizes, sending_command
from orchestrator.engines.zfs.survey.survey import parse_result, run_read_command
from orchestrator.process.executor import Reader

GUARD = "target-room"
_PATIENCE = Seconds(60)  # from an old bookmark, a dry send reads the metadata of all newer data
# A stream has a header of 312 bytes for each block, and its size is estimated from an average block.
_SURE = 0.9
# Share of the source's total size: with so much free space nothing is estimated. Why less for increments: an estimate is one
# more command for each dataset, each night, and a night's new data are seldom a quarter of all.
_PLENTY, _PLENTY_FOR_NEWS = 2, 0.25
_MOST = 100  # snapshots in one line for a person to paste


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotGroup:
    """A name that snapshots of the copy have. `newest`: in some dataset of the copy, no snapshot is newer."""

    name: str
    createtxg: int
    taken: datetime
    newest: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSpace:
    """The target's free space in detail. `free`: bytes, with those being freed; `at`: the dataset that reports them.

    `squeezes`: it compresses data that is not sent compressed; `dedup`: data that it holds already may take no space.
    """

    at: str
    free: int
    squeezes: bool
    dedup: bool
    snapshots: tuple[SnapshotGroup, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneProposal:
    """Snapshots of the copy that could be destroyed: by [keep], or the oldest. `frees`: bytes; None: not reported."""

    names: tuple[str, ...]
    frees: int | None
    by_keep: bool


def check_space(job: Job, world: ZfsSurvey, plan: Plan, request: RunRequest, reader: Reader) -> Plan | Refusal:
    """Return the plan; or a refusal for too little free space, with what could be pruned there. Raises: Stopped."""
    free = world.target.available
    if free is None or GUARD in request.allowed or _has_plenty(world, plan, free):
        return plan
    try:
        return _checked(job, world, plan, request, reader, free)
    except Stopped:
        raise
    except OrchestratorError:  # an obstacle to this survey will also stop the copy, which reports it
        return plan


def _has_plenty(world: ZfsSurvey, plan: Plan, free: int) -> bool:
    root, below = world.source.datasets.get(""), len(world.target.root.path) + 1
    there = {name for name, one in world.target.datasets.items() if not one.placeholder}
    whole = any(step.copies and step.worker[below:] not in there for step in plan.steps)
    return root is not None and root.used is not None and free > (_PLENTY if whole else _PLENTY_FOR_NEWS) * root.used


def _checked(job: Job, world: ZfsSurvey, plan: Plan, request: RunRequest, reader: Reader, free: int) -> Plan | Refusal:
    if any(step.copies and step.expected is None for step in plan.steps):
        plan = estimate_sizes(plan, reader, patience=_PATIENCE)
    expected = sum(step.expected or 0 for step in plan.steps if step.copies)
    if expected <= free:
        return plan
    space = _look(world, reader)
    if expected <= space.free:
        return plan
    if expected * _SURE > space.free and _is_sure(world, plan, space, _packs(world, reader)):
        pruning = _pruning(request, space, expected, lambda names: _frees(world, names, reader))
        refusal = _refuse(job, world, space, expected, pruning)
        return _without_largest(job, world, plan, request, space, refusal) or refusal
    return replace(plan, warnings=(*plan.warnings, _warning(space, expected)))


def _without_largest(
    job: Job, world: ZfsSurvey, plan: Plan, request: RunRequest, space: TargetSpace, refusal: Refusal
) -> Plan | None:
    """Return the plan of all datasets that fit once the largest are left out; None: none is left then.

    Why the largest: who fills one dataset without an end shall not keep the others from being copied.
    """
    from orchestrator.engines.zfs.plan.plan import plan as plan_run

    known = {(step.worker, step.action): step.expected for step in plan.steps if step.copies}
    sizes = _sizes(world, plan)
    left_out: dict[str, Refusal] = {}
    fitting = plan
    while sum(sizes.values()) > space.free:
        for name in _largest(world, sizes, space.free):
            why = f"{world.source.full(name)} does not fit on the target beside the others: {show_size(sizes[name])} of it are to be sent"
            left_out[name] = replace(refusal, why=why, evidence=(refusal.why, *refusal.evidence))
        planned = plan_run(job, world, replace(request, left_out=left_out))
        if not isinstance(planned, Plan):
            return None
        fitting = _with_sizes(planned, known)
        sizes = _sizes(world, fitting)
        if not sizes or not left_out.keys().isdisjoint(sizes):
            return None
    return fitting


def _sizes(world: ZfsSurvey, plan: Plan) -> dict[str, int]:
    """Return by dataset the bytes that are to be sent."""
    below = len(world.target.root.path) + 1
    sizes: dict[str, int] = {}
    for step in plan.steps:
        if step.copies:
            sizes[step.worker[below:]] = sizes.get(step.worker[below:], 0) + (step.expected or 0)
    return sizes


def _with_sizes(plan: Plan, known: Mapping[tuple[str, str], Bytes | None]) -> Plan:
    """Return a plan with the sizes of an earlier one's steps, by (worker, action)."""
    stages = tuple(
        tuple(replace(step, expected=known.get((step.worker, step.action), step.expected)) for step in stage)
        for stage in plan.stages
    )
    return replace(plan, stages=stages)


def _largest(world: ZfsSurvey, sizes: Mapping[str, int], free: int) -> list[str]:
    """Return the largest datasets without which the rest fits. What waits for one of them goes with it, and is no reason to leave out more."""
    rest, chosen = dict(sizes), list[str]()
    for name in sorted(sizes, key=lambda one: sizes[one], reverse=True):
        if sum(rest.values()) <= free:
            break
        if name in rest:
            chosen.append(name)
            for one in _waiting_for(world, name, rest):
                del rest[one]
    return chosen


def _waiting_for(world: ZfsSurvey, name: str, names: Collection[str]) -> list[str]:
    """Return the dataset, and those that cannot be sent without it: new ones below it, where it is new, and clones of these."""
    there, found = world.target.datasets, [name]
    new = [one for one in names if one not in there or not there[one].snapshots]
    origins = {one: (world.source.datasets[one].origin or "").partition("@")[0] for one in new}
    for above in found:  # grows meanwhile
        inside = above in origins
        found += [
            one
            for one in new
            if one not in found
            and ((inside and (not above or one.startswith(f"{above}/"))) or origins[one] == world.source.full(above))
        ]
    return found


def _warning(space: TargetSpace, expected: int) -> str:
    return (
        f"{show_size(expected)} are to be sent, and {show_size(space.free)} are free in {space.at}: it fits only if the target "
        "stores it in less"
    )


def _is_sure(world: ZfsSurvey, plan: Plan, space: TargetSpace, packs: Mapping[str, bool]) -> bool:
    """Return whether the sends certainly take the estimated space. `packs`: by dataset, whether its source compresses."""
    sends = [step for step in plan.steps if step.copies]
    if space.dedup or _lets_go(world, plan, sends):
        return False
    below = len(world.target.root.path) + 1
    for step in sends:
        flags = _flags(world, step)
        if flags is None or not (
            flags.raw or (flags.compressed and (packs.get(step.worker[below:]) or not space.squeezes))
        ):
            return False
    return True


def _lets_go(world: ZfsSurvey, plan: Plan, sends: Iterable[Step]) -> bool:
    """Return whether the plan itself frees space: it rolls back, or discards an interrupted receive."""
    resumed = {step.worker for step in sends if "-t" in _send_arguments(step)}
    cut = {world.target.full(name) for name, one in world.target.datasets.items() if one.partial}
    return bool(cut - resumed) or any(step.effect is Effect.DESTROYS and not step.copies for step in plan.steps)


def _flags(world: ZfsSurvey, step: Step) -> SendFlags | None:
    """Return the flags of a step's send; None where unknown."""
    words = _send_arguments(step)
    if "-t" in words:
        token = world.tokens.get(words[-1])
        return token.flags if token else None
    return parse_flags("".join(letter for letter in words[0] if letter in "wLce") or "-") if words else None


def _send_arguments(step: Step) -> tuple[str, ...]:
    sender = sending_command(step)
    return (sender and commands.send_arguments(sender)) or ()


def _look(world: ZfsSurvey, reader: Reader) -> TargetSpace:
    """Return the target's free space in detail."""
    side = world.target
    near = side.root.path if "" in side.datasets else max(side.above, key=len)
    command = commands.space_command(side.root, near)
    result = run_read_command(reader, command, patience=_PATIENCE)
    return parse_result(command, result, partial(parse_space, result.stdout, near))


def parse_space(text: bytes, near: str) -> TargetSpace:
    """Parse properties of the pool and of the dataset, then snapshots. Raises: ValueError."""
    lines = text_lines(text)
    told: dict[str, str] = {}
    names: dict[str, tuple[int, datetime]] = {}
    newest: dict[str, tuple[int, str]] = {}
    for line in lines:
        first, *fields = line.split("\t")
        dataset, mark, name = first.partition("@")
        if not mark:
            told[first] = fields[0]
            continue
        txg, taken = int(fields[0]), instant_at(int(fields[1]))
        names.setdefault(name, (txg, taken))
        newest[dataset] = max(newest.get(dataset, (0, "")), (txg, name))
    last = {name for _, name in newest.values()}
    kept = (
        SnapshotGroup(name=name, createtxg=txg, taken=taken, newest=name in last)
        for name, (txg, taken) in names.items()
    )
    return TargetSpace(
        at=near, free=int(told["available"]) + (parse.parse_number(told.get("freeing", "-")) or 0),
        squeezes=told["compression"] != "off", dedup=told["dedup"] != "off",
        snapshots=tuple(sorted(kept, key=lambda one: one.createtxg)),
    )  # fmt: skip


def _packs(world: ZfsSurvey, reader: Reader) -> Mapping[str, bool]:
    """Return by dataset of the source whether it compresses new data."""
    root = world.source.root
    command = commands.compression_command(root)
    result = run_read_command(reader, command, patience=_PATIENCE)
    lines = (line.split("\t") for line in text_lines(result.stdout))
    return parse_result(command, result, lambda: {name[len(root.path) + 1 :]: value != "off" for name, value in lines})


def _frees(world: ZfsSurvey, names: Sequence[str], reader: Reader) -> int | None:
    """Return the bytes that destroying these snapshots of the copy would free; None where zfs refuses that."""
    command = commands.dry_destroy_command(world.target.root, names)
    try:
        result = run_read_command(reader, command, patience=_PATIENCE)
    except Stopped:
        raise
    except OrchestratorError:
        return None
    return parse_result(command, result, partial(_parse_frees, result.stdout))


def _parse_frees(text: bytes) -> int | None:
    lines = text_lines(text)
    found = [line.split("\t")[1] for line in lines if line.startswith("reclaim\t")]
    return int(found[0]) if found else None


def _pruning(
    request: RunRequest, space: TargetSpace, expected: int, frees: Callable[[Sequence[str]], int | None]
) -> PruneProposal | None:
    """Return the snapshots to destroy so that the data fit, never a newest one: those not in [keep], else the fewest oldest."""
    going = [one for one in space.snapshots if not one.newest][:_MOST]
    if request.retain is not None:
        retained = request.retain(tuple((one.name, one.taken) for one in space.snapshots))
        unkept = tuple(one.name for one in going if one.name not in retained)
        if unkept and (freed := frees(unkept)) is not None and space.free + freed >= expected:
            return PruneProposal(names=unkept, frees=freed, by_keep=True)
    if not going:
        return None
    names = tuple(one.name for one in going)
    freed = frees(names)
    few, many = 0, len(names)
    while freed is not None and space.free + freed >= expected and many - few > 1:
        half = (few + many) // 2
        less = frees(names[:half])
        if less is not None and space.free + less >= expected:
            many, freed = half, less
        else:
            few = half
    return PruneProposal(names=names[:many], frees=freed, by_keep=False)


def _refuse(job: Job, world: ZfsSurvey, space: TargetSpace, expected: int, pruning: PruneProposal | None) -> Refusal:
    return Refusal(
        why=f"the target has not enough space: {show_size(expected)} are to be sent, and {show_size(space.free)} are free in {space.at}",
        evidence=(
            "the first is what a dry `zfs send` estimates for all that is new, the second what `zfs get available` shows",
            *(_describe_pruning(pruning, world) if space.snapshots else ()),
        ),
        hint=f"{_hint(job, space, expected, pruning)}; where it is known to fit: poolferry run {job.name} --allow {GUARD}",
        guard=GUARD,
    )


def _describe_pruning(pruning: PruneProposal | None, world: ZfsSurvey) -> tuple[str, ...]:
    """Return a sentence on the snapshots that could be destroyed, and the command for it."""
    if pruning is None:
        return ("the copy holds no snapshots but the newest, from which the next send starts: nothing can go there",)
    names = pruning.names
    which = f"@{names[0]}" + (f" to @{names[-1]}" if len(names) > 1 else "")
    count = show_count(len(names), "snapshot")
    what = f"{count} of the copy, which [keep] does not keep," if pruning.by_keep else f"the oldest {count} of the copy"
    action = "zfs does not say what that frees" if pruning.frees is None else f"that frees {show_size(pruning.frees)}"
    return (f"{what} could go, {which}; {action}", str(commands.destroy_command(world.target.root, names)))


def _hint(job: Job, space: TargetSpace, expected: int, pruning: PruneProposal | None) -> str:
    disk = job.target.disk
    larger = "enroll a larger disk" if disk else "give the target's pool more disks"
    if pruning is None or pruning.frees is None or space.free + pruning.frees < expected:
        return f"{larger}, or send less (exclude and skip-snapshots in [zfs])"
    how = f", between `poolferry disks attach {disk}` and `poolferry disks eject {disk}`" if disk else ""
    return f"let these snapshots go by that line{how}; or {larger}"
