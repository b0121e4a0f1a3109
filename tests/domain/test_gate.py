"""The folder of a gate is one plain absolute path."""

import pytest

from orchestrator.domain.gate import parse_gate_folder


@pytest.mark.parametrize("path", ["/srv", "/srv/photos", "/srv/a-b_c,d", "/srv/..a/.b"])
def test_a_plain_path(path: str) -> None:
    assert parse_gate_folder(path) == path


@pytest.mark.parametrize(
    "path", ["", "/", "//", "srv", "/srv/", "/srv//a", "/srv/.", "/srv/../etc", "ssh://nas/srv", "/srv/a b", "/srv/é"]
)
def test_another_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="an absolute path"):
        parse_gate_folder(path)
