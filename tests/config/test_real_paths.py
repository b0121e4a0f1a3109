"""A path whose links are exchanged between two looks at it stands as it is written; `tests/hostile/test_races.py` does that for real."""

import errno
import os

import pytest

from orchestrator.config.real_paths import RealPaths
from orchestrator.process.mounted import find_inner_path, find_mounts_below


def test_a_link_that_is_none_any_more_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's word for it, which os.path.realpath passes on."""

    def exchanged(path: str) -> str:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)

    monkeypatch.setattr(os.path, "realpath", exchanged)
    assert RealPaths(["/hers/./place"])["/hers/./place"] == "/hers/place"
    assert find_inner_path("/hers/place") is None
    assert find_mounts_below("/hers/place", []) == ()
