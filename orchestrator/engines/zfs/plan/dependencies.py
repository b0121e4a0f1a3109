"""The order of datasets: parents before children, origins before clones, in levels."""

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import pairwise

from orchestrator.engines.zfs.plan.context import parent_dataset


def order_datasets(names: tuple[str, ...], origins: Mapping[str, str]) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """Return the datasets, each after its parent and after its origin; and the origins that could be kept.

    In a cycle (a dataset that is a clone of a dataset below itself) one clone loses its origin: it is sent in full.
    """
    kept = dict(origins)
    return (_sorted(names, kept), kept) if kept else (names, kept)


def _sorted(names: tuple[str, ...], origins: dict[str, str]) -> tuple[str, ...]:
    """Sort the datasets: repeatedly take those that wait for no other; break a cycle when all others wait."""
    waits = {name: _before(name, origins) for name in names}
    followers: dict[str, list[str]] = {name: [] for name in names}
    for name, before in waits.items():
        for other in before:
            followers[other].append(name)
    ready = deque(name for name in names if not waits[name])
    order: list[str] = []
    while len(order) < len(names):
        while not ready:
            clone = _break_circle(waits, origins)
            if not waits[clone]:
                ready.append(clone)
        name = ready.popleft()
        order.append(name)
        for follower in followers[name]:
            if name in waits[follower]:
                waits[follower].remove(name)
                if not waits[follower]:
                    ready.append(follower)
    return tuple(order)


def _before(name: str, origins: Mapping[str, str]) -> set[str]:
    return ({parent_dataset(name)} if name else set()) | ({origins[name]} if name in origins else set())


def _break_circle(waits: dict[str, set[str]], origins: dict[str, str]) -> str:
    """Find a cycle of waiting datasets, remove the origin of one clone in it, and return that clone."""
    walk: dict[str, None] = {}
    name = next(name for name, before in waits.items() if before)
    while name not in walk:
        walk[name] = None
        name = min(waits[name])
    circle = [*list(walk)[list(walk).index(name) :], name]
    clone, origin = next(
        (one, other)
        for one, other in pairwise(circle)
        if origins.get(one) == other and (not one or parent_dataset(one) != other)
    )
    del origins[clone]
    waits[clone].discard(origin)
    return clone


def dependency_levels(order: Iterable[str], needs: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
    """Return the level of each dataset: one above the highest that it needs. `order`: needed ones come first."""
    level: dict[str, int] = {}
    for name in order:
        level[name] = 1 + max((level[other] for other in needs[name] if other in level), default=-1)
    return level
