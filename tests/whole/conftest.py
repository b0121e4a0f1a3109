"""A house for each whole-program test, and a drawer with disks for those that need one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.whole.house import House
from tests.whole.loop_disks import LoopDisks


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """An empty house of its own, in which nothing runs on at the end."""
    made = House(tmp_path)
    yield made
    made.close()


@pytest.fixture
def drawer(tmp_path: Path) -> Iterator[LoopDisks]:
    """An empty drawer of its own, let go of at the end."""
    made = LoopDisks(tmp_path)
    yield made
    made.close()
