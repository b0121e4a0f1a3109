"""A key that only adds restore points to one folder: copies go as without it, and whoever holds the key harms no older point."""

import fcntl
import json
import os
import re
import shlex
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from orchestrator.history.arrivals import read_arrivals
from tests.hostile.adding_gate import ask, first_point, gate, receivers, script, send, speak, write_line
from tests.whole.damage import fill
from tests.whole.house import House, facts, kill, mounted, trees_equal, wait_until
from tests.whole.large_copy import AT_ONCE, in_the_middle, random_file
from tests.whole.sshd import Link, Sshd, link, sshd

pytestmark = [pytest.mark.slow, pytest.mark.namespace]
__all__ = ["link", "sshd"]


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param({}, id="plain"),
        pytest.param({"parallel": 3}, id="parallel", marks=pytest.mark.long),
        pytest.param({"checksum": True}, id="checksum", marks=pytest.mark.long),
        pytest.param({"excludes": ["*.tmp", "left-out"]}, id="excludes"),
    ],
)
@pytest.mark.sample(1)
def test_points_are_added_through_a_gate_as_without_it(house: House, sshd: Sshd, keys: dict[str, object]) -> None:
    fill(house.source)
    house.write("many/a", "one file")
    os.link(house.source / "many/a", house.source / "many/b")
    holes = house.write("many/holes")
    os.truncate(holes, 8 << 20)
    folder = gate(house, sshd)
    house.job(target=sshd.url(folder), pipe=sshd.pipe, rsync=keys, verify={"read-all-within": "30d"})
    assert (first := house.run()).outcome == "done", first
    assert house.run().outcome == "nothing-to-do"
    assert (read := house.call("verify", "photos", "--due")).code == 0, read
    house.target = folder
    before = facts(house.point())
    house.write("plain", "changed")
    house.write("left-out", "now")
    house.write("new/deep/file", "new")
    os.unlink(house.source / "-dash")
    os.link(house.source / "many/a", house.source / "many/c")
    os.chmod(house.source / "many", 0o750)
    holes.chmod(0o600)
    assert (third := house.run()).outcome == "done", third
    assert facts(house.point(0)) == before
    if "excludes" in keys:
        (house.source / "left-out").unlink()
        os.utime(house.source, ns=(0, house.point().stat().st_mtime_ns))
    assert trees_equal(house.source, house.point())
    assert len({(house.point() / "many" / name).stat().st_ino for name in "abc"}) == 1
    assert (house.point() / "many/holes").stat().st_blocks < 100
    if "excludes" in keys:
        house.job(target=sshd.url(folder), pipe=sshd.pipe, rsync={"excludes": ["many"]})
        assert (fourth := house.run()).outcome == "done", fourth
        assert not (house.point() / "many").exists(), "the gate linked what is excluded by now"
        assert (house.point(-2) / "many/a").exists()
    for words in (("verify", "photos", "--source"), ("drill", "photos")):
        assert (told := house.call(*words)).code == 0, told
    checked = house.call("check", "--system")
    assert checked.code == 0, checked
    assert "append-only: tried to remove a point, and the gate laptop refused" in str(checked.value), checked
    came = {mark for series, mark in read_arrivals(str(house.state)) if series == str(folder)}
    points = [path for path in (folder / "points").iterdir() if path.is_dir() and not path.is_symlink()]
    assert came == {f"{path.name}.{path.stat().st_ino}" for path in points}


def test_several_folders_are_added_through_a_gate(house: House, sshd: Sshd) -> None:
    folders = [house.folder / name for name in ("etc", "srv/www")]
    for folder in folders:
        fill(folder)
    house.target = gate(house, sshd)
    house.job(sources=[str(folder) for folder in folders], source=None, target=sshd.url(house.target), pipe=sshd.pipe)
    assert (first := house.run()).outcome == "done", first
    assert house.run().outcome == "nothing-to-do"
    house.write(folders[0] / "plain", "changed")
    (folders[1] / "-dash").unlink()
    assert (third := house.run()).outcome == "done", third
    copies = [house.point() / str(folder)[1:] for folder in folders]
    assert [facts(copy) for copy in copies] == [facts(folder) for folder in folders]
    house.job(sources=[str(folders[0])], source=None, target=sshd.url(house.target), pipe=sshd.pipe)
    assert (fewer := house.run()).outcome == "done", fewer
    assert not (house.point() / str(folders[1])[1:]).exists(), "the gate linked a folder that the job names no more"
    work = house.target / ".poolferry/work" / str(folders[1])[1:]  # as a run leaves it that was cut before
    work.mkdir(parents=True)
    house.write(folders[0] / "plain", "again")
    assert (cut := house.run()).outcome == "done", cut
    assert not (house.point() / str(folders[1])[1:]).exists()


