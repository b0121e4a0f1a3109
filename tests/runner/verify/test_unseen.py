"""A listing of a source that could not look at all of it: that is found unreadable, by its name, and nothing is called gone for it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.plan import TreeVerification
from orchestrator.domain.point import Finding, RestorePoint, Verdict, VerificationResult
from orchestrator.history.store import History, open_history
from orchestrator.process.executor import PipelineFailed, Writer
from orchestrator.runner.verify.unseen import as_far_as_seen, doubted, with_unseen
from tests.process.pipelines import reads, sh
from tests.runner.journals import journal

LOST = Finding(path=b"b", verdict=Verdict.MISSING, detail="not there")


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


def listed(says: str) -> Iterator[bytes]:
    return iter(Writer().records(reads(sh(says))))


def test_what_find_names_is_unreadable_and_what_is_lacking_may_lie_there(history: History, tmp_path: Path) -> None:
    made = journal(history, tmp_path)
    said = "printf 'a//\\0'; echo \"find: '/srv/./hers': Permission denied\" >&2; exit 1"
    assert list(as_far_as_seen(listed(said), made)) == [b"a//"]
    assert doubted(LOST, made).verdict is Verdict.UNREADABLE
    point = RestorePoint(name="p", taken=datetime(2026, 1, 1, tzinfo=UTC), tree=Location(path="/copy"), manifest=None)
    work = TreeVerification(point=point, tree=Location(path="/srv"), workers=1, of_source=True)
    none = VerificationResult(entries=1, files_read=0, bytes_read=0, took_s=0, counts=(), findings=())
    found = with_unseen(work, none, made)
    assert found.findings == (Finding(path=b"hers", verdict=Verdict.UNREADABLE, detail="Permission denied"),)
    assert dict(found.counts) == {Verdict.UNREADABLE: 1}
    known = replace(none, counts=found.counts, findings=found.findings)
    made.unseen.add("find: '/srv/./hers': Permission denied")
    assert with_unseen(work, known, made) == known, "what was found anyhow counts once"


def test_what_went_meanwhile_is_nothing_that_could_not_be_looked_at(history: History, tmp_path: Path) -> None:
    made = journal(history, tmp_path)
    said = "printf 'a//\\0'; echo \"find: '/srv/./b': No such file or directory\" >&2; exit 1"
    assert list(as_far_as_seen(listed(said), made)) == [b"a//"]
    assert (made.unseen, doubted(LOST, made)) == (set(), LOST)


@pytest.mark.parametrize("says", ["exit 1", "printf 'a//\\0'; exit 2"])
def test_no_listing_at_all_stays_a_failure(history: History, tmp_path: Path, says: str) -> None:
    with pytest.raises(PipelineFailed):
        list(as_far_as_seen(listed(says), journal(history, tmp_path)))
