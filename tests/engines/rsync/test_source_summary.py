"""The listing of what may be a first copy begins before the target is looked at, and is only believed where it is one."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.domain.place import USED
from orchestrator.domain.units import Bytes
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync import next_look
from orchestrator.engines.rsync.model import WORK, RsyncSurvey
from orchestrator.engines.rsync.source_summary import EarlyListing, all_are_small, begin_early_listing, survey_tree
from orchestrator.engines.rsync.survey import survey
from orchestrator.process.executor import Reader
from orchestrator.runner.context import begin_bare_look
from tests.engines.rsync.builders import NOW, THERE
from tests.engines.rsync.trees import Trees
from tests.processes import is_there


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    """A source with a file in a folder, and no target."""
    made = Trees(tmp_path)
    made.write("folder/file", "content")
    return made


def request(trees: Trees, **more: Any) -> RunRequest:
    return RunRequest(now=NOW, notes=str(trees.notes), **{"bare": begin_bare_look, **more})


def look(trees: Trees) -> RsyncSurvey:
    return survey(trees.job(), request(trees), Reader())


def begun(job: Job, wanted: RunRequest) -> bool:
    with ExitStack() as until:
        return begin_early_listing(job, wanted, Reader(), until) is not None


@pytest.mark.namespace
def test_a_first_copy_needs_no_look_for_attributes_where_no_entry_has_some(trees: Trees) -> None:
    seen = look(trees)
    assert seen.bare
    assert seen.changes
    assert (seen.changes.entries_now, seen.changes.moving) == (2, len("content"))
    os.setxattr(trees.source / "folder/file", "user.mark", b"x")
    assert look(trees).bare is None


@pytest.mark.namespace
def test_what_cannot_be_read_costs_no_other_entry_its_place_in_the_listing(
    trees: Trees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """find tells of it by its exit, behind all that it listed; so it does of a folder that has just gone."""
    (tmp_path / "find").write_text('#!/bin/sh\nPATH=/usr/bin:/bin\nfind "$@"\nexit 1\n')
    (tmp_path / "find").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with ExitStack() as until:
        listing = begin_early_listing(trees.job(), request(trees), Reader(), until)
        assert listing is not None
        listed, _, _ = listing.result()
        assert (listed.totals(), listing.digests is None) == ((2, len("content")), False)


@pytest.mark.parametrize("path", ["", "/gone"])
def test_rsync_looks_where_a_change_may_have_no_time_or_nothing_was_listed(
    trees: Trees, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not path:
        monkeypatch.setattr(next_look, "_FILESYSTEMS", {})
    ours = trees.job()
    ours = replace(ours, source=replace(ours.source, path=ours.source.path + path))
    with ExitStack() as until:
        listing = begin_early_listing(ours, request(trees), Reader(), until)
        assert listing is not None
        listing.result()
        assert listing.digests is None


def test_copies_that_the_history_does_not_know_are_compared_with_the_source(trees: Trees) -> None:
    """The state was lost: what was listed on trust is not taken for a first copy."""
    trees.point()
    trees.write("folder/new")
    seen = look(trees)
    assert (seen.bare, [each.name for each in seen.points] != []) == (None, True)
    assert seen.changes
    assert (seen.changes.entries_before, seen.changes.created) == (2, 1)


def test_a_half_copy_that_the_history_does_not_know_may_have_attributes(trees: Trees) -> None:
    trees.mark()
    (trees.target / WORK).mkdir()
    seen = look(trees)
    assert (seen.target.work, seen.bare) == (True, None)


def test_what_rsync_has_to_look_at_is_not_listed_early(trees: Trees) -> None:
    ours = trees.job()
    assert begun(ours, request(trees))
    for known in (
        {"remembered": {USED: "/target"}},
        {"refused": {b"name": "too long"}},
        {"again": True},
        {"bare": None},
    ):
        assert not begun(ours, request(trees, **known)), known
    for other in (trees.job(excludes=("*.tmp",)), trees.job(xattrs=False)):
        assert not begun(other, request(trees)), other
    far = replace(ours, target=replace(ours.target, location=THERE))
    pulled = replace(ours, source=THERE)
    for known in ({"remembered": {USED: "/target"}}, {"refused": {b"name": "too long"}}, {"again": True}):
        assert not begun(far, request(trees, **known)), known
    assert not begun(pulled, request(trees))


def test_a_source_whose_copies_go_to_a_host_is_listed_while_that_is_reached(trees: Trees) -> None:
    """Without the look for attributes, as nothing tells of those that a folder there hands on."""
    ours = trees.job()
    far = replace(ours, target=replace(ours.target, location=THERE))
    for asked in (request(trees), request(trees, bare=None)):
        with ExitStack() as until:
            listing = begin_early_listing(far, asked, Reader(), until)
            assert listing is not None
            found, holes, reserved = listing.result()
            expected = survey_tree(far, Reader())
            assert (found.totals(), holes, reserved) == (expected[0].totals(), *expected[1:])
            assert listing.digests is None


@pytest.mark.parametrize(
    ("far", "largest", "rate", "small"),
    [
        (True, 65_535, None, True), (True, 65_536, None, False), (True, 1, Bytes(1000), False),
        (False, 65_536, None, True), (False, 1 << 20, None, False),
    ],
)  # fmt: skip
def test_only_small_files_go_without_remainders(
    trees: Trees, far: bool, largest: int, rate: Bytes | None, small: bool
) -> None:
    ours = trees.job()
    ours = replace(ours, pipe=replace(ours.pipe, rate_limit=rate))
    ours = replace(ours, target=replace(ours.target, location=THERE)) if far else ours
    listed, _, _ = survey_tree(trees.job(), Reader())
    listed.largest = largest
    with ExitStack() as until:
        early = begin_early_listing(ours, request(trees), Reader(), until)
        assert all_are_small(ours, listed, early=early) is small


@pytest.mark.parametrize("leave", [EarlyListing.end, lambda listing: listing.__exit__(None, None, None)])
def test_one_that_is_not_needed_is_ended(
    trees: Trees, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leave: Callable[[EarlyListing], None]
) -> None:
    """A source whose listing takes hours: the run, or its error, does not wait for that."""
    programs, told = tmp_path / "programs", tmp_path / "told"
    programs.mkdir()
    os.mkfifo(told)
    (programs / "find").write_text(f"#!/bin/sh\necho $$ > {told}\nexec sleep 3600\n")
    (programs / "find").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with ExitStack() as until:
        listing = begin_early_listing(trees.job(), request(trees), Reader(), until)
        assert listing is not None
        pid = int(told.read_text())
        leave(listing)
        assert not is_there(pid)
        with pytest.raises(OrchestratorError):
            listing.result()
