"""Test which processes belong to a pipeline, and what they move."""

import os
import subprocess
import sys

from orchestrator.process import meter
from orchestrator.process.meter import GroupProcess, StallDetector, group_processes, living_processes
from tests.process.pipelines import until


def test_children_and_odd_names_are_found() -> None:
    odd = "import ctypes, os\nctypes.CDLL(None).prctl(15, b') R 1 (x')\nos.fork()\nos.read(0, 1)"
    process = subprocess.Popen([sys.executable, "-S", "-c", odd], stdin=subprocess.PIPE, start_new_session=True)
    try:
        assert until(lambda: len(living_processes({process.pid})) == 2)
        assert process.pid in {member.pid for member in group_processes({process.pid})}
        assert all(member.moved is not None for member in group_processes({process.pid}))
    finally:
        process.communicate(b"xx")
    assert until(lambda: group_processes({process.pid}) == ())


def test_the_dead_are_members_and_not_living() -> None:
    process = subprocess.Popen(["true"], start_new_session=True)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert [member.state for member in group_processes({process.pid})] == ["Z"]
    assert living_processes({process.pid}) == ()
    process.wait()


def test_what_may_not_be_known_is_none() -> None:
    assert GroupProcess(pid=2**22 + 1, state="S", processor_ticks=0).moved is None


class World:
    """A /proc of one process, told by hand."""

    def __init__(self) -> None:
        self.moved: int | None = 0
        self.ticks = 0
        self.ours = 0

    def look(self) -> dict[int, tuple[int | None, int]]:
        return {7: (self.moved, self.ticks)}


def silence(world: World, after: float) -> StallDetector:
    class WorldDetector(StallDetector):
        def _look(self) -> dict[int, tuple[int | None, int]]:
            return world.look()

    return WorldDetector({7}, after, lambda: world.ours, 0.0)


def test_silence_lasts_from_the_last_movement() -> None:
    world = World()
    quiet = silence(world, 80)
    assert not quiet.lasts(79)
    assert quiet.lasts(80)
    world.ours = 1
    assert not quiet.lasts(81)
    assert not quiet.lasts(160)
    assert quiet.lasts(161)
    world.moved = 10_000_000
    assert not quiet.lasts(200)


def test_looks_are_rare() -> None:
    quiet = silence(World(), 3600)
    assert quiet.next_look() == meter._LONGEST
    assert not quiet.lasts(20)
    assert quiet.next_look() == 20 + meter._LONGEST
    assert silence(World(), 0.01).next_look() == meter._SHORTEST


def test_less_than_the_noise_is_silence() -> None:
    world = World()
    quiet = silence(world, 80)
    for second in range(10, 80, 10):
        world.moved = second * (meter.NOISE - 1)
        assert not quiet.lasts(second)
    assert quiet.lasts(80)
    world.moved = 80 * meter.NOISE + 20 * (meter.NOISE + 1)
    assert not quiet.lasts(100)


def test_where_bytes_are_unknown_work_counts() -> None:
    world = World()
    world.moved = None
    quiet = silence(world, 80)
    world.ticks = 1
    assert not quiet.lasts(40)
    assert not quiet.lasts(80)
    assert quiet.lasts(120)


def test_a_new_process_is_movement() -> None:
    world = World()
    quiet = silence(world, 80)
    world.look = lambda: {7: (0, 0), 8: (50_000, 1)}  # type: ignore[method-assign]
    assert not quiet.lasts(80)


def test_a_pipeline_that_ends_at_once_reads_no_other_process() -> None:
    class Counted(StallDetector):
        looks = 0

        def _look(self) -> dict[int, tuple[int | None, int]]:
            self.looks += 1
            return super()._look()

    quiet = Counted({os.getpgid(0)}, 80, lambda: 0, 0.0)
    assert not quiet.lasts(quiet.next_look() - 0.1)
    assert quiet.looks == 0
    assert not quiet.lasts(quiet.next_look())
    assert quiet.looks == 1
