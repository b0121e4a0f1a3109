"""Engines are found by looking into their folder."""

from datetime import UTC, datetime

import pytest

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.place import Location
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.contract.copies import (
    ChangeReporter,
    Confirmer,
    Copier,
    PartialCopier,
    PointRemover,
    SizeEstimator,
)
from orchestrator.engines.contract.engine import Engine, implements
from orchestrator.engines.contract.restore import FileRestorer
from orchestrator.engines.registry import engine_names, load_engine
from orchestrator.engines.rsync import RsyncEngine
from orchestrator.runner.context import file_restorer


def test_the_engines_that_are_there() -> None:
    assert "rsync" in engine_names()
    found: object = load_engine("rsync")
    assert isinstance(found, RsyncEngine)
    assert all(load_engine(name).name == name for name in engine_names())


@pytest.mark.parametrize("name", ["", "rsync2", "../runner", "contract", "__pycache__"])
def test_what_is_no_engine(name: str) -> None:
    with pytest.raises(KeyError):
        load_engine(name)


# (engine, the protocols of copying that it implements, why no file can be brought back by it)
WITHOUT_COPIES: tuple[tuple[str, tuple[type, ...], str], ...] = (
    ("pool", (Confirmer,), "watches a pool"),
    ("prune", (Confirmer,), "only removes"),
    ("sanoid", (), "only takes snapshots"),
)


@pytest.mark.parametrize(("name", "implemented", "why"), WITHOUT_COPIES)
def test_an_engine_that_copies_nothing_says_what_does_instead(
    name: str, implemented: tuple[type, ...], why: str
) -> None:
    engine: Engine = load_engine(name)
    for protocol in (ChangeReporter, Confirmer, Copier, FileRestorer, PartialCopier, PointRemover, SizeEstimator):
        assert implements(engine, protocol) is (protocol in implemented), protocol
    point = RestorePoint(
        name="a", taken=datetime(2026, 11, 20, tzinfo=UTC), tree=Location(path="tank@a"), manifest=None
    )
    with pytest.raises(OrchestratorError, match=why) as raised:
        file_restorer(engine, point)
    assert raised.value.hint
