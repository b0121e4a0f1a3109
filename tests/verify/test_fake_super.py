"""Test that a tree of rsync's --fake-super is read as its entries are at the source; `tests/whole/test_fake_super.py` has real ones."""

import subprocess
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.verify.attributes import NO_ATTRIBUTES
from orchestrator.verify.entry import parse_listing, split_records
from orchestrator.verify.fake_super import stored_attributes, stored_command, stored_entries

LISTED = b"a//f\t5\t1.0000000000\t755\t7\t7\t1\t9\t"


def listing(*lines: bytes, links: bytes = b"") -> list[bytes]:
    """Records with one entry, and these of its attributes."""
    return [LISTED, b"", *((b"# file: a", *lines, b"") if lines else ()), b"//", *((b"./a", links) if links else ())]


def stat(text: bytes) -> bytes:
    """getfattr's line for what rsync keeps of an entry."""
    return b"user.rsync.%stat=0x" + text.hex().encode()


@pytest.mark.parametrize(
    ("told", "kind", "mode", "owner"),
    [
        (b"104755 0,0 1000:1001", "f", 0o4755, (1000, 1001)),
        (b"20666 1,3 0:0", "c", 0o666, (0, 0)),
        (b"10600 0,0 0:4294967294", "p", 0o600, (0, 4294967294)),
        (b"40755 0,0 0:0", "f", 0o755, (7, 7)),  # no file is a folder
        (b"junk", "f", 0o755, (7, 7)),
        (b"170755 0,0 0:0", "f", 0o755, (7, 7)),
    ],
)
def test_an_entry_is_what_its_attribute_says(
    told: bytes, kind: str, mode: int, owner: tuple[int, int], tmp_path: Path
) -> None:
    ((record, text),) = stored_entries(listing(stat(told)), folder=str(tmp_path))
    entry = parse_listing(record)
    assert (entry.kind, entry.mode, (entry.uid, entry.gid), text) == (kind, mode, owner, NO_ATTRIBUTES)


def test_a_file_in_place_of_a_link_tells_its_target(tmp_path: Path) -> None:
    ((record, _),) = stored_entries(listing(stat(b"120777 0,0 0:0"), links=b"there\nand"), folder=str(tmp_path))
    entry = parse_listing(record)
    assert (entry.kind, entry.size, entry.target) == ("l", 0, b"there\nand")


def test_lists_that_say_no_more_than_the_mode_are_none(tmp_path: Path) -> None:
    bare = b"user.rsync.%aacl=0x" + (b"80000000" * 4)
    assert not list(stored_attributes(listing(bare), folder=str(tmp_path)))
    odd = b"user.rsync.%aacl=0x6a756e6b"
    assert [text[:4] for text in stored_attributes(listing(odd), folder=str(tmp_path))] == [b"a//a"]


def test_a_listing_without_an_end_is_none(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no end"):
        list(stored_entries(listing()[:-1], folder=str(tmp_path)))


def test_the_script_names_no_entry_that_is_left_out(tmp_path: Path) -> None:
    """Names in the root alone, and names at any depth."""
    for name in ("ours/x", "in/ours", "in/[1]", "kept"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    command = stored_command(Location(path=str(tmp_path)), exclude=(b"[1]",), apart=(b"ours",))
    said = subprocess.run(command.argv, capture_output=True, check=True).stdout
    found = [parse_listing(record).path for record, _ in stored_entries(split_records((said,)), folder=str(tmp_path))]
    assert found == [b"", b"in", b"in/ours", b"kept"]
