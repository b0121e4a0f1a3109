"""Test which of several copies a restore takes, and what it says of the others."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from orchestrator.domain.units import Seconds
from orchestrator.planners.choose_copy import (
    CandidatePoint,
    CopyCandidate,
    CopyChoice,
    PastTransfer,
    choose_copy,
    estimate_duration,
    fetch_sentence,
    find_copies_to_fetch,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
MIB = 1 << 20


def held(
    days: float, *, verified: bool = True, sound: bool | None = None, confirmed: float | None = None
) -> CandidatePoint:
    """A point of so many days ago."""
    taken = NOW - timedelta(days=days)
    at = taken if confirmed is None else NOW - timedelta(days=confirmed)
    return CandidatePoint(
        name=f"{taken:%Y-%m-%dT%H%M%SZ}", taken=taken, at=at, verified=verified, sound=sound, bytes=600 * MIB
    )


def copy(place: str, *points: CandidatePoint, away: str = "", where: str = "", disk: str = "") -> CopyCandidate:
    return CopyCandidate(job=f"to-{place}", place=place, points=points, away=away, where=where, disk=disk)


def chosen(choice: CopyChoice) -> tuple[str | None, str | None]:
    return (choice.copy.place if choice.copy else None, choice.point.name if choice.point else None)


def test_the_newest_of_all_places() -> None:
    old, new = copy("old", held(5), held(3)), copy("new", held(4), held(2))
    assert chosen(choose_copy([old, new])) == ("new", held(2).name)
    assert choose_copy([new, old]).newer == ()


def test_what_is_damaged_or_never_proved_is_passed_over() -> None:
    damaged = copy("a", held(3), held(1, sound=False))
    unproved = copy("b", held(4), held(0.5, verified=False))
    assert chosen(choose_copy([damaged, unproved])) == ("a", held(3).name)
    assert "is damaged" in choose_copy([copy("a", held(1, sound=False))]).why
    assert "is not verified" in choose_copy([copy("a", held(1, verified=False))]).why


def test_what_is_away_is_told_and_not_taken() -> None:
    here, away = copy("here", held(3)), copy("red", held(1), away="it is not plugged in", where="office", disk="red")
    choice = choose_copy([away, here])
    assert chosen(choice) == ("here", held(3).name)
    assert [(each.place, point) for each, point in choice.newer] == [("red", held(1))]
    told = fetch_sentence(*choice.newer[0], choice.point)
    assert told == f"disk red (job to-red) holds {held(1).name}, 2 d newer: fetch it from office, and plug it in"
    assert choose_copy([here, replace(away, points=(held(9),))]).newer == ()
    told = fetch_sentence(replace(away, away="another disk has its identity"), held(1), None)
    assert told == f"disk red (job to-red) holds {held(1).name}, and cannot be used: another disk has its identity"


def test_where_all_are_away_the_newest_is_to_be_fetched() -> None:
    one, other = copy("red", held(5), away="gone", disk="red"), copy("far", held(1), away="no answer")
    choice = choose_copy([one, other])
    assert chosen(choice) == (None, None)
    assert [each.place for each, _ in choice.newer] == ["far", "red"]
    assert "can be reached" in choice.why
    assert fetch_sentence(*choice.newer[0], None).endswith("cannot be reached: no answer")
    assert "no copy" in choose_copy([]).why


def test_as_of_an_instant_and_by_name() -> None:
    one, other = copy("a", held(9), held(5)), copy("b", held(7), held(1))
    assert chosen(choose_copy([one, other], at=NOW - timedelta(days=6))) == ("b", held(7).name)
    assert chosen(choose_copy([one, other], name=held(9).name[:13])) == ("a", held(9).name)
    # What a later run found unchanged was made before, and is what was there then.
    assert chosen(choose_copy([copy("a", held(5, confirmed=1))], at=NOW - timedelta(days=3)))[1] == held(5).name


def test_a_copy_that_was_confirmed_is_as_new_as_its_confirmation() -> None:
    assert chosen(choose_copy([copy("a", held(9, confirmed=1)), copy("b", held(5))])) == ("a", held(9).name)


def test_the_longest_time_without_a_point() -> None:
    assert copy("a", held(20), held(19), held(5), held(4)).gap() == (held(19), held(5))
    assert copy("a", held(3), held(2.5)).gap() is None
    assert copy("a", held(20, confirmed=5), held(4.5)).gap() is None
    assert copy("a", held(3)).gap() is None


def test_how_long_it_takes() -> None:
    run, drill = (
        PastTransfer(kind="run", run=1, bytes=100 * MIB, took=Seconds(10)),
        PastTransfer(kind="drill", run=2, bytes=MIB, took=Seconds(1)),
    )
    restore = PastTransfer(kind="restore", run=3, bytes=2 * MIB, took=Seconds(1))
    assert estimate_duration(600 * MIB, [run, drill, restore]) == (Seconds(300), restore)
    assert estimate_duration(600 * MIB, [run]) == (Seconds(60), run)
    assert estimate_duration(600 * MIB, [replace(run, bytes=1000)]) is None
    assert estimate_duration(None, [run]) is None


def test_whom_to_fetch_for_a_file_that_is_damaged_everywhere_else() -> None:
    """Last changed ten days ago; the damaged point is of five days ago."""
    between = copy("red", held(20), held(8), disk="red", away="it is not plugged in")
    later = copy("blue", held(20), held(2), disk="blue", away="it is not plugged in")
    before = copy("old", held(20), disk="old", away="it is not plugged in")
    bad = copy("bad", held(8, sound=False), held(7, verified=False), disk="bad", away="it is not plugged in")
    here = copy("here", held(8))
    host = copy("nas", held(7), away="the host did not answer")
    plugged = copy("green", held(9), disk="green")
    own = copy("own", held(6), disk="own", away="it is not plugged in")
    told = find_copies_to_fetch(
        (later, host, before, bad, here, between, plugged, own), since=NOW - timedelta(days=10), of=NOW - timedelta(days=5),
        but=("to-own", "own"),
    )  # fmt: skip
    assert [(each.place, point.name, sure) for each, point, sure in told] == [
        ("red", held(8).name, True), ("green", held(9).name, True), ("nas", held(7).name, True), ("blue", held(2).name, False),
    ]  # fmt: skip
    unsure = find_copies_to_fetch((between,), since=NOW - timedelta(days=10), of=None, but=("", ""))
    assert [sure for _, _, sure in unsure] == [False]


def test_where_nothing_is_that_old_the_sentence_says_so() -> None:
    why = choose_copy([copy("a", held(1))], at=NOW - timedelta(days=9)).why
    assert why.startswith("no copy holds a verified and sound point as old as ")
    assert why.endswith("+00:00")


def test_a_point_that_lacks_a_part_is_no_choice_and_says_what_it_lacks() -> None:
    part = replace(held(1), missing=("tank/photos/docs",))
    assert chosen(choose_copy([copy("disk", held(3), part)])) == ("disk", held(3).name), "a whole point is preferred"
    nothing = choose_copy([copy("disk", part)])
    assert (nothing.copy, f"{part.name} is not whole: it lacks tank/photos/docs" in nothing.why) == (None, True)
