"""Test what an interrupted copy left, made by hand: half-copied files are used where that is right, and never trusted."""

import os
from pathlib import Path

import pytest

from tests.turns import turns
from tests.whole.house import House, Ran, facts

MIB = 1 << 20
PARTIAL = ".~poolferry-partial~"
CONTENT = os.urandom(3 * MIB)


def prepared(house: House) -> Path:
    """A target with one point, and a work tree as a cut leaves it."""
    house.write("first", "is in the first point")
    assert house.run(house.job()).outcome == "done"
    work = house.target / ".poolferry/work"
    work.mkdir()
    return work


def lay(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def ends_right(house: House) -> Ran:
    ran = house.run()
    assert (ran.code, ran.outcome, ran["resumed"]) == (0, "done", True), ran
    assert facts(house.source) == facts(house.point())
    assert house.call("verify", "photos").code == 0
    assert (
        sorted(os.listdir(house.target / ".poolferry")) == ["history.sqlite", "lock", "running", "target.json"]
        or not (house.target / ".poolferry/work").exists()
    )
    return ran


@pytest.mark.parametrize("lies", [".big.AbC123", f"{PARTIAL}/big"])
def test_a_half_copied_file_goes_on(house: House, lies: str) -> None:
    work = prepared(house)
    house.write("folder/big", CONTENT)
    lay(work / "folder" / lies, CONTENT[: 2 * MIB])
    ran = ends_right(house)
    assert ran["moved_bytes"] == MIB


@pytest.mark.parametrize(
    "name",
    [
        b"new\nline",
        b"\xff",
        b"-rf",
        b" ",
        b"a -> b",
        b"\\#012",
        b"#",
        b"[1]",
        b"x" * 240,
        b".x.AbC123",
        b"'",
        b'"$(id)',
    ],
    ids=repr,
)
@pytest.mark.sample(3)
def test_a_half_copied_file_of_any_name_goes_on(house: House, name: bytes) -> None:
    work = prepared(house)
    house.write(b"folder/" + name, CONTENT)
    lay(work / "folder" / os.fsdecode(b"." + name + b".AbC123"), CONTENT[: 2 * MIB])
    ran = ends_right(house)
    assert ran["moved_bytes"] == MIB


@pytest.mark.parametrize(("lies", "size"), turns((".big.AbC123", f"{PARTIAL}/big"), (1, 2 * MIB, 3 * MIB, 4 * MIB)))
@pytest.mark.sample(3)
def test_zeros_after_a_power_cut_are_never_published(house: House, lies: str, size: int) -> None:
    work = prepared(house)
    path = house.write("big", CONTENT)
    lay(work / lies, bytes(size))
    os.utime(work / lies, ns=(0, path.stat().st_mtime_ns))  # so that size and time would speak for it
    ends_right(house)


@pytest.mark.parametrize("lies", [".big.AbC123", f"{PARTIAL}/big"])
def test_zeros_within_the_end_of_a_whole_looking_remainder_are_never_published(house: House, lies: str) -> None:
    work = prepared(house)
    path = house.write("big", CONTENT)
    lay(work / lies, CONTENT[: MIB + 5] + bytes(4096) + CONTENT[MIB + 5 + 4096 :])
    os.utime(work / lies, ns=(0, path.stat().st_mtime_ns))
    ends_right(house)


def test_a_whole_remainder_moves_only_its_last_mebibyte(house: House) -> None:
    work = prepared(house)
    house.write("big", CONTENT)
    lay(work / ".big.AbC123", CONTENT)
    assert ends_right(house)["moved_bytes"] == MIB


def test_a_file_of_the_source_that_is_named_like_an_orphan_is_none(house: House) -> None:
    work = prepared(house)
    house.write("x", CONTENT)
    house.write(".x.AbC123", b"the owner's own file")
    lay(work / ".x.AbC123", b"the owner's own file")
    ran = ends_right(house)
    assert ran["moved_bytes"] <= 3 * MIB + 100


def test_an_orphan_beside_a_file_that_is_named_like_one(house: House) -> None:
    work = prepared(house)
    house.write("x", CONTENT)
    house.write(".x.AbC123", b"the owner's own file")
    lay(work / ".x.zZ9999", CONTENT[: 2 * MIB])
    lay(work / "..x.AbC123.abcdef", b"the owner")
    ends_right(house)


def test_several_orphans_of_one_file(house: House) -> None:
    """A retry that was killed too: two temporaries, and a remainder in the partial folder."""
    work = prepared(house)
    house.write("x", CONTENT)
    lay(work / ".x.aaaaaa", CONTENT[:MIB])
    lay(work / ".x.bbbbbb", CONTENT[: 2 * MIB])
    lay(work / PARTIAL / "x", CONTENT[:100])
    ends_right(house)


def test_an_empty_orphan_is_swept(house: House) -> None:
    work = prepared(house)
    house.write("x", CONTENT)
    lay(work / ".x.aaaaaa", b"")
    ends_right(house)


@pytest.mark.parametrize(
    ("lies", "became"),
    turns((".x.AbC123", f"{PARTIAL}/x"), ("gone", "other", "shorter", "longer", "folder", "link", "fifo", "empty")),
)
@pytest.mark.sample(4)
def test_a_half_copied_file_whose_source_is_not_what_it_was(house: House, became: str, lies: str) -> None:
    work = prepared(house)
    lay(work / "folder" / lies, CONTENT[: 2 * MIB])
    house.write("folder/y")
    path = house.source / "folder/x"
    match became:
        case "other":
            path.write_bytes(os.urandom(3 * MIB))
        case "shorter":
            path.write_bytes(CONTENT[:MIB])
        case "longer":
            path.write_bytes(CONTENT + CONTENT)
        case "folder":
            path.mkdir()
            (path / "inside").write_text("x")
        case "link":
            path.symlink_to("y")
        case "fifo":
            os.mkfifo(path)
        case "empty":
            path.touch()
    ends_right(house)


def test_a_half_copied_file_whose_whole_folder_is_gone(house: House) -> None:
    work = prepared(house)
    lay(work / "folder/deep/.x.AbC123", CONTENT[:MIB])
    lay(work / "folder" / PARTIAL / "x", CONTENT[:MIB])
    house.write("y")
    ends_right(house)


def test_an_orphan_whose_file_was_copied_by_a_later_attempt(house: House) -> None:
    work = prepared(house)
    path = house.write("x", CONTENT)
    lay(work / "x", CONTENT)
    os.utime(work / "x", ns=(0, path.stat().st_mtime_ns))
    lay(work / ".x.AbC123", CONTENT[:MIB])
    ends_right(house)


def test_many_orphans(house: House) -> None:
    """More than one plan takes in one by one; the rest is simply copied and swept."""
    work = prepared(house)
    for number in range(30):
        house.write(f"{number}", CONTENT[: 20_000 + number])
        lay(work / f".{number}.AbC123", CONTENT[:10_000])
    ends_right(house)


def test_what_the_cut_copy_had_and_the_source_has_no_more_is_not_published(house: House) -> None:
    work = prepared(house)
    house.write("new", "new")
    lay(work / "gone", b"was there when the copy began")
    lay(work / "gone folder/file", b"this too")
    ends_right(house)


def test_a_work_tree_that_was_changed_by_a_stranger_is_not_believed(house: House) -> None:
    """Same size and time, other bytes: only the manifest's reading of it could tell, so it is copied again."""
    work = prepared(house)
    path = house.write("file", "good bytes")
    lay(work / "file", b"evil bytes")
    os.utime(work / "file", ns=(0, path.stat().st_mtime_ns + 1))
    ends_right(house)


def noted(house: House, content: bytes) -> None:
    """Note a file as the sender does whose last bytes the receiver did not get any more."""
    import xxhash

    line = b"pf:>f+++++++++|%d|%d|%b|big\n" % (
        len(content),
        len(content),
        xxhash.xxh3_128(content).hexdigest().encode(),
    )
    lay(house.state / "notes/photos/moved-0", line)


@pytest.mark.parametrize("lies", ["big", ".big.AbC123", f"{PARTIAL}/big"])
def test_an_earlier_attempts_digest_is_not_believed_of_newer_content(house: House, lies: str) -> None:
    work = prepared(house)
    noted(house, CONTENT)
    lay(work / lies, CONTENT)
    house.write("big", CONTENT + b"and more")
    ends_right(house)


def test_a_file_that_was_copied_and_then_linked_to_the_older_point_keeps_its_older_digest(house: House) -> None:
    """Changed, copied, and changed back before the next run: rsync makes a link, and tells no digest."""
    path = house.write("big", b"as before")
    os.utime(path, ns=(0, 5))
    prepared(house)
    noted(house, b"something else")
    (house.source / "first").unlink()
    ends_right(house)


def test_remainders_that_nothing_needs_are_in_no_point(house: House) -> None:
    """More than a survey looks at, an empty folder of theirs, and a link that only leads to such a name."""
    work = prepared(house)
    house.write("folder/file", CONTENT)
    os.symlink(PARTIAL, house.source / "link")
    for number in range(205):
        lay(work / "folder" / PARTIAL / f"gone {number}", b"half")
    (work / PARTIAL).mkdir()
    ends_right(house)
    assert not list(house.point().rglob(f"{PARTIAL}*"))


@pytest.mark.parametrize("size", [MIB - 1, MIB])
def test_a_first_copy_of_small_files_keeps_no_remainders(house: House, size: int) -> None:
    (house.source / "largest").write_bytes(CONTENT[:size])
    ran = house.run(house.job(), "--verbose")
    assert ran.outcome == "done"
    copies = [line for line in ran.errors.splitlines() if "--out-format=pf:" in line]
    assert [f"--partial-dir={PARTIAL}" in line for line in copies] == [size == MIB]
