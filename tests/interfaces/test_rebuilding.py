"""What a pool that is made anew is told of: what to say, what is missing, whether it is another one; and how it is shown. Reads."""

from datetime import UTC, datetime

from orchestrator.domain.job import Job
from orchestrator.domain.leaving import Copy, Held, KitFacts, PoolSeen
from orchestrator.domain.place import Location, Place
from orchestrator.history.rebuilds import Rebuild
from orchestrator.interfaces.cli.rebuilding import leaving_lines
from orchestrator.interfaces.rebuilding import Here, is_anew, judged, lines_to_make, missing, parts

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
ABOVE = "zfs create -o compression=lz4 'tank/my data'"
FACTS = KitFacts(top_guid=1, create="zpool create tank a", above=(ABOVE,), guids={"tank/my data/a": (5, 6)})


def job(source: str = "tank/my data/a", target: str = "vault") -> Job:
    place = Place(name=target, location=Location(path=f"{target}/copies/a"))
    return Job(name="a", file="a.toml", engine="zfs", source=Location(path=source), target=place, options=None)


def held(name: str, *guids: int, guid: int = 9) -> Held:
    snapshots = tuple((f"s{one}", one) for one in guids)
    return Held(name=name, volume=False, guid=guid, snapshots=snapshots, written=0, empty=not guids)


def here(*datasets: Held, copies: tuple[Copy, ...] = ()) -> Here:
    return Here(
        pool=PoolSeen(name="tank", datasets=datasets), jobs=(job(),), placed=tuple((job(), one) for one in copies)
    )


def copy(*guids: int, place: str = "vault") -> Copy:
    return Copy(job="a", place=place, held={"tank/my data/a": frozenset(guids)}, known_at=NOW)


AWAY = Copy(job="a", place="red", held=None, why="its pool is not imported", known_at=NOW)


def test_what_the_user_has_to_say() -> None:
    assert lines_to_make("tank", {"a": FACTS}, there=True) == ("zpool destroy tank", "zpool create tank a", ABOVE)
    assert lines_to_make("tank", {"a": FACTS, "b": FACTS}, there=False) == ("zpool create tank a", ABOVE)
    assert missing(here(held("tank")), {"a": FACTS}) == (ABOVE,)
    assert missing(here(held("tank"), held("tank/my data")), {"a": FACTS}) == ()


def test_whether_it_is_another_pool() -> None:
    known = Rebuild(id=1, begun_at=NOW, top_guid=3, lost=(), kits={})
    assert [is_anew(here(held("tank", guid=guid)), None, {"a": FACTS}) for guid in (1, 3)] == [False, True]
    assert [is_anew(here(held("tank", guid=guid)), known, {"a": FACTS}) for guid in (1, 3)] == [True, False]
    assert not is_anew(here(), known, {})
    assert not is_anew(here(held("tank")), None, {}), "without a kit nobody can tell"


def test_each_source_with_the_copy_that_it_comes_from() -> None:
    (part,) = parts(here(held("tank"), copies=(copy(5), copy(5, 6, place="blue"), AWAY)), {"a": FACTS})
    assert (part.copy and part.copy.place, part.back) == ("blue", False)
    (part,) = parts(here(held("tank/my data/a", 6), copies=(copy(5, 6),)), {"a": FACTS})
    assert part.back
    (part,) = parts(here(held("tank"), copies=(AWAY,)), {"a": FACTS})
    assert (part.job, part.why) == (None, "red: its pool is not imported")


def test_how_it_is_shown() -> None:
    seen = here(held("tank"), held("tank/my data/a", 5, 6), held("tank/x", 7), copies=(copy(5), AWAY))
    assert leaving_lines(judged(seen, ("tank/x",))) == [
        "tank: empty",
        "tank/my data/a: 2 snapshots: 1 on vault (a); @s6 on no copy",
        "tank/x: 1 snapshot, and no copy of it, and may be lost",
        "not counted: a on red (its pool is not imported; history knows it as of 2026-01-02 03:04 UTC)",
    ]
