"""Patterns of excludes that rsync takes otherwise than they were meant are named, each with one that does the same where it is meant."""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.rsync.pattern_mistakes import find_pattern_mistakes
from tests.ferry import Ferry

# Patterns, the number of the one with a mistake, a part of it, and of what is expected.
MISTAKES: list[tuple[tuple[str, ...], int, str, str]] = [
    (("- ",), 0, '"- " has no pattern behind its sign', "- *.tmp"),
    (("*.tmp", "+ "), 1, '"+ " has no pattern behind its sign', "+ *.tmp"),
    (("!",), 0, "throws away all rules before it", '"**/!"'),
    (("- !",), 0, "throws away all rules before it", '"**/!"'),
    (("+ !", "x"), 0, "throws away all rules before it", '"**/!"'),
    (("x" * 4096,), 0, "has more than 4095 bytes", "a shorter pattern"),
    (("ü" * 2048,), 0, "has more than 4095 bytes", "a shorter pattern"),
    (("[",), 0, "fits nothing", r'"\\[" for a bracket'),
    (("a[b",), 0, "fits nothing", '"[x]" for a set'),
    (("[[:no:]]",), 0, "fits nothing", '"[x]" for a set'),
    (("*\\",), 0, "fits nothing", '"[x]" for a set'),
    (("/",), 0, "fits nothing", "a name, or a path below the source"),
    (("..",), 0, "fits nothing", "a name, or a path below the source"),
    (("/deep/../a.txt",), 0, "fits nothing", "a name, or a path below the source"),
    (("./a.txt",), 0, "fits nothing", '"/a.txt"'),
    (("//deep//x/",), 0, "fits nothing", '"/deep/x/"'),
    (("deep/.",), 0, "fits nothing", '"deep"'),
    (("- deep/./x",), 0, '"- deep/./x" fits nothing', '"deep/x"'),
    (("!keep",), 0, "lets nothing through", '"+ keep" before what leaves it out; "**/!keep" for such a name'),
    (("*.tmp ",), 0, "ends with a blank", '"*.tmp"; "*.tmp[ ]" for such a name'),
    (("\t x",), 0, "begins or ends with a blank", '"x"; "[\\t][ ]x" for such a name'),
    (("-  x",), 0, "begins or ends with a blank", '"x"; "[ ]x" for such a name'),
    (("~/.cache",), 0, "no home is put in its place", '"[~]/.cache" for such a folder'),
    (("*.{a,b}",), 0, "only shells make several of braces", '"*.a", "*.b"; "*.[{]a,b}" for such a name'),
    ((": .filter",), 0, "is taken as a name", '"[:] .filter" for such a name'),
    (("exclude *.tmp",), 0, "is taken as a name", '"[e]xclude *.tmp" for such a name'),
    (("/srv/photos/cache/",), 0, "so it is for /srv/photos/srv/photos/cache/", '"/cache/"; "/[s]rv/photos/cache/" for that'),
    (("/srv/photos",), 0, "so it is for /srv/photos/srv/photos", '"/[s]rv/photos" for that'),
    (("*",), 0, "leaves out all of the source", '"+ "'),
    (("x", "/***"), 1, "leaves out all of the source", '"+ "'),
    (("x", "+ y"), 1, "changes nothing", 'or "*" behind it'),
    (("+ y",), 0, "changes nothing", 'or "*" behind it'),
    (("*.tmp", "+ keep.tmp", "x"), 1, 'lets nothing through: "*.tmp" leaves that out', "it before that pattern"),
    (("/cache/", "+ /cache/keep", "x"), 1, 'lets nothing through: "/cache/" leaves that out', "it before that pattern"),
    (("+ /www/site/***", "*"), 0, 'lets nothing through: "*" leaves that out, or a folder above it', '"+ /folder/"'),
    (("x", "+ x/y", "z"), 1, 'lets nothing through: "x" leaves that out', "it before that pattern"),
]  # fmt: skip

