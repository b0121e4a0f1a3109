"""What a run costs in commands, which no machine's speed changes; and one pass of the bench with next to nothing to do.

Changes things.
"""

import pytest

from tests.bench.zfs_running import NEW, NOTHING, running
from tests.lab.laboratory import Lab

DATASETS = 3
KIT = 8  # of the first copy of a day: what a recovery kit asks, and its dataset


@pytest.mark.virtual
def test_a_run_costs_as_many_commands_as_promised(lab: Lab) -> None:
    """Two a side with nothing to do, whatever the number of datasets; then three for each dataset, and seven, and the kit."""
    rows = list(running(lab, sizes=(DATASETS,), snapshots=2, rounds=1))
    assert all(row.values for row in rows)
    commands = [row for row in rows if row.what.startswith("commands")]
    ours = {case: {row.note.split(" : ")[0] for row in commands if case in row.what} for case in (NOTHING, NEW)}
    assert ours == {NOTHING: {"4"}, NEW: {str(3 * DATASETS + 7 + KIT)}}
    assert [row.met for row in commands if row.most is not None] == [True] * 4
