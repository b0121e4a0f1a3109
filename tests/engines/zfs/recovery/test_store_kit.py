"""A recovery kit is stored by a real shell and tar, with stand-ins for what mounts."""

import os
import subprocess
from pathlib import Path

from orchestrator.engines.zfs.recovery.kit import store_pipeline
from orchestrator.runner.recovery_kit import write_archive
from tests.engines.zfs.sides import job


def test_a_kit_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    """A link that is cut between two files of the archive leaves what has a good end for tar."""
    archive, place = tmp_path / "kit.tar", tmp_path / "mnt"
    write_archive(str(archive), (("kit.json", b"{}"), ("history.sqlite", b"x" * 700)))
    (place / "photos").mkdir(parents=True)
    (place / "photos/kit.json").write_text("before")
    (command,) = store_pipeline(job(), str(archive)).stages
    for name, text in (
        ("zfs", ""),
        ("mount", ""),
        ("umount", ""),
        ("unshare", 'while [ "$1" != sh ]; do shift; done; exec "$@"'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    words, path = [word.replace("/mnt", str(place)) for word in command.argv], f"{tmp_path}:{os.environ['PATH']}"
    whole = archive.read_bytes()
    needed = len(whole.rstrip(b"\0"))
    for size in range(0, len(whole) + 1, 512):
        done = subprocess.run(words, input=whole[:size], capture_output=True, check=False, env={"PATH": path})
        stored = {each.name for each in (place / "photos").iterdir()}
        assert (done.returncode == 0) == (size >= needed), (size, done)
        assert stored == ({"kit.json", "history.sqlite", "SHA256SUMS"} if size >= needed else {"kit.json"}), (
            size,
            stored,
        )