SOUND: list[tuple[str, ...]] = [
    ("*.tmp", "/cache/", "with space", "\\[1]", "#odd", "a\\", "[a]", "[!a]*", "[^a]", "~", "{a}", "{a", "a,b}", "x[ ]", "P x", "include x"),
    ("*.tmp", "+ /mail/***", "+ /www/", "+ /www/site/***", "*"),
    ("+ */", "+ *.odt", "*"),
    ("+ keep.tmp", "*.tmp"),
    ("/cache/*", "+ cache/", "x"),  # a cache that lies deeper is let through
    ("cache/", "+ cache", "cache"),  # so is a file of that name
    ("+ [k]eep.tmp", "+ *.odt", "keep*"),
    ("/srv/photosets", "photos", "/srv"),
    ("x" * 4095, "- x", "+ y", "y"),
    ("+ a", "*"),
    ("**/x", "a/**/b", "a/***", ".cache", "..a", "a..", "...", "/.x/", "*/"),
]  # fmt: skip


SEVERAL: list[tuple[tuple[str, ...], int, str, str]] = [
    (("*.tmp", "/cache/"), 1, "lies in none of the sources", '"/srv/www/cache/", "/home/cache/", "/va[*]r/cache/"; or'),
    (("/var/cache",), 0, "lies in none of the sources", '"/srv/www/var/cache"'),
    (("/srv",), 0, "lies in none of the sources", "a path below one of /srv/www, /home, /va*r"),
    (("+ /srv/", "/srv/www/*"), 0, "lies in none of the sources", "a path below one of /srv/www"),
    (("/srv/w?/x",), 0, "lies in none of the sources", "a path below one of /srv/www"),
    (("/home/",), 0, "leaves out all of /home, which is a source", '"+ /home/" before it'),
    (("w*", "x"), 0, "leaves out all of /srv/www, which is a source", '"+ /srv/www/" before it'),
    (("/va\\*r",), 0, "leaves out all of /va*r, which is a source", '"+ /va[*]r/" before it'),
    (("x", "/s**"), 1, "leaves out all of /srv/www, which is a source", '"+ /srv/www/" before it'),
    (("x", "+ x/", "z"), 1, 'lets nothing through: "x" leaves that out', "it before that pattern"),
    (("*",), 0, "leaves out all of the source", '"+ "'),
]  # fmt: skip
SOUND_OF_SEVERAL: list[tuple[str, ...]] = [
    ("/srv/www/cache/", "/home/*/.cache", "cache/", "www/cache", "/*/x", "/**/x", "/srv/w**/a", "/srv/***/x", "/[hx]ome/a", "/va\\*r/x"),
    ("+ /home/", "+ /srv/www/", "+ /va[*]r/", "+ /home/keep/***", "*"),
]  # fmt: skip


def found(patterns: Sequence[str], source: str = "/srv/photos", parts: Sequence[str] = ()) -> list[tuple[str, str]]:
    tree = SourceTree(root=Location(path=source), parts=tuple(parts))
    return [(what, wanted) for _, what, wanted in find_pattern_mistakes(tuple(patterns), tree)]


@pytest.mark.parametrize(("patterns", "number", "what", "expected"), MISTAKES)
def test_a_pattern_that_is_taken_otherwise_is_named(
    patterns: tuple[str, ...], number: int, what: str, expected: str
) -> None:
    [(told, wanted)] = found(patterns)
    assert (what in told, expected in wanted) == (True, True), (told, wanted)
    assert told.startswith(json.dumps(patterns[number][:100], ensure_ascii=False)[:-1]), told


@pytest.mark.parametrize(("patterns", "number", "what", "expected"), MISTAKES)
def test_each_pattern_that_is_expected_has_no_mistake(
    patterns: tuple[str, ...], number: int, what: str, expected: str
) -> None:
    """A word in quotes that is more than a sign, in place of the pattern, and `+` before what is left out."""
    [(_, wanted)] = found(patterns)
    for written in re.findall(r'"(?:[^"\\]|\\.)*"', wanted):
        meant: str = json.loads(written)
        if meant != "+ ":
            assert found([meant, "z*"] if meant.startswith("+ ") else ["+ first", meant]) == [], written


