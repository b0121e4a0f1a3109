"""Test what the look and sanoid print, recorded from sanoid 2.1 and 2.2."""

from datetime import UTC, datetime

import pytest

from orchestrator.engines.sanoid import ENGINE
from orchestrator.engines.sanoid.model import SanoidReport, SanoidSnapshot
from orchestrator.engines.sanoid.parse import parse_output, parse_survey, parse_version
from tests.engines.sanoid.builders import ROOT

A, B, C = (f"tank/{name}@autosnap_2026-11-20_15:10:58_daily" for name in ("a", "a/b", "a/c d"))


def test_a_look() -> None:
    text = (
        b"1795187460\ntank/photos\t41\t-\ttank/photos\ntank/photos/my own\t42\t-\ttank/photos/my own\n\n"
        b"1795187458\ttank/photos@autosnap_2026-11-20_15:10:58_monthly\n"
        b"1795187459\ttank/photos@by-hand\n"
        b"1795187459\ttank/photos@syncoid_master_2026-11-20:15:10:59-GMT00:00\n"
        b"1795187460\ttank/photos@autosnap_2026-11-20_15:11:00dst_hourly\n"
        b"1795187460\ttank/photos@autosnap_rather_nightly\n"
    )
    world = parse_survey(text, ROOT)
    assert world.at == datetime(2026, 11, 20, 15, 11, tzinfo=UTC)
    assert world.guid == 41
    assert world.datasets == ("tank/photos", "tank/photos/my own")
    first = SanoidSnapshot(name="autosnap_2026-11-20_15:10:58_monthly", kind="monthly", at=world.snapshots[0].at)
    assert world.snapshots[0] == first
    assert [each.kind for each in world.snapshots] == ["monthly", "hourly"]
    assert world.of("hourly")[0].at == world.at


def test_what_is_being_restored_is_marked() -> None:
    assert parse_survey(b"1\ntank/photos\t41\tLceb\ttank/photos\n\n", ROOT).restoring
    assert not parse_survey(b"1\ntank/photos\t41\tLce\ttank/photos\n\n", ROOT).restoring
    below = parse_survey(b"1\ntank/photos\t41\t-\ttank/photos\ntank/photos/x\t42\tLceb\ttank/photos/x\n\n", ROOT)
    asked = [ENGINE.is_being_restored(below, known=known) for known in (False, True)]
    assert asked == [False, True], "whoever may set a property below stops no snapshot of others"


X = "tank/photos/x"


@pytest.mark.parametrize("after", ["", "tank/photos/y\t43\t-\ttank/photos/y\n"])
@pytest.mark.parametrize(
    "value",
    [
        "x\ntank/photos\t9\tLceb",
        "\n\n9\ttank/photos@autosnap_2099-01-01_00:00:00_daily",
        "x\n\n",
        "x\n;\t5\tLceb\ntank/photos/y\tz",
        "\t\t",
        f"-\t{X}\ntank/photos/y\t9\tLceb\ttank/photos/y\nx\t1\t-",
        f"-\t{X}\ntank/photos/ghost\t9\tLceb\ttank/photos/ghost\n{X}\t42\t-",
    ],
)
def test_a_mark_of_several_lines_is_no_listing(value: str, after: str) -> None:
    """Then each mark is asked for by itself, on one line."""
    text = f"1\ntank/photos\t41\t-\ttank/photos\n{X}\t42\t{value}\t{X}\n{after}\n1\ttank/photos@autosnap_2026-11-20_15:10:58_daily\n"
    with pytest.raises(ValueError, match="a mark of several lines"):
        parse_survey(text.encode(), ROOT)


def test_a_dataset_without_snapshots_is_no_broken_look() -> None:
    assert parse_survey(b"1\ntank/photos\t41\t-\ttank/photos\n\n", ROOT).snapshots == ()


@pytest.mark.parametrize(
    "text",
    [b"", b"1\ntank/photos\t41\t-\ttank/photos\n", b"x\ntank\t1\t-\ttank\n\n", b"1\ntank\tx\t-\ttank\n\n", b"1\n\n"],
)
def test_a_broken_look_is_never_an_empty_one(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"broke off|listed no tank/photos|lists no dataset so"):
        parse_survey(text, ROOT)


def test_versions() -> None:
    assert parse_version("/usr/sbin/sanoid version 2.2.0\n(Getopt::Long::GetOptions version 2.57)") == (2, 2, 0)
    assert parse_version("sanoid: not found") is None


def test_what_was_taken() -> None:
    said = (
        f"INFO: cache expired - updating from zfs list.\nINFO: taking snapshots...\ntaking snapshot {A} (zfs recursive)\n"
        f"taking snapshot {C}\ntaking dst snapshot tank/a@autosnap_2026-10-25_02:00:00dst_hourly\ntaking snapshot {B}\n"
        f"CRITICAL ERROR: zfs snapshot {B} failed, 512 at /usr/sbin/sanoid line 644.\n"
    )
    assert parse_output(said) == SanoidReport(taken=(A, C, "tank/a@autosnap_2026-10-25_02:00:00dst_hourly"))
    assert parse_output(f"taking snapshot {A} {'x' * 5000}\ntaking snapshot {C}\n").taken == (C,), "no name is so long"


HELD = f"cannot destroy snapshot {B}: it's being held. Run 'zfs holds -r {B}' to see holders.\n"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (HELD, "it's being held"),
        (f"cannot destroy snapshot {B}: dataset is busy\n", "dataset is busy"),
        (
            f"cannot destroy '{B}': snapshot has dependent clones\nuse '-R' to destroy …\n",
            "snapshot has dependent clones",
        ),
        ("", "zfs did not say why"),
    ],
)
def test_what_was_removed_and_what_stays(words: str, why: str) -> None:
    pruned = (
        f"INFO: pruning snapshots...\nINFO: pruning {A} ... \nINFO: removing destroyed snapshots from cache.\n"
        f"INFO: pruning {B} ... \nINFO: pruning {C} ... \n"
    )
    said = f"{pruned}{words}could not remove {B} : 256 at /usr/sbin/sanoid line 360.\n"
    assert parse_output(said) == SanoidReport(removed=(A, C), kept=((B, why),))


@pytest.mark.parametrize(
    "words",
    [
        f"INFO: deferring pruning of {A} - tank/a is currently in zfs send or receive.",
        "INFO: deferring snapshot pruning - valid pruning lock held by other sanoid process.",
        "INFO: deferring snapshot pruning (tank/a)...",
    ],
)
def test_what_was_left_for_later(words: str) -> None:
    pruning = f"INFO: pruning {A} ... \n" if "pruning of" in words else ""
    assert parse_output(pruning + words) == SanoidReport(deferred=True)
