"""Reading what the looks at both places and the two programs printed."""

import subprocess

import pytest

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.gate import GateHello, format_hello
from orchestrator.domain.place import Location
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.rsync.model import UNREADABLE_OWNER
from orchestrator.engines.rsync.parse import (
    parse_greeting,
    parse_partial_files,
    parse_program,
    parse_sizes,
    parse_sources,
    parse_target,
)
from tests.engines.rsync.builders import NAME, OLD, ROOT

SOURCE = SourceTree(root=Location(path="/srv"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a\0", (False, False, 0, False, False)),
        (b"f\0", (True, False, 0, False, False)),
        (b"d 7 0 755\n3 0 755\0x\0", (True, True, 7, True, False)),
        (b"d 7 0 755\n7 0 755\0x\0", (True, True, 7, False, False)),
        (b"d 7 0 755\n7 0 755\0\0", (True, True, 7, False, True)),
    ],
)
def test_the_source_root(text: bytes, expected: tuple[bool, bool, int, bool, bool]) -> None:
    (seen,) = parse_sources(text, SOURCE)
    assert (seen.exists, seen.directory, seen.device, seen.mounted, seen.empty) == expected


def target(*names: str, marker: str = '{"job": "photos", "coarse": true}', link: str = "", root: str = "8 3") -> bytes:
    own, above = root.split()
    latest = [f"l l {link}"] if link else []
    records = ("d", "1024 4096 500 400\n", marker, f"u d {above}", f"h d {own}", *latest, *names, "")
    return "\0".join(records).encode("utf-8", "surrogateescape")


def test_a_target_with_points() -> None:
    text = target(
        "r d points", "r l latest", "r d .poolferry", f"p d {NAME}", f"p f {NAME}.manifest.gz", f"p d {OLD}",
        f"p f {OLD}.damaged", "p d other", "o d work", "o f lock", "r f what\nis this\udcff", link=f"points/{NAME}",
    )  # fmt: skip
    seen = parse_target(text, ROOT, mirror=False)
    assert (seen.exists, seen.mounted, seen.owner, seen.coarse, seen.work) == (True, True, "photos", True, True)
    assert [(each.name, each.manifest is None, each.damaged) for each in seen.points] == [
        (OLD, True, True),
        (NAME, False, False),
    ]
    assert seen.points[1].tree == ROOT / f"points/{NAME}"
    assert seen.points[1].manifest == ROOT / f"points/{NAME}.manifest.gz"
    assert (seen.latest, seen.free_bytes, seen.free_inodes, seen.litter) == (NAME, 4096 * 1024, 400, ())
    assert seen.foreign == ("what\nis this\udcff",)
    assert seen.mirrored is None


def test_in_a_mirror_every_name_but_ours_is_the_sources() -> None:
    text = target(
        "r d points", "r l latest", "r d .poolferry", f"p d {NAME}", "p f a.txt", "m f 1772600767.5", link="points/x"
    )
    seen = parse_target(text, ROOT, mirror=True)
    assert (seen.points, seen.litter, seen.latest) == ((), (), None)
    assert seen.foreign == ("points", "latest")
    assert seen.mirrored is not None
    assert seen.mirrored.timestamp() == 1772600767.5


@pytest.mark.parametrize(
    ("names", "litter"),
    [
        ((f"o d trash/{OLD}", "o d trash"), (OLD,)),
        (("o d trash",), ("trash",)),
        ((f"p f {OLD}.manifest.gz", f"p d {NAME}", f"p f {NAME}.manifest.gz"), (OLD,)),
        ((f"p f {OLD}.damaged",), (OLD,)),
        ((f"p d {NAME}",), ()),
    ],
)
def test_what_cut_removals_leave(names: tuple[str, ...], litter: tuple[str, ...]) -> None:
    assert parse_target(target(*names), ROOT, mirror=False).litter == litter


@pytest.mark.parametrize(
    ("text", "exists", "parent", "foreign"),
    [
        (b"a\0", False, False, ()),
        (b"ap\0", False, True, ()),
        (b"np\0", False, True, ("a file",)),
    ],
)
def test_a_target_that_is_no_folder(text: bytes, exists: bool, parent: bool, foreign: tuple[str, ...]) -> None:
    seen = parse_target(text, ROOT, mirror=False)
    assert (seen.exists, seen.parent, seen.foreign) == (exists, parent, foreign)


@pytest.mark.parametrize("user", [0, 1000])
def test_a_target_that_is_not_there_yet_is_looked_at_by_somebody(user: int) -> None:
    text = b"ap\0i plain %d\0b 755 0\0" % user
    assert parse_target(text, ROOT, mirror=False).by_root is (user == 0)


@pytest.mark.parametrize(
    ("marker", "owner"),
    [
        ("", None),
        ('{"job": "x"}', "x"),
        ('{"format": 1, "job": "x", "coarse": false}', "x"),
        *(
            (text, UNREADABLE_OWNER)
            for text in (
                "{",
                "{}",
                "[1]",
                "[" * 200_000,
                '{"job": "a\\nb"}',
                '{"job": "x", "coarse": 1}',
                '{"job": "x", "more": 1}',
                '{"job": "x", "fake-super": "yes"}',
            )
        ),
    ],
)
def test_markers(marker: str, owner: str | None) -> None:
    assert parse_target(target(marker=marker), ROOT, mirror=False).owner == owner


