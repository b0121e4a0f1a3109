"""Forged confirmations: who can write both a file and its line in the manifest, and does not have the host's key, is named."""

import contextlib
import json
import os
import re
import shlex
import shutil
import sqlite3
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.hostile.forgery import change_both, manifest_of, rewrite, text_of, untag
from tests.whole.house import House, facts

CHANGED = "was changed by somebody who does not have this host's key"
GOOD, EVIL = b"pay to alice\n", b"pay to mallo\n"


@pytest.fixture
def copied(house: House) -> House:
    """A house with one point of two files."""
    house.write("bill", GOOD)
    house.write("w/other", "other")
    ran = house.run(house.job())
    assert (ran.code, ran.outcome) == (0, "done"), ran
    return house


def key_file(house: House) -> Path:
    return house.state / "authentication.key"


def unsound(house: House) -> list[str]:
    """The points that history knows to be damaged."""
    with contextlib.closing(sqlite3.connect(house.state / "history.sqlite")) as history:
        return [row[0] for row in history.execute("SELECT name FROM points WHERE sound = 0 AND gone_at IS NULL")]


def test_a_key_is_made_once_for_our_eyes_alone(copied: House) -> None:
    told = json.loads(key_file(copied).read_text())
    assert stat.S_IMODE(key_file(copied).stat().st_mode) == 0o600
    assert (told["format"], len(bytes.fromhex(told["key"]))) == (1, 32)
    copied.write("more", "x")
    assert copied.run().outcome == "done"
    assert json.loads(key_file(copied).read_text()) == told
    ids = {text_of(manifest_of(copied, which)).splitlines()[-1].split()[3] for which in (0, 1)}
    assert len(ids) == 1
    assert copied.call("verify", "photos").code == 0


def test_a_file_changed_together_with_its_manifest_is_named(copied: House) -> None:
    change_both(copied, "bill", EVIL)
    point = copied.points()[0]
    read = copied.call("verify", "photos")
    assert (read.code, read.outcome) == (1, "failed"), read
    assert f"the manifest of point {point} {CHANGED}" in read["why"]
    assert unsound(copied) == [point]
    health = copied.call("status")["jobs"][0]
    assert health["state"] == "failing", health
    assert CHANGED in health["why"]


def test_a_restore_brings_it_back_and_does_not_call_it_verified(copied: House) -> None:
    change_both(copied, "bill", EVIL)
    to = copied.folder / "back"
    ran = copied.call("restore", "run", "photos", "--to", str(to))
    assert (ran.code, ran.outcome) == (1, "failed"), ran
    assert "all of it is back, and not verified" in ran["why"]
    assert CHANGED in ran["why"]
    assert "proved" not in ran["why"]
    assert (to / "bill").read_bytes() == EVIL
    assert not (to / ".poolferry-restoring.json").exists()
    one = copied.call("restore", "run", "photos", "--path", "bill", "--to", str(copied.folder / "one"))
    assert one.code == 1, one


def test_a_drill_fails(copied: House) -> None:
    change_both(copied, "bill", EVIL)
    ran = copied.call("drill", "photos")
    assert ran.code == 1, ran
    assert CHANGED in json.dumps(ran.value)


def test_the_next_run_names_it_and_the_one_after_copies_all_of_it_again(copied: House) -> None:
    change_both(copied, "bill", EVIL)
    copied.write("new", "a change")
    ran = copied.run()
    assert (ran.code, ran.outcome) == (1, "failed"), ran
    assert CHANGED in ran["why"]
    assert len(copied.points()) == 1, "what was linked from a forged point is never published"
    mended = copied.run()
    assert (mended.code, mended.outcome) == (0, "done"), mended
    assert facts(copied.point()) == facts(copied.source)
    assert (copied.point() / "bill").read_bytes() == GOOD
    assert copied.call("verify", "photos").code == 0
    assert copied.call("verify", "photos", "--point", copied.points()[0]).code == 1
    assert copied.run().outcome == "nothing-to-do"


def test_after_a_verify_that_failed_the_hint_is_true(copied: House) -> None:
    """With nothing changed at the source, too."""
    change_both(copied, "bill", EVIL)
    read = copied.call("verify", "photos")
    assert "`poolferry run photos` copies all of it again from the source, into a new point" in read["hint"]
    mended = copied.run()
    assert (mended.code, mended.outcome) == (0, "done"), mended
    assert (copied.point() / "bill").read_bytes() == GOOD
    assert copied.call("verify", "photos").code == 0
    forged = copied.points()[0]
    health = copied.call("status")["jobs"][0]
    assert (health["state"], CHANGED in health["why"], forged in health["why"]) == ("failing", True, True), health
    assert f"newer points do not depend on it; bring {forged}.manifest.gz back" in health["hint"]
    assert health["hint"].endswith(f"poolferry points accept photos --point {forged}"), health
    assert copied.call("points", "accept", "photos", "--point", forged).code == 0
    assert copied.call("status")["jobs"][0]["state"] == "up"


