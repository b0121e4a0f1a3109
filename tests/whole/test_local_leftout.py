"""Test that what could not be read makes a run incomplete, what went away while it was copied does not; either is named."""

import os
import random
import shutil
import signal

import pytest

from orchestrator.verify.manifest import read_manifest
from tests.whole.damage import WITHOUT_POWER
from tests.whole.house import House, Ran, facts, kill, rsyncs, wait_until
from tests.whole.kills import MIB, half_copied


def digests(house: House, which: int = -1) -> dict[bytes, str]:
    """The digests that a point's manifest promises."""
    return {
        entry.path: entry.digest for entry in read_manifest(f"{house.point(which)}.manifest.gz")[1] if entry.kind == "f"
    }


def weakly(house: House, *arguments: str) -> Ran:
    """A command by somebody who may not read everything."""
    return house.call(*arguments, before=WITHOUT_POWER)


@pytest.mark.root
def test_an_unreadable_file_is_named_and_missing(house: House) -> None:
    house.write("open", "x")
    house.write("folder/secret \xff\n", "y").chmod(0)
    house.write("folder/after", "z")
    house.job()
    ran = weakly(house, "run", "photos")
    assert (ran.code, ran.outcome) == (5, "incomplete"), ran
    assert len(ran["warnings"]) == 1
    assert "secret" in ran["warnings"][0]
    assert "Permission denied" in ran["warnings"][0]
    assert digests(house)["folder/secret \xff\n".encode()] == "!"
    assert (house.point() / "folder/after").read_text() == "z"
    verified = house.call("verify", "photos")
    assert (verified.code, verified["reading"]["counts"]["unproved"]) == (0, 1), verified
    shown = house.call("show", str(ran["run"]))
    assert "secret" in str(shown.value)
    again = house.run()
    assert (again.outcome, again["warnings"]) == ("done", [])
    assert facts(house.source) == facts(house.point())


@pytest.mark.root
def test_what_a_verification_cannot_read_at_the_source_is_judged_by_the_command_that_it_names(house: House) -> None:
    secret = house.write("folder/secret", "y")
    house.write("open", "x")
    assert house.run(house.job()).outcome == "done"
    secret.chmod(0)
    weak = weakly(house, "verify", "photos", "--source")
    assert (weak.code, weak.outcome) == (5, "incomplete"), weak
    assert "cannot be read at the source: folder/secret" in str(weak["warnings"])
    assert house.follow(weak["hint"]).outcome == "done", "as root"
    secret.chmod(0o644)
    assert weakly(house, "verify", "photos", "--source").outcome == "done"


@pytest.mark.root
def test_a_changed_file_that_became_unreadable_keeps_its_older_copy(house: House) -> None:
    house.write("file", "before")
    house.write("other", "x")
    house.run(house.job())
    house.write("file", "after, and longer").chmod(0)
    ran = weakly(house, "run", "photos")
    assert (ran.code, ran.outcome) == (5, "incomplete"), ran
    assert any("file" in warning for warning in ran["warnings"])
    assert (house.point(0) / "file").read_text() == "before"
    for name in house.points():
        assert house.call("verify", "photos", "--point", name).code == 0
    assert house.run().outcome == "done"
    assert facts(house.source) == facts(house.point())


@pytest.mark.root
@pytest.mark.parametrize("parallel_copies", [1, 2])
def test_many_unreadable_files_are_counted(house: House, parallel_copies: int) -> None:
    for number in range(60):
        house.write(f"{number % 4}/{number}", "x" * 1000).chmod(0 if number % 2 else 0o644)
    house.job(rsync={"parallel": parallel_copies})
    ran = weakly(house, "run", "photos")
    assert (ran.code, ran.outcome) == (5, "incomplete"), ran
    assert ran["why"].startswith("30 entries could not be read"), ran
    assert len(ran["evidence"]) == 30, ran
    assert parallel_copies == 2 or any("10 more" in warning for warning in ran["warnings"])
    assert sum(digest == "!" for digest in digests(house).values()) == 30
    assert house.call("verify", "photos")["reading"]["counts"]["unproved"] == 30


@pytest.mark.slow
def test_a_file_that_vanishes_while_it_is_copied(house: House) -> None:
    house.write("a big one first", random.randbytes(3 * MIB))
    for number in range(20):
        house.write(f"later/{number}", random.randbytes(1000))
    process = house.start(house.job(pipe={"rate_limit": "1M"}))
    wait_until(lambda: half_copied(house) > MIB // 2)
    (house.source / "later/7").unlink()
    ran = house.ended(process)
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert [warning for warning in ran["warnings"] if "later/7" in warning and "vanished" in warning]
    assert facts(house.source).keys() == facts(house.point()).keys()
    assert house.call("verify", "photos").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("what", ["truncated", "rewritten", "vanished", "grown"])
@pytest.mark.sample(2)
def test_a_file_that_changes_while_it_is_copied(house: House, what: str) -> None:
    """Whatever the run says, no remainder enters a point, its manifest holds, and the next run brings what is there."""
    path = house.write("folder/big", random.randbytes(6 * MIB))
    house.write("folder/small", "x")
    for number in range(5):
        house.write(f"other/{number} stays", "x")
    process = house.start(house.job(pipe={"rate_limit": "3M"}))
    wait_until(lambda: half_copied(house) > MIB // 2)
    frozen = rsyncs(process)
    for pid in frozen:
        kill(pid, signal.SIGSTOP)
    match what:
        case "truncated":
            os.truncate(path, 100)
        case "rewritten":
            with open(path, "r+b") as file:
                file.write(random.randbytes(6 * MIB))
        case "vanished":
            shutil.rmtree(path.parent)
        case "grown":
            with open(path, "ab") as file:
                file.write(random.randbytes(MIB))
    for pid in frozen:
        kill(pid, signal.SIGCONT)
    ran = house.ended(process)
    if ran.outcome == "done":
        assert not list(house.point().rglob(".*"))
        assert house.call("verify", "photos").code == 0
    house.job()
    assert house.run().code == 0
    assert facts(house.source) == facts(house.point())
    assert house.call("verify", "photos").code == 0


@pytest.mark.root
@pytest.mark.namespace
def test_a_copy_by_name_that_lacks_something_is_no_point_and_is_mended_at_once(house: House) -> None:
    """No count of rsync's says what is linked, so the names of both sides are compared; the next attempt names nothing."""
    for number in range(20):
        house.write(f"d/{number}", str(number))
    house.job(retry={"attempts": 2})
    assert house.run().outcome == "done"
    os.setxattr(house.write("d/3", "changed"), "user.a", b"what is plain comes without rsync")
    house.write("e/new", "new")
    forgetful = house.write(
        house.folder / "bin/rsync",
        '#!/bin/sh\ncase " $* " in *" --files-from="*"/differing "*) exit 0 ;; esac\nexec /usr/bin/rsync "$@"\n',
    )
    forgetful.chmod(0o755)
    house.environment["PATH"] = f"{forgetful.parent}:{house.environment['PATH']}"
    ran = house.run()
    assert (ran.outcome, ran["attempts"], len(house.points())) == ("done", 2, 2), ran
    assert "lacks 2 entries of the source: d/3, e/new" in str(ran["warnings"]), ran
    assert facts(house.point()) == facts(house.source)