@pytest.mark.parametrize("struck", ["link", "receiver"])
@pytest.mark.sample(1)
def test_a_cut_copy_goes_on_through_a_gate(house: House, sshd: Sshd, link: Link, struck: str) -> None:
    size = random_file(house.source / "disk.img", 120_000_000).stat().st_size
    house.target = gate(house, sshd)
    sshd.through = link.port
    house.job(target=sshd.url(house.target), pipe={**sshd.pipe, "rate-limit": "60M"}, retry=AT_ONCE)
    run = house.start()
    in_the_middle(house, size)
    if struck == "link":
        link.cut()
    else:
        for pid in receivers(sshd):
            kill(pid)
    ended = house.ended(run)
    assert (ended.outcome, ended["resumed"]) == ("done", True), ended
    assert ended["moved_bytes"] < 1.2 * size
    assert trees_equal(house.source, house.point())


def test_a_run_that_was_cut_after_the_links_goes_on(house: House, sshd: Sshd) -> None:
    folder = first_point(house, sshd)
    before, name = facts(house.point()), house.points()[0]
    assert script(sshd, "prepare.sh", str(folder), "photos", "1", "work").returncode == 0
    assert ask(sshd, "link-unchanged", str(folder), name).returncode == 0
    work = folder / ".poolferry/work"
    assert (work / "deep/other").samefile(house.point() / "deep/other")
    assert "parted from it" in send(sshd, house.source, str(work), "-a").stderr.decode()
    os.chmod(house.source / "deep/other", 0o600)
    house.write("new", "file")
    assert (ended := house.run()).outcome == "done", ended
    assert trees_equal(house.source, house.point())
    assert facts(house.point(0)) == before


def test_a_gate_says_how_many_entries_it_has_linked(house: House, sshd: Sshd) -> None:
    """Now and then, one number a line, as a host's own programs do; it was silent for as long as the links took."""
    for number in range(2100):
        house.write(f"many/{number}", "")
    folder = first_point(house, sshd)
    speak(sshd, "import orchestrator.app.gate_folder as gate\ngate._TOLD = 0.0")
    assert script(sshd, "prepare.sh", str(folder), "photos", "1", "work").returncode == 0
    linked = ask(sshd, "link-unchanged", str(folder), house.points()[0])
    counts = [int(line) for line in linked.stdout.splitlines()]
    assert (linked.returncode, len(counts)) == (0, 2), linked
    assert 900 < counts[0] < counts[1] <= 2102, counts
    assert len(os.listdir(folder / ".poolferry/work/many")) == 2100


@pytest.mark.parametrize("asked", ["link-unchanged {folder} {point}", "store.sh {folder}/.poolferry/manifest.gz 9"])
def test_what_never_comes_holds_up_no_other_request(house: House, sshd: Sshd, asked: str) -> None:
    """As of a sender that lost its power: sshd would notice after two hours, and each run until then be refused."""
    folder = first_point(house, sshd)
    assert script(sshd, "prepare.sh", str(folder), "photos", "1", "work").returncode == 0
    speak(sshd, "import orchestrator.app.gate_folder as gate\ngate._SILENCE = 0.5")
    name, *values = asked.format(folder=folder, point=house.points()[0]).split()
    line = shlex.join(("sh", "-c", "", name, *values) if name.endswith(".sh") else (name, *values))
    argv = ["ssh", "-F", str(sshd.folder / "client"), "-p", str(sshd.port), f"{sshd.user}@127.0.0.1", line]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as silent:
        assert silent.stdin is not None
        assert silent.stderr is not None
        silent.stdin.write("./file\0")
        silent.stdin.flush()
        assert "watchdog timeout" in silent.stderr.read()
        assert silent.wait() != 0
        assert (ended := house.run()).outcome == "nothing-to-do", ended