def test_the_same_of_a_mirror(house: House) -> None:
    house.write("bill", GOOD)
    house.run(house.job(rsync={"points": False}))
    manifest = house.target / ".poolferry/manifest.gz"
    seen = (house.target / "bill").stat()
    (house.target / "bill").write_bytes(EVIL)
    os.utime(house.target / "bill", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert "1 rotten" in house.call("verify", "photos")["why"], "the file alone"
    untag(manifest)
    os.utime(manifest, (0, 0))  # what its file says of its time proves nothing
    read = house.call("verify", "photos")
    assert "the manifest of point mirror" in read["why"], read
    assert house.run().outcome == "done"
    assert (house.target / "bill").read_bytes() == GOOD
    assert house.call("verify", "photos").code == 0


@pytest.mark.parametrize("number", [1, 3])
def test_the_tag_taken_away(copied: House, number: int) -> None:
    change_both(copied, "bill", EVIL)
    untag(manifest_of(copied), number)
    read = copied.call("verify", "photos")
    assert (read.code, "is gone" in read["why"], CHANGED in read["why"]) == (1, True, True), read


def test_the_tag_taken_away_with_a_history_that_was_lost(copied: House) -> None:
    untag(manifest_of(copied))
    (copied.state / "history.sqlite").unlink()
    read = copied.call("verify", "photos")
    assert (read.code, "is gone" in read["why"]) == (1, True), read


def test_a_tag_of_a_key_of_ones_own(copied: House, tmp_path: Path) -> None:
    other = House(tmp_path / "other")
    other.write("bill", EVIL)
    other.run(other.job())
    point = copied.points()[0]
    text = text_of(manifest_of(other)).replace(other.points()[0].encode(), point.encode())
    rewrite(manifest_of(copied), text)
    shutil.copy2(other.point() / "bill", copied.point() / "bill")
    read = copied.call("verify", "photos")
    assert (read.code, CHANGED in read["why"]) == (1, True), read


def test_the_manifest_of_another_point_in_its_place(copied: House) -> None:
    copied.write("bill", b"pay to bob!!\n")
    assert copied.run().outcome == "done"
    first, second = copied.points()
    shutil.copy2(manifest_of(copied, 0), manifest_of(copied, 1))
    shutil.rmtree(copied.point(1))
    shutil.copytree(copied.point(0), copied.target / "points" / second, symlinks=True)
    read = copied.call("verify", "photos")
    assert (read.code, read["why"]) == (
        1, f"the manifest of point {second} was replaced by that of point {first} of photos",
    ), read  # fmt: skip


def test_the_manifest_of_another_job_in_its_place(copied: House) -> None:
    other = copied.job("mail", target=str(copied.folder / "mail"))
    assert copied.run(other).outcome == "done"
    (name,) = copied.points(copied.folder / "mail")
    shutil.copy2(copied.folder / "mail/points" / f"{name}.manifest.gz", manifest_of(copied))
    read = copied.call("verify", "photos")
    assert (read.code, f"was replaced by that of point {name} of mail" in read["why"]) == (1, True), read


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.sample(1)
def test_copies_of_an_earlier_version_stay_as_good_as_they_were(copied: House, number: int) -> None:
    """Neither key nor tag is known; then both come, and what was there before is never missed."""
    untag(manifest_of(copied), number)
    shutil.rmtree(copied.state)
    assert copied.call("verify", "photos").code == 0
    assert copied.call("drill", "photos").code == 0
    assert not key_file(copied).exists(), "who only reads makes no key"
    copied.write("new", "a change")
    ran = copied.run()
    assert (ran.code, ran.outcome, ran["warnings"]) == (0, "done", []), ran
    for point in copied.points():
        assert copied.call("verify", "photos", "--point", point).code == 0
    assert text_of(manifest_of(copied)).startswith(b"# poolferry manifest 4\n")


def test_a_lost_state_loses_no_copy(copied: House) -> None:
    """The tag is of a key that is no more: this is said, and fails nothing; the next point has the new key's."""
    old = text_of(manifest_of(copied)).splitlines()[-1].split()[3].decode()
    kept = key_file(copied).read_bytes()
    shutil.rmtree(copied.state)
    says = f"cannot be authenticated: its key {old} is not on this machine"
    read = copied.call("verify", "photos")
    assert (read.code, read.outcome) == (0, "done"), read
    assert any(says in warning for warning in read["warnings"]), read
    back = copied.call("restore", "run", "photos", "--to", str(copied.folder / "back"))
    assert (back.code, any(says in warning for warning in back["warnings"])) == (0, True), back
    copied.write("new", "a change")
    ran = copied.run()
    assert (ran.code, any(says in warning for warning in ran["warnings"])) == (0, True), ran
    read = copied.call("verify", "photos")
    assert (read.code, read["warnings"]) == (0, []), read
    key_file(copied).write_bytes(kept)  # put back, though late: each tag is still judged by its own key
    first, second = copied.points()
    read = copied.call("verify", "photos", "--point", first)
    assert (read.code, read["warnings"]) == (0, []), read
    read = copied.call("verify", "photos", "--point", second)
    assert (read.code, "cannot be authenticated" in " ".join(read["warnings"])) == (0, True), read


def test_from_another_machine_its_tags_prove_nothing_and_fail_nothing(copied: House, tmp_path: Path) -> None:
    other = House(tmp_path / "other")
    other.write("x", "y")
    other.run(other.job("mine"))
    to = str(tmp_path / "back")
    ran = other.call("restore", "run", "--from", str(copied.target), "--to", to)
    assert ran.code == 0, ran
    assert "cannot be authenticated" in " ".join(ran["warnings"]), ran
    untag(manifest_of(copied))
    ran = other.call("restore", "run", "--from", str(copied.target), "--to", f"{to}2")
    assert (ran.code, ran["warnings"]) == (0, []), ran


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602])
@pytest.mark.sample(1)
def test_a_key_that_others_can_read_is_refused(copied: House, mode: int) -> None:
    key_file(copied).chmod(mode)
    ran = copied.call("verify", "photos")
    assert (ran.code, "is open to others" in ran["why"]) == (1, True), ran
    assert f"chmod 600 {key_file(copied)}" in ran["hint"]
    back = copied.call("restore", "run", "photos", "--to", str(copied.folder / "back"))
    assert (back.code, "is open to others" in str(back["warnings"])) == (0, True), back
    copied.write("new", "a change")
    assert "is open to others" in copied.run()["why"]
    key_file(copied).chmod(0o600)
    assert copied.run().outcome == "done"


