"""Points that lack datasets: which those are, by what both sides hold; and what history remembers of them."""

from typing import Any

import pytest

from orchestrator.engines.zfs.survey import survey as zfs_survey
from orchestrator.engines.zfs.survey.survey import incomplete_points
from orchestrator.process.scripted import ScriptedExecutor
from orchestrator.runner.problems import missing_parts
from tests.engines.zfs.sides import COPY, SOURCE, A, B, C, dataset, side, world

LACKS = [
    ((A, B, C), {}),
    ((A, B), {"c": ("docs",)}),
    ((), {"a": ("docs",), "b": ("docs",), "c": ("docs",)}),
    ((C,), {}),  # past the older ones, as with catch-up = "newest"
]


@pytest.mark.parametrize(("copied", "lacks"), LACKS)
def test_a_point_is_whole_only_where_every_dataset_has_it(
    monkeypatch: pytest.MonkeyPatch, copied: tuple[Any, ...], lacks: dict[str, tuple[str, ...]]
) -> None:
    source = side(SOURCE, dataset("", A, B, C), dataset("docs", A, B, C), dataset("new", C), dataset("odd"))
    below = [dataset("docs", *copied)] if copied else []
    copy = side(COPY, dataset("", A, B, C), *below, dataset("new", C))
    monkeypatch.setattr(zfs_survey, "survey_copy", lambda *_: world(source, copy))
    found = incomplete_points(None, source, {}, ScriptedExecutor({}))  # type: ignore[arg-type]
    expected = {name: tuple(f"{SOURCE.path}/{each}" for each in lacks.get(name, ())) for name in ("a", "b", "c")}
    assert found == expected


def test_what_the_source_shows_no_more_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a dataset that came back older, or is gone, nobody can say any more that it once had the point."""
    copy = side(COPY, dataset("", A, B, C), dataset("docs", A), dataset("mended", A, B))
    monkeypatch.setattr(zfs_survey, "survey_copy", lambda *_: world(SOURCE_NOW, copy))
    known = {name: tuple(f"{SOURCE.path}/{each}" for each in ("docs", "mended", "gone")) for name in ("b", "c")}
    found = incomplete_points(None, SOURCE_NOW, known, ScriptedExecutor({}))  # type: ignore[arg-type]
    assert found == {"a": (), "b": known["b"][::2], "c": known["c"]}


SOURCE_NOW = side(SOURCE, dataset("", A, B, C), dataset("docs", A), dataset("mended", A, B))


def test_a_source_that_is_not_there_shows_nothing() -> None:
    assert incomplete_points(None, side(SOURCE), {}, ScriptedExecutor({})) == {}  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "parts"), [('["tank/docs"]', ("tank/docs",)), ("[]", ()), ("{", ()), ("{}", ())])
def test_what_a_point_lacks_is_remembered(text: str, parts: tuple[str, ...]) -> None:
    assert missing_parts({"missing on red c": text}, "red", "c") == parts
    assert missing_parts({"missing on red c": text}, "blue", "c") == ()