def test_a_copy_that_differs_in_the_end_is_parted_copied_again_and_linked(house: House, sshd: Sshd) -> None:
    """Two names share a file no more: rsync takes both for unchanged, and the look at the source after the copy finds it."""
    os.link(house.write("one", "shared"), house.source / "two")
    first_point(house, sshd)
    before, seen = facts(house.point()), (house.source / "one").stat()
    (house.source / "two").unlink()
    house.write("two", "shared")
    os.utime(house.source / "two", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    house.write("new", "file")
    time.sleep(1.1)  # what changed before a run is no change in its middle
    assert (ended := house.run()).outcome == "done", ended
    assert "that are not yet as at the source" in ended.errors, ended
    assert trees_equal(house.source, house.point())
    assert not (house.point() / "one").samefile(house.point() / "two")
    assert (house.point() / "deep/other").samefile(house.point(0) / "deep/other")
    assert facts(house.point(0)) == before


REQUESTS = (
    "remove.sh {root} {name}", "mend-point.sh {root} {name} {name}", "publish.sh {root} {name} .poolferry/manifest.gz", "true",
    "publish.sh {root} 2099-01-01T000000Z points/{name}.manifest.gz", "store.sh {root}/points/{name}.manifest.gz", "rm -rf {root}",
    "store.sh {root}/.poolferry/linked", "store.sh {elsewhere}/new", "discard-note.sh {root}/points/{name}.manifest.gz",
    "take-up.sh {root}/.poolferry/work ../../points/{name} file '' 0", "discard.sh {root}/.poolferry/work ../../points/{name} file",
    "unshare-tree.sh {root}/points/{name}", "sweep.sh {root}/points/{name} ''", "cat -- {elsewhere}/secret", "find {elsewhere}/. -printf x",
    "prepare.sh {elsewhere} photos 1 work", "link-unchanged {root} ../elsewhere", "name-latest.sh {root} ../elsewhere",
    "close-folders.sh {root} '' .", "in-tree.sh {root} work sh", "hello.sh", "hello.sh []", "zfs list", "rsync --server -le.L . {root}/",
    "rsync --server -le.L . {root}/points/{name}/", "rsync --server -le.L --inplace . {root}/.poolferry/work/",
    "rsync --server -le.L --link-dest {root}/points/{name} . {root}/.poolferry/work/",
    "rsync --server -le.L --temp-dir {elsewhere} . {root}/.poolferry/work/", "rsync --server --sender -le.L . {elsewhere}/",
)  # fmt: skip


def test_a_hostile_client_changes_no_point_and_reads_nothing_else(house: House, sshd: Sshd) -> None:
    folder, elsewhere = first_point(house, sshd), house.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "secret").write_text("the secret of another folder")
    name = house.points()[0]
    before = facts(folder / "points"), facts(elsewhere)
    for request in REQUESTS:
        line = request.format(root=folder, name=name, elsewhere=elsewhere)
        words = shlex.split(line)
        answer = script(sshd, *words) if words[0].endswith(".sh") else ask(sshd, *words)
        assert b"poolferry gate laptop: refused: " in answer.stderr, (request, answer)
        assert answer.returncode == 126, (request, answer)
        assert b"secret" not in answer.stdout
    assert (facts(folder / "points"), facts(elsewhere)) == before


