"""A first copy of many small files: most are written before rsync does the rest, and all is as it was, also after a cut between the two."""

import os
import random
import shutil
import subprocess

import pytest

from tests.whole.house import House, Ran, facts, mounted, wait_until
from tests.whole.kills import only_ours, strike
from tests.whole.names import hostile_tree

pytestmark = pytest.mark.namespace  # nothing is written ahead without the wall against links
AHEAD = "write small files of"
MANY = 5_000  # more than `write_ahead.LEAST_AHEAD_OF_COPY`


def many_files(house: House, count: int = MANY) -> None:
    """Fill the source with small files, and with what is not written ahead."""
    for number in range(count):
        if not number % 500:
            (house.source / f"many {number // 500}").mkdir(parents=True)
        (house.source / f"many {number // 500}/{number}").write_bytes(b"%d" % number * 9)
    hostile_tree(house)
    house.write("odd/set", "set").chmod(0o6711)
    house.write("odd/attributes", "x")
    os.setxattr(house.source / "odd/attributes", "user.own", b"1")
    os.link(house.source / "odd/set", house.source / "many 1/second name")
    with open(house.source / "odd/holes", "wb") as file:
        file.truncate(3 << 20)


def ahead(ran: Ran) -> int:
    return sum(step["action"].startswith(AHEAD) for step in ran["steps"])


def before_names(house: House, does: str) -> None:
    """Let a shell do something before each rsync that is told the names of what is left."""
    programs = house.folder / "programs"
    programs.mkdir()
    (programs / "rsync").write_text(
        f'#!/bin/sh\ncase " $* " in *" --delete-missing-args "*) {does} ;; esac\nexec {shutil.which("rsync")} "$@"\n'
    )
    (programs / "rsync").chmod(0o755)
    house.environment["PATH"] = f"{programs}:{house.environment['PATH']}"


@pytest.mark.root
def test_a_cut_after_small_files_were_written_goes_on(house: House) -> None:
    """Both rsyncs stand before their first name; of the small files one is half of itself, and one is whole without its time, as a kill leaves them."""
    many_files(house)
    name = house.job(rsync={"parallel": 2})
    work, path = house.target / ".poolferry/work", house.environment["PATH"]
    begun = house.folder / "begun"
    before_names(house, f"touch {begun}; exec sleep 600")
    process = house.start(name)
    wait_until(begun.exists)
    strike(process, "all")
    house.ended(process)
    written = sum(len(names) for _, _, names in os.walk(work))
    assert written > MANY // 2
    house.environment["PATH"] = path
    (work / "many 3/1500").write_bytes(b"half")
    (work / "many 3/1501").write_bytes((house.source / "many 3/1501").read_bytes())
    again = house.run()
    assert (again.outcome, again["resumed"], ahead(again)) == ("done", True, 0), again
    assert facts(house.source) == facts(house.point())
    assert house.call("verify", "photos").outcome == "done"
    only_ours(house)


@pytest.mark.root
def test_small_files_are_written_ahead_and_all_is_as_it_was(house: House) -> None:
    many_files(house)
    ran = house.run(house.job(rsync={"parallel": 2}))
    assert (ran.outcome, ahead(ran), ran["warnings"]) == ("done", 2, []), ran
    assert facts(house.source) == facts(house.point())
    sizes = {each.stat().st_ino: each.stat().st_size for each in house.source.rglob("*") if each.is_file()}
    assert ran["moved_bytes"] <= sum(sizes.values()) + len("set")
    assert house.call("verify", "photos").outcome == "done"
    assert house.run().outcome == "nothing-to-do"


CHANGES = """cd "$SOURCE" && rm -f 'many 0/1' && mv 'many 9' moved && echo new >'many 2/new' && echo other >'many 2/1001' && chmod 640 'many 2/1002' &&
rm -r 'many 3' && echo file >'many 3' && rm 'many 4/2001' && mkdir 'many 4/2001' && echo in >'many 4/2001/in' && ln -sfn /etc 'many 5/2501' &&
chmod 700 'many 6' && touch -d 2001-01-01 'many 7/3501' && ln 'many 8/4001' 'many 8/second'"""