def test_a_marker_says_how_copies_were_written() -> None:
    name = "points/2026-03-03T050607Z"
    for marker, stored in (('{"job": "x"}', False), ('{"job": "x", "fake-super": true}', True)):
        seen = parse_target(target(f"p d {name[7:]}", marker=marker), ROOT, mirror=False)
        assert (seen.stored, [point.stored for point in seen.points]) == (stored, [stored])


def test_the_marker_of_a_newer_poolferry_is_refused() -> None:
    with pytest.raises(OrchestratorError, match="newer poolferry wrote these copies") as caught:
        parse_target(target(marker='{"format": 2, "job": "x"}'), ROOT, mirror=False)
    assert caught.value.hint.startswith("update poolferry")


def test_a_folder_with_the_name_of_no_day_is_no_point() -> None:
    text = target() + b"p d 2024-13-45T000000Z\0p d \xd9\xa2024-01-01T000000Z\0"
    assert len(parse_target(text, ROOT, mirror=False).points) == len(parse_target(target(), ROOT, mirror=False).points)


def test_a_room_that_is_not_told_is_unknown() -> None:
    text = target(root="8 8").replace(b"1024 4096 500 400\n", b"")
    seen = parse_target(text, Location(path="/b"), mirror=False)
    assert (seen.free_bytes, seen.free_inodes, seen.mounted) == (None, None, False)
    uncounted = parse_target(target().replace(b"500 400", b"0 0"), ROOT, mirror=False)
    assert (uncounted.free_bytes, uncounted.free_inodes) == (4096 * 1024, None)


def test_small_answers() -> None:
    assert parse_partial_files(b"12 a b\x003 \n\x00") == ((12, b"a b"), (3, b"\n"))
    assert parse_sizes(b"12\n-\n0\n", 3) == (12, None, 0)
    assert parse_sizes(b"", 0) == ()


def test_answers_of_another_form_are_refused() -> None:
    for text in (b"", b"x\0"):
        with pytest.raises(ValueError, match="the look at the target does not say what is there"):
            parse_target(text, ROOT, mirror=False)
    with pytest.raises(ValueError, match="the look at the source does not say what is there"):
        parse_sources(b"x 7\0", SOURCE)
    with pytest.raises(ValueError, match="1 sizes, and 2 were requested"):
        parse_sizes(b"12\n", 2)


def test_a_root_that_others_could_exchange_is_told_to_root_alone() -> None:
    def opened(user: int, mode: str, owner: int, *, mirror: bool = False) -> tuple[str, ...]:
        return parse_target(target(f"i r {user}", f"g {mode} {owner}"), ROOT, mirror=mirror).open

    assert opened(0, "755", 1000) == opened(0, "777", 0) == (".",)
    assert opened(0, "755", 0) == opened(0, "1777", 0) == opened(1000, "777", 1000) == ()
    assert opened(0, "777", 0, mirror=True) == ()


V_31 = b"""rsync  version 3.1.3  protocol version 31
Copyright (C) 1996-2018 by Andrew Tridgell, Wayne Davison, and others.
Web site: http://rsync.samba.org/
Capabilities:
    64-bit files, 64-bit inums, 64-bit timestamps, 64-bit long ints,
"""
V_323 = b"""rsync  version v3.2.3  protocol version 31
Capabilities:
    64-bit files
Checksum list:
    xxh64 (xxhash) md5 md4 none
Compress list:
    zstd lz4 zlibx zlib none

rsync comes with ABSOLUTELY NO WARRANTY.
"""
V_JSON = b"""Welcome
{ "program": "rsync", "version": "3.4.1pre2", "protocol": "32.0",
  "checksum_list": ["xxh128", "md5"], "compress_list": ["zstd", "none"] }
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (V_31, ((3, 1, 3), 31, (), ())),
        (V_323, ((3, 2, 3), 31, ("xxh64", "(xxhash)", "md5", "md4", "none"), ("zstd", "lz4", "zlibx", "zlib", "none"))),
        (V_JSON, ((3, 4, 1), 32, ("xxh128", "md5"), ("zstd", "none"))),
        (b'{"version": "3.5"}', ((3, 5), 0, (), ())),
    ],
)
def test_versions(text: bytes, expected: tuple[object, ...]) -> None:
    found = parse_program(text)
    assert found is not None
    assert (found.version, found.protocol, found.checksums, found.compressions) == expected


def test_a_greeting_is_answered_by_a_gate_and_its_rsync_or_by_an_rsync_alone() -> None:
    hello = GateHello(poolferry="1.2", gate="laptop", rights=("adds",))
    assert parse_greeting(format_hello(hello).encode() + b"\n" + V_JSON) == (hello, parse_program(V_JSON))
    for alone in (V_31, V_JSON):
        assert parse_greeting(alone) == (None, parse_program(alone))


@pytest.mark.parametrize("text", [b"", b"openrsync: protocol version 29\n", b'{"error": 1}'])
def test_no_answer_of_rsync(text: bytes) -> None:
    assert parse_program(text) is None


def test_the_rsync_of_this_machine() -> None:
    done = subprocess.run(["rsync", "--version", "--version"], capture_output=True, check=True)
    found = parse_program(done.stdout)
    assert found is not None
    assert found.at_least(3, 2, 4)
    assert not found.at_least(99)
    assert "xxh128" in found.checksums


@pytest.mark.parametrize("begun", [False, True])
def test_points_are_seen_where_no_mirror_was_begun(begun: bool) -> None:
    """A mirror's own source may hold folders of such names."""
    text = target("r d points", f"p d {NAME}", f"p f {NAME}.manifest.gz", *(["o d partial"] if begun else []))
    assert parse_target(text, ROOT, mirror=True).dated == (() if begun else (NAME,))
