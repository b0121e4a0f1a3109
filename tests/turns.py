"""Combinations of values for parametrized tests of which each takes seconds."""

from collections.abc import Sequence
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
