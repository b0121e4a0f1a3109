"""A house for each whole-program test.

Changes things.
"""

from pathlib import Path

import pytest

from tests.whole.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    """An empty house of its own."""
    return House(tmp_path)
