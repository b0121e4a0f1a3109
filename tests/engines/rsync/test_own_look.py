"""A look of our own names what rsync's whole look names, whatever happened in the source or in the newest point."""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.point import Changes
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync import next_look, own_look
from orchestrator.engines.rsync.model import DifferingPaths, Look, RsyncSurvey
from orchestrator.engines.rsync.survey import survey
from orchestrator.process.executor import Reader
from tests.engines.rsync.builders import NOW, OLD, job
from tests.engines.rsync.tree_owner import Owner
from tests.engines.rsync.trees import Trees

pytestmark = [pytest.mark.root, pytest.mark.namespace]

ROOT = Path(__file__).parents[3]
ROUNDS = 12
PATTERNS = ("*.none", "/top.d/", "- deep/**/left", "+ kept.tmp", "*.tmp", "fold/")


@pytest.mark.parametrize(
    ("release", "known"), [("6.1.0-18-amd64", False), ("6.2.0", True), ("6.18", True), ("10.0-rc1", True), ("?", False)]
)
def test_tmpfs_tells_each_change_of_attributes_since_a_version(
    release: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release))
    assert bool(next_look.filesystem_of("/dev/shm")) is known  # it is tmpfs on each Debian


class Looks(Trees):
    """Trees whose looks are recorded. What is young counts as old: a test must not wait for seconds."""

    def __init__(self, folder: Path, **options: Any) -> None:
        super().__init__(folder)
        self.records, self.options = folder / "looks", options

    def survey(self, *, own: bool = True, **more: Any) -> RsyncSurvey:
        looks = str(self.records) if own else ""
        request = RunRequest(now=NOW, notes=str(self.notes), looks=looks, **more)
        return survey(job(**self.places, **self.options), request, Reader())

    @property
    def places(self) -> dict[str, Location]:
        return {"source": Location(path=str(self.source)), "target": Location(path=str(self.target))}

    @property
    def copy(self) -> Path:
        return self.target / "points" / OLD

    def equal(self) -> None:
        """Make the point as the source by rsync itself, and record it as a run that made it does."""
        self.mark()
        if self.copy.exists():
            shutil.rmtree(self.copy)
        self.copy.mkdir(parents=True)
        self.copy.parent.chmod(0o700)
        self.target.chmod(0o700)
        (self.target / f"points/{OLD}.manifest.gz").touch()
        excludes = [f"--exclude={each}" for each in self.options.get("excludes", ())]
        argv = ["rsync", "-aHAX", "--delete", "--delete-excluded", "--force", "-@-1", *excludes]
        subprocess.run([*argv, f"{self.source}/", f"{self.copy}/"], check=True)
        self.record()

    def record(self) -> None:
        told = job(**self.places, **self.options)
        world = self.survey(own=True, again=True)
        assert world.look is not None
        world = replace(world, look=replace(world.look, made_with=world.look.settings))
        request = RunRequest(now=NOW, notes=str(self.notes), looks=str(self.records))
        own_look.record_look(told, world, request, OLD, Reader(), touched=True)
        time.sleep(0.02)  # so that a kernel whose clock has ticks gives the next change another time

    def both(self) -> tuple[RsyncSurvey, RsyncSurvey]:
        return self.survey(), self.survey(own=False)


@pytest.fixture
def looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Looks:
    monkeypatch.setattr(next_look, "_YOUNG", -(10**15))
    if not next_look.filesystem_of(str(tmp_path)):
        pytest.skip("the tests' folder lies on a filesystem whose times of change are not trusted")
    return Looks(tmp_path, whole_look=10**6)


def told(changes: Changes | None, differing: DifferingPaths | None) -> dict[str, Any]:
    """All that a survey found, without the order in which entries came."""
    assert changes is not None
    assert differing is not None
    names = (
        "entries_before",
        "entries_now",
        "files_before",
        "files_now",
        "deleted",
        "changed",
        "created",
        "other",
        "moving",
    )
    found: dict[str, Any] = {name: getattr(changes, name) for name in (*names, "files_new", "files_gone", "folders")}
    lists = {"altered": changes.altered, "gone": changes.deleted_examples, "changed names": changes.changed_examples}
    lists |= {name: getattr(differing, name) for name in ("paths", "joined", "present", "folders")}
    return found | {f"{name}, sorted": sorted(each) for name, each in lists.items()}


def look_of(seen: RsyncSurvey) -> Look:
    assert seen.look is not None
    return seen.look


def require_same(own: RsyncSurvey, whole: RsyncSurvey) -> None:
    assert whole.look is None or not look_of(whole).own
    assert told(own.changes, own.differing) == told(whole.changes, whole.differing)


def plant(looks: Looks, chance: random.Random) -> Owner:
    owner = Owner(looks.source, chance)
    for _ in range(30):
        owner.chance.choice([owner.write, owner.make_folder, owner.link, owner.special, owner.acl, owner.attribute])()
    return owner


