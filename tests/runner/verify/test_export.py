"""Sums for sha256sum, with the real program."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.point import Verdict
from orchestrator.runner.verify.export_sums import write_sums
from orchestrator.verify.build import DigestSpool
from orchestrator.verify.manifest import ManifestHeader
from orchestrator.verify.pipelines import settle_pipeline
from tests.verify.trees import (
    CREATED,
    HEADER,
    HOSTILE,
    found,
    hostile_tree,
    make_manifest,
    make_tree,
    read_again,
)

SHA = ManifestHeader(job="j", source="s", point="p", digest="sha256", created=CREATED)


def export(tree: Path, manifest: Path, sums: Path) -> tuple[int, dict[bytes, Verdict]]:
    with DigestSpool(str(manifest.parent)) as spool:
        reading = read_again(tree, manifest, mode="digest", algorithm="sha256", taken=spool.take)
        return write_sums(str(sums), spool.named()), found(reading)


def accepted(tree: Path, sums: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sha256sum", "-c", "--strict", sums], cwd=tree, capture_output=True, env={"PATH": os.environ["PATH"]}
    )


@pytest.mark.parametrize("header", [HEADER, SHA], ids=["xxh128", "sha256"])
def test_sha256sum_accepts_every_hostile_name(tmp_path: Path, header: ManifestHeader) -> None:
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
    assert (tmp_path / "sums").read_text() == f"{hashlib.sha256(b'B').hexdigest()}  ./b\n"


def test_settling_is_one_command(tmp_path: Path) -> None:
    (stage,) = settle_pipeline(Location(path=str(tmp_path))).stages
    assert subprocess.run(stage.argv).returncode == 0
