"""Sums for sha256sum, and sums made on a host, with the real program.

Changes things: temporary trees.
"""

import hashlib
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from orchestrator.domain.place import Host, Location
from orchestrator.domain.point import Verdict
from orchestrator.verify.compare import compare
from orchestrator.verify.export import parse_sum, write_sums
from orchestrator.verify.manifest import Header, read_manifest
from orchestrator.verify.pipelines import digest_pipeline, settle_pipeline
from orchestrator.verify.sorting import Spool, sorted_moves
from tests.verify.trees import (
    CREATED,
    HEADER,
    HOSTILE,
    entries,
    found,
    hostile_tree,
    make_manifest,
    make_tree,
    read_again,
)

SHA = Header(job="j", source="s", point="p", digest="sha256", created=CREATED)


def export(tree: Path, manifest: Path, sums: Path) -> tuple[int, dict[bytes, Verdict]]:
    with Spool(str(manifest.parent)) as spool:
        reading = read_again(tree, manifest, mode="digest", algorithm="sha256", taken=spool.take)
        return write_sums(str(sums), spool.named()), found(reading)


def accepted(tree: Path, sums: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sha256sum", "-c", "--strict", sums], cwd=tree, capture_output=True, env={"PATH": os.environ["PATH"]}
    )


@pytest.mark.parametrize("header", [HEADER, SHA], ids=["xxh128", "sha256"])
def test_sha256sum_accepts_every_hostile_name(tmp_path: Path, header: Header) -> None:
    tree = hostile_tree(tmp_path / "tree")
    (tree / "link").symlink_to("1")
    os.link(tree / "1", tree / "hard link")
    make_manifest(tree, tmp_path / "m.gz", header=header)
    count, verdicts = export(tree, tmp_path / "m.gz", tmp_path / "SHA256SUMS")
    assert (count, verdicts) == (len(HOSTILE) + 1, {})
    assert len(HOSTILE) >= 40
    result = accepted(tree, tmp_path / "SHA256SUMS")
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout.count(b": OK\n") == len(HOSTILE) + 1
    (tree / "ends in \\").write_bytes(b"other")
    assert accepted(tree, tmp_path / "SHA256SUMS").returncode == 1


def test_a_rotten_file_gets_no_sum(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "tree", {"a": b"A", "b": b"B"})
    make_manifest(tree, tmp_path / "m.gz")
    stamp = (tree / "a").stat().st_mtime_ns
    (tree / "a").write_bytes(b"X")
    os.utime(tree / "a", ns=(0, stamp))
    assert export(tree, tmp_path / "m.gz", tmp_path / "sums") == (1, {b"a": Verdict.ROTTEN})
    assert parse_sum((tmp_path / "sums").read_bytes()[:-1]) == (b"b", f"sha256:{hashlib.sha256(b'B').hexdigest()}")


def remote(tree: Path | str) -> subprocess.CompletedProcess[bytes]:
    """As a shell on a host runs it."""
    (stage,) = digest_pipeline(Location(path=os.fspath(tree), host=Host(name="far"))).stages
    return subprocess.run(["sh", "-c", os.fsencode(shlex.join(stage.argv))], capture_output=True, cwd="/")


@pytest.mark.parametrize("name", ["tree", "-new\nline '\"\udcff $(id)"])
def test_sums_made_on_a_host_judge_the_tree(tmp_path: Path, name: str) -> None:
    tree = hostile_tree(tmp_path / name)
    (tree / "deep").mkdir()
    for number in range(200):
        (tree / "deep" / f"file {number}").write_bytes(b"%d" % number)
    make_manifest(tree, tmp_path / "m.gz", header=SHA)
    stamp = (tree / "1").stat()
    (tree / "1").write_bytes(b"other!!!"[: stamp.st_size].ljust(stamp.st_size))
    os.utime(tree / "1", ns=(0, stamp.st_mtime_ns))
    result = remote(tree)
    assert (result.returncode, result.stderr) == (0, b"")
    digests = sorted_moves(map(parse_sum, result.stdout.split(b"\n")[:-1]), folder=str(tmp_path))
    told = list(compare(read_manifest(str(tmp_path / "m.gz"))[1], entries(tree, tmp_path), digests=digests))
    assert [(finding.path, finding.verdict) for finding in told] == [(b"1", Verdict.ROTTEN)]


def test_an_empty_tree_on_a_host_is_not_a_tree_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert (remote(tmp_path / "empty").returncode, remote(tmp_path / "empty").stdout) == (0, b"")
    assert remote(tmp_path / "none").returncode != 0


@pytest.mark.parametrize("program", ["find", "sha256sum"])
def test_a_failure_on_a_host_is_not_lost_behind_the_pipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    tree = make_tree(tmp_path / "tree", {"a": b"A"})
    assert remote(tree).returncode == 0
    (tmp_path / "bin").mkdir()
    real = subprocess.run(["which", program], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    (tmp_path / "bin" / program).write_text(f'#!/bin/sh\n{real} "$@"\nexit 1\n')
    (tmp_path / "bin" / program).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    assert remote(tree).returncode != 0


def test_other_algorithms_need_poolferry_there() -> None:
    with pytest.raises(ValueError, match="xxh128"):
        digest_pipeline(Location(path="/srv"), algorithm="xxh128")


def test_settling_is_one_command(tmp_path: Path) -> None:
    (stage,) = settle_pipeline(Location(path=str(tmp_path))).stages
    assert subprocess.run(stage.argv).returncode == 0
