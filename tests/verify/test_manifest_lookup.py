"""Lines of manifests, found by grep: every name, none that only begins alike, and nothing of an output that was cut."""

import gzip
import subprocess
from pathlib import Path

import pytest

from orchestrator.domain.place import Host, Location
from orchestrator.verify.entry import ManifestEntry, format_line
from orchestrator.verify.manifest_lookup import lookup_command, parse_lookup, parse_sizes, sizes_command

NAMES = [
    b"a",
    b"a b",
    b"in/a",
    b"*",
    b"a*",
    b"a.b",
    b"[a]",
    b"^a$",
    b"back\\slash",
    b"line\nend",
    b"tab\there",
    b"\xff",
    b"-v",
]


def entry(path: bytes, kind: str = "f") -> ManifestEntry:
    return ManifestEntry(
        path, kind, 1, 2, 0o644, 0, 0, 1, 7, b"to" if kind == "l" else b"", "xxh128:00" if kind == "f" else "-"
    )


def manifest(path: Path, *entries: ManifestEntry) -> str:
    text = b"# poolferry manifest 1\n# job: \ta\n" + b"".join(map(format_line, entries)) + b"# end entries=1\n"
    path.write_bytes(gzip.compress(text))
    return str(path)


def looked_up(manifests: list[str], paths: list[bytes]) -> dict[str, set[bytes]]:
    command = lookup_command(Host(name="there"), manifests, paths)
    done = subprocess.run(command.argv, capture_output=True, check=True)
    return {name: set(found) for name, found in parse_lookup(done.stdout, manifests, paths).items()}


def test_each_name_and_no_other(tmp_path: Path) -> None:
    first = manifest(tmp_path / "one\n.gz", *map(entry, NAMES))
    second = manifest(tmp_path / "two.gz", entry(b"a", "d"), entry(b"link", "l"))
    lost = str(tmp_path / "lost.gz")
    for name in NAMES:
        assert looked_up([first], [name]) == {first: {name}}
    assert looked_up([first, lost, second], NAMES) == {first: set(NAMES), lost: set(), second: {b"a"}}


def test_an_output_that_was_cut_tells_nothing() -> None:
    with pytest.raises(ValueError, match="too early"):
        parse_lookup(b"=0\n", ["/m"], [b"a"])
    with pytest.raises(ValueError, match="too early"):
        parse_lookup(b"", ["/m"], [b"a"])


def test_sizes_and_times_of_a_tree(tmp_path: Path) -> None:
    for name in (b"a", b"line\nend", b"-v", b"tab\there"):
        (tmp_path / name.decode()).write_bytes(b"x" * len(name))
    (tmp_path / "folder").mkdir()
    command = sizes_command(Location(path=str(tmp_path)), [b"a", b"line\nend", b"-v", b"tab\there", b"folder", b"gone"])
    done = subprocess.run(command.argv, capture_output=True, check=True)
    found = parse_sizes(done.stdout)
    assert set(found) == {b"a", b"line\nend", b"-v", b"tab\there"}
    assert found[b"-v"] == (2, (tmp_path / "-v").stat().st_mtime_ns)
