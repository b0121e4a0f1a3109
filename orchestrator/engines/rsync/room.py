"""How much room a copy needed and its target had, as far as the look could tell. Pure."""

from orchestrator.domain.changes import Changes
from orchestrator.domain.plan import Plan
from orchestrator.domain.quick import replace
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.rsync.words import World


def tell_room(world: World) -> str:
    """What was to be copied against what was free before, and what is missing; empty where neither is known."""
    changes, target = world.changes, world.target
    if changes is None:
        return ""
    told = [_bytes(changes, target.free_bytes, again=target.work), _inodes(changes, target.free_inodes)]
    return "; ".join(each for each in told if each)


def warn_of_room(world: World, plan: Plan) -> Plan:
    """The plan, with a warning where more is to be copied than is free. Why no refusal: nobody knows before what holes and the
    target's compression make of it; nor, after an interrupted copy, how much of it is there."""
    moving, free = world.changes.moving if world.changes else None, world.target.free_bytes
    if moving is None or free is None or moving <= free or world.target.work:
        return plan
    warning = (
        f"{show_size(moving)} are to be copied, and {show_size(free)} are free on the target: it fits only if that stores it "
        "in less"
    )
    return replace(plan, warnings=(*plan.warnings, warning))


def _bytes(changes: Changes, free: int | None, *, again: bool) -> str:
    """`again`: an interrupted copy has taken some of the room already, so nothing can be subtracted."""
    if changes.moving is None or free is None:
        return ""
    missing = changes.moving - free
    lack = f", so at least {show_size(missing)} are missing" if missing > 0 and not again else ""
    part = "in all, a part of it copied before" if again else "to be copied"
    return f"{show_size(changes.moving)} {part}, {show_size(free)} were free{lack}"


def _inodes(changes: Changes, free: int | None) -> str:
    """A new point also needs an inode for each of its folders, so this is the least."""
    if free is None or changes.created <= free:
        return ""
    return f"{show_count(changes.created, 'new entry', 'new entries')} and only {free} inodes were free"
