"""Checks how many rsyncs copy where a job does not say it, on real storage, and on devices that are shaped like the kernel's."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.units import Bytes
from orchestrator.engines.rsync import side_by_side
from orchestrator.engines.rsync.parallel import ParallelCopies
from orchestrator.engines.rsync.side_by_side import Storage, choose_for_restore, choose_side_by_side, storage_of
from tests.engines.rsync.builders import HOST, THERE, job, point
from tests.engines.rsync.trees import Trees

MUCH = side_by_side.LEAST_ENTRIES


def test_what_lies_in_memory_or_nowhere_is_told() -> None:
    assert storage_of("/dev/shm") is Storage.MEMORY
    assert storage_of("/dev/shm/not/there/yet") is Storage.MEMORY
    assert storage_of("/proc/self") is Storage.UNKNOWN


@pytest.fixture
def image_in_memory() -> Iterator[str]:
    """A block device whose sectors are a file in memory."""
    file = Path(f"/dev/shm/poolferry-side-by-side-{os.getpid()}")
    file.write_bytes(bytes(1 << 20))
    device = subprocess.run(
        ["losetup", "--find", "--show", file], check=True, capture_output=True, text=True
    ).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)
        file.unlink()


@pytest.mark.root
def test_a_loop_device_is_what_its_file_lies_on(image_in_memory: str) -> None:
    assert side_by_side._of_device(f"/sys/class/block/{os.path.basename(image_in_memory)}", 8) is Storage.MEMORY


Devices = Callable[[str, str], Path]


@pytest.fixture
def device(tmp_path: Path) -> Devices:
    """Make the folder of a device as the kernel shows one: which disk turns, no machine of a test can be told."""

    def make(name: str, rotational: str) -> Path:
        folder = tmp_path / name
        (folder / "queue").mkdir(parents=True)
        (folder / "queue/rotational").write_text(rotational + "\n")
        (folder / "slaves").mkdir()
        return folder

    return make


def kind(folder: Path) -> Storage:
    return side_by_side._of_device(str(folder), 8)


def test_a_disk_is_what_the_kernel_says_of_it(device: Devices) -> None:
    assert kind(device("sda", "1")) is Storage.SPINNING
    solid = device("nvme0n1", "0")
    assert kind(solid) is Storage.SOLID
    (solid / "nvme0n1p1").mkdir()
    assert kind(solid / "nvme0n1p1") is Storage.SOLID, "a partition is as its disk"
    assert kind(device("virtio1/block/vda", "0")) is Storage.VIRTUAL
    shown = device("sdb", "0")
    (shown / "device").mkdir()
    (shown / "device/model").write_text("QEMU HARDDISK\n")
    assert kind(shown) is Storage.VIRTUAL


def test_of_several_devices_the_slowest_counts(device: Devices) -> None:
    raid, mapper = device("md0", "0"), device("dm-0", "0")
    (raid / "slaves/nvme0n1").symlink_to(device("nvme0n1", "0"))
    (mapper / "slaves/md0").symlink_to(raid)
    assert kind(mapper) is Storage.SOLID
    (raid / "slaves/sda").symlink_to(device("sda", "1"))
    assert kind(mapper) is Storage.SPINNING
    (raid / "slaves/itself").symlink_to(mapper)
    assert side_by_side._of_device(str(mapper), 0) is Storage.UNKNOWN
    assert kind(mapper) is Storage.SPINNING, "a circle ends"


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Say of the source and of the target what they are."""

    def say(source: Storage, target: Storage, *, processors: int = 2, user: int = 0) -> None:
        monkeypatch.setattr(side_by_side, "storage_of", lambda path: target if path.startswith("/backup") else source)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
        monkeypatch.setattr(os, "geteuid", lambda: user)

    return say


QUICK, SLOW = (Storage.SOLID, Storage.MEMORY), (Storage.SOLID, Storage.SPINNING)


@pytest.mark.parametrize(
    ("kinds", "processors", "user", "entries", "count", "why"),
    [
        (QUICK, 2, 0, MUCH, 2, "two rsyncs, as it goes from solid state to memory"),
        ((Storage.SOLID, Storage.SOLID), 8, 0, MUCH, 2, "two rsyncs, as both places are solid state"),
        (QUICK, 2, 0, MUCH - 1, 1, ""),
        (QUICK, 1, 0, MUCH, 1, "one rsync, as there is one processor"),
        (QUICK, 2, 1000, MUCH, 1, "one rsync, as only root may let several write into one tree"),
        (SLOW, 2, 0, MUCH, 1,
         "one rsync, as /backup/photos is a disk that may spin; `parallel` in [rsync] tells another number"),
    ],
    ids=["quick", "both solid", "little", "one processor", "not root", "spinning"],
)  # fmt: skip
def test_the_places_decide(
    kinds: tuple[Storage, Storage], processors: int, user: int, entries: int, count: int, why: str,
    places: Callable[..., None],
) -> None:  # fmt: skip
    places(*kinds, processors=processors, user=user)
    chosen = choose_side_by_side(job(), entries)
    assert (chosen.count, chosen.why) == (count, why)


