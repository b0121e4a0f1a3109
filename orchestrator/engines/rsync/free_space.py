"""The space that a copy needs on its target: the warning before it, and the sentence after it failed. Pure."""

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.plan import Plan
from orchestrator.domain.point import Changes
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.rsync.model import RsyncSurvey


def describe_space(world: RsyncSurvey) -> str:
    """Report the size to copy, the free space before and the missing space; empty when none is known."""
    changes, target = world.changes, world.target
    if changes is None:
        return ""
    told = [_bytes(changes, target.free_bytes, again=target.work), _inodes(changes, target.free_inodes)]
    return "; ".join(each for each in told if each)


def warn_of_low_space(world: RsyncSurvey, plan: Plan) -> Plan:
    """Return the plan, with a warning if the copy exceeds free space.

    Why no refusal: nobody can predict the effect of holes and of the target's compression, nor, after an interrupted copy, how
    much of the data is there already.
    """
    moving, free = world.changes.moving if world.changes else None, world.target.free_bytes
    if moving is None or free is None or moving <= free or world.target.work:
        return plan
    warning = (
        f"{show_size(moving)} are to be copied, and {show_size(free)} are free on the target: it fits only if that stores it "
        "in less"
    )
    return replace(plan, warnings=(*plan.warnings, warning))


def _bytes(changes: Changes, free: int | None, *, again: bool) -> str:
    """Return the sentence on bytes. `again`: an interrupted copy already uses some space, which is not subtracted."""
    if changes.moving is None or free is None:
        return ""
    missing = changes.moving - free
    lack = f", so at least {show_size(missing)} are missing" if missing > 0 and not again else ""
    part = "in all, a part of it copied before" if again else "to be copied"
    return f"{show_size(changes.moving)} {part}, {show_size(free)} were free{lack}"


def _inodes(changes: Changes, free: int | None) -> str:
    """Return the sentence on inodes. A new point also needs an inode for each folder, which are fewer than its entries."""
    if free is None:
        return ""
    if changes.created <= free:
        few = changes.entries_now is not None and free < changes.entries_now
        return (
            f"{show_count(free, 'inode')} were free, and a new point needs one for each of its folders" if few else ""
        )
    return f"{show_count(changes.created, 'new entry', 'new entries')} and only {show_count(free, 'inode')} were free"
