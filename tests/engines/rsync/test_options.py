"""Keys of [rsync] that do not fit together are named, each with what is expected."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.job import VerifyRules
from orchestrator.domain.place import Location
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.rsync.options import RsyncOptions, mistakes, options_of
from tests.engines.rsync.builders import HOST, job

HERE, THERE = Location(path="/a"), Location(path="/a", host=HOST)


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ({}, []),
        ({"points": False, "delete": True, "in_place": True, "sparse": False}, []),
        ({"parallel": 8}, []),
        ({"in_place": True}, ["rsync.in-place", "rsync.in-place"]),
        ({"in_place": True, "sparse": False}, ["rsync.in-place"]),
        ({"in_place": True, "points": False}, ["rsync.in-place"]),
        ({"delete": True}, ["rsync.delete"]),
        ({"parallel": 2, "points": False}, ["rsync.parallel"]),
        ({"fake_super": True}, []),
        ({"fake_super": True, "parallel": 2}, ["rsync.parallel"]),
    ],
)
def test_keys_that_do_not_fit_together(options: dict[str, Any], keys: list[str]) -> None:
    found = list(mistakes(RsyncOptions(**options), SourceTree(root=HERE), THERE, VerifyRules()))
    assert [key for key, _, _ in found] == keys
    assert all(what and expected for _, what, expected in found)


def test_metadata_are_kept_in_attributes_of_what_this_machine_sends() -> None:
    options = RsyncOptions(fake_super=True)
    assert not list(mistakes(options, SourceTree(root=HERE), HERE, VerifyRules()))
    assert [key for key, _, _ in mistakes(options, SourceTree(root=THERE), HERE, VerifyRules())] == ["rsync.fake-super"]
    assert [key for key, _, _ in mistakes(options, SourceTree(root=HERE), HERE, VerifyRules(digest="blake3"))] == [
        "verify.digest"
    ]


def test_one_side_must_be_here() -> None:
    assert not list(mistakes(RsyncOptions(), SourceTree(root=HERE), HERE, VerifyRules()))
    assert not list(mistakes(RsyncOptions(), SourceTree(root=THERE), HERE, VerifyRules()))
    assert [key for key, _, _ in mistakes(RsyncOptions(), SourceTree(root=THERE), THERE, VerifyRules())] == ["source"]


def test_only_our_own_section_is_taken() -> None:
    assert options_of(job(parallel=3)).parallel == 3
    with pytest.raises(TypeError, match="job photos is no rsync job"):
        options_of(replace(job(), options=object()))


def test_a_digest_that_the_far_side_cannot_make_is_a_mistake() -> None:
    [(key, what, _)] = mistakes(RsyncOptions(), SourceTree(root=HERE), THERE, VerifyRules(digest="blake3"))
    assert (key, "could never be verified" in what) == ("verify.digest", True)
    assert not list(mistakes(RsyncOptions(), SourceTree(root=THERE), HERE, VerifyRules(digest="blake3")))