def test_a_hostile_copy_is_led_nowhere(house: House, sshd: Sshd, tmp_path: Path) -> None:
    """Links that it sends lead it neither to a point nor elsewhere, and what it sends of a point's names changes none of it."""
    folder, elsewhere = first_point(house, sshd), house.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("the secret of another folder")
    name, work = house.points()[0], folder / ".poolferry/work"
    before = facts(folder / "points"), facts(elsewhere)
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    (hostile / "point").symlink_to(f"../../points/{name}")
    (hostile / "out").symlink_to(elsewhere)
    assert script(sshd, "prepare.sh", str(folder), "photos", "1", "work").returncode == 0
    assert send(sshd, hostile, str(work), "-a").returncode == 0
    assert (work / "out").is_symlink()
    changed = tmp_path / "changed"
    changed.mkdir()
    (changed / "file").write_text("changed")
    (changed / "file").chmod(0o777)
    for below in ("point", "out", "point/deep"):
        assert send(sshd, changed, f"{work}/{below}", "-a").returncode != 0
        assert send(sshd, changed, f"{work}/{below}", "-a", "--append").returncode != 0
    names = b"./point/file\0./out/file\0./../../elsewhere/file\0"
    sums = script(sshd, "sums.sh", str(work), stdin=names)
    assert b"secret" not in sums.stdout + sums.stderr
    dug = script(
        sshd, "dig-holes.sh", f"{folder}/points/{name}", str(work), stdin=b"-delete\0-fprintf\0/x\0./point/file\0"
    )
    assert dug.returncode == 0
    assert (facts(folder / "points"), facts(elsewhere)) == before
    again = script(sshd, "publish.sh", str(folder), name, ".poolferry/manifest.gz")
    assert b"is there already" in again.stderr
    assert (ended := house.run()).outcome in ("done", "nothing-to-do"), ended


def test_a_copy_that_still_runs_can_reach_no_point_that_is_made_of_its_tree(house: House, sshd: Sshd) -> None:
    folder = first_point(house, sshd)
    name = house.points()[0]
    assert script(sshd, "prepare.sh", str(folder), "photos", "1", "work").returncode == 0
    client = ("ssh", "-F", str(sshd.folder / "client"), "-p", str(sshd.port), f"{sshd.user}@127.0.0.1")
    server = ("rsync", "--server", "-re.LsfxCIvu", ".", f"{folder}/.poolferry/work/")
    with subprocess.Popen([*client, *server], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as waits:
        assert waits.stdin
        assert waits.stdout
        assert waits.stdout.read(1)  # rsync's greeting: it is in the work tree
        busy = script(sshd, "prepare.sh", str(folder), "photos", "0", "work")
        assert (busy.returncode, b"refused: busy: " in busy.stderr) == (126, True), busy
        waits.stdin.close()
    assert ask(sshd, "link-unchanged", str(folder), name).returncode == 0


def test_no_key_fills_the_disk(house: House, sshd: Sshd) -> None:
    """A copy that would leave too little free is ended in its middle, and goes on once it may; with too little free none begins."""
    size = random_file(house.source / "disk.img", 90_000_000).stat().st_size
    place = house.folder / "far"
    with mounted(place, "size=128m"):
        house.target = gate(house, sshd, "--keep-free", "64M")
        (file,) = house.folder.rglob("laptop.toml")
        house.job(target=sshd.url(place), pipe={**sshd.pipe, "rate-limit": "40M"})
        full = house.run()
        assert (full.outcome, "lets no more in" in full["why"]) == ("failed", True), full
        assert "keep-free holds 64.0 MiB back" in full["why"], full
        free = shutil.disk_usage(place).free
        assert 50 << 20 < free < 66 << 20, "it was ended too late, or too early"
        wait_until(lambda: not receivers(sshd))
        early = house.run()
        assert (early.outcome, "lets no more in" in early["why"]) == ("failed", True), early
        assert free - shutil.disk_usage(place).free < 1 << 20
        file.write_text(file.read_text().replace("64M", "8M"))
        assert (ended := house.run()).outcome == "done", ended
        assert ended["moved_bytes"] < 0.7 * size, ended
        assert trees_equal(house.source, house.point())


def test_full_disks_of_the_gate_cost_no_point(house: House, sshd: Sshd) -> None:
    """A full one of its points stops a run, which goes on once there is space; of its state, where arrivals are recorded, stops none."""
    place, state = house.folder / "far", house.folder / "gate-state"
    house.write("small", "content")
    with mounted(place, "size=48m"), mounted(state, "size=64k"):
        house.target = gate(house, sshd)
        line = (sshd.folder / "authorized_keys").read_text()
        (sshd.folder / "authorized_keys").write_text(line.replace(f"--state {house.state}", f"--state {state}"))
        (state / "fills").write_bytes(b"x" * 65536)
        house.job(target=sshd.url(place), pipe=sshd.pipe)
        assert (first := house.run()).outcome == "done", first
        before = facts(house.point())
        size = random_file(house.source / "disk.img", 60_000_000).stat().st_size
        full = house.run()
        assert (full.outcome, "no space" in full["why"]) == ("failed", True), full
        assert facts(house.point()) == before
        subprocess.run(["mount", "-o", "remount,size=128m", str(place)], check=True)
        assert (ended := house.run()).outcome == "done", ended
        assert ended["moved_bytes"] < 0.7 * size, ended
        assert trees_equal(house.source, house.point())
        assert facts(house.point(0)) == before
        assert not list(state.glob("arrivals/*")) or not any(path.stat().st_size for path in state.glob("arrivals/*"))


@pytest.mark.long
def test_a_hundred_requests_at_once_wait_or_are_refused(house: House, tmp_path: Path) -> None:
    server = Sshd(tmp_path / "wide", more="MaxStartups 200")
    server.start()
    try:
        folder = first_point(house, server)
        (file,) = house.folder.rglob("laptop.toml")
        file.write_text(file.read_text() + "connections = 20\n")
        line = shlex.join(("sh", "-c", "id", "prepare.sh", str(folder), "photos", "300", "work"))
        argv = ["ssh", "-F", str(server.folder / "client"), "-p", str(server.port), f"{server.user}@127.0.0.1", line]
        with (folder / ".poolferry/adding").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)  # as a copy holds it that goes on
            asked = [subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(100)]
            wait_until(lambda: sum(one.poll() is not None for one in asked) == 80, 120, pause=0.1)
        said = [(one.communicate(timeout=60)[1], one.returncode) for one in asked]
    finally:
        server.stop()
    assert sum(code == 0 for _, code in said) == 20
    assert all(b"busy: 20 requests of this key may be answered at once" in words for words, code in said if code), said


