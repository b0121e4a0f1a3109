"""`take-over`: a copy that another program made becomes read-only, and mounts by itself no more; with consent, else it is only named."""

from collections.abc import Iterable, Sequence

from orchestrator.engines.zfs.model import Dataset, TakeOverCopy
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.dataset_plan import DatasetPlan
from orchestrator.engines.zfs.plan.send_flags import derived_flags

TAKE_OVER = "take-over"  # allowed once, or consent in [zfs]


def _is_foreign(case: PlanContext, copy: Dataset) -> bool:
    """Return whether another program made a copy, and left it so that it may be written to, or mounts by itself."""
    return case.world.returning is None and copy.flags is None and not copy.placeholder and bool(copy.exposed)


def take_over(case: PlanContext, name: str, target: Dataset) -> tuple[TakeOverCopy, ...]:
    """Return the action that takes over a copy of another program's, with consent."""
    if not _is_foreign(case, target) or not (case.options.take_over == "yes" or TAKE_OVER in case.requested.allowed):
        return ()
    flags = derived_flags(case, case.world.source.datasets[name], target)
    why = f"another program made it: {', '.join(target.exposed)}"
    return (TakeOverCopy(dataset=name, flags=flags, why=why),)


def find_foreign_copies(case: PlanContext, dataset_plans: Iterable[DatasetPlan]) -> list[str]:
    """Return the copies of another program that stay as it left them, until a person decides."""
    if case.options.take_over != "ask" or TAKE_OVER in case.requested.allowed:
        return []
    there = case.world.target.datasets
    return [one.name for one in dataset_plans if one.base and _is_foreign(case, there[one.name])]


def explain_take_over(case: PlanContext, names: Sequence[str]) -> str:
    """Return what is wrong with these copies, what follows of it, and the commands that end it."""
    there = case.world.target.datasets
    values = ", ".join(dict.fromkeys(value for name in names for value in there[name].exposed))
    over = f'to take that over: {case.command} --allow {TAKE_OVER}; to leave it: take-over = "no" in [zfs]'
    return f"made by another program, and left with {values}; what is written there stops the next send; {over}"