@pytest.mark.parametrize("patterns", [(), PATTERNS], ids=["all", "patterns"])
@pytest.mark.parametrize("seed", [1, *(pytest.param(each, marks=pytest.mark.long) for each in range(2, 30))])
@pytest.mark.sample(1)
def test_both_looks_name_the_same(looks: Looks, seed: int, patterns: tuple[str, ...]) -> None:
    chance = random.Random(seed)
    looks.options["excludes"] = patterns
    owner = plant(looks, chance)
    looks.equal()
    own_looks = 0
    for _ in range(ROUNDS):
        for _ in range(chance.choice([0, 1, 1, 2, 5])):
            owner.act()
        if chance.random() < 0.15:
            damage(looks.copy, chance)
        own, whole = looks.both()
        require_same(own, whole)
        own_looks += look_of(own).own
        if chance.random() < 0.4:
            looks.equal()
    assert own_looks > ROUNDS // 4


def damage(copy: Path, chance: random.Random) -> None:
    """Do to the newest point what no run does."""
    owner = Owner(copy, chance)
    chance.choice([owner.remove, owner.chmod, owner.attribute, owner.write, owner.set_time, owner.exchange])()


def settled(looks: Looks) -> Looks:
    """Some trees that were equal when they were recorded, and have not changed."""
    for name in ("a", "d/b", "d/e/c"):
        looks.write(name)
    os.link(looks.source / "d/b", looks.source / "d/b2")
    looks.equal()
    return looks


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs whose records were read."""
    found: list[str] = []
    pieces = Reader._pieces

    def noted(self: Reader, pipeline: Pipeline, separator: bytes) -> Generator[bytes, None, None]:
        found.append(pipeline.stages[0].argv[0])
        return pieces(self, pipeline, separator)

    monkeypatch.setattr(Reader, "_pieces", noted)
    return found


def test_nothing_changed_and_rsync_is_not_asked(looks: Looks, asked: list[str]) -> None:
    settled(looks)
    asked.clear()
    seen = looks.survey()
    assert seen.changes is not None
    assert (seen.changes.none, seen.changes.entries_now, seen.changes.files_now) == (True, 6, 4)
    assert look_of(seen).clean
    assert asked == ["find", "find"], "one listing of each side"


def test_plain_files_of_another_size_or_time_are_named_without_rsync(looks: Looks, asked: list[str]) -> None:
    settled(looks)
    for name in ("d/e/c", "d/e/x\\#012\ny"):
        looks.write(name)
    looks.equal()
    (looks.source / "d/e/c").write_text("longer than before")
    os.utime(looks.source / "d/e/x\\#012\ny", ns=(5, 5))
    asked.clear()
    own = looks.survey()
    assert asked == ["find", "find"]
    require_same(own, looks.survey(own=False))
    assert own.changes is not None
    assert own.changes.changed == 2
    os.chmod(looks.source / "d/e/c", 0o600)
    (looks.source / "d/b").write_text("a file of two names")
    asked.clear()
    own = looks.survey()
    assert asked == ["find", "find", "rsync"]
    require_same(own, looks.survey(own=False))


def _cut(record: bytes) -> bytes:
    return record[:-40]


def _flip(record: bytes) -> bytes:
    return record[:-60] + bytes([record[-60] ^ 1]) + record[-59:]


def _without_end(record: bytes) -> bytes:
    return record[:-33]


@pytest.mark.parametrize("damaged", [_cut, _flip, _without_end, lambda _: b"", lambda _: b"garbage " * 100])
def test_a_damaged_record_says_nothing(looks: Looks, damaged: Callable[[bytes], bytes]) -> None:
    settled(looks)
    (record,) = looks.records.iterdir()
    record.write_bytes(damaged(record.read_bytes()))
    seen = looks.survey()
    assert (look_of(seen).own, look_of(seen).why) == (False, "the record of the last look is damaged")
    assert seen.changes is not None
    assert seen.changes.none


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("options", "the job's options, this program, or what was restored"),
        ("restored", "the job's options, this program, or what was restored"),
        ("version", "the job's options, this program, or what was restored"),
        ("clock", "the clock went back"),
        ("filesystem", "on another filesystem"),
        ("unknown", "times of change"),
        ("looks", "each 3 runs"),
        ("age", "30 days"),
        ("again", "an attempt of this run failed"),
        ("work", "an interrupted copy"),
        ("foreign", "what no run put there"),
        ("kind", "of another kind"),
        ("reserved", "a name that poolferry uses itself"),
        ("moved", "in a folder that was moved"),
    ],
)
def test_rsync_looks_at_everything_where_the_record_says_too_little(
    looks: Looks, monkeypatch: pytest.MonkeyPatch, what: str, why: str
) -> None:
    settled(looks)
    more: dict[str, Any] = {}
    now = next_look.kernel_time()
    (record,) = looks.records.iterdir()
    match what:
        case "options":
            looks.options["xattrs"] = False
        case "restored":
            more = {"remembered": {"restored": "to the source"}}
        case "version":
            monkeypatch.setattr(own_look, "__version__", "0")
        case "clock":
            monkeypatch.setattr(own_look, "kernel_time", lambda: now - 10**11)
        case "filesystem":
            monkeypatch.setattr(own_look, "filesystem_of", lambda path: f"ext4 {path} 7")
        case "unknown":
            monkeypatch.setattr(next_look, "_FILESYSTEMS", {"zfs": (0, 0)})
        case "looks":
            looks.options["whole_look"] = 3
            record.with_name(record.name + ".looks").write_bytes(b"..")
        case "age":
            monkeypatch.setattr(own_look, "kernel_time", lambda: now + 31 * 86400 * 10**9)
        case "again":
            more = {"again": True}
        case "work":
            (looks.target / ".poolferry/work").mkdir(mode=0o700)
        case "foreign":
            (looks.copy / "foreign").touch()
        case "kind":
            shutil.rmtree(looks.source / "d/e")
            (looks.source / "d/e").write_text("a file")
        case "reserved":
            looks.write("new/.~poolferry-partial~/file")
        case "moved":
            os.link(looks.source / "a", looks.source / "d/a2")
            looks.equal()
            (looks.source / "d").rename(looks.source / "moved")
    seen = looks.survey(**more)
    assert not look_of(seen).own
    assert why in look_of(seen).why
    require_same(seen, looks.survey(own=False))


def test_what_changed_shortly_before_the_look_is_always_compared(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time of change would be the same after one more change within the same tick of the clock."""
    monkeypatch.setattr(next_look, "_YOUNG", 3 * 10**9)
    settled(looks)
    asked: list[list[bytes]] = []
    feed = own_look._feed

    def noted(*given: Any) -> int:
        asked.append(given[3])
        return feed(*given)

    monkeypatch.setattr(own_look, "_feed", noted)
    seen = looks.survey()
    assert look_of(seen).own
    assert asked == [[b"", b"a", b"d", b"d/b", b"d/b2", b"d/e", b"d/e/c"]]
    assert seen.changes is not None
    assert seen.changes.none


