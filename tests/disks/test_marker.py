"""The marker: what is written on a disk comes back as it was, and what is none is none."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.disks.marker import (
    marker_text,
    parse_marker,
    parse_properties,
    write_file_pipelines,
    write_properties_pipeline,
)
from orchestrator.domain.rotation import Marker
from tests.planners.rotation_world import marker

WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), min_size=1
)
MARKERS = st.builds(
    Marker, disk=WORDS, name=WORDS, set=WORDS, owner=WORDS, host=WORDS, generation=st.integers(0, 1 << 40)
)


@given(MARKERS)
def test_a_marker_comes_back(told: Marker) -> None:
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
        json.dumps({**GOOD, "owner": ""}).encode(), json.dumps({**GOOD, "name": None}).encode(),
        json.dumps({name: value for name, value in GOOD.items() if name != "set"}).encode(),
    ],
)  # fmt: skip
def test_what_is_no_marker_is_none(text: bytes) -> None:
    assert parse_marker(text) is None
    assert parse_properties(text) is None


def test_a_marker_is_whole_or_not_there() -> None:
    lines = [str(each) for each in write_file_pipelines("/m", "/notes/x")]
    assert lines == [
        "dd of=/m/.poolferry-disk.json.new conv=fsync status=none < /notes/x",
        "mv -f /m/.poolferry-disk.json.new /m/.poolferry-disk.json",
        "sync -f /m/.poolferry-disk.json",
    ]
