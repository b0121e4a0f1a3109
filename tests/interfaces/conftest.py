"""What the tests of the command line stand on.

Changes things.
"""

from pathlib import Path

import pytest

from tests.interfaces.ferry import Ferry


@pytest.fixture
def ferry(tmp_path: Path) -> Ferry:
    """A configuration without jobs yet."""
    return Ferry(tmp_path)
