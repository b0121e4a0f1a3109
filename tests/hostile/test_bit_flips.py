"""Each bit of the small files beside copies: whatever flips is found, or harmless; nothing wrong is believed silently."""

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.domain.authentication import AuthenticationKey
from orchestrator.domain.errors import HistoryError, OrchestratorError, VerificationFailed
from orchestrator.engines.rsync.parse import parse_marker
from orchestrator.history.store import open_history
from orchestrator.verify.entry import ManifestEntry
from orchestrator.verify.manifest import ManifestHeader, read_manifest, read_tag, write_manifest

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def flips(text: bytes) -> Iterator[bytes]:
    """The same bytes with one bit changed, for each bit."""
    for bit in range(len(text) * 8):
        changed = bytearray(text)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


@pytest.mark.parametrize("coarse", ["true", "false"])
def test_a_targets_marker(coarse: str) -> None:
    text = b'{"format": 1, "job": "photos", "coarse": %s}' % coarse.encode()
    true = parse_marker(text)
    for changed in flips(text):
        try:
            found = parse_marker(changed)
        except OrchestratorError:
            continue
        assert found == true or (found is not None and found.job != "photos"), changed


def test_a_manifest(tmp_path: Path) -> None:
    path, key = str(tmp_path / "manifest.gz"), AuthenticationKey(bytes(range(32)), NOW)
    header = ManifestHeader(
        job="photos", source="/srv/photos", point="2026-11-20T120000Z", digest="xxh128", created=NOW
    )
    entries = [
        ManifestEntry(b"", "d", 0, 1, 0o755, 0, 0, 2, 1, b"", "-"),
        ManifestEntry(b"file", "f", 9, 1, 0o644, 0, 0, 1, 2, b"", "xxh128:" + "ab" * 16),
    ]
    write_manifest(path, header, entries, key=key)
    whole = Path(path).read_bytes()
    for changed in flips(whole):
        Path(path).write_bytes(changed)
        try:
            tag = read_tag(path, key)
            found = list(read_manifest(path)[1])
        except VerificationFailed:
            continue
        assert (tag.right, found) == (True, entries), "a bit of the packing's own heading"


def test_pages_of_the_history(tmp_path: Path) -> None:
    path, copy = tmp_path / "history.sqlite", tmp_path / "copy.sqlite"
    with open_history(str(path)) as history, history.together():
        for number in range(300):
            history.remember("photos", f"key {number}", "x" * 200)
    with closing(sqlite3.connect(path)) as found, found:
        size = found.execute("PRAGMA page_size").fetchone()[0]
        unused = found.execute("PRAGMA freelist_count").fetchone()[0]
    assert unused == 0
    for page in range(os.path.getsize(path) // size):
        shutil.copyfile(path, copy)
        with copy.open("r+b") as file:
            file.seek(page * size)
            file.write(bytes(size))
        with pytest.raises(HistoryError), open_history(str(copy)) as history:
            history.check_when_due(NOW)
