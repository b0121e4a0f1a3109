"""Removable disks in the history: who they are, their visits, where they were."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.errors import HistoryError
from orchestrator.domain.rotation import DiskLocation, DiskRecord, DiskState
from orchestrator.history.disks import DiskHistoryWriter
from orchestrator.history.store import open_history
from tests.history.records import NOON, ODD, later


def known(disk: str = "d1", name: str = "red", **more: Any) -> DiskRecord:
    told = {
        "set": "offsite", "identity": "0b7f", "content": "ext4", "size": 1 << 41, "serial": ODD, "model": ODD, "wwn": "",
        "generation": 0, "written": 0, "enrolled": NOON, "standing": DiskState.ACTIVE,
    }  # fmt: skip
    return DiskRecord(disk=disk, name=name, **{**told, **more})


@pytest.fixture
def book(tmp_path: Path) -> Iterator[DiskHistoryWriter]:
    with open_history(str(tmp_path / "history.sqlite")) as history:
        yield history.disks


def test_a_disk_comes_back_as_it_was_told(book: DiskHistoryWriter) -> None:
    book.keep(known())
    assert book.known() == (known(),)
    assert book.named("red") == known()
    assert book.named("blue") is None


def test_a_disk_that_is_readopted_keeps_its_enrolment(book: DiskHistoryWriter) -> None:
    book.keep(known())
    book.keep(known(name="crimson", generation=7, written=7, enrolled=later(days=1)))
    assert book.known() == (known(name="crimson", generation=7, written=7),)


def test_of_two_disks_of_one_name_the_later_is_meant(book: DiskHistoryWriter) -> None:
    book.keep(known("d1"))
    book.keep(known("d2", enrolled=later(days=300)))
    found = book.named("red")
    assert found is not None
    assert found.disk == "d2"


def test_a_generation_is_decided_before_it_is_written(book: DiskHistoryWriter) -> None:
    book.keep(known())
    book.decide_generation("d1", 1)
    assert [(each.generation, each.written) for each in book.known()] == [(1, 0)]
    book.generation_written("d1", 1)
    assert [(each.generation, each.written) for each in book.known()] == [(1, 1)]


def test_what_a_person_told(book: DiskHistoryWriter) -> None:
    book.keep(known())
    book.keep(known("d2", "blue"))
    book.stands("d1", DiskState.LOST)
    assert [each.standing for each in book.known()] == [DiskState.LOST, DiskState.ACTIVE]


def test_visits(book: DiskHistoryWriter) -> None:
    for disk in ("d1", "d2"):
        book.keep(known(disk))
    first, second, other = (book.begin_visit(disk, later(hours=at)) for at, disk in enumerate(("d1", "d1", "d2")))
    assert [(each.id, each.outcome, each.released) for each in book.visits("d1", 9)] == [
        (second, "open", None), (first, "open", None),
    ]  # fmt: skip
    book.visit_ended(second, jobs=["photos", ODD], outcome="done", why=ODD, released=later(hours=9), safe=True)
    last = book.last_visits()
    assert (last["d1"].jobs, last["d1"].why, last["d1"].released, last["d1"].safe) == (
        ("photos", ODD), ODD, later(hours=9), True,
    )  # fmt: skip
    assert (last["d2"].id, last["d2"].safe, last["d2"].arrived) == (other, False, later(hours=2))
    assert len(book.visits("d1", 1)) == 1


def test_what_a_disk_said_of_itself_and_how_slow_it_was(book: DiskHistoryWriter) -> None:
    for disk, name in (("d1", "red"), ("d2", "blue"), ("d3", "green")):
        book.keep(known(disk, name))
    first, second, third = (book.begin_visit("d1", later(hours=at)) for at in range(3))
    other = book.begin_visit("d2", NOON)
    assert book.last_healths() == {}
    book.visit_health(first, "")
    book.visit_health(second, ODD)
    book.visit_health(third, None)
    book.visit_health(other, "")
    assert {disk: (each.id, each.health) for disk, each in book.last_healths().items()} == {
        "d1": (second, ODD), "d2": (other, ""),
    }  # fmt: skip
    book.visit_is_slow("red", ODD)
    assert [(each.id, each.slow) for each in book.visits("d1", 9)] == [(third, ODD), (second, ""), (first, "")]
    book.visit_ended(other, jobs=[], outcome="done", why="", released=None, safe=True)
    book.visit_is_slow("blue", "slow")
    book.visit_is_slow("green", "slow")
    assert {disk: each.slow for disk, each in book.last_visits().items()} == {"d1": ODD, "d2": ""}


def test_where_a_disk_was(book: DiskHistoryWriter) -> None:
    book.keep(known())
    book.is_at("d1", "attached", note="", now=NOON)
    book.is_at("d1", "office", note=ODD, now=later(days=1))
    office = DiskLocation(place="office", since=later(days=1), note=ODD)
    assert book.whereabouts("d1", 9) == (office, DiskLocation(place="attached", since=NOON, note=""))
    assert book.places() == {"d1": office}


def test_what_is_told_of_a_disk_nobody_knows_is_refused(book: DiskHistoryWriter) -> None:
    with pytest.raises(HistoryError):
        book.begin_visit("d9", NOON)
    with pytest.raises(HistoryError):
        book.is_at("d9", "office", note="", now=NOON)
