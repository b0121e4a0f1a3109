"""Patterns of excludes are judged as rsync itself judges them, of one tree with odd names."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from orchestrator.engines.rsync.patterns import is_left_out

NAMES = (
    b"a",
    b"b",
    b"ab",
    b"A",
    b"!",
    b"^",
    b"[a]",
    b"*",
    b"\\",
    b"a\\",
    b"-",
    b"]",
    b"a.tmp",
    b"\xff",
    b"1",
    b" ",
    b"+ a",
    b"a\nb",
    b":",
)
FOLDERS = (b"a", b"b", b"a/b", b"a/a", b"b/a/b", b"ab", b"[a]", b"d\\")
PARTS = st.sampled_from(
    ("a", "b", "A", "*", "**", "***", "?", "/", "[ab]", "[!a]", "[^a]", "[[:alpha:]]", "[[:upper:]!]", "[a-z]", "[", "]", "[]a]", "[\\a]", "\\",
     "\\*", "\\[", "[[:no:]]", "[[:a]", "[b-a]", "[!]a]", "[a/]", ".tmp", "!", "^", "-", ":", " ", "[ -~]", "[[:punct:]]", "[a-]", "[--a]"),
)  # fmt: skip
PATTERNS = st.builds(
    lambda front, parts, end: front + "".join(parts) + end,
    st.sampled_from(("", "", "", "/", "+ ", "- ")), st.lists(PARTS, min_size=1, max_size=5), st.sampled_from(("", "", "/", "/***", "/**")),
).filter(lambda pattern: pattern not in ("!", "- ", "+ "))  # rsync takes none of them  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("patterns")
    places = [os.path.join(os.fsencode(top), b"source", folder) for folder in (b"", *FOLDERS)]
    for place in places:
        os.makedirs(place, exist_ok=True)
    for file in (os.path.join(place, name) for place in places for name in NAMES):
        if not os.path.isdir(file):
            os.close(os.open(file, os.O_CREAT))
    (top / "empty").mkdir()
    return top


def entries(source: Path) -> Iterator[tuple[bytes, bool]]:
    root = os.fsencode(source)
    for above, folders, files in os.walk(root):
        for name in (*folders, *files):
            yield os.path.relpath(os.path.join(above, name), root), name in folders


def copied(tree: Path, patterns: tuple[str, ...], *source: str) -> set[bytes]:
    """Return what rsync would copy; a listing of its own escapes names, so it lists what a dry run would delete."""
    argv = [
        "rsync",
        "-rnl8",
        "--out-format=%n",
        *(f"--exclude={pattern}" for pattern in patterns),
        *source,
        f"{tree}/empty/",
    ]
    told = subprocess.run(argv, capture_output=True, check=True).stdout
    return {unescaped(line).strip(b"/") for line in told.split(b"\n")} - {b"", b".", b"./"}


def unescaped(line: bytes) -> bytes:
    return line.replace(b"\\#012", b"\n").replace(b"\\#134#", b"\\#")


def judged(tree: Path, patterns: tuple[str, ...]) -> set[bytes]:
    return {path for path, folder in entries(tree / "source") if not is_left_out(patterns, path, folder=folder)}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PATTERNS, min_size=1, max_size=2).map(tuple))
@example(("[^a]",))
@example(("[!a]/",))
@example(("a/***",))
@example(("**/b",))
@example(("a/**",))
@example(("/a/*",))
@example(("b/a",))
@example(("\\*",))
@example(("a\\",))
@example(("*\\",))
@example(("[[:alpha:]]",))
@example(("+ a/", "[[:lower:]]"))
@example(("**",))
@example(("a**",))
@example(("*a**b",))
@example(("/", "a/*b"))
def test_rsync_leaves_out_just_that(tree: Path, patterns: tuple[str, ...]) -> None:
    assert judged(tree, patterns) == copied(tree, patterns, f"{tree}/source/")


def test_of_several_folders_each_is_judged_by_its_whole_path(tree: Path) -> None:
    """Nothing is judged that lies above a folder of the source."""
    top = os.fsencode(tree / "source/a").strip(b"/")
    above = tree.parts[1]
    for patterns in ((f"/{above}/",), (f"{tree}/source/a/b",), (f"{tree}/source/a",), ("/a/b",), ("a/b/*",), ("[!b]",)):
        argv = ("--relative", f"{tree}/source/a")
        got = {path for path in copied(tree, patterns, *argv) if path.startswith(top + b"/")}
        assert got == {
            top + b"/" + path for path, folder in entries(tree / "source/a")
            if not is_left_out(patterns, top + b"/" + path, folder=folder, top=top)
        }, patterns  # fmt: skip


def test_many_stars_end_soon() -> None:
    assert not is_left_out(("*a*a*a*a*a*a*a*a*b",), b"a" * 255, folder=False)
