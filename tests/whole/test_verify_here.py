"""Copies on this machine are read again: every kind of damage is found and named, and what is damaged is mended."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.ferry import Ferry
from tests.whole.damage import NAMES, fill, rot
from tests.whole.house import House, Ran, facts


def found(ran: Ran, side: str = "reading") -> dict[str, str]:
    """Path to verdict of everything that was found."""
    return {each["path"]: each["verdict"] for each in ran[side]["findings"]}


def known(house: House) -> list[tuple[str, Any]]:
    """(point, whether it is sound) of all points that history knows."""
    return [(each["point"], each["sound"]) for each in house.call("points", "photos")["points"]]


def copied(house: House, **toml: Any) -> str:
    """The name of the first point of three files, one of them in a folder."""
    house.write("one", "the first")
    house.write("two", "the second")
    house.write("in/three", "the third")
    house.job(**toml)
    run = house.run()
    assert run.outcome == "done", run
    return str(run["points"][0])


def test_a_sound_copy(house: House) -> None:
    fill(house.source)
    house.job()
    (point,) = house.run()["points"]
    assert known(house) == [(point, None)]
    read = house.call("verify", "photos")
    assert (read.code, read.outcome, read["point"], read["reading"]["sound"]) == (0, "done", point, True), read
    assert read["reading"]["entries"] == len(facts(house.source))
    assert read["reading"]["bytes_read"] == sum(len(name) + 3 for name in NAMES) * 2
    assert known(house) == [(point, True)]


@pytest.mark.slow
@pytest.mark.parametrize("digest", ["xxh128", "sha256", "blake3"])
@pytest.mark.sample(1)
def test_a_rotten_file_is_named_and_copied_again(house: House, digest: str) -> None:
    first = copied(house, verify={"digest": digest})
    house.write("later", "in the second point")
    assert house.run().outcome == "done"
    second = house.points()[-1]
    rot(house.point() / "one")
    read = house.call("verify", "photos")
    assert (read.code, read.outcome, found(read)) == (1, "failed", {"one": "rotten"}), read
    assert digest in read["reading"]["findings"][0]["detail"]
    assert "copies damaged files again" in read["hint"]
    assert known(house)[-1] == (second, False)

    mended = house.run()
    assert mended.outcome == "done", mended
    assert any(
        step["action"] == "copy 1 damaged file again" and step["moved_bytes"] == 9 for step in mended["steps"]
    ), mended
    assert facts(house.point()) == facts(house.source)
    assert (house.point() / "one").stat().st_ino != (house.point(-2) / "one").stat().st_ino
    assert (house.point() / "two").stat().st_ino == (house.point(-2) / "two").stat().st_ino
    assert house.call("verify", "photos").code == 0
    assert [sound for _, sound in known(house)] == [None, True, True], "the older point is mended, too"
    assert house.run().outcome == "nothing-to-do"
    for point in (first, second):  # the file is one inode in both
        assert house.call("verify", "photos", "--point", point).code == 0


def test_damage_in_an_older_point_that_shares_the_file(house: House) -> None:
    first = copied(house)
    house.write("two", "changed since")
    assert house.run().outcome == "done"
    rot(house.point(0) / "one")
    rot(house.point(0) / "two")
    read = house.call("verify", "photos", "--point", first)
    assert found(read) == {"one": "rotten", "two": "rotten"}
    mended = house.run()
    assert mended.outcome == "done", mended
    assert any(step["action"].startswith("copy 1 damaged") for step in mended["steps"])
    assert facts(house.point()) == facts(house.source)
    assert (house.point() / "two").stat().st_ino == (house.point(1) / "two").stat().st_ino


def test_a_damaged_file_with_new_names_is_mended_under_all(house: House) -> None:
    """The second name came later: the first point knows nothing of it."""
    first = copied(house)
    os.link(house.source / "one", house.source / "new name [1]* of one")
    assert house.run().outcome == "done"
    rot(house.point() / "one")
    assert house.call("verify", "photos", "--point", first).code == 1
    assert house.run().outcome == "done"
    assert facts(house.point()) == facts(house.source)


def test_a_damaged_file_that_has_left_the_source(house: House) -> None:
    fill(house.source)
    copied(house)
    for name in NAMES:
        rot(os.fsencode(house.point()) + b"/in/" + name + b"/file")
    assert house.call("verify", "photos")["reading"]["counts"] == {"rotten": len(NAMES)}
    os.unlink(house.source / "in" / "plain" / "file")
    os.unlink(house.source / "in" / "with space" / "file")
    os.rmdir(house.source / "in" / "with space")
    mended = house.run()
    assert mended.outcome == "done", mended
    assert facts(house.point()) == facts(house.source)


def test_damage_that_only_an_older_point_has(house: House) -> None:
    first = copied(house)
    house.write("two", "changed since")
    assert house.run().outcome == "done"
    rot(house.point(0) / "two")
    assert house.call("verify", "photos", "--point", first).code == 1
    assert house.run().outcome == "nothing-to-do"
    assert house.call("verify", "photos").code == 0


def test_every_other_difference_has_its_name(house: House) -> None:
    copied(house)
    for name in ("kept", "edited", "gone", "chmod", "touched", "kind"):
        house.write(name, f"this is {name}")
    (house.source / "link").symlink_to("one")
    assert house.run().outcome == "done"
    tree = house.point()
    (tree / "edited").write_text("this is no more")
    (tree / "gone").unlink()
    (tree / "chmod").chmod(0o600)
    os.utime(tree / "touched", ns=(1, 1))
    (tree / "kind").unlink()
    (tree / "kind").mkdir()
    (tree / "link").unlink()
    (tree / "link").symlink_to("two")
    (tree / "ex\ntra").write_text("nobody promised this")
    os.utime(tree, ns=(os.stat(house.source).st_atime_ns, os.stat(house.source).st_mtime_ns))
    read = house.call("verify", "photos")
    assert read.code == 1
    assert found(read) == {
        "edited": "edited", "gone": "missing", "chmod": "metadata", "touched": "metadata", "kind": "edited",
        "link": "metadata", "ex\\ntra": "extra",
    }, read  # fmt: skip
    assert read["reading"]["counts"] == {"missing": 1, "extra": 1, "edited": 2, "metadata": 3}


def test_only_metadata_is_no_damage(house: House) -> None:
    copied(house)
    (house.point() / "one").chmod(0o600)
    read = house.call("verify", "photos")
    assert (read.code, found(read)) == (1, {"one": "metadata"})
    assert "bytes are sound" in read["hint"]
    assert house.follow(read["hint"]).outcome == "done"
    assert house.call("verify", "photos").code == 0
    assert house.call("status").value["jobs"][0]["state"] == "up"


def test_what_somebody_added_to_a_point_can_be_kept(house: House) -> None:
    copied(house)
    (house.point() / "extra").write_text("x")
    hints = [house.call("verify", "photos")["hint"]]
    assert house.follow(hints[0]).outcome == "done"
    job = house.call("status").value["jobs"][0]
    assert (job["state"], "bytes are sound" in job["hint"]) == ("failing", True), job
    assert house.follow(job["hint"]).code == 1, "read again: it is there still"
    assert house.follow(house.call("status").value["jobs"][0]["hint"], -1).code == 0
    assert house.run().outcome == "nothing-to-do"
    assert house.call("status").value["jobs"][0]["state"] == "up"


def test_rot_at_the_source_is_told_and_the_good_copy_stays(house: House) -> None:
    copied(house)
    rot(house.source / "one")
    house.write("two", "edited meanwhile")
    house.write("new", "since")
    read = house.call("verify", "photos", "--source")
    assert (read.code, read["reading"]["sound"]) == (1, True), read
    assert found(read, "source")["one"] == "rotten"
    assert any("rotten at the source: one" in warning for warning in read["warnings"])
    assert house.follow(read["hint"]).outcome == "done"
    assert (house.source / "one").read_text() == "the first"
    (aside,) = house.source.glob("one.aside-*")
    aside.replace(house.source / "one")
    assert house.run().outcome == "done"
    assert (house.point() / "one").read_text() == "the first"
    assert house.call("verify", "photos").code == 0


def test_rot_at_the_source_is_over_only_once_a_reading_finds_none(house: House) -> None:
    """Before, the next run, which does not see it, ended the failing state, and nobody was told of it again."""
    copied(house)
    rot(house.source / "one")
    read = house.call("verify", "photos", "--source")
    house.write("new", "since")
    for outcome in ("done", "nothing-to-do"):
        assert house.run().outcome == outcome
        assert house.call("verify", "photos").outcome == "done"
        told = house.call("status")
        [job] = told.value["jobs"]
        [problem] = job["problems"]
        assert (told.code, job["state"], problem["kind"], problem["paths"]) == (
            4,
            "failing",
            "source-rotten",
            ["one"],
        ), job
        assert job["why"].startswith(f"1 file rotten at the source: one; the good copy is in point {read['point']}"), (
            job
        )
    assert house.follow(job["hint"]).code == 1
    assert house.follow(house.follow(job["hint"])["hint"]).outcome == "done"
    assert house.follow(job["hint"]).outcome == "done"
    assert (house.call("status").code, house.call("status").value["jobs"][0]["problems"]) == (0, [])
    rot(house.source / "one")
    assert house.call("verify", "photos", "--source").code == 1
    assert house.run().outcome in ("done", "nothing-to-do")
    assert house.follow(house.call("status").value["jobs"][0]["hint"], 1).code == 0, "the second command: keep it so"
    assert house.call("status").code == 0


def test_a_source_that_is_not_there_is_named_by_a_verification_of_it(house: House) -> None:
    copied(house)
    house.source.rename(house.folder / "elsewhere")
    read = house.call("verify", "photos", "--source")
    assert (read.code, read["why"].startswith("the folder is not there"), read["hint"].startswith("mount it")) == (
        1,
        True,
        True,
    ), read


def test_a_rotten_source_does_not_pass_as_a_change(house: House) -> None:
    """Contents are compared, so rsync does copy it; the run says what it was, and the older point keeps the good one."""
    copied(house, rsync={"checksum": True})
    rot(house.source / "one")
    run = house.run()
    assert any(warning.startswith("one:") for warning in run["warnings"]), run
    assert (house.point(0) / "one").read_text() == "the first"


@pytest.mark.slow
def test_each_run_reads_again_when_it_promised_to(house: House) -> None:
    copied(house, verify={"every": "run"})
    assert [sound for _, sound in known(house)] == [True]
    assert house.run().outcome == "nothing-to-do"
    rot(house.point() / "one")
    run = house.run()
    assert (run.code, run.outcome) == (1, "failed"), run
    assert "one is rotten" in run["why"]
    mended = house.run()
    assert (mended.code, mended.outcome) == (0, "done"), mended
    assert facts(house.point()) == facts(house.source)
    assert [sound for _, sound in known(house)] == [True, True], "the older point is mended, too"
    for point in house.points():
        assert house.call("verify", "photos", "--point", point).code == 0


def test_a_damaged_manifest_proves_nothing(house: House) -> None:
    point = copied(house)
    rot(house.target / "points" / f"{point}.manifest.gz", 60)
    read = house.call("verify", "photos")
    assert (read.code, read.outcome, read["reading"]) == (1, "failed", None)
    assert "manifest" in read["why"]
    assert "the copy itself may be sound" in read["hint"]
    house.write("new", "since")
    run = house.run()
    assert run.outcome == "done", run
    assert (house.point() / "one").stat().st_ino != (house.point(0) / "one").stat().st_ino, "nothing is linked to it"
    assert house.call("verify", "photos").code == 0
    health = house.call("status")["jobs"][0]
    assert (health["state"], f"point {point} cannot be verified" in health["why"]) == ("failing", True), health
    assert health["hint"].endswith(f"poolferry points accept photos --point {point}")
    assert house.call("points", "accept", "photos", "--point", point).code == 0
    assert house.call("status")["jobs"][0]["state"] == "up"


def check_sums(tree: Path, sums: Path) -> "subprocess.CompletedProcess[bytes]":
    """Return what a rescue system would type."""
    return subprocess.run(["sha256sum", "-c", "--strict", "--quiet", sums], cwd=tree, capture_output=True)


@pytest.mark.slow
@pytest.mark.parametrize("digest", ["xxh128", "sha256"])
def test_exported_sums_are_what_sha256sum_checks(house: House, digest: str) -> None:
    fill(house.source)
    house.job(verify={"digest": digest})
    assert house.run().outcome == "done"
    sums = house.folder / "SUMS"
    exported = house.call("points", "export", "photos", "--to", str(sums))
    assert exported.code == 0, exported
    files = [path for path in house.point().rglob("*") if path.is_file() and not path.is_symlink()]
    assert exported["lines"] == len(files)
    checked = check_sums(house.point(), sums)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")
    rot(house.point() / "in" / "new\nline" / "file")
    assert check_sums(house.point(), sums).returncode == 1
    again = house.call("points", "export", "photos", "--to", str(house.folder / "again"))
    assert again.code == (1 if digest == "xxh128" else 0), "what is read to make sums must be sound"


@pytest.mark.slow
@pytest.mark.root
def test_damage_below_the_page_cache(house: House) -> None:
    """The disk's bytes change, and the kernel still holds the right ones: a reading goes to the disk."""
    image, disk = house.folder / "image", house.folder / "disk"
    image.write_bytes(b"")
    os.truncate(image, 32 << 20)
    disk.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-F", "-O", "^metadata_csum", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, disk], check=True)
    try:
        house.target = disk / "copies"
        content = b"only once in this image: " + os.urandom(32).hex().encode()
        house.write("one", content)
        house.write("two", "the second")
        house.job(target=str(house.target))
        assert house.run().outcome == "done"
        assert house.call("verify", "photos").code == 0
        assert (house.point() / "one").read_bytes() == content
        subprocess.run(["sync", "-f", disk], check=True)
        at = image.read_bytes().index(content)
        with open(image, "r+b") as file:
            file.seek(at)
            file.write(b"O")
        assert (house.point() / "one").read_bytes() == content, "the page cache shows the damage by itself"
        read = house.call("verify", "photos")
        assert (read.code, found(read)) == (1, {"one": "rotten"}), read
        assert "nothing was written to it since" in read["reading"]["findings"][0]["detail"]
        assert house.run().outcome == "done"
        assert house.call("verify", "photos").code == 0
    finally:
        subprocess.run(["umount", disk], check=True)


