"""A mirror's manifest is believed where it is not older than the last that a run wrote."""

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.point import MIRROR_MADE
from orchestrator.engines.rsync.mirror_steps import is_last_mirror
from tests.engines.rsync.builders import ASKED, NOW, ROOT, THERE, mirror


@pytest.mark.parametrize(
    ("told", "target", "seconds", "last"),
    [
        (None, ROOT, 9999, True),
        (NOW.isoformat(), ROOT, 2, True),
        (NOW.isoformat(), ROOT, 3, False),
        (NOW.isoformat(), THERE, 600, True),
        (NOW.isoformat(), THERE, 601, False),
        ("damaged", ROOT, 0, False),
        (NOW.replace(tzinfo=None).isoformat(), ROOT, 0, False),
    ],
)
def test_an_older_manifest_and_a_damaged_record_have_it_made_anew(
    told: str | None, target: Location, seconds: int, last: bool
) -> None:
    job = mirror(target=target)
    remembered = {} if told is None else {MIRROR_MADE + job.target.name: told}
    assert is_last_mirror(job, NOW - timedelta(seconds=seconds), replace(ASKED, remembered=remembered)) is last
