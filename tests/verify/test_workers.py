"""Workers as processes: their shares, their reports, and that half a report proves nothing."""

import os
import signal
from pathlib import Path

import pytest

from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.plan import Command, Pipeline
from orchestrator.domain.point import Verdict
from orchestrator.verify.build import draft_of
from orchestrator.verify.entry import EXACT, parse_line
from orchestrator.verify.manifest import read_manifest, write_manifest
from orchestrator.verify.manifest_lines import packed_lines
from orchestrator.verify.partition import worker_share
from orchestrator.verify.pipelines import worker_pipeline
from orchestrator.verify.results import ResultCollector
from tests.processes import children
from tests.verify.trees import HEADER, make_manifest, make_tree, output_of, read_again, start

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


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("prefix", [b"", b"fol\nder"])
def test_the_shares_are_the_whole_and_none_twice(tmp_path: Path, workers: int, prefix: bytes) -> None:
    tree = make_tree(tmp_path / "tree", {f"fol\nder/{number % 7}/{number}": b"x" * number for number in range(900)})
    make_manifest(tree, tmp_path / "m.gz")
    lines = [line for line in packed_lines(str(tmp_path / "m.gz")) if not line.startswith(b"#")]
    shares = [
        [e for block in worker_share(lines, worker=at, of=workers, prefix=prefix) for e in block]
        for at in range(workers)
    ]
    whole = [(number, parse_line(line).path) for number, line in enumerate(lines)]
    seen = sorted((number, e.path) for part in shares for number, e in part)
    if prefix:
        whole = [(number, path[8:]) for number, path in whole if path.startswith(prefix)]
    assert seen == whole
    assert all(shares)


def test_a_few_large_files_are_spread(tmp_path: Path) -> None:
    lines = [b"?\tf\t%d\t0\t644\t0\t0\t1\t%d\tfile%d" % (1 << 30, number, number) for number in range(12)]
    sizes = [len([e for block in worker_share(lines, worker=at, of=4) for e in block]) for at in range(4)]
    assert sizes == [3, 3, 3, 3]


