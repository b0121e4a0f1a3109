"""The bench of datasets: its arithmetic; the lab's tests make one pass of what needs machines. Numbers are never judged."""

import struct
from collections import Counter

import pytest

from tests.bench.zfs import arguments, numbers
from tests.bench.zfs_guest import Cost, programs
from tests.bench.zfs_planner import planning
from tests.bench.zfs_pools import snapshot, tree
from tests.bench.zfs_runs import NOTHING, measured_rows
from tests.bench.zfs_tools import FERRY, PEERS


def record(name: bytes, flags: int = 0) -> bytes:
    return struct.pack("<B47x16s", flags, name)


def test_an_account_counts_programs_and_no_mere_forks() -> None:
    account = record(b"zfs") * 3 + record(b"sh", 1) * 2 + record(b"sh") + record(b"zpool", 2) + b"half a record"
    assert programs(account) == Counter({"zfs": 3, "sh": 1, "zpool": 1})
    assert Cost(seconds=1, processor=1, programs=programs(account)).zfs == 4


def test_rows_set_ours_beside_theirs() -> None:
    def cost(seconds: float, count: int) -> Cost:
        return Cost(seconds=seconds, processor=seconds / 2, programs=Counter(zfs=count))

    took = {(FERRY.name, NOTHING): [cost(1, 4), cost(3, 4)], (PEERS[0].name, NOTHING): [cost(4, 40), cost(6, 40)]}
    commands, seconds = measured_rows("a tree", NOTHING, PEERS[0], took)
    assert (commands.values, commands.met, commands.note) == ((0.1, 0.1), True, "4 : 40 zfs and zpool commands")
    assert (seconds.values, seconds.met) == ((0.25, 0.5), True)
    assert seconds.note == "3.0 s : 6.0 s; processor 1.5 s : 3.0 s = 0.50"


def test_names_that_all_tools_take() -> None:
    assert snapshot(10, 25) == "d10-20250102010000"
    assert {tool.command(10)[0] for tool in (FERRY, *PEERS)} == {"poolferry", "syncoid", "zfs-autobackup", "bzfs"}
    assert [word for tool in PEERS for word in tool.command(10) if word == tree(10)] == [tree(10)] * 2


def test_planning_is_measured_in_a_process_of_its_own() -> None:
    rows = list(planning(1, datasets=20, snapshots=3))
    assert [row.unit for row in rows] == ["ms", "MiB"] * 3
    assert all(row.values[0] > 0 for row in rows)
    assert "22 steps" in rows[0].note
    assert "45 steps" in rows[4].note


def test_what_can_be_asked() -> None:
    assert arguments([]).only == ["a", "b", "c", "d", "e", "f"]
    requested = arguments(["--datasets", "3,5", "--only", "b,c", "--local", "8M"])
    assert (requested.datasets, requested.only, requested.local, numbers("1,2")) == (
        (3, 5),
        ["b", "c"],
        8 << 20,
        (1, 2),
    )


@pytest.mark.parametrize("words", [["--only", "x"], ["--only", "b,"], ["--against", "rsnapshot"]])
def test_what_is_not_there_is_no_silence(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments(words)
    assert (ended.value.code, "there is" in capsys.readouterr().err) == (2, True)