def test_a_mirror_does_not_pass(house: House, sshd: Sshd) -> None:
    house.write("file", "content")
    house.job(target=sshd.url(gate(house, sshd)), pipe=sshd.pipe, rsync={"points": False})
    refused = house.run()
    assert (refused.outcome, "only lets restore points be added" in refused["why"]) == ("refused", True), refused


FORGETFUL = """import orchestrator.trees.linked_tree as tree
link = tree._link
tree._link = lambda name, *pair, over: 0 if name.startswith("other") else link(name, *pair, over=over)
"""
CARELESS = "import orchestrator.app.gate_folder as gate\nread = gate._read_names\ngate._read_names = lambda: read() and frozenset()\n"


@pytest.mark.parametrize(
    ("fault", "keys", "told"),
    [
        (FORGETFUL, {"excludes": ["*.tmp"]}, ("lacks 2 entries of the source: deep/other, deep/other\\xff\\n ",)),
        (CARELESS, {}, ("holds 2 entries that the source has not: gone, gone/deep",)),
    ],
    ids=["forgetful", "careless"],
)
@pytest.mark.sample(1)
def test_no_point_is_made_where_the_gate_links_wrongly(
    house: House, sshd: Sshd, fault: str, keys: dict[str, object], told: tuple[str, ...]
) -> None:
    """The fault is in the gate's own link step: the run names it, and the next one, of a gate without it, mends."""
    for path in ("deep/other\udcff\n ", "deep/some.tmp", "gone/deep", "stays"):
        house.write(path, "old")
    first_point(house, sshd)
    house.job(target=sshd.url(house.target), pipe=sshd.pipe, rsync=keys, retry={"attempts": 1})
    time.sleep(1.1)  # what changes in the middle of a run is no lack
    shutil.rmtree(house.source / "gone")
    house.write("new", "file")
    before, line = house.points(), (sshd.folder / "authorized_keys").read_text()
    time.sleep(1.1)
    speak(sshd, fault)
    failed = house.run()
    assert failed.outcome == "failed", failed
    assert all(words in failed["why"] for words in told), failed
    assert house.points() == before
    write_line(sshd, line)
    assert (mended := house.follow(failed["hint"])).outcome == "done", mended
    assert len(house.points()) == len(before) + 1
    wanted = facts(house.source)
    if keys:
        del wanted[b"/deep/some.tmp"]
    assert facts(house.point()) == wanted


