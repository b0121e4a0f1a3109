"""Whole readings by real worker processes: every way in which a copy can be other than promised."""

import os
import socket
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.domain.point import Verdict
from orchestrator.runner.far_digests import write_names
from orchestrator.verify import check_entry as judging
from orchestrator.verify.check_entry import CheckTask, EntryChecker
from orchestrator.verify.digest import FileHasher, Makers, OpenTree, hash_maker
from orchestrator.verify.entry import Tolerance
from orchestrator.verify.manifest import ManifestHeader, read_manifest, write_manifest
from tests.verify.trees import HEADER, detail, found, make_manifest, make_tree, read_again

FILES = {"a": b"A" * 100, "folder/b": b"B" * 5000, "folder/c": b"C", "empty": b""}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = make_tree(tmp_path / "tree", FILES)
    (tree / "link").symlink_to("a")
    return tree


@pytest.fixture
def manifest(tree: Path, tmp_path: Path) -> Path:
    make_manifest(tree, tmp_path / "m.gz")
    return tmp_path / "m.gz"


def rewrite(path: Path, content: bytes) -> None:
    """Other bytes with the old time."""
    before = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def swap_for_symlink(tree: Path) -> None:
    (tree / "a").unlink()
    (tree / "a").symlink_to("folder/b")


def swap_for_pipe(tree: Path) -> None:
    (tree / "a").unlink()
    os.mkfifo(tree / "a")


def swap_for_socket(tree: Path) -> None:
    (tree / "a").unlink()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(tree / "a"))


def swap_for_folder(tree: Path) -> None:
    (tree / "a").unlink()
    (tree / "a").mkdir()


def turn(tree: Path) -> None:
    (tree / "link").unlink()
    (tree / "link").symlink_to("folder/b")


def replace(tree: Path) -> None:
    os.link(tree / "folder/b", tree.parent / "keep")  # so that the inode number is not taken again
    stamp = (tree / "folder/b").stat().st_mtime_ns
    (tree / "folder/b").unlink()
    (tree / "folder/b").write_bytes(b"X" * 5000)
    os.utime(tree / "folder/b", ns=(0, stamp))


CHANGES: list[tuple[str, Callable[[Path], object], bytes, Verdict, str]] = [
    ("edited", lambda tree: (tree / "a").write_bytes(b"edited"), b"a", Verdict.EDITED, "size 6, expected 100"),
    ("edited, same size", lambda tree: (tree / "a").write_bytes(b"X" * 100), b"a", Verdict.EDITED, "mtime"),
    ("time put back", lambda tree: rewrite(tree / "a", b"X" * 100), b"a", Verdict.ROTTEN, "put its time back"),
    ("cut, time put back", lambda tree: rewrite(tree / "a", b"A"), b"a", Verdict.EDITED, "size 1, expected 100"),
    ("replaced, time kept", replace, b"folder/b", Verdict.ROTTEN, "another inode"),
    ("touched", lambda tree: os.utime(tree / "a", ns=(0, 5)), b"a", Verdict.METADATA, "mtime 1970-01-01T00:00:00.000000005Z, expected"),
    ("chmod", lambda tree: (tree / "a").chmod(0o600), b"a", Verdict.METADATA, "mode 600, expected 644"),
    ("suid", lambda tree: (tree / "a").chmod(0o4644), b"a", Verdict.METADATA, "mode 4644, expected 644"),
    ("chmod of a folder", lambda tree: (tree / "folder").chmod(0o700), b"folder", Verdict.METADATA, "mode 700"),
    ("chmod of the root", lambda tree: tree.chmod(0o700), b"", Verdict.METADATA, "mode 700"),
    ("missing", lambda tree: (tree / "folder/c").unlink(), b"folder/c", Verdict.MISSING, "not there"),
    ("link missing", lambda tree: (tree / "link").unlink(), b"link", Verdict.MISSING, "not there"),
    ("link turned", turn, b"link", Verdict.METADATA, "target folder/b, expected a"),
    ("now a symlink", swap_for_symlink, b"a", Verdict.EDITED, "a symlink, expected a file"),
    ("now a pipe", swap_for_pipe, b"a", Verdict.EDITED, "a pipe, expected a file"),
    ("now a socket", swap_for_socket, b"a", Verdict.EDITED, "a socket, expected a file"),
    ("now a folder", swap_for_folder, b"a", Verdict.EDITED, "a directory, expected a file"),
    ("extra", lambda tree: (tree / "folder/new").write_bytes(b""), b"folder/new", Verdict.EXTRA, "not in the manifest"),
]  # fmt: skip


