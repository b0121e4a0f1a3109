"""Variants of parametrized tests of which each takes seconds: `make test` takes some of them, `make test-long` all."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet


def turns(*axes: Sequence[object]) -> "list[ParameterSet]":
    """Return all combinations of the axes' values. In `make test` each value comes once at least; the rest is long."""
    short = {tuple(turn % len(axis) for axis in axes) for turn in range(max(map(len, axes)))}
    return [
        pytest.param(
            *(axis[at] for axis, at in zip(axes, places, strict=True)),
            marks=() if places in short else pytest.mark.long,
        )
        for places in product(*(range(len(axis)) for axis in axes))
    ]


def take_samples(tests: Iterable[pytest.Item]) -> None:
    """Mark as long what `@pytest.mark.sample(N)` leaves out: all but N of the test's variants, spread from the first to the last."""
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for test in tests:
        if test.get_closest_marker("sample") and not test.get_closest_marker("long"):
            groups[test.nodeid.partition("[")[0]].append(test)
    for variants in groups.values():
        mark = variants[0].get_closest_marker("sample")
        many = mark.args[0] if mark else 1
        taken = {turn * (len(variants) - 1) // max(many - 1, 1) for turn in range(many)}
        for at, variant in enumerate(variants):
            if at not in taken:
                variant.add_marker("long")
