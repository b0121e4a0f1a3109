"""A house for each whole-program test, and a drawer with disks for those that need one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.whole.drawer import Drawer
from tests.whole.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    """An empty house of its own."""
    return House(tmp_path)


@pytest.fixture
def drawer(tmp_path: Path) -> Iterator[Drawer]:
    """An empty drawer of its own, let go of at the end."""
    made = Drawer(tmp_path)
    yield made
    made.close()