FOLDERS = ("srv/www", "home", "va*r")


@pytest.mark.parametrize(("patterns", "number", "what", "expected"), SEVERAL)
def test_a_pattern_for_none_or_all_of_several_folders_is_named(
    patterns: tuple[str, ...], number: int, what: str, expected: str
) -> None:
    [(told, wanted)] = found(patterns, "/", FOLDERS)
    assert (what in told, expected in wanted) == (True, True), (told, wanted)
    assert told.startswith(json.dumps(patterns[number])), told
    for written in re.findall(r'"(?:[^"\\]|\\.)*"', wanted):
        meant: str = json.loads(written)
        assert meant == "+ " or found([meant, "z*"], "/", FOLDERS) == [], written


@pytest.mark.parametrize("patterns", SOUND_OF_SEVERAL)
def test_what_may_lie_in_one_of_several_folders_is_no_mistake(patterns: tuple[str, ...]) -> None:
    assert found(patterns, "/", FOLDERS) == []


@pytest.mark.parametrize("patterns", [patterns for patterns, *_ in SEVERAL if "+" not in str(patterns)])
def test_rsync_takes_those_for_none_or_all_of_them(tmp_path: Path, patterns: tuple[str, ...]) -> None:
    """The folders lie deeper here: a pattern is the same with the path of that before it."""
    for part in FOLDERS:
        (tmp_path / part / "deep").mkdir(parents=True)
        (tmp_path / part / "deep/file").touch()
    top = [f"--exclude={tmp_path if each.startswith('/') else ''}{each}" for each in patterns]
    argv = [
        "rsync",
        "-rnR",
        "--out-format=%n",
        *top,
        *(f"/.{tmp_path}/{part}" for part in FOLDERS),
        f"{tmp_path}/none/",
    ]
    told = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    copied = [part for part in FOLDERS if f"{part}/deep/file" in told]
    [(what, _)] = found(patterns, "/", FOLDERS)
    assert copied == [part for part in FOLDERS if f"all of /{part}," not in what and "all of the source" not in what], (
        told
    )


@pytest.mark.parametrize("patterns", SOUND)
def test_what_rsync_takes_as_it_was_meant_is_no_mistake(patterns: tuple[str, ...]) -> None:
    assert found(patterns) == []


def test_whole_paths_are_right_where_all_of_a_machine_is_copied() -> None:
    assert found(["/srv/photos/cache/"], "/") == []


@pytest.mark.parametrize("patterns", [patterns for patterns, _, what, _ in MISTAKES if what == "fits nothing"])
def test_rsync_itself_finds_nothing_for_those(tmp_path: Path, patterns: tuple[str, ...]) -> None:
    for name in ("source/a.txt", "source/deep/x/y", "source/[", "source/a[b", "source/b", "source/a", "source/x\\"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    argv = ["rsync", "-rnl8", "--out-format=%n", *(f"--exclude={each}" for each in patterns), f"{tmp_path}/source/"]
    told = subprocess.run([*argv, f"{tmp_path}/none/"], capture_output=True, check=True).stdout.split(b"\n")
    assert {b"a.txt", b"deep/x/y", b"[", b"a[b", b"b", b"a", b"x\\"} <= set(told), told


def test_check_names_file_and_line_and_no_run_begins(tmp_path: Path) -> None:
    ferry = Ferry(tmp_path)
    ferry.job(more='[rsync]\nexcludes = [\n  "*.tmp",\n  # and\n  "- "]\n')
    for told in (ferry.run("check"), ferry.run("run", "photos")):
        assert told.code == 2, told
        line = f'{ferry.config}/jobs/photos.toml:8: rsync.excludes: "- " has no pattern behind its sign'
        assert line in told.err, told.err
    assert not ferry.target().exists()
