"""The bench itself: its arithmetic, and one pass of each part with next to nothing to do. Numbers are never judged."""

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.bench import growth, rows, trees
from tests.bench.__main__ import PARTS, measure, size
from tests.bench.ferry import CHECKOUT, ferry
from tests.bench.others import PEERS, STAGES
from tests.bench.rows import Row
from tests.bench.start import starting
from tests.bench.trees import Trees
from tests.processes import family, figure


@pytest.fixture
def few(tmp_path: Path) -> Trees:
    return Trees(folder=tmp_path, files=200, entries=200, large=4 << 20, gentle=True)


def measured(part: str, few: Trees) -> list[Row]:
    """The rows of a part; each must have its numbers."""
    found = list(measure([part], few, 1))
    assert found
    assert [row.note for row in found if not row.values] == []
    assert {row.part for row in found} == {part}
    assert not (few.folder / "ferry").exists()
    return found


def test_a_promise_is_kept_up_to_its_limit_and_judged_by_the_median() -> None:
    row = Row(part="a", what="x", values=(1.1, 9.0, 0.5), most=1.10)
    assert row.middle == 1.1
    assert row.met is True
    assert Row(part="a", what="x", values=(1.2, 1.2, 0.5), most=1.10).met is False
    assert Row(part="a", what="x", values=(1.2,), most=None).met is None


def test_pairs_take_turns_and_each_deed_is_prepared() -> None:
    did: list[str] = []
    took = rows.pairs(
        lambda: did.append("ours"), lambda: did.append("theirs"), rounds=2, before=lambda: did.append("cold")
    )
    assert did == ["cold", "ours", "cold", "theirs", "cold", "theirs", "cold", "ours"]
    assert [len(each) for each in took] == [2, 2]


def test_a_ratio_is_taken_pair_by_pair() -> None:
    assert rows.ratios("a", "x", ((2.0, 9.0), (1.0, 3.0)), most=None, note="").values == (2.0, 3.0)


def test_the_table_says_what_was_not_kept_and_what_was_not_measured() -> None:
    text = rows.table([Row(part="a", what="x", values=(2.0,), most=1.0), rows.left_out("f", "y", "not installed")])
    assert "| a | x | 2.00 | ≤ 1.00 | **no** |" in text
    assert "| f | y | not measured |  |  | not installed |" in text


def test_sizes() -> None:
    assert (size("4G"), size("32m"), size("7")) == (4 << 30, 32 << 20, 7)


def test_a_tree_is_made_once_and_anew_for_another_size(few: Trees) -> None:
    file = min(few.small().rglob("file-*"))
    file.write_bytes(b"mine")
    assert min(few.small().rglob("file-*")).read_bytes() == b"mine"
    other = Trees(folder=few.folder, files=100, entries=1, large=16, gentle=True)
    assert len(list(other.small().rglob("file-*"))) == 100
    assert file.read_bytes() != b"mine"


def test_one_in_a_hundred_is_changed_and_another_one_each_time(few: Trees) -> None:
    source = few.small()
    before = {path: path.read_bytes() for path in source.rglob("file-*")}
    assert trees.change(source, 0) == trees.change(source, 1) == 2
    assert sum(path.read_bytes() != content for path, content in before.items()) == 4


def test_a_tree_too_large_for_the_disk_is_told_and_not_begun(few: Trees) -> None:
    with pytest.raises(RuntimeError, match="needs"):
        few.need(1 << 60)


def test_memory_is_read_of_a_process_and_its_children() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        assert child.pid in dict(family(os.getpid()))
        assert figure(os.getpid(), "smaps_rollup", "Pss:") > 1 << 20
    finally:
        child.kill()
        child.wait()
    assert figure(child.pid, "status", "VmHWM:") == 0


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.namespace
def test_gates_are_measured_by_the_processor_time_of_both_sides(tmp_path: Path) -> None:
    """In a process of its own, which adopts what gates leave behind."""
    words = ("--only", "h", "--files", "100", "--rounds", "1", "--folder", str(tmp_path), "--json")
    argv = [sys.executable, "-m", "tests.bench", *words]
    done = subprocess.run(argv, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)["rows"]
    assert [(row["part"], row["measured"]) for row in found] == [("h", 1)] * 4, found


@pytest.mark.slow
@pytest.mark.parametrize(("part", "many"), [("a", 2), ("b", 4), ("c", 2), ("d", 4), ("i", 10), ("j", 9), ("k", 6)])
@pytest.mark.sample(2)
def test_each_part_measures(part: str, many: int, few: Trees) -> None:
    assert len(measured(part, few)) == many


@pytest.mark.slow
def test_starting_measures_with_a_history(few: Trees) -> None:
    assert [row.most for row in starting(few, 1, runs=50, often=1)] == [None, 100, None, 250, None]


@pytest.mark.slow
def test_what_is_not_installed_is_skipped_with_a_word(few: Trees) -> None:
    found = list(PARTS["f"](few, 1))
    here = [row for row in found if row.values]
    each = 2 * len(STAGES)  # by the clock, and by the processor
    assert len(here) % each == 0
    assert all("not installed" in row.note for row in found if not row.values)
    assert len(here) // each + len(found) - len(here) == len(PEERS)


@pytest.mark.slow
def test_the_line_that_is_compared_is_the_one_that_was_issued(few: Trees) -> None:
    with ferry(few.folder) as house:
        house.job(few.small(), whole_look=1)
        house.run("done")
        command = house.look_command()
        assert command[:2] == ["rsync", "--dry-run"]
        assert command[-1].startswith(f"{house.target}/points/")
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert "Number of regular files transferred: 0" in done.stdout


@pytest.mark.slow
def test_the_command_prints_one_object_and_never_fails_for_its_numbers(tmp_path: Path) -> None:
    words = [
        "--only",
        "a",
        "--files",
        "200",
        "--entries",
        "200",
        "--rounds",
        "1",
        "--gentle",
        "--json",
        "--folder",
        str(tmp_path),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench", *words], capture_output=True, text=True, cwd=CHECKOUT, check=True
    )
    value = json.loads(done.stdout)
    assert [row["part"] for row in value["rows"]] == ["a", "a"]
    assert value["rows"][0]["median"] > 0
    assert value["machine"]["filesystem"]


@pytest.mark.slow
@pytest.mark.long
def test_growth_is_drawn_with_a_line_for_each_command(tmp_path: Path) -> None:
    found = {
        "files": growth.of_files(tmp_path, (20, 30)),
        "points": growth.of_points(tmp_path, (2, 3)),
        "jobs": growth.of_jobs(tmp_path, (1, 2)),
        "runs in history": growth.of_runs(tmp_path, (10, 20)),
    }
    assert list(found) == list(growth.PARTS)
    drawn = ET.fromstring(growth.picture(found))  # noqa: S314 - our own
    lines = [each for each in drawn.iter() if each.tag.endswith("polyline")]
    assert len(lines) == sum(map(len, found.values())) == 13
