"""The marker: what is written on a disk comes back as it was, and what is none is none."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.disks.marker import (
    FILE,
    marker_text,
    parse_marker,
    parse_properties,
    read_file_pipeline,
    write_file_pipelines,
    write_properties_pipeline,
)
from orchestrator.domain.rotation import DiskMarker
from orchestrator.domain.units import Seconds
from orchestrator.process.executor import Reader, Writer
from orchestrator.process.stop import StopRequest
from tests.planners.rotation_world import marker

WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), min_size=1
)
MARKERS = st.builds(
    DiskMarker,
    disk=WORDS,
    name=WORDS,
    set=WORDS,
    owner=WORDS,
    host=WORDS,
    generation=st.integers(0, 1 << 40),
    authentication=st.just("") | WORDS,
)


@given(MARKERS)
def test_a_marker_comes_back(told: DiskMarker) -> None:
    assert parse_marker(marker_text(told).encode()) == told
    (stage,) = write_properties_pipeline("poolferry-red", told).stages
    lines = [f"{name}\t{value}" for name, _, value in (word.partition("=") for word in stage.argv[2:-1])]
    assert parse_properties("\n".join(["type\tfilesystem", *lines, ""]).encode()) == told


GOOD = json.loads(marker_text(marker()))


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[]", b"3", b"\xff", json.dumps({**GOOD, "generation": "5"}).encode(),
        json.dumps({**GOOD, "generation": -1}).encode(), json.dumps({**GOOD, "generation": True}).encode(),
        json.dumps({**GOOD, "authentication": 5}).encode(), json.dumps({**GOOD, "owner": ""}).encode(), json.dumps({**GOOD, "name": None}).encode(),
        json.dumps({name: value for name, value in GOOD.items() if name != "set"}).encode(),
    ],
)  # fmt: skip
def test_what_is_no_marker_is_none(text: bytes) -> None:
    assert parse_marker(text) is None
    assert parse_properties(text) is None


def test_a_marker_is_whole_or_not_there() -> None:
    lines = [str(each) for each in write_file_pipelines("/m", "/notes/x")]
    assert lines == [
        "rm -f -- /m/.poolferry-disk.json.new",
        "dd of=/m/.poolferry-disk.json.new oflag=nofollow conv=excl,fsync status=none < /notes/x",
        "mv -fT -- /m/.poolferry-disk.json.new /m/.poolferry-disk.json",
        "sync -f /m/.poolferry-disk.json",
    ]


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "large", "deep"])
def test_a_stranger_in_place_of_a_marker_is_none_and_holds_nothing_up(tmp_path: Path, kind: str) -> None:
    there, elsewhere = tmp_path / FILE, tmp_path / "elsewhere"
    elsewhere.write_text(marker_text(marker()))
    match kind:
        case "link":
            there.symlink_to(elsewhere)
        case "pipe":
            os.mkfifo(there)
        case "folder":
            there.mkdir()
        case "large":
            there.write_bytes(b" " * (1 << 20) + elsewhere.read_bytes())
        case _:
            there.write_bytes(b"[" * 200_000)
    result = Reader(stop=StopRequest(deadline=Seconds(20))).read(read_file_pipeline(str(tmp_path)))
    assert result.stopped is None
    assert parse_marker(result.stdout) is None


@pytest.mark.parametrize("name", [FILE, f"{FILE}.new"])
def test_a_marker_is_never_written_through_a_link(tmp_path: Path, name: str) -> None:
    disk, victim, given = tmp_path / "disk", tmp_path / "victim", tmp_path / "given"
    disk.mkdir()
    victim.write_text("of somebody else")
    given.write_text(marker_text(marker()))
    (disk / name).symlink_to(victim)
    for pipeline in write_file_pipelines(str(disk), str(given)):
        assert Writer().stream(pipeline).well
    assert victim.read_text() == "of somebody else"
    assert parse_marker((disk / FILE).read_bytes()) == marker()
    assert not (disk / FILE).is_symlink()