def test_an_untouched_tree_is_sound(tree: Path, manifest: Path) -> None:
    reading = read_again(tree, manifest, names=True)
    assert reading.sound
    assert (reading.entries, reading.files_read, reading.bytes_read) == (7, 4, 5101)
    assert (reading.counts, reading.findings) == ((), ())


@pytest.mark.parametrize(("change", "path", "verdict", "says"), [c[1:] for c in CHANGES], ids=[c[0] for c in CHANGES])
def test_a_change_is_found_for_what_it_is(
    tree: Path, manifest: Path, change: Callable[[Path], object], path: bytes, verdict: Verdict, says: str
) -> None:
    times = {folder: folder.stat().st_mtime_ns for folder in (tree, tree / "folder")}
    change(tree)
    for folder, stamp in times.items():
        os.utime(folder, ns=(0, stamp))
    if path == b"link" and (tree / "link").is_symlink():
        stamp = next(entry.mtime_ns for entry in read_manifest(str(manifest))[1] if entry.path == b"link")
        os.utime(tree / "link", ns=(0, stamp), follow_symlinks=False)
    reading = read_again(tree, manifest, names=True)
    assert found(reading) == {path: verdict}
    assert says in detail(reading, path)
    assert reading.counts == ((verdict, 1),)
    assert not reading.sound


def test_a_folder_that_is_gone_takes_everything_with_it(tree: Path, manifest: Path) -> None:
    (tree / "folder").rename(tree / "elsewhere")
    (tree / "folder").write_bytes(b"")
    verdicts = found(read_again(tree, manifest, names=True))
    assert verdicts[b"folder/b"] == verdicts[b"folder/c"] == Verdict.MISSING
    assert verdicts[b"folder"] == Verdict.EDITED
    assert verdicts[b"elsewhere/b"] == Verdict.EXTRA


def test_tolerance_and_time_grain(tree: Path, manifest: Path) -> None:
    (tree / "a").chmod(0o600)
    os.utime(tree / "folder/b", ns=(0, (tree / "folder/b").stat().st_mtime_ns + 1_999_999_999))
    assert set(found(read_again(tree, manifest))) == {b"a", b"folder/b"}
    assert read_again(tree, manifest, tolerance=Tolerance(mode=True, grain_ns=2_000_000_000)).sound
    assert read_again(tree, manifest, tolerance=Tolerance(owner=True, mode=True, mtime=True)).sound


def test_a_part_that_was_brought_back_is_verified_where_it_is(tree: Path, manifest: Path, tmp_path: Path) -> None:
    (tree / "folder").rename(tmp_path / "back")
    reading = read_again(tmp_path / "back", manifest, prefix=b"folder", names=True)
    assert reading.sound
    assert reading.entries == 3
    rewrite(tmp_path / "back/b", b"X" * 5000)
    assert found(read_again(tmp_path / "back", manifest, prefix=b"folder")) == {b"b": Verdict.ROTTEN}
    (tree / "a").rename(tmp_path / "one\nfile")
    assert read_again(tmp_path / "one\nfile", manifest, prefix=b"a").entries == 1
    rewrite(tmp_path / "one\nfile", b"X")
    assert found(read_again(tmp_path / "one\nfile", manifest, prefix=b"a")) == {b"": Verdict.EDITED}


def test_a_quiet_disk_is_told_from_an_edit(tree: Path, tmp_path: Path) -> None:
    """A manifest written after the last change of the inode: nobody wrote, so the disk did."""
    late = ManifestHeader(job="j", source="s", point="p", digest="xxh128", created=datetime(2200, 1, 1, tzinfo=UTC))
    make_manifest(tree, tmp_path / "m.gz", header=late)
    rewrite(tree / "a", b"X" * 100)
    assert "nothing was written to it since" in detail(read_again(tree, tmp_path / "m.gz"), b"a")


