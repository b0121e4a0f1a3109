"""Owners read their points through the hook points-view, and change nothing there, in no moment."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.hostile.conftest import AS_STRANGER, STRANGER
from tests.whole.house import House

pytestmark = [pytest.mark.root, pytest.mark.slow]
AS = " ".join(AS_STRANGER)
HOOK = Path(__file__).resolve().parents[2] / "hooks/points-view"


@pytest.mark.namespace
def test_owners_read_their_points_and_change_none(house: House) -> None:
    theirs = house.write("docs/hers", "as it was")
    os.chown(theirs, STRANGER, STRANGER)
    (house.source / "docs").chmod(0o777)
    house.write("private/name", "x")
    (house.source / "private").chmod(0o700)
    view = house.folder / "view"
    house.job(hooks={"done": [[str(HOOK), str(view)]]}, keep={"daily": 1})
    argv = " ".join(house.argv("run", "photos"))
    # Her race: from before the first mount on she writes to whatever she reaches.
    script = f"""
    set -e
    trap ': > "{house.folder}/over"; wait' EXIT
    {AS} sh -c 'while [ ! -e "{house.folder}/over" ]; do for f in "{view}"/*Z/docs/hers; do echo evil >> "$f"; sleep 0.01; done; done' > /dev/null 2>&1 &
    for n in 1 2 3; do echo $n > "{house.source}/docs/new"; {argv} > "{house.folder}/out"; sleep 1; done
    : > "{house.folder}/over"
    newest=$(ls "{view}" | tail -n 1)
    cd "{view}/$newest"
    {AS} cat docs/hers
    {AS} ls "{view}"
    ! {AS} sh -c 'echo evil >> docs/hers' 2> /dev/null
    ! {AS} sh -c 'rm docs/hers' 2> /dev/null
    ! {AS} sh -c 'ls private' 2> /dev/null
    ! {AS} sh -c 'ls "{house.target}/points"' 2> /dev/null
    ! sh -c 'echo evil >> docs/hers' 2> /dev/null
    """
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script], env=house.environment,
        capture_output=True, text=True, check=False, cwd=house.folder, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done
    shown = done.stdout.split("\n", 1)
    assert shown[0].startswith("as it was")
    assert "as it was" + "\n".join(house.points()) + "\n" == done.stdout, "what [keep] removed is not shown any more"
    assert {path.read_text() for path in house.target.glob("points/*Z/docs/hers")} == {"as it was"}
    assert house.call("verify", "photos").code == 0


@pytest.mark.namespace
def test_nobody_reaches_a_point_before_it_is_read_only(house: House) -> None:
    point, view, programs = house.target / "points/2026-01-01T000000Z", house.folder / "view", house.folder / "programs"
    point.mkdir(parents=True)
    (point / "hers").write_text("as it was")
    os.chown(point / "hers", STRANGER, STRANGER)
    point.chmod(0o755)
    programs.mkdir()
    # After each mount she writes to all that she reaches, and stays in it: a mount in which a file is written is not made read-only.
    (programs / "mount").write_text(f"""#!/bin/sh
        {shutil.which("mount")} "$@" || exit
        {AS} sh -c 'for f in "{view}"/.hidden/hers "{view}"/.hidden/*/hers "{view}"/*Z/hers; do
            sh -c "echo evil >> \\"$f\\" && exec sleep 3 3>> \\"$f\\"" > /dev/null 2>&1 & done'
        """)
    (programs / "mount").chmod(0o755)
    script = f"""
    mkdir -m 755 "{view}" && mkdir -m 700 "{view}/.hidden" && mount --bind "{point}" "{view}/.hidden"  # left by an earlier version
    PATH="{programs}:$PATH" sh "{HOOK}" "{view}" && ! mountpoint -q "{view}/.hidden" && cat "{view}/{point.name}/hers"
    """
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
        env={**os.environ, "POOLFERRY_TARGET": str(house.target)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "as it was"), done
    assert (point / "hers").read_text() == "as it was"


@pytest.mark.parametrize("target", ["ssh://box/backup", "tank/backup", ""])
def test_it_is_for_folders_here(tmp_path: Path, target: str) -> None:
    done = subprocess.run(
        [HOOK, tmp_path / "view"], env={**os.environ, "POOLFERRY_TARGET": target}, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert not (tmp_path / "view").exists()
    assert subprocess.run([HOOK, "view"], capture_output=True, check=False).returncode == 2
