"""Engines are found by looking into their folder."""

import pytest

from orchestrator.engines.registry import engine_names, load_engine
from orchestrator.engines.rsync import RsyncEngine


def test_the_engines_that_are_there() -> None:
    assert "rsync" in engine_names()
    found: object = load_engine("rsync")
    assert isinstance(found, RsyncEngine)
    assert all(load_engine(name).name == name for name in engine_names())


@pytest.mark.parametrize("name", ["", "rsync2", "../runner", "contract", "__pycache__"])
def test_what_is_no_engine(name: str) -> None:
    with pytest.raises(KeyError):
        load_engine(name)
