"""The wall against links: no rsync that a run, a restore or a far side starts follows a link that a stranger put into a tree."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.engines.rsync.script_commands import survey_links_command
from orchestrator.process.executor import PipelineResult, Writer
from orchestrator.process.link_wall import Side, show_names, wall_off
from orchestrator.process.scripts import MOUNT_NAMESPACE, let_go_of_disks
from tests.hostile.conftest import AS_STRANGER, STRANGER
from tests.processes import argv_of
from tests.whole.house import House, wait_until
from tests.whole.loop_disks import LoopDisks
from tests.whole.sshd import Sshd, sshd

pytestmark = [pytest.mark.root, pytest.mark.namespace]
__all__ = ["sshd"]
SECRET = "for root alone\n"

# Stands before rsync in the PATH: as rsync starts with a list of names, the owner has just exchanged her folder for a link. Of several that
# start at once one does it, and the others wait: none meets the link before it is its owner's.
_EXCHANGED = """#!/bin/sh
case "$*" in
  *{when}*)
    if mkdir {folder}/begun 2>/dev/null; then
      ln -s {secret} {folder}/link; chown -h {owner} {folder}/link
      mv {hers} {hers}.away; mv {folder}/link {hers}; touch {folder}/exchanged
    fi
    until [ -e {folder}/exchanged ]; do sleep 0.01; done ;;