def test_of_several_jobs_the_others_are_read_where_a_disk_is_away(ferry: Ferry) -> None:
    """Seen: `poolferry verify` of all jobs, and `drill` of several, ended at the first disk that lay in a drawer."""
    for name in ("alpha", "zoo"):
        ferry.job(name)
        assert ferry.run("run", name).code == 0
    with (ferry.config / "targets.toml").open("a") as file:
        file.write('[set.drawer]\n[disk.red]\nset = "drawer"\nidentity = "0b7f2c1e-8a55-4c1d-9f5e-3f0c6a1b2d4e"\n')
    for name in ("mail", "news"):
        (ferry.config / "jobs" / f"{name}.toml").write_text('engine = "rsync"\nsource = "/srv"\ntarget = "drawer"\n')
    read = ferry.run("verify", "--json")
    ends = {each["job"]: each["outcome"] for each in read.value["verified"]}
    assert ends == {"alpha": "done", "mail": "waiting", "news": "waiting", "zoo": "done"}, read
    drilled = ferry.run("drill", "mail", "alpha", "news", "zoo", "--json")
    assert {each["job"]: each["outcome"] for each in drilled.value["drills"]} == ends, drilled
    assert {each["job"]: each["drill"]["passed"] for each in drilled.value["drills"]}["mail"] is False
    alone, alone_drilled = ferry.run("verify", "mail"), ferry.run("drill", "mail")
    assert (read.code, alone.code, drilled.code, alone_drilled.code) == (75, 75, 75, 75), alone
    said = ferry.run("verify")
    assert said.out.count("drawer") == 2, said
    assert "zoo" in said.out