@pytest.mark.root
def test_a_source_that_changes_between_the_two_is_copied_soundly(house: House) -> None:
    """The point is whole, and of one moment for each file; the next run brings the rest."""
    many_files(house)
    (house.folder / "changes").write_text(CHANGES.replace("$SOURCE", str(house.source)))
    path = house.environment["PATH"]
    before_names(house, f"mv {house.folder}/changes {house.folder}/done && sh {house.folder}/done")
    ran = house.run(house.job())
    house.environment["PATH"] = path
    assert (ran.outcome, ahead(ran) > 0) == ("done", True), ran
    # Debian 12's rsync ends where a name that it is told has gone, and the next attempt does without.
    assert [each for each in ran["warnings"] if "a file vanished while it was copied" not in each] == [], ran
    assert (house.folder / "done").exists()
    point = house.point()
    assert house.call("verify", "photos").outcome == "done"
    made, now = facts(point), facts(house.source)
    changed = [path for path in {*made, *now} if made.get(path) != now.get(path)]
    assert not [path for path in changed if not path.startswith((b"/many ", b"/moved")) and path], changed
    assert not (point / "many 9").exists(), "a folder that has gone, of which nobody knows what it was like"
    assert (point / "many 2/1002").stat().st_mode & 0o777 in (0o644, 0o640)
    assert house.run().outcome in ("done", "nothing-to-do")
    assert facts(house.source) == facts(house.point())
    assert facts(point) == made
    assert house.run().outcome == "nothing-to-do"


@pytest.mark.root
def test_where_the_programs_give_up_rsync_copies_all(house: House) -> None:
    """A folder of another filesystem, of a job that crosses to such, is more than they can tell by name."""
    many_files(house)
    (house.source / "mounted").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(house.source / "mounted")], check=True)
    try:
        house.write("mounted/deep/file", "x")
        ran = house.run(house.job(rsync={"one_file_system": False}))
        assert (ran.outcome, ahead(ran) > 0, ran["warnings"]) == ("done", True, []), ran
        assert facts(house.source) == facts(house.point())
        assert house.call("verify", "photos").outcome == "done"
        assert house.run().outcome == "nothing-to-do"
    finally:
        subprocess.run(["umount", str(house.source / "mounted")], check=True)


@pytest.mark.root
@pytest.mark.parametrize("inherits", ["group", "access lists"])
def test_what_new_files_would_inherit_there_they_do_not_keep(house: House, inherits: str) -> None:
    """Of the folders at the target, and of the one that a restore fills. So few that two copies share the files of one folder, too."""
    many_files(house, 2_000)
    back = house.folder / "back"
    for folder in (house.target, back):
        folder.mkdir()
        os.chown(folder, 0, 4321)
        folder.chmod(0o2755)
        if inherits == "access lists":
            subprocess.run(["setfacl", "-d", "-m", "u:1234:rwx", str(folder)], check=True)
    ran = house.run(house.job(rsync={"parallel": 2}))
    assert (ran.outcome, ahead(ran), ran["warnings"]) == ("done", 2, []), ran
    assert facts(house.source) == facts(house.point())
    for lanes in (1, 2):
        house.job(rsync={"parallel": lanes})
        ran = house.call("restore", "run", "photos", "--to", str(back / f"{lanes}"))
        assert (ran.outcome, ahead(ran)) == ("done", lanes), ran
        assert facts(house.source) == facts(back / f"{lanes}")


@pytest.mark.root
def test_a_target_that_is_full_beside_the_programs_is_called_full(house: House) -> None:
    """Seen: that the source had grown, as "0 B were seen before", and another attempt."""
    for number in range(MANY):
        house.write(f"many/{number}", random.randbytes(8000))
    with mounted(house.target, "size=24m,mode=700"):
        ended = house.run(house.job(rsync={"parallel": 2}))
        assert (ended.outcome, ended["attempts"], ahead(ended)) == ("failed", 1, 2), ended
        assert "grew" not in "".join(ended["warnings"])
        assert "the target has no space left" in ended["why"]
        subprocess.run(["mount", "-o", "remount,size=100m", str(house.target)], check=True)
        again = house.run()
        assert (again.outcome, again["resumed"]) == ("done", True), again
        assert facts(house.source) == facts(house.point())
