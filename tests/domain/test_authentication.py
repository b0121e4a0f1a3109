"""Judgement of tags over manifests and markers: who made them, and what is said of one that is not this host's."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from orchestrator.domain.answers import NOT_READ
from orchestrator.domain.authentication import (
    AuthenticationKey,
    Authenticity,
    ManifestTag,
    expected_key,
    judge_manifest,
    judge_marker,
    parse_uses,
    tag_marker,
)
from orchestrator.domain.rotation import Disk, DiskMarker

MADE = datetime(2026, 11, 1, tzinfo=UTC)
KEY, OTHER = AuthenticationKey(b"k" * 32, MADE), AuthenticationKey(b"o" * 32, MADE)
DISK = Disk(name="red", set="offsite", identity="u-1", content="ext4")
MARKER = DiskMarker(disk="d-1", name="red", set="offsite", owner="m-1", host="nas", generation=3)
TAG = ManifestTag(job="photos", point="p", key=KEY.id, right=True)


def test_a_key_has_32_bytes_and_never_shows_them() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        AuthenticationKey(b"short", MADE)
    assert repr(KEY) == f"AuthenticationKey({KEY.id})"
    assert KEY.manifest_hash().hexdigest() != OTHER.manifest_hash().hexdigest()


@pytest.mark.parametrize(
    ("tag", "expected", "shown", "says"),
    [
        (TAG, KEY.id, Authenticity.AUTHENTIC, ""),
        (TAG, None, Authenticity.AUTHENTIC, ""),
        (replace(TAG, right=False), KEY.id, Authenticity.FORGED, "was changed by somebody"),
        (replace(TAG, point="q"), KEY.id, Authenticity.FORGED, "was replaced by that of point q of photos"),
        (replace(TAG, job="music"), KEY.id, Authenticity.FORGED, "was replaced by that of point p of music"),
        (replace(TAG, key=""), None, Authenticity.EARLIER, ""),
        (replace(TAG, key=""), KEY.id, Authenticity.FORGED, "the tag that this host gave it is gone"),
        (replace(TAG, key=OTHER.id), KEY.id, Authenticity.FORGED, f"its tag is of the key {OTHER.id}"),
        (replace(TAG, key=OTHER.id), OTHER.id, Authenticity.OTHER_KEY, f"its key {OTHER.id} is not on this machine"),
        (replace(TAG, key=OTHER.id), None, Authenticity.OTHER_KEY, "cannot be authenticated"),
    ],
)
def test_a_manifest_is_judged_by_its_tag_and_by_what_is_remembered(
    tag: ManifestTag, expected: str | None, shown: Authenticity, says: str
) -> None:
    judged = judge_manifest(tag, job="photos", point="p", key=KEY.id, expected=expected)
    assert judged.shown is shown
    assert says in judged.says
    assert bool(judged.says) is bool(says)


def test_the_key_that_a_manifest_should_have_is_that_of_its_time() -> None:
    uses = (("first", datetime(2026, 1, 1, tzinfo=UTC)), ("second", datetime(2026, 6, 1, tzinfo=UTC)))
    assert expected_key(uses, datetime(2025, 12, 31, tzinfo=UTC)) is None
    assert expected_key(uses, datetime(2026, 3, 1, tzinfo=UTC)) == "first"
    assert expected_key(uses, None) == "second"
    assert parse_uses(json.dumps([(key, since.isoformat()) for key, since in uses])) == uses
    assert parse_uses("") == ()
    for damaged in ("{", '[["first"]]', '[["first", "2026-01-01"]]'):
        with pytest.raises(NOT_READ):
            parse_uses(damaged)


def test_a_marker_is_judged_by_its_tag_and_by_the_last_visit() -> None:
    ours = tag_marker(MARKER, DISK, KEY)
    assert judge_marker(ours, DISK, KEY, tagged=True) is Authenticity.AUTHENTIC
    assert judge_marker(replace(ours, generation=4), DISK, KEY, tagged=True) is Authenticity.FORGED
    assert judge_marker(ours, replace(DISK, identity="u-2"), KEY, tagged=False) is Authenticity.FORGED
    assert judge_marker(MARKER, DISK, KEY, tagged=True) is Authenticity.FORGED
    assert judge_marker(MARKER, DISK, KEY, tagged=False) is Authenticity.EARLIER
    assert judge_marker(tag_marker(MARKER, DISK, OTHER), DISK, KEY, tagged=False) is Authenticity.OTHER_KEY
