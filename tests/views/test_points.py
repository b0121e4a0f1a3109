"""Test the table of points: what was read again is told apart from what was only compared by guid, or in part."""

from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.history.values import PointRecord, VerificationRecord
from orchestrator.views.run_history import PointTable, points_lines, points_value
from tests.engines.zfs.sides import job

NOW = datetime(2026, 3, 4, tzinfo=UTC)


def reading(scope: str) -> VerificationRecord:
    return VerificationRecord(
        id=1, read_at=NOW, scope=scope, entries=1, files_read=0, bytes_read=0, took_s=0.0, sound=True, counts=(), left_out=0
    )  # fmt: skip


@pytest.mark.parametrize(
    ("known", "shown"),
    [
        ({"sound": None, "reading": None}, " never "),
        ({"sound": True, "reading": reading("look")}, " never "),
        ({"sound": True, "reading": reading("part")}, " in part "),
        ({"sound": True, "reading": reading("look"), "whole_at": NOW}, " sound today "),
        ({"sound": False, "reading": reading("look")}, " DAMAGED "),
    ],
)
def test_only_what_was_read_is_called_sound(known: dict[str, Any], shown: str) -> None:
    about: dict[str, Any] = {"whole_at": None, "run": 1, "entries": None, "bytes": None, "confirmed_at": None, **known}
    point = PointRecord(
        job="photos", place="vault", name="c", taken_at=NOW, made_at=NOW, verified_at=NOW, **about
    )  # fmt: skip
    table = PointTable(
        jobs=(job(),),
        known={"photos": (point,)},
        used={"photos": "vault/copies"},
        problems={"photos": ()},
        unseen={"photos": {}},
        earlier={"photos": ("/backup/a b/.poolferry/history-before-x.sqlite",)},
    )
    assert shown in points_lines(table, now=NOW)[1]
    assert "rm -- '/backup/a b/.poolferry/history-before-x.sqlite'`" in points_lines(table, now=NOW)[-1]
    assert [each["file"] for each in points_value(table)["earlier_histories"]] == list(table.earlier["photos"])
