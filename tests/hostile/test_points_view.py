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


@pytest.mark.namespace
def test_two_at_once_show_no_point_that_can_be_written(house: House) -> None:
    """Seen: one showed what the other had mounted and not made read-only yet. A mount on a mount ended all later ones."""
    point, view, programs = house.target / "points/2026-01-01T000000Z", house.folder / "view", house.folder / "programs"
    point.mkdir(parents=True)
    (point / "hers").write_text("as it was")
    os.chown(point / "hers", STRANGER, STRANGER)
    point.chmod(0o755)
    programs.mkdir()
    mount, shown = shutil.which("mount"), view / point.name
    # The second one begins with the first one's first mount, and mounts, unless it waits for the first, just before that is shown.
    (programs / "mount").write_text(f"""#!/bin/sh
        cd "{programs}"
        until_there() {{ while [ ! -e "$1" ] && [ ! -e waits ]; do sleep 0.01; done; }}
        case "$WHO $*" in
        "first --bind /"*) WHO=second sh "{HOOK}" "{view}" 9<&- & until_there second-begins ;;
        "first --bind ./"*) : > go; until_there second-mounted ;;
        "second --bind /"*) : > second-begins; until_there go ;;
        esac
        cd "{view}" && {mount} "$@" || exit
        cd "{programs}"
        case "$WHO $*" in
        "first --bind ./"*) {AS} sh -c 'echo evil >> "{shown}/hers"' 2> /dev/null; : > shown ;;
        "second --bind /"*) : > second-mounted; until_there shown ;;
        esac
        true
        """)
    (programs / "flock").write_text(f"""#!/bin/sh
        [ "$WHO" != second ] || : > "{programs}/waits"
        exec {shutil.which("flock")} "$@"
        """)
    for program in programs.iterdir():
        program.chmod(0o755)
    script = f"""
    WHO=first PATH="{programs}:$PATH" sh "{HOOK}" "{view}"
    sh "{HOOK}" "{view}" && cat "{shown}/hers"
    mount --bind "{point}" "{shown}"  # as two at once left it
    sh "{HOOK}" "{view}"
    ! {AS} sh -c 'echo evil >> "{shown}/hers"' 2> /dev/null || echo written
    mount --bind "{shown}" "{shown}"
    sh "{HOOK}" "{view}" && mv "{point}" "{point}.free" && mv "{point}.free" "{point}"
    mount --bind "{shown}" "{shown}"
    POOLFERRY_TARGET="{house.folder}" sh "{HOOK}" "{view}" && ls "{view}"  # where that point is no more
    """
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script],
        env={**os.environ, "POOLFERRY_TARGET": str(house.target)}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "as it was", "")


@pytest.mark.parametrize("target", ["ssh://box/backup", "tank/backup", ""])
def test_it_is_for_folders_here(tmp_path: Path, target: str) -> None:
    done = subprocess.run(
        [HOOK, tmp_path / "view"], env={**os.environ, "POOLFERRY_TARGET": target}, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert not (tmp_path / "view").exists()
    assert subprocess.run([HOOK, "view"], capture_output=True, check=False).returncode == 2


@pytest.mark.namespace
@pytest.mark.parametrize("name", [".hidden", ".hidden/point", "2026-01-01T000000Z", "2020-01-01T000000Z"])
@pytest.mark.parametrize("kind", ["link", "folder"])
def test_what_others_left_in_the_folder_leads_nowhere(house: House, name: str, kind: str) -> None:
    """Before, a link was followed: what is mounted at its end was unmounted, a point mounted over it, its mode changed."""
    point, view, elsewhere = (
        house.target / "points/2026-01-01T000000Z",
        house.folder / "view",
        house.folder / "elsewhere",
    )
    point.mkdir(parents=True)
    for folder in (view, elsewhere):
        folder.mkdir()
    elsewhere.chmod(0o755)
    (view / name).parent.mkdir(exist_ok=True)
    if kind == "link":
        (view / name).symlink_to(elsewhere)
    else:
        (view / name).mkdir()
    os.chown(view / name, STRANGER, STRANGER, follow_symlinks=False)
    script = f"""
    mount -t tmpfs -o mode=755 tmpfs "{elsewhere}" && : > "{elsewhere}/file" || exit 90
    sh "{HOOK}" "{view}"; echo $?
    ls "{elsewhere}"; stat -c %a "{elsewhere}"; grep -c "{house.folder}/" /proc/self/mountinfo
    """
    environment = {**os.environ, "POOLFERRY_TARGET": str(house.target)}
    shell = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
    done = subprocess.run([*shell, script], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout.split() == ["1", "file", "755", "1"], done
    # What it says to do ends it.
    subprocess.run(["sh", "-c", done.stderr.rpartition("then: ")[2]], check=True)
    script = f'sh "{HOOK}" "{view}" && ls "{view}"'
    done = subprocess.run([*shell, script], env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, [point.name]), done


@pytest.mark.namespace
@pytest.mark.parametrize("name", ["'; touch made #Z", "$(touch made)Z", "a\nZ", "\x1b[31mZ"])
def test_a_name_that_others_left_in_the_folder_is_in_no_command(house: House, name: str) -> None:
    """Root would paste it."""
    view = house.folder / "view"
    (view / name).mkdir(parents=True)
    os.chown(view / name, STRANGER, STRANGER)
    environment = {**os.environ, "POOLFERRY_TARGET": str(house.target), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(["sh", str(HOOK), str(view)], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n"), name in done.stderr) == (1, 1, False), done
    told = subprocess.run(
        ["sh", "-c", done.stderr.rpartition("away: ")[2]], capture_output=True, text=True, check=True, cwd=house.folder
    )
    assert "Z" in told.stdout
    assert "\x1b" not in told.stdout
    assert not (house.folder / "made").exists()
