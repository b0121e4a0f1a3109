"""A run that links so much that forked helpers do it: the same point, no process left, and a cut, a full target or damage as without them."""

import gzip
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.trees import linked_tree
from tests.processes import argv_of, family, is_there, strays
from tests.whole.house import House, differences, kill, mounted, wait_until
from tests.whole.manifest_facts import OLD_ENOUGH, carried, run, there, told

pytestmark = [pytest.mark.root, pytest.mark.namespace, pytest.mark.slow]
FILES = 5_000


@pytest.fixture
def large(house: House) -> Iterator[House]:
    """A job with one point, whose source has changed a little since."""
    assert FILES > 2 * linked_tree._MANY
    for number in range(FILES):
        path = house.source / f"{number % 10}/{number % 90}/{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(number))
    with mounted(house.target, f"size=300m,nr_inodes={3 * FILES}"):
        house.job()
        time.sleep(OLD_ENOUGH)
        run(house)
        (house.source / "3/33/33").write_text("changed")
        yield house


def helpers(process: "subprocess.Popen[str]") -> list[int]:
    """Return the forks of a run, once there are several: a single one may be about to become another program."""
    found = [pid for pid, _ in family(process.pid) if "photos" in argv_of(pid)]
    return found if len(found) > 1 else []


def test_the_point_is_as_the_source(large: House) -> None:
    ran = run(large)
    assert (ran.outcome, carried(ran)) == ("done", True)
    assert differences(large.source, large.point()) == ""
    assert told(large.point()) == there(large.point())
    assert run(large).outcome == "nothing-to-do"
    assert large.call("verify", "photos").code == 0


def test_a_run_that_is_killed_while_helpers_link_leaves_no_process_and_the_next_one_is_whole(large: House) -> None:
    process = large.start()
    found = wait_until(lambda: helpers(process), pause=0.001)
    kill(process.pid)
    process.communicate()
    wait_until(lambda: not any(map(is_there, found)))
    assert strays(large.folder) == []
    assert len(large.points()) == 1
    ran = large.run()
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert differences(large.source, large.point()) == ""
    assert told(large.point()) == there(large.point())


def test_a_target_without_room_for_a_name_says_so(large: House) -> None:
    run(large)
    (large.source / "3/33/33").write_text("changed again")
    ran = large.run()
    assert ran.code != 0
    assert "no space left (space, inodes or quota) to link unchanged entries" in ran["why"], ran
    assert "inodes were free, and a new point needs one for each of its folders" in ran["why"], ran
    assert strays(large.folder) == []
    assert len(large.points()) == 2


@pytest.mark.parametrize("how", ["cut", "another line"])
def test_a_manifest_that_is_damaged_carries_nothing(large: House, how: str) -> None:
    """It is read while helpers link, and judged after that: a forged one makes its point one from which nothing is linked."""
    manifest = Path(f"{large.point()}.manifest.gz")
    content = manifest.read_bytes()
    if how == "cut":
        manifest.write_bytes(content[: len(content) // 2])
    else:
        manifest.write_bytes(gzip.compress(gzip.decompress(content).replace(b"\t4\t", b"\t5\t", 1)))
        ran = large.run()
        assert (ran.code, len(large.points())) == (1, 1), ran
        assert f"the manifest of point {large.points()[0]}" in ran["why"]
    ran = large.run("photos", "--verbose")
    assert (ran.outcome, carried(ran)) == ("done", False)
    assert differences(large.source, large.point()) == ""
    assert told(large.point()) == there(large.point())