def test_a_record_counts_the_looks_that_needed_no_rsync(looks: Looks) -> None:
    settled(looks)
    told, request = job(**looks.places, **looks.options), RunRequest(now=NOW, notes="", looks=str(looks.records))
    for count in (1, 2, 3):
        own_look.record_look(told, looks.survey(), request, OLD, Reader(), touched=False)
        assert look_of(looks.survey()).since == count
    looks.write("d/new")
    subprocess.run(["cp", "-a", looks.source / "d/new", looks.copy / "d/new"], check=True)
    world = replace(looks.survey(own=False), look=replace(look_of(looks.survey()), own=True, clean=False, since=3))
    own_look.record_look(told, world, request, OLD, Reader(), touched=True)
    assert look_of(looks.survey()).since == 4


def test_no_look_is_recorded_when_the_clock_was_set_meanwhile(looks: Looks, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that changed after rsync read it could be older than the look, and would count as equal for a month."""
    settled(looks)
    (record,) = looks.records.iterdir()
    world, now = looks.survey(own=True, again=True), next_look.kernel_time()
    record.unlink()
    monkeypatch.setattr(own_look, "kernel_time", lambda: now - 10 * 10**9)
    request = RunRequest(now=NOW, notes="", looks=str(looks.records))
    own_look.record_look(job(**looks.places, **looks.options), world, request, OLD, Reader(), touched=True)
    assert list(looks.records.iterdir()) == []


# A folder with a blank and letters beyond latin-1 is mounted; another mount lies hidden below an overlay, where the path leads.
MOUNTS = """set -e; mkdir -p 'Фото €\\n' hidden/in lower/in upper work
mount -t tmpfs none 'Фото €\\n'; mount -t tmpfs none hidden/in
mount -t overlay none -o lowerdir=lower,upperdir=upper,workdir=work hidden || mount -t ramfs none hidden; mkdir -p hidden/in
exec "$0" -c 'import os; from orchestrator.engines.rsync.next_look import filesystem_of as of
print(of("Фото €\\\\n").split(" ")[0], [of("hidden/in")])'"""


def test_a_filesystem_is_known_by_its_mount_and_not_by_a_path(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        argv = ["unshare", "-m", "--propagation", "private", "sh", "-c", MOUNTS, sys.executable]
        ended = subprocess.run(
            argv, cwd=memory, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
        )
    assert (ended.returncode, ended.stdout) == (0, "tmpfs ['']\n"), ended