def test_no_first_point_is_made_without_a_name_of_the_source(house: House, sshd: Sshd) -> None:
    """The gate links nothing then, and rsync counts regular files alone: a link and an empty folder that get lost are seen by their names."""
    house.write("file", "content")
    (house.source / "link").symlink_to("file")
    (house.source / "empty").mkdir()
    house.target = gate(house, sshd)
    house.job(target=sshd.url(house.target), pipe=sshd.pipe)
    line, work = (sshd.folder / "authorized_keys").read_text(), house.target / ".poolferry/work"
    loses = f"[remove(path) for path, remove in (({str(work / 'link')!r}, os.unlink), ({str(work / 'empty')!r}, os.rmdir)) if os.path.lexists(path)]"
    speak(
        sshd,
        f"import os\nimport orchestrator.app.gate as gate\nread = gate._read\ngate._read = lambda *asked: {loses} and None or read(*asked)",
    )
    failed = house.run()
    assert failed.outcome == "failed", failed
    assert "lacks 2 entries of the source: empty, link" in failed["why"], failed
    assert house.points() == []
    write_line(sshd, line)
    assert (mended := house.follow(failed["hint"])).outcome == "done", mended
    assert trees_equal(house.source, house.point())


def test_what_the_source_changes_in_the_middle_is_no_lack(house: House, sshd: Sshd) -> None:
    """The source gives a folder away and takes one in, with all in them, in the very moment of the links."""
    for path in ("away/one", "deep/gone", "stays"):
        house.write(path, "old")
    comes = house.write(house.folder / "comes/.dot", "old").parent
    first_point(house, sshd)
    house.write("new", "file")
    time.sleep(1.1)
    moves = f"os.rename({str(comes)!r}, {str(house.source / 'came')!r}); os.rename({str(house.source / 'away')!r}, {str(comes)!r})"
    unlinks = f"os.unlink({str(house.source / 'deep/gone')!r})"
    both = f"read = gate._read_names\ndef names():\n    {moves}; {unlinks}\n    return read()\n"
    line = (sshd.folder / "authorized_keys").read_text()
    speak(sshd, f"import os\nimport orchestrator.app.gate_folder as gate\n{both}gate._read_names = names")
    assert (done := house.run()).outcome == "done", done
    assert done["attempts"] == 1, done
    assert (comes / "one").exists()
    write_line(sshd, line)
    assert (second := house.run()).outcome == "done", second
    assert trees_equal(house.source, house.point())


OLD = "import orchestrator.app.gate as gate\ngate.HELLO = ''"  # the first version had no hello
NEWER = "import orchestrator.domain.gate as gate\ngate.PROTOCOLS = (7, 8)"


def test_a_gate_of_another_version_says_which_side_is_to_be_upgraded(house: House, sshd: Sshd) -> None:
    first_point(house, sshd)
    line = (sshd.folder / "authorized_keys").read_text()
    speak(sshd, OLD)
    old = house.run()
    assert (old.outcome, "is older than this poolferry" in old["why"]) == ("failed", True), old
    assert "upgrade poolferry on" in old["hint"], old
    write_line(sshd, line)
    speak(sshd, NEWER)
    newer = house.run()
    assert newer.outcome == "failed", newer
    assert "upgrade poolferry on the one that asks" in newer["why"] + newer["hint"] + str(newer["evidence"]), newer
    write_line(sshd, line)
    other = script(sshd, "hello.sh", '{"poolferry": "9.0", "protocols": [7, 8], "news": {"a": 1}}')
    assert b"upgrade poolferry on the machine of this gate" in other.stderr, other
    both = script(sshd, "hello.sh", '{"poolferry": "9.0", "protocols": [2, 3], "news": {"a": 1}}')
    assert both.stdout.startswith(b'{"poolferry": '), both