def test_a_killed_worker_proves_nothing(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree", {"a": b"A"})
    (tree / "b").write_bytes(b"B")
    make_manifest(tree, tmp_path / "m.gz")
    blocked = tmp_path / "blocked.gz"
    os.mkfifo(blocked)  # the worker waits for the manifest: it can be killed at a known point
    process = start(worker_pipeline(str(tree), str(blocked), workers=1))
    whole = (tmp_path / "m.gz").read_bytes()
    with blocked.open("wb") as pipe:
        pipe.write(whole[:-20])
        pipe.flush()
        process.send_signal(signal.SIGKILL)
        output, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL
    with pytest.raises(VerificationFailed, match="1 of 1 readers"):
        _reading_of(output)


def test_one_killed_of_several_workers_ends_all_and_proves_nothing(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree", {"a": b"A"})
    blocked = tmp_path / "blocked.gz"
    os.mkfifo(blocked)  # all of them wait for the manifest
    process = start(worker_pipeline(str(tree), str(blocked), workers=3))
    with blocked.open("wb"):
        while len(pids := children(process.pid)) < 3:
            assert process.poll() is None
        os.kill(pids[1], signal.SIGKILL)
        output, complaint = process.communicate()
    assert (process.returncode, complaint) == (1, b"a reader was ended by signal 9\n")
    with pytest.raises(VerificationFailed, match="3 of 3 readers"):
        _reading_of(output, workers=3)


def test_a_worker_without_a_listener_ends(tree: Path, manifest: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked.gz"
    os.mkfifo(blocked)  # the worker waits for the manifest: nothing is told before nobody listens
    process = start(worker_pipeline(str(tree), str(blocked), workers=1))
    assert process.stdout
    process.stdout.close()
    process.stdout = None
    blocked.write_bytes(manifest.read_bytes())
    _, complaint = process.communicate()
    assert process.returncode == 1
    assert b"Broken pipe" in complaint


def test_several_without_a_listener_end(tree: Path, manifest: Path) -> None:
    """Also where they had told all before it went: what they tell fits into the pipe."""
    process = start(worker_pipeline(str(tree), str(manifest), workers=3))
    assert process.stdout
    process.stdout.close()
    process.stdout = None
    _, complaint = process.communicate()
    assert (process.returncode, b"Broken pipe" in complaint) in ((1, True), (0, False))


@pytest.mark.parametrize("cut", [50, -1])
def test_a_cut_manifest_proves_nothing(tree: Path, manifest: Path, cut: int) -> None:
    manifest.write_bytes(manifest.read_bytes()[:cut])
    output, complaint, status = output_of(worker_pipeline(str(tree), str(manifest), workers=2))
    assert status == 1
    assert b"cut short" in complaint
    with pytest.raises(VerificationFailed):
        _reading_of(output, workers=2)


def test_a_root_that_is_not_there_is_one_failure_and_not_many_missing_files(tree: Path, manifest: Path) -> None:
    output, complaint, status = output_of(worker_pipeline(str(tree / "none"), str(manifest), workers=1))
    assert (output, status) == (b"", 1)
    assert b"No such file" in complaint


def test_a_collector_takes_pieces_of_any_size(tree: Path, manifest: Path) -> None:
    (tree / "a").unlink()
    told, _, _ = output_of(worker_pipeline(str(tree), str(manifest), workers=2))
    collector = ResultCollector(2)
    for at in range(len(told)):
        collector.feed(told[at : at + 1])
    assert collector.entries == 7
    assert collector.reading(took_s=2, entries=7).counts == ((Verdict.MISSING, 1), (Verdict.METADATA, 1))
    with pytest.raises(VerificationFailed, match="judged 7 entries, and there should be 8"):
        collector.reading(took_s=2, entries=8)


@pytest.mark.parametrize(
    "output",
    [
        b"", b"P\t1\t1\t1\0", b"S\t1\t1\t1\t0\t0", b"S\t1\t1\t1\t1\t0\0", b"S\t1\t1\t1\t0\t1\0", b"F\trotten\tx\ta\0",
        b"S\t1\t1\t1\t0\t0\0S\t1\t1\t1\t0\t0\0", b"X\0", b"W\t1\0S\t1\t1\t1\t0\t0\0", b"W\t-1\0", b"W\0", b"F\tbad\tx\ta\0", b"D\tx\0", b"S\t1\t1\t0\t0\0",
    ],
)  # fmt: skip
def test_what_is_not_a_whole_report_proves_nothing(output: bytes) -> None:
    with pytest.raises(VerificationFailed):
        _reading_of(output)


def _reading_of(output: bytes, workers: int = 1) -> None:
    collector = ResultCollector(workers)
    collector.feed(output)
    collector.reading(took_s=1)


def test_only_so_many_findings_are_held_and_all_are_counted(tmp_path: Path) -> None:
    collector = ResultCollector(1, few=3)
    collector.feed(b"F\tmissing\tnot there\ta\n\t\xff\0" * 5 + b"S\t5\t5\t0\t5\t0\0")
    reading = collector.reading(took_s=1)
    assert (len(reading.findings), reading.counts) == (3, ((Verdict.MISSING, 5),))
    assert reading.findings[0].path == b"a\n\t\xff"


@pytest.mark.parametrize(
    "options",
    [["--mode", "dance"], ["--mode", "fill:crc7"], ["--mode"], ["--mode", "check", "--workers", "x"]],
)
def test_a_worker_refuses_what_it_does_not_know(tree: Path, manifest: Path, options: list[str]) -> None:
    pipeline = worker_pipeline(str(tree), str(manifest), workers=1)
    stage = pipeline.stages[0]
    front = [*stage.argv[:6], "--root", str(tree), "--manifest", str(manifest)]
    process = start(replaced(pipeline, (*front, *options)))
    output, complaint = process.communicate()
    assert (output, process.returncode) == (b"", 1)
    assert complaint


def replaced(pipeline: Pipeline, argv: tuple[str, ...]) -> Pipeline:
    (stage,) = pipeline.stages
    return Pipeline(stages=(Command(argv=argv, effect=stage.effect, environment=stage.environment),))


def test_a_worker_imports_little_and_nothing_from_where_it_starts(tree: Path, manifest: Path, tmp_path: Path) -> None:
    for name in ("xxhash", "zlib", "orchestrator"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the current folder')")
    pipeline = worker_pipeline(str(tree), str(manifest), workers=1, tolerance=EXACT)
    stage = pipeline.stages[0]
    argv = (stage.argv[0], "-X", "importtime", *stage.argv[1:])
    process = start(replaced(pipeline, argv), cwd=tmp_path)
    _, told = process.communicate()
    assert process.returncode == 0
    imported = set(told.replace(b"|", b" ").split())
    assert imported.isdisjoint(
        (b"dataclasses", b"inspect", b"argparse", b"gzip", b"asyncio", b"datetime", b"site", b"orchestrator.domain")
    )


def test_a_draft_is_read_by_its_unknown_entries_alone(tree: Path, tmp_path: Path) -> None:
    make_manifest(tree, tmp_path / "m.gz")
    entries = [e._replace(digest="?") if e.path == b"a" else e for e in read_manifest(str(tmp_path / "m.gz"))[1]]
    write_manifest(draft_of(str(tmp_path / "m.gz")), HEADER, entries)
    reading = read_again(tree, draft_of(str(tmp_path / "m.gz")), mode="fill")
    assert (reading.entries, reading.bytes_read) == (1, 100)