esac
exec {rsync} "$@"
"""


@pytest.fixture
def secret(house: House) -> Path:
    """A folder that root alone may enter, with the names of hers."""
    folder = house.folder / "secret"
    (folder / "sub").mkdir(mode=0o700, parents=True)
    folder.chmod(0o700)
    for name in ("one", "two"):
        (folder / "sub" / name).write_text(SECRET)
    return folder


def exchange(house: House, secret: Path, when: str, *, owner: int = 0) -> None:
    """From now on an rsync with that word finds her folder exchanged for a link of that user."""
    programs = house.folder / "programs"
    programs.mkdir()
    rsync = shutil.which("rsync")
    hers = house.source / "w/hers"
    text = _EXCHANGED.format(when=when, hers=hers, secret=secret, folder=house.folder, rsync=rsync, owner=owner)
    (programs / "rsync").write_text(text)
    (programs / "rsync").chmod(0o755)
    house.environment["PATH"] = f"{programs}:{os.environ['PATH']}"


def fill(house: House) -> None:
    """A folder of hers in the middle of the paths, beside another as large."""
    for folder in ("w/hers/sub", "w/other/sub"):
        for name in ("one", "two"):
            house.write(f"{folder}/{name}", os.urandom(1000))
    for path in (house.source / "w/hers").rglob("*"):
        os.chown(path, STRANGER, STRANGER)


def leaked(house: House) -> list[Path]:
    """The copied files that hold what is root's alone."""
    files = (path for path in house.target.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in files if SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize("where", ["here", "pull", "push", "gate"])
def test_a_parallel_copy_follows_no_link_in_the_middle_of_a_path(
    house: House, secret: Path, sshd: Sshd, where: str
) -> None:
    """Its list names what lies below her folder; with a far source the far half opens it, or a gate that may read both."""
    fill(house)
    if where == "gate":
        key, keys = (sshd.folder / "user_key.pub").read_text(), sshd.folder / "authorized_keys"
        keys.unlink()
        words = ("setup", "gate", "vault", "--reads", str(house.folder), "--key", key, "--into", str(keys))
        assert house.call(*words).code == 0
    exchange(house, secret, "--files-from=-")
    url = {"here": {}, "push": {"target": sshd.url(house.target)}}.get(where, {"source": sshd.url(house.source)})
    house.job(rsync={"parallel": 2}, pipe=sshd.pipe if url else {}, **url)
    ran = house.run()
    assert (house.folder / "exchanged").exists(), ran
    assert leaked(house) == [], ran


@pytest.mark.parametrize("where", ["here", "pull"])
def test_a_link_of_her_own_leads_no_rsync_on_without_access_lists(
    house: House, secret: Path, sshd: Sshd, where: str
) -> None:
    """As rsync 3.5 follows root's links by itself, it looks at the owner of each."""
    fill(house)
    exchange(house, secret, "--files-from=-", owner=STRANGER)
    far = {"source": sshd.url(house.source), "pipe": sshd.pipe} if where == "pull" else {}
    house.job(rsync={"parallel": 2, "acls": False, "xattrs": False}, **far)
    ran = house.run()
    assert (house.folder / "exchanged").exists(), ran
    assert leaked(house) == [], ran


def test_files_that_are_looked_at_again_are_read_through_no_link(house: House, secret: Path) -> None:
    """Those with other metadata are named in a list, after the copy."""
    fill(house)
    house.run(house.job())
    (house.source / "w/hers/sub/one").chmod(0o604)
    exchange(house, secret, "--ignore-missing-args")
    ran = house.run()
    assert (house.folder / "exchanged").exists(), ran
    assert leaked(house) == [], ran


def start(*words: str | Path) -> PipelineResult:
    """Start rsync as a step does."""
    argv = ("rsync", *map(str, words))
    return Writer(log=lambda _: None).stream(Pipeline(stages=(Command(argv=argv, effect=Effect.WRITES),)))


def tree(folder: Path, secret: Path) -> Path:
    """A tree with links out of it, and with one in it: even rsync -L finds nothing behind them."""
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/plain").write_text("plain")
    (folder / "sub/folder").symlink_to(secret)
    (folder / "sub/file").symlink_to(secret / "sub/one")
    (folder / "sub/near").symlink_to("plain")
    return folder


def test_not_even_an_rsync_that_would_follows_a_link(house: House, secret: Path) -> None:
    """rsync before 3.5 follows some by mistake; this one is asked to. It says the tree's own path of each."""
    source, into = tree(house.source / "a b", secret), house.folder / "into"
    ended = start("-rL", "--", f"{source}/", f"{into}/")
    assert sorted(path.name for path in into.rglob("*")) == ["plain", "sub"], ended
    assert ended.exits == (23,)
    assert f'"{source}/sub/file"' in ended.last_output[0], ended
    assert "/proc/" not in ended.last_output[0]
    outside = subprocess.run(["rsync", "-rL", "--", f"{source}/", f"{into}/"], check=True)
    assert outside.returncode == 0
    assert (into / "sub/folder/sub/one").read_text() == SECRET, "the links lead somewhere else than here"


ROOT = Path(__file__).parents[2]


@pytest.fixture
def device(tmp_path: Path) -> Iterator[str]:
    """A disk with an empty filesystem."""
    (tmp_path / "drawer").mkdir()
    drawer = LoopDisks(tmp_path / "drawer")
    device = drawer.blank("red")
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    yield device
    drawer.close()


def test_what_is_mounted_below_is_copied_and_follows_no_link_either(house: House, secret: Path, device: str) -> None:
    """Its own filesystem, with -x only the folder; and the mount is not held any longer than rsync runs."""
    below = house.source / "below"
    below.mkdir()
    subprocess.run(["mount", device, below], check=True)
    try:
        tree(below / "tree", secret)
        for word, expected in (("-rL", True), ("-rLx", False)):
            into = house.folder / f"into{word}"
            start(word, "--", f"{house.source}/", f"{into}/")
            assert (into / "below/tree/sub/plain").exists() is expected
            assert not (into / "below/tree/sub/file").exists()
            assert not (into / "below/tree/sub/folder").exists()
    finally:
        subprocess.run(["umount", below], check=True)
    wait_until(lambda: is_free(device))


def is_free(device: str) -> bool:
    """Return whether nobody has it mounted. Another rsync that has just begun may, for a moment."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    except OSError:
        return False
    return True


@pytest.fixture
def _unmounts_stay_here() -> Iterator[None]:
    """A machine without systemd: no mount is shared, so an unmount does not come through to copies of the mounts."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    yield
    subprocess.run(["mount", "--make-rshared", "/"], check=True)


@pytest.mark.usefixtures("_unmounts_stay_here")
@pytest.mark.parametrize("below", ["/run", "a folder of anybody"])
@pytest.mark.parametrize(("tree", "free"), [("elsewhere", True), ("disk", False)])
def test_only_the_disk_that_is_copied_is_in_use(
    house: House, device: str, tree: str, below: str, *, free: bool
) -> None:
    """A long copy keeps nobody from letting go of another disk, also where unmounts do not come through to it."""
    disk = house.folder / below / f"poolferry-test-{os.getpid()}"
    disk.mkdir(parents=True)
    house.write(house.folder / "elsewhere/x")
    source = {"elsewhere": house.folder / "elsewhere", "disk": disk}[tree]
    copy = Command(argv=("rsync", "-r", "--", f"{source}/", f"{house.target}/"), effect=Effect.WRITES)
    waits = [word if word != "rsync" else "sleep" for word in wall_off(copy).argv]
    cut = waits.index("sleep")
    subprocess.run(["mount", "--make-private", device, disk], check=True)
    try:
        sleeper = subprocess.Popen([*waits[: cut + 1], "60"])
        wait_until(lambda: argv_of(sleeper.pid)[:1] == ["sleep"])
    finally:
        subprocess.run(["umount", disk], check=True)
    try:
        if free:
            wait_until(lambda: is_free(device))
        assert sleeper.poll() is None
        assert free or not is_free(device)
    finally:
        sleeper.kill()
        sleeper.wait()
        disk.rmdir()  # not before: the kernel unmounts it then, wherever it is mounted


ENTER = {
    "a gate's rsync": "from orchestrator.process.confine import close_links; assert close_links(sys.argv[1:]) is not None",
    "a gate's folder": "from orchestrator.process.confine import enter_own_mounts; enter_own_mounts(sys.argv[1:])",
}


def require_in_use(argv: list[str], disk: Path, device: str, *, free: bool, env: dict[str, str] | None = None) -> None:
    """Start a program that prints a line and then reads, unmount the disk meanwhile, and check whether its device is free before it ends."""
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", env=env) as held:
        assert held.stdout is not None
        assert held.stdout.readline() == b"\n"
        subprocess.run(["umount", disk], check=True)
        if free:
            wait_until(lambda: is_free(device))
        assert free or not is_free(device)
        held.communicate(b"")
    wait_until(lambda: is_free(device))


@pytest.mark.usefixtures("_unmounts_stay_here")
@pytest.mark.parametrize("enter", ENTER)
@pytest.mark.parametrize(("tree", "free"), [("elsewhere", True), ("disk", False), ("above", False)])
def test_a_gate_keeps_no_other_disk_in_use(house: House, device: str, tree: str, enter: str, *, free: bool) -> None:
    disk = house.folder / "above/disk"
    for each in (disk, house.folder / "elsewhere"):
        each.mkdir(parents=True)
    place = {"elsewhere": house.folder / "elsewhere", "disk": disk / "tree", "above": disk.parent}[tree]
    program = f"import sys; {ENTER[enter]}; print(flush=True); sys.stdin.read()"
    subprocess.run(["mount", device, disk], check=True)
    (disk / "tree").mkdir()
    argv = [sys.executable, "-c", program, f"--of={place}", str(place)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    require_in_use(argv, disk, device, free=free, env=env)


@pytest.mark.usefixtures("_unmounts_stay_here")
@pytest.mark.parametrize(("tree", "free"), [("elsewhere", True), ("di sk", False), ("above", False)])
def test_a_script_with_mounts_of_its_own_keeps_no_other_disk_in_use(
    house: House, device: str, tree: str, *, free: bool
) -> None:
    """Such as those that compare datasets, or look for kits: a disk that was unmounted meanwhile stayed in use until they ended."""
    disk = house.folder / "above/di sk"
    for each in (disk, house.folder / "elsewhere"):
        each.mkdir(parents=True)
    place = {"elsewhere": house.folder / "elsewhere", "di sk": disk / "tree", "above": disk.parent}[tree]
    text = f"{let_go_of_disks()}echo; exec cat"
    subprocess.run(["mount", device, disk], check=True)
    (disk / "tree").mkdir()
    argv = [*MOUNT_NAMESPACE, "sh", "-c", text, "script.sh", "tank/data@now", str(place)]
    require_in_use(argv, disk, device, free=free)


def test_a_whole_machine_is_copied_by_its_root(house: House, secret: Path) -> None:
    source, into = tree(house.source, secret), house.folder / "into"
    into.mkdir()
    names = house.folder / "names"
    names.write_text(f"{source}/sub\n/usr/bin/env\n")
    ended = start("-rL", f"--files-from={names}", "--", "/", f"{into}/")
    assert (into / f"{source}/sub/plain".lstrip("/")).read_text() == "plain", ended
    assert (into / "usr/bin/env").stat().st_size == os.stat("/usr/bin/env").st_size
    assert not (into / f"{source}/sub/file".lstrip("/")).exists()


def test_an_older_point_is_linked_to_in_one_mount(house: House) -> None:
    """Two mounts of one filesystem would make each link an error."""
    base, into = house.target / "points/old", house.target / "points/new"
    for folder in (house.source, base):
        (folder / "sub").mkdir(parents=True)
        (folder / "sub/file").write_text("same")
        os.utime(folder / "sub/file", (1, 1))
    ended = start("-a", f"--link-dest={base}", "--", f"{house.source}/", f"{into}/")
    assert ended.exits == (0,), ended
    assert (into / "sub/file").stat().st_ino == (base / "sub/file").stat().st_ino


@pytest.mark.parametrize(("owner", "followed"), [(0, True), (STRANGER, False)], ids=["root", "a stranger"])
def test_a_link_above_the_tree_counts_when_root_made_it(house: House, owner: int, *, followed: bool) -> None:
    house.write("sub/file", "x")
    way, into = house.folder / "way", house.folder / "into"
    way.mkdir()
    (way / "link").symlink_to("../source")
    os.lchown(way / "link", owner, owner)
    ended = start("-r", "--", f"{way}/link/sub/", f"{into}/")
    assert (into / "file").exists() is followed, ended
    assert ended.exits == ((0,) if followed else (23,)), ended
    if not followed:
        assert f'change_dir "{way}/link/sub" failed' in ended.last_output[0], ended


_WITHOUT_RIGHTS = {
    "a container": ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--"),
    "another user": AS_STRANGER,
}


@pytest.mark.parametrize("who", _WITHOUT_RIGHTS)
def test_who_may_make_no_mounts_copies_as_ever(house: House, secret: Path, who: str) -> None:
    """Nothing is closed then, but what the user may not read anyway; `check --system` says it."""
    source, into = tree(house.source, secret), house.folder / "into"
    into.mkdir(mode=0o777)
    into.chmod(0o777)
    walled = wall_off(Command(argv=("rsync", "-rL", "--", f"{source}/", f"{into}/"), effect=Effect.WRITES))
    ended = subprocess.run([*_WITHOUT_RIGHTS[who], *walled.argv], capture_output=True, text=True, check=False)
    assert (into / "sub/plain").read_text() == "plain", ended
    assert (into / "sub/near").read_text() == "plain", ended
    assert ended.returncode == (0 if who == "a container" else 23), ended
    assert b"/proc/" not in show_names(ended.stderr.encode(), walled.names)


def test_a_far_half_without_perl_is_started_all_the_same(house: House) -> None:
    """A small machine with a busybox, say: its folders are opened by their paths."""
    house.write("sub/file", "x")
    (house.folder / "programs").mkdir()
    for program in ("sh", "rsync", "id"):
        (house.folder / "programs" / program).symlink_to(str(shutil.which(program)))
    rsh = house.folder / "rsh"
    rsh.write_text(f'#!/bin/sh\nshift\nPATH={house.folder}/programs exec sh -c "$*"\n')
    rsh.chmod(0o755)
    for number, ends in enumerate(((f"box:{house.source}/", "{into}/"), (f"{house.source}/", "box:{into}/"))):
        into = house.folder / f"into{number}"
        into.mkdir()
        ended = start("-r", "-e", rsh, "--", *(end.format(into=into) for end in ends))
        assert ended.exits == (0,), ended
        assert (into / "sub/file").read_text() == "x"
        assert ended.links_lead == {Side.THERE}


def test_a_run_without_the_wall_says_so_in_its_record(house: House) -> None:
    """Once a run, as a line of its record and no warning: who cannot have it would be warned every night."""
    house.job()
    says = "rsync ran here without the wall against links"
    for number, before in enumerate((_WITHOUT_RIGHTS["a container"], ())):
        house.write("sub/file", f"other words {number}")
        ended = house.call("run", "photos", before=before)
        assert ended.code == 0, ended
        shown = json.dumps(house.call("show", "last", "--json").value)
        assert (shown.count(says), '"warnings": []' in shown) == (1 if before else 0, True), shown


@pytest.mark.parametrize(
    ("who", "seen"), [((), "closed"), (_WITHOUT_RIGHTS["a container"], "open"), (AS_STRANGER, "user")], ids=str
)
def test_it_is_seen_where_links_are_closed(who: tuple[str, ...], seen: str) -> None:
    ended = subprocess.run([*who, *survey_links_command(None).argv], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == seen


def test_the_end_of_rsync_is_its_own(house: House) -> None:
    """Exit statuses, signals and words pass as without the wall."""
    ended = start("-r", "--", f"{house.folder}/absent/", f"{house.target}/")
    assert ended.exits == (23,), ended
    assert f'change_dir "{house.folder}/absent" failed: No such file or directory' in ended.last_output[0]
    assert start("--nonsense", "--", f"{house.source}/", f"{house.target}/").exits == (1,)