def test_an_older_gate_is_read_from_as_before(house: House, sshd: Sshd) -> None:
    house.write("file", "content")
    key, keys = (sshd.folder / "user_key.pub").read_text(), sshd.folder / "authorized_keys"
    keys.unlink()
    done = house.call("setup", "gate", "vault", "--reads", str(house.source), "--key", key, "--into", str(keys))
    assert done.code == 0, done
    speak(sshd, OLD)
    house.job(source=sshd.url(house.source), pipe=sshd.pipe)
    assert (ended := house.run()).outcome == "done", ended


def test_each_run_takes_one_login_a_first_copy_sixteen_requests_and_nothing_to_do_three(
    house: House, tmp_path: Path
) -> None:
    server = Sshd(tmp_path / "loud", more="LogLevel VERBOSE")
    server.start()
    try:
        first_point(house, server)
        log = tmp_path / "loud/log"
        before = log.read_text()
        assert (before.count("Accepted publickey"), before.count("Starting session: ")) == (1, 16), before
        assert house.run().outcome == "nothing-to-do"
        said = log.read_text().removeprefix(before)
        assert (said.count("Accepted publickey"), said.count("Starting session: ")) == (1, 3), said
    finally:
        server.stop()


def typed(house: House, sshd: Sshd, home: Path, right: str, folder: Path) -> str:
    """Type the command of jobs/guarantees.md for a gate with this right, but for its folder; return what it names for the other machine."""
    page = (Path(__file__).parents[2] / "jobs/guarantees.md").read_text()
    (command,) = (line for line in page.splitlines() if re.match(rf"poolferry setup gate \w+ --{right} ", line))
    words = command.split()
    home.mkdir()
    (home / f"{words[3]}.pub").write_text((sshd.folder / "user_key.pub").read_text())
    program = home / "poolferry"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(house.argv())} "$@"\n')
    program.chmod(0o755)
    variables = {**house.environment, "HOME": str(home), "PATH": f"{home}:{os.environ['PATH']}"}
    line = command.replace(words[5], str(folder))
    done = subprocess.run(["sh", "-c", line], cwd=home, env=variables, capture_output=True, text=True, check=True)
    (sshd.folder / "authorized_keys").write_text((home / ".ssh/authorized_keys").read_text())
    return str(json.loads(done.stdout)["target" if right == "adds" else "source"])


def test_the_recipe_of_the_page(house: House, sshd: Sshd, tmp_path: Path) -> None:
    """A laptop pushes: the command as it stands; then the line that it prints for the other machine."""
    folder = house.folder / "laptop"
    told = typed(house, sshd, tmp_path / "server", "adds", folder)
    assert re.fullmatch(rf'path = "ssh://root@[^/]+{re.escape(str(folder))}"', told), told
    house.write("file", "content")
    house.target = folder
    house.job(target=sshd.url(folder), pipe=sshd.pipe)
    checked = house.call("check", "--system")
    assert "append-only: tried to remove a point, and the gate laptop refused" in str(checked.value), checked
    assert (ended := house.run()).outcome == "done", ended
    assert trees_equal(house.source, house.point())


def test_the_recipe_of_the_page_for_a_server_that_pulls(house: House, sshd: Sshd, tmp_path: Path) -> None:
    told = typed(house, sshd, tmp_path / "host", "reads", house.source)
    assert re.fullmatch(rf'source = "ssh://root@[^/]+{re.escape(str(house.source))}"', told), told
    by_hand = subprocess.run(
        ["ssh", "-F", str(sshd.folder / "client"), "-p", str(sshd.port), f"{sshd.user}@127.0.0.1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "refused: a login, where only single requests are answered" in by_hand.stderr, by_hand
    house.write("file", "content")
    house.job(source=sshd.url(house.source), pipe=sshd.pipe)
    checked = house.call("check", "--system")
    assert "goes through the gate vault: anything else was tried, and refused" in str(checked.value), checked
    assert (ended := house.run()).outcome == "done", ended
    assert trees_equal(house.source, house.point())