@pytest.mark.parametrize("what", ["link", "pipe", "nonsense", "empty", "short", "large", "list"])
@pytest.mark.sample(3)
def test_a_key_file_that_is_none_is_refused_and_holds_nothing_up(copied: House, what: str) -> None:
    file = key_file(copied)
    told = file.read_bytes()
    file.unlink()
    match what:
        case "link":
            (copied.folder / "elsewhere").write_bytes(told)
            file.symlink_to(copied.folder / "elsewhere")
        case "pipe":
            os.mkfifo(file)
        case _:
            short = json.dumps({**json.loads(told), "key": "00"})
            texts = {"nonsense": "{", "empty": "", "short": short, "large": " " * 9000, "list": "[" * 4000}
            file.write_text(texts[what])
    if os.path.lexists(file) and not file.is_symlink():
        file.chmod(0o600)
    ran = copied.call("verify", "photos")
    assert ran.code == 1, ran
    assert str(file) in ran["why"]
    assert ran["hint"]
    file.unlink()
    assert copied.call("verify", "photos").code == 0


def test_the_key_is_in_no_kit_and_is_never_shown(copied: House) -> None:
    secret = json.loads(key_file(copied).read_text())["key"].encode()
    copied.write("new", "a change")
    for words in (("run", "photos"), ("verify", "photos"), ("history", "photos"), ("show", "1"), ("status",)):
        ran = copied.call(*words)
        assert secret.decode() not in json.dumps(ran.value) + ran.errors
    for path in (*copied.target.rglob("*"), *copied.state.rglob("*")):
        if path.is_file() and not path.is_symlink() and path != key_file(copied):
            assert secret not in path.read_bytes(), path
            assert bytes.fromhex(secret.decode()) not in path.read_bytes(), path
    kit = copied.target / ".poolferry/configuration.tar"
    with tarfile.open(kit) as archive:
        assert not [name for name in archive.getnames() if "authentication" in name]


def test_a_run_with_nothing_to_do_tells_of_a_key_that_others_may_read(copied: House) -> None:
    """Else it would end well each night, and nothing more could be verified."""
    key_file(copied).chmod(0o644)
    ran = copied.run()
    assert ran.outcome == "failed"
    assert f"chmod 600 {key_file(copied)}" in json.dumps(ran.value)
    key_file(copied).chmod(0o600)
    assert copied.run().outcome == "nothing-to-do"


def test_a_key_that_is_gone_is_told_by_each_run_until_a_new_one_is_made(copied: House) -> None:
    """A run with nothing to do was silent, and `verify` alone told that the manifests can no longer be shown to be ours."""
    kept = key_file(copied).read_bytes()
    key_file(copied).unlink()
    for _ in range(2):
        ran = copied.run()
        assert ran.outcome == "nothing-to-do"
        assert f"is gone: {key_file(copied)} is not there" in " ".join(ran["warnings"]), ran
        told = copied.call("status")
        assert (told.code, f"is gone: {key_file(copied)} is not there" in told["lost_key"]["why"]) == (0, True), told
        told = copied.call("check", "--system")
        assert (told.code, "is not there, and manifests of photos" in json.dumps(told.value)) == (0, True), told
    copy = copied.folder / "kept"
    copy.write_bytes(kept)
    (line,) = re.findall("`(install [^`]*)`", copied.call("status")["lost_key"]["hint"])
    subprocess.run(shlex.split(line.replace("COPY", str(copy))), check=True)
    assert not copied.run()["warnings"]
    assert "lost_key" not in copied.call("status").value
    key_file(copied).unlink()
    copied.write("more", "x")
    copied.follow(copied.call("status")["lost_key"]["hint"])
    assert "lost_key" not in copied.call("status").value