def test_hard_links_of_one_inode_are_read_once_and_all_accused(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree", {"a": b"x" * 1000})
    for number in range(9):
        os.link(tree / "a", tree / f"a{number}")
    make_manifest(tree, tmp_path / "m.gz")
    reading = read_again(tree, tmp_path / "m.gz", workers=1)
    assert (reading.sound, reading.files_read, reading.bytes_read) == (True, 10, 1000)
    rewrite(tree / "a", b"y" * 1000)
    assert set(found(read_again(tree, tmp_path / "m.gz", workers=1)).values()) == {Verdict.ROTTEN}
    assert len(found(read_again(tree, tmp_path / "m.gz", workers=1))) == 10


@pytest.mark.parametrize("size", [0, 1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (17 << 20) + 5])
@pytest.mark.parametrize("algorithm", ["xxh128", "blake3", "sha256"])
def test_sizes_around_the_buffer_and_holes(tmp_path: Path, size: int, algorithm: str) -> None:
    tree = make_tree(tmp_path / "tree", {"random": os.urandom(size)})
    with (tree / "hole").open("wb") as file:
        file.truncate(size)
    header = ManifestHeader(job="j", source="s", point="p", digest=algorithm, created=HEADER.created)
    make_manifest(tree, tmp_path / "m.gz", header=header)
    told = {entry.path: entry.digest for entry in read_manifest(str(tmp_path / "m.gz"))[1]}
    for name in ("random", "hole"):
        whole = hash_maker(algorithm)()
        whole.update((tree / name).read_bytes())
        assert told[name.encode()] == f"{algorithm}:{whole.hexdigest()}"
    assert read_again(tree, tmp_path / "m.gz").bytes_read == 2 * size


def test_a_file_is_read_to_its_end_whatever_its_inode_said_before(tmp_path: Path) -> None:
    content = os.urandom((2 << 20) + 7)
    (tmp_path / "grown").write_bytes(content)
    whole = hash_maker("sha256")()
    whole.update(content)
    with (tmp_path / "grown").open("rb") as file:
        heard: list[int] = []
        assert FileHasher(heard.append).digest(file.fileno(), 5, (hash_maker("sha256"),)) == (whole.hexdigest(),)
        assert sum(heard) == len(content)


@pytest.mark.root
def test_another_owner(tree: Path, manifest: Path) -> None:
    os.chown(tree / "a", 12, -1)
    os.chown(tree / "link", -1, 34, follow_symlinks=False)
    reading = read_again(tree, manifest)
    assert found(reading) == {b"a": Verdict.METADATA, b"link": Verdict.METADATA}
    assert detail(reading, b"a") == "owner 12:0, expected 0:0"
    assert read_again(tree, manifest, tolerance=Tolerance(owner=True)).sound


def test_an_empty_tree(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree", {})
    make_manifest(tree, tmp_path / "m.gz")
    assert read_again(tree, tmp_path / "m.gz", workers=4, names=True).entries == 1


def test_a_path_longer_than_the_system_takes(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    fd = os.open(root, os.O_RDONLY)
    for _ in range(25):
        os.mkdir("x" * 200, dir_fd=fd)
        fd, above = os.open("x" * 200, os.O_RDONLY, dir_fd=fd), fd
        os.close(above)
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=fd))
    make_manifest(root, tmp_path / "m.gz")
    assert read_again(root, tmp_path / "m.gz", names=True).sound
    os.unlink("file", dir_fd=fd)
    os.utime(fd, ns=(0, 0))
    os.close(fd)
    assert sorted(found(read_again(root, tmp_path / "m.gz")).values()) == [Verdict.METADATA, Verdict.MISSING]


@pytest.mark.root
def test_what_may_not_be_read_is_told_as_such(tree: Path, manifest: Path) -> None:
    (tree / "folder/b").chmod(0)
    (tree / "folder").chmod(0o700)
    rights = OpenTree(os.fsencode(tree))
    judge = EntryChecker(rights, FileHasher(lambda _: None), CheckTask("check", ""))
    expected = {entry.path: entry for entry in read_manifest(str(manifest))[1]}
    os.seteuid(65534)
    try:
        sound, closed, hidden = (judge.judge(expected[path]) for path in (b"a", b"folder/b", b"folder/c"))
    finally:
        os.seteuid(0)
    assert not sound.verdict
    assert closed == hidden == (Verdict.UNREADABLE, "it does not open: Permission denied", "")


def test_what_the_manifest_never_proved_is_no_broken_promise(tree: Path, tmp_path: Path) -> None:
    make_manifest(tree, tmp_path / "m.gz")
    marked = [e._replace(digest="!") if e.path == b"a" else e for e in read_manifest(str(tmp_path / "m.gz"))[1]]
    write_manifest(str(tmp_path / "m.gz"), HEADER, marked)
    reading = read_again(tree, tmp_path / "m.gz")
    assert found(reading) == {b"a": Verdict.UNPROVED}
    assert reading.sound
    odd = [e._replace(digest="crc7:00") if e.path == b"a" else e for e in marked]
    write_manifest(str(tmp_path / "m.gz"), HEADER, odd)
    assert "crc7" in detail(read_again(tree, tmp_path / "m.gz"), b"a")


class Meddling(FileHasher):
    """A reader during whose readings something happens to the file."""

    def __init__(self, *actions: Callable[[], object]) -> None:
        super().__init__(lambda _: None)
        self._deeds = list(actions)

    def digest(self, fd: int, size: int, makers: Makers) -> tuple[str, ...]:
        read = super().digest(fd, size, makers)
        if self._deeds:
            self._deeds.pop(0)()
        return read

    def again(self, fd: int, makers: Makers) -> tuple[str, ...]:
        read = super().again(fd, makers)
        if self._deeds:
            self._deeds.pop(0)()
        return read


def judged(tree: Path, manifest: Path, reader: FileHasher, *, mode: str = "check") -> judging.EntryVerdict:
    entry = next(entry for entry in read_manifest(str(manifest))[1] if entry.path == b"a")
    return EntryChecker(OpenTree(os.fsencode(tree)), reader, CheckTask(mode, "sha256")).judge(entry)


def test_a_file_that_changes_while_it_is_read_is_not_called_rotten(tree: Path, manifest: Path) -> None:
    rewrite(tree / "a", b"X" * 100)
    verdict = judged(tree, manifest, Meddling(lambda: rewrite(tree / "a", b"Y" * 100)))
    assert verdict[:2] == (Verdict.EDITED, "changed while it was read")
    rewrite(tree / "a", b"A" * 100)
    verdict = judged(tree, manifest, Meddling(lambda: (tree / "a").write_bytes(b"later")), mode="digest")
    assert verdict == (Verdict.EDITED, "changed while it was read", "")


def test_two_readings_that_differ_are_told(tree: Path, manifest: Path) -> None:
    class Flaky(Meddling):
        def digest(self, fd: int, size: int, makers: Makers) -> tuple[str, ...]:
            return ("0bad",)

    verdict = judged(tree, manifest, Flaky())
    assert verdict.verdict == Verdict.UNREADABLE
    assert verdict.detail == "two readings differ: xxh128:0bad, then as expected"


def test_a_disk_that_fails_in_the_middle_is_not_called_rotten(tree: Path, manifest: Path) -> None:
    class Failing(Meddling):
        def digest(self, fd: int, size: int, makers: Makers) -> tuple[str, ...]:
            raise OSError(5, "Input/output error")

    verdict = judged(tree, manifest, Failing())
    assert verdict == (Verdict.UNREADABLE, "reading fails: Input/output error", "")


def test_every_word_of_a_worker_is_a_verdict() -> None:
    words = {getattr(judging, verdict.name) for verdict in Verdict if verdict is not Verdict.EXTRA}
    assert words == {str(verdict) for verdict in Verdict} - {"extra"}


@pytest.mark.parametrize("path", [b"../secret", b"a/../../secret", b"/etc/passwd", b"link/secret"])
def test_no_path_leads_outside_of_the_tree(tmp_path: Path, path: bytes) -> None:
    (tmp_path / "secret").write_text("of somebody else")
    (tmp_path / "tree" / "a").mkdir(parents=True)
    (tmp_path / "tree" / "link").symlink_to(tmp_path)
    tree = OpenTree(os.fsencode(tmp_path / "tree"))
    for look in (tree.open, tree.stat, tree.target):
        with pytest.raises(OSError, match=r"outside|Not a directory"):
            look(path)


def test_entries_of_one_folder_after_another_are_told_apart(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", {"one": b"1", "d/one": b"22", "d/e/one": b"333", "d-e/one": b"4444"})
    with OpenTree(os.fsencode(root)) as tree:
        order = (b"d/one", b"d/one", b"d/e/one", b"one", b"d/e/one", b"d-e/one", b"d/one")
        assert [tree.stat(path).st_size for path in order] == [2, 2, 3, 1, 3, 4, 2]
        for before, path in (
            (b"d/one", b"d/.."),
            (b"d/one", b"../one"),
            (b"one", b"/one"),
            (b"one", b".."),
            (b"d/one", b"d/../one"),
        ):
            tree.stat(before)
            with pytest.raises(OSError, match="outside"):
                tree.stat(path)
        assert tree.stat(b"d/one").st_size == 2
        assert tree.stat(b"one").st_size == 1
        assert tree.stat(b"").st_ino == root.stat().st_ino


def test_a_tree_deeper_than_descriptors_go_is_read(tmp_path: Path) -> None:
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = inner
    with open(os.open("file", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=at), "wb") as file:
        file.write(b"deep")
    os.close(at)
    tree = OpenTree(os.fsencode(tmp_path))
    for _ in range(3):
        fd = tree.open(b"d/" * 1500 + b"file")
        assert os.read(fd, 10) == b"deep"
        os.close(fd)
    assert tree.stat(b"d/d").st_nlink
    subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)


@pytest.mark.parametrize("algorithm", ["sha3", "", "../x"])
def test_a_digest_that_nothing_makes_verifies_no_file(tree: Path, tmp_path: Path, algorithm: str) -> None:
    """Before, such a file was passed over, and the reading sound."""
    make_manifest(tree, tmp_path / "true.gz")
    header, entries = read_manifest(str(tmp_path / "true.gz"))
    changed = [entry._replace(digest=f"{algorithm}:{'ab' * 16}") if entry.path == b"a" else entry for entry in entries]
    write_manifest(str(tmp_path / "m.gz"), header, changed)
    reading = read_again(tree, tmp_path / "m.gz")
    assert not reading.sound
    assert {(each.path, each.verdict) for each in reading.findings} <= {
        (b"a", Verdict.UNREADABLE),
        (b"a", Verdict.ROTTEN),
    }


def test_names_for_a_host_are_written_for_what_makes_digests_alone(tmp_path: Path) -> None:
    """Before, a manifest with as many words for algorithms as files opened as many files."""
    digests = [
        *(f"word{number}:ab" for number in range(3000)),
        "xxh128:ab",
        "../../x:ab",
        "-",
        "!",
        "?",
        "?xxh128:ab",
        "sha256:cd",
    ]
    rows = [(b"%05d" % at, [each.encode(), b"f", b"7"]) for at, each in enumerate(digests)]
    sizes = [b"9" * 5000, b"-1", b"", b"x"]  # which the comparison finds
    rows += [(b"%05d" % (4000 + at), [b"sha256:cd", b"f", size]) for at, size in enumerate(sizes)]
    found, total = write_names(iter(rows), str(tmp_path))
    assert total == 7 * len(digests)
    assert {each: Path(path).read_bytes() for each, path in found} == {
        "xxh128": b"03000\0",
        "sha256": b"03006\0" + b"".join(b"%05d\0" % (4000 + at) for at in range(len(sizes))),
    }
    assert len(os.listdir(tmp_path)) == 2