def test_what_the_job_says_stands(places: Callable[..., None]) -> None:
    places(*SLOW)
    assert choose_side_by_side(job(parallel=3), 1).count == 3
    places(*QUICK)
    assert choose_side_by_side(job(parallel=1), MUCH).count == 1


def test_a_copy_over_the_network_says_so(places: Callable[..., None]) -> None:
    places(*QUICK)
    pulled = job(source=Location(path="/srv/photos", host=HOST))
    assert choose_side_by_side(job(target=THERE), MUCH).why == "one rsync, as it goes over the network to backup"
    assert choose_side_by_side(pulled, MUCH).why == "one rsync, as it goes over the network from backup"
    assert choose_side_by_side(pulled, MUCH - 1) == choose_side_by_side(job(), MUCH - 1)


def test_one_copies_a_mirror_and_to_another_machine_and_below_a_rate(places: Callable[..., None]) -> None:
    places(*QUICK)
    one = job()
    far = replace(one, source=replace(one.source, host=HOST))
    limited = replace(one, pipe=replace(one.pipe, rate_limit=Bytes(1 << 20)))
    for single in (job(points=False), job(fake_super=True), far, limited):
        assert choose_side_by_side(single, MUCH).count == 1


def test_a_large_first_copy_goes_side_by_side_and_a_later_one_does_not(
    tmp_path: Path, places: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    places(Storage.MEMORY, Storage.MEMORY)
    monkeypatch.setattr(side_by_side, "LEAST_ENTRIES", 4)
    trees = Trees(tmp_path)
    for name in "abcd":
        trees.write(f"{name}/file")
    seen = trees.look()
    assert isinstance(seen.parallel_copies, ParallelCopies)
    assert (len(seen.parallel_copies.parallel_copies), seen.side_by_side.count) == (2, 2)
    assert isinstance(trees.look(excludes=("*.none",)).parallel_copies, ParallelCopies), (
        "rsync alone knows what patterns leave out"
    )
    trees.point()
    trees.write("a/new")
    assert (trees.look().parallel_copies, trees.look(excludes=("*.none",)).parallel_copies) == (None, None)


def test_hard_links_refuse_only_a_number_that_the_job_says(
    tmp_path: Path, places: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tied is the tree once its file of holes, which weighs the most, is left out."""
    places(Storage.MEMORY, Storage.MEMORY)
    monkeypatch.setattr(side_by_side, "LEAST_ENTRIES", 4)
    trees = Trees(tmp_path)
    trees.write("first")
    for number in range(8):
        os.link(trees.source / "first", trees.source / str(number))
    tied = trees.look()
    assert (tied.parallel_copies, tied.side_by_side.count) == (None, 1)
    assert tied.side_by_side.why == "one rsync, as names of the same files tie the tree together"
    assert isinstance(trees.look(parallel=2).parallel_copies, Refusal)
    (trees.source / "hole").touch()
    os.truncate(trees.source / "hole", 1 << 40)
    assert isinstance(trees.look(most_holes=Bytes(1 << 50)).parallel_copies, ParallelCopies)
    tied = trees.look(most_holes=Bytes(1 << 30))
    assert (tied.parallel_copies, tied.side_by_side.count, len(tied.sparse)) == (None, 1, 1)


def test_a_restore_goes_by_the_size_of_the_manifest(tmp_path: Path, places: Callable[..., None]) -> None:
    places(Storage.MEMORY, Storage.MEMORY)
    manifest = tmp_path / "manifest.gz"
    kept = replace(point(), manifest=replace(point().tree, path=str(manifest)))
    assert choose_for_restore(job(), kept, "/a", "/b") == 1, "it is not there"
    manifest.write_bytes(bytes(MUCH * 30))
    assert choose_for_restore(job(), kept, "/a", "/b") == 2
    os.truncate(manifest, MUCH)
    assert choose_for_restore(job(), kept, "/a", "/b") == 1
    assert choose_for_restore(job(parallel=4), kept, "/a", "/b") == 4
