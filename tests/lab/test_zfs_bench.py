"""Test what a run costs in commands, which no machine's speed changes; and one pass of the bench with next to nothing to do."""

import pytest

from tests.bench.zfs_runs import NEW, NOTHING, running
from tests.bench.zfs_tools import PEERS, Tool
from tests.bench.zfs_visit import visiting
from tests.lab.laboratory import Lab

pytestmark = pytest.mark.virtual
DATASETS = 6
KIT = 12  # the day's recovery kit, of any number of datasets: on none of them rights were delegated


@pytest.mark.parametrize(
    "peers",
    [pytest.param(PEERS[:1], id=PEERS[0].name), pytest.param(PEERS[1:], marks=pytest.mark.long, id="the others")],
)
@pytest.mark.long
def test_a_run_costs_as_many_commands_as_promised(lab: Lab, peers: tuple[Tool, ...]) -> None:
    """Two a side with nothing to do, whatever the number of datasets; then two for each dataset, and seven, and the kit."""
    rows = list(running(lab, sizes=(DATASETS,), snapshots=2, rounds=1, peers=peers))
    assert all(row.values for row in rows)
    commands = [row for row in rows if row.what.startswith("commands")]
    ours = {case: {row.note.split(" : ")[0] for row in commands if case in row.what} for case in (NOTHING, NEW)}
    assert ours == {NOTHING: {"4"}, NEW: {str(2 * DATASETS + 7 + KIT)}}
    expected = [row.met for row in commands if row.most is not None]
    assert expected == [True, True], "of one of the others"


@pytest.mark.long
@pytest.mark.timeout(600)
def test_visits_are_timed(lab: Lab) -> None:
    rows = list(visiting(lab, rounds=1))
    assert [len(row.values) for row in rows] == [1] * 4
    assert all(0 < value < 300 for row in rows for value in row.values)
