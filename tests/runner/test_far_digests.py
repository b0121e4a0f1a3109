"""Digests from a host that may be hostile: of bytes, of a line and of time it gets no more than its files can need."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.errors import OrchestratorError, Stalled
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.engines.rsync.engine import RsyncEngine
from orchestrator.history.store import History, open_history
from orchestrator.process.executor import Writer
from orchestrator.runner import far_digests
from tests.process.pipelines import reads, sh
from tests.runner.journals import journal

LINE = "pf:>f+++++++++|1|0|%s|%%s\\n" % ("a" * 32)


class Answers(RsyncEngine):
    """Lets a program here answer for the host."""

    def __init__(self, script: str) -> None:
        self._script = script

    def digests(self, tree: Location, names: str, *more: Any, **others: Any) -> Any:
        _, parser = super().digests(tree, names, *more, **others)
        return Pipeline(stages=reads(sh(self._script)).stages, reads=names), parser


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


def told(history: History, folder: Path, script: str, *, whole: bool = False) -> list[tuple[bytes, str]]:
    made = journal(history, folder)
    engine: Any = Answers(script)
    made.tools = replace(made.tools, engine=engine)
    (folder / "names").write_bytes(b"a\0b\0")
    tree, notes = Location(path="/copy"), str(folder / "notes")
    return list(
        far_digests.digests_there(tree, str(folder / "names"), "xxh128", made, Writer(), notes, size=10, whole=whole)
    )


def test_what_is_told_of_the_files_is_taken(history: History, tmp_path: Path) -> None:
    found = told(history, tmp_path, f"xargs -0 printf '{LINE}'")
    assert found == [(name, "xxh128:" + "a" * 32) for name in (b"a", b"b")]


@pytest.mark.parametrize("whole", [True, False])
def test_an_answer_without_an_end_is_ended_and_told(
    history: History, tmp_path: Path, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far_digests, "_OTHERS", 1 << 16)
    monkeypatch.setattr(far_digests, "_ALL_OTHERS", 1 << 16)
    with pytest.raises(OrchestratorError, match="said more than an answer may hold"):
        told(history, tmp_path, f"printf '{LINE}' x; yes '{LINE % 'x'}' | head -c 8000000; sleep 60", whole=whole)


def test_a_line_without_an_end_is_told(history: History, tmp_path: Path) -> None:
    with pytest.raises(OrchestratorError, match="cannot be read: a line of more than 65536 bytes"):
        told(history, tmp_path, "head -c 200000 /dev/zero")


def test_a_host_that_goes_on_for_ever_is_ended(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far_digests, "LONGEST_LISTING", Seconds(0.3))
    with pytest.raises(Stalled, match="did not answer in time"):
        told(history, tmp_path, "while :; do echo; sleep 0.05; done")
