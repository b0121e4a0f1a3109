"""Targets and a state as the version before tags and closed folders left them: found open, closed once, and usable as before."""

import gzip
import shutil
from pathlib import Path

import pytest

from orchestrator.verify.manifest import read_manifest
from tests.history.records import older_history
from tests.whole.house import House, facts

pytestmark = pytest.mark.slow


def make_older(house: House, target: Path) -> None:
    """Turns a target and the state of today's version into what that version left."""
    for manifest in target.rglob("*manifest.gz"):
        manifest.write_bytes(older_manifest(manifest))
        manifest.chmod(0o644)
    ours = target / ".poolferry"
    shutil.rmtree(house.state, ignore_errors=True)
    (house.state / "notes").mkdir(parents=True)
    (house.state / "history.sqlite").write_bytes(older_history(house.folder / "older.sqlite"))
    (ours / "history.sqlite").write_bytes((house.state / "history.sqlite").read_bytes())
    (ours / "SHA256SUMS").unlink()
    (ours / "RECOVERY.md").write_text("how to restore without poolferry\n")
    for name in ("history.sqlite", "RECOVERY.md", "lock", "target.json"):
        (ours / name).chmod(0o644)
    for folder in (ours, target / "points", house.state, house.state / "notes"):
        if folder.exists():
            folder.chmod(0o755)


def older_manifest(manifest: Path) -> bytes:
    """The manifest as that version wrote it: without attributes and tag. Only for names without odd characters."""
    header, entries = read_manifest(str(manifest))
    lines, files, size = [], 0, 0
    for entry in entries:
        mode = f"{entry.mode:o}"
        fields = (entry.digest or "-", entry.kind, entry.size, entry.mtime_ns, mode, entry.uid, entry.gid, entry.nlink)
        lines.append("\t".join(map(str, (*fields, entry.inode, entry.path.decode()))))
        files, size = files + (entry.kind == "f"), size + (entry.size if entry.kind == "f" else 0)
    told = f"# job: {header.job}\n# source: {header.source}\n# point: {header.point}\n# digest: {header.digest}\n"
    columns = "# columns: digest kind size mtime_ns mode uid gid nlink inode path target\n"
    body = "".join(line + "\n" for line in lines)
    ended = f"# end entries={len(lines)} files={files} bytes={size}\n"
    when = "# created: 2026-11-01T00:00:00.000000+00:00\n"
    return gzip.compress(f"# poolferry manifest 1\n{told}{when}{columns}{body}{ended}".encode())


@pytest.mark.parametrize("points", [True, False])
@pytest.mark.sample(1)
def test_an_older_target_is_closed_once_and_usable(house: House, *, points: bool) -> None:
    house.write("docs/file", "x" * 2000)
    house.write("w/twin", "{}")
    house.job(rsync={"points": points})
    assert house.run().outcome == "done"
    make_older(house, house.target)
    tree = house.point() if points else house.target
    assert house.call("verify", "photos").code == 0
    ran = house.run()
    assert ran.outcome == "nothing-to-do", ran
    assert len(ran["warnings"]) == 1
    assert "could be entered by other users" in ran["warnings"][0]
    again = house.run()
    assert (again.outcome, again["warnings"]) == ("nothing-to-do", []), again
    closed = [house.state, house.target / ".poolferry", *([house.target / "points"] if points else [])]
    assert {path.stat().st_mode & 0o077 for path in closed} == {0}
    assert house.call("verify", "photos").code == 0
    assert house.call("drill", "photos").code == 0
    back = house.folder / "back"
    assert house.call("restore", "run", "photos", "--to", str(back)).outcome == "done"
    assert facts(back) == facts(house.source)
    house.write("docs/more", "new")
    assert house.run().outcome == "done"
    assert house.call("verify", "photos").code == 0
    assert (tree / "docs/file").exists()
