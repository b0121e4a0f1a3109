"""Restoring: which point is meant, and that what lies at the destination is never overwritten."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.names import point_name
from orchestrator.domain.place import Location, MountPoint, leads_to_mount, outermost_paths
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import RestorePoint
from orchestrator.planners.restore import (
    DestinationAbsent,
    DestinationNotDirectory,
    DestinationOccupied,
    DestinationState,
    DestinationUnfinished,
    MoveAside,
    ResumeRestore,
    StartFresh,
    choose_point,
    choose_whole_point,
    decide_destination,
    own_copy_folders,
    refuse_around,
    refuse_mounts,
    refuse_own_rooms,
)

NOW = datetime(2026, 11, 20, 2, 30, tzinfo=UTC)


def point(taken: datetime) -> RestorePoint:
    return RestorePoint(name=point_name(taken), taken=taken, tree=Location(path="/backup"), manifest=None)


POINTS = [point(datetime(2026, 11, day, hour, tzinfo=UTC)) for day, hour in [(20, 2), (17, 2), (18, 2), (18, 14)]]


def refused(decision: object) -> Refusal:
    assert isinstance(decision, Refusal)
    return decision


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        (None, "2026-11-20T020000Z"),
        ("latest", "2026-11-20T020000Z"),
        ("2026-11-17T020000Z", "2026-11-17T020000Z"),
        ("2026-11-17", "2026-11-17T020000Z"),
        ("2026-11-18T14", "2026-11-18T140000Z"),
    ],
)
def test_a_name_or_its_beginning_means_a_point(name: str | None, meant: str) -> None:
    chosen = choose_point(POINTS, point=name, at=None)
    assert isinstance(chosen, RestorePoint)
    assert chosen.name == meant


def test_the_newest_point_that_every_dataset_has_is_meant() -> None:
    first, _, third, newest = sorted(POINTS, key=lambda each: each.taken)
    found = choose_whole_point(POINTS, {newest.name: ["tank/x"], third.name: ["tank/y"]}, at=None)
    assert found is not None
    assert [each.name for each, _ in found.passed] == [newest.name, third.name]
    assert (found.passed[0][1], found.point.name) == (("tank/x",), "2026-11-18T020000Z")
    older = choose_whole_point(POINTS, {third.name: ["tank/y"]}, at=third.taken)
    assert older is not None
    assert older.point.name == "2026-11-18T020000Z"
    assert choose_whole_point(POINTS, {first.name: ["tank/x"], newest.name: []}, at=None) is None, "the newest is whole"
    assert choose_whole_point(POINTS, {each.name: ["tank/x"] for each in POINTS}, at=None) is None, "none is"


def test_an_exact_name_that_begins_another_one_is_meant() -> None:
    short = RestorePoint(name="daily", taken=NOW, tree=Location(path="/a"), manifest=None)
    long = RestorePoint(name="daily-2", taken=NOW, tree=Location(path="/a"), manifest=None)
    assert choose_point([long, short], point="daily", at=None) == short


def test_a_beginning_of_several_lists_them() -> None:
    refusal = refused(choose_point(POINTS, point="2026-11-18", at=None))
    assert refusal.why == '2 restore points begin with "2026-11-18"'
    assert refusal.evidence == ("2026-11-18T020000Z", "2026-11-18T140000Z")
    assert refusal.hint == "choose one, such as --point 2026-11-18T140000Z"


def test_an_unknown_name_lists_the_nearest() -> None:
    refusal = refused(choose_point(POINTS, point="2026-11-19", at=None))
    assert refusal.why == 'no restore point is called "2026-11-19"'
    assert refusal.evidence == tuple(sorted(each.name for each in POINTS))
    many = [point(NOW + timedelta(days=days)) for days in range(20)]
    near = refused(choose_point(many, point="2026-11-23T99", at=None)).evidence
    assert [name[:10] for name in near] == [f"2026-11-{day}" for day in (21, 22, 23, 24, 25, 26)]


def test_an_instant_means_the_newest_point_not_later() -> None:
    assert choose_point(POINTS, point=None, at=POINTS[2].taken) == POINTS[2]
    assert choose_point(POINTS, point=None, at=POINTS[2].taken - timedelta(seconds=1)) == POINTS[1]


def test_an_instant_before_all_points_lists_the_oldest() -> None:
    refusal = refused(choose_point(POINTS, point=None, at=datetime(2026, 1, 1, tzinfo=UTC)))
    assert refusal.why == "every restore point is later than 2026-01-01T00:00:00+00:00"
    assert refusal.evidence == ("2026-11-17T020000Z", "2026-11-18T020000Z", "2026-11-18T140000Z")


def test_no_points_and_two_wishes_are_refused() -> None:
    assert refused(choose_point([], point=None, at=None)).hint == "run the job first"
    assert refused(choose_point(POINTS, point="latest", at=NOW)).hint == "give one of them"


@given(st.lists(st.integers(0, 9999), unique=True, max_size=9), st.integers(0, 9999))
def test_as_of_an_instant_is_never_later_and_misses_none(hours: list[int], hour: int) -> None:
    points, at = [point(NOW + timedelta(hours=each)) for each in hours], NOW + timedelta(hours=hour)
    chosen = choose_point(points, point=None, at=at)
    early = [each for each in points if each.taken <= at]
    assert chosen == max(early, key=lambda each: each.taken) if early else isinstance(chosen, Refusal)


def decide(found: DestinationState, *, aside: bool = False, destination: str = "/srv/photos") -> object:
    return decide_destination(
        found, job="photos", point="2026-11-18T020000Z", destination=destination, aside=aside, now=NOW
    )


FULL = DestinationOccupied(entries=2, examples=(b"a\xff", b"b"))
OTHERS: list[DestinationState] = [
    DestinationUnfinished(job="photos", point="2026-11-17T020000Z"),
    DestinationUnfinished(job="mail", point="2026-11-18T020000Z"),
    FULL,
    DestinationNotDirectory(kind="a file"),
]


@pytest.mark.parametrize("aside", [False, True])
def test_nothing_there_begins_and_ours_is_resumed(aside: bool) -> None:
    assert decide(DestinationAbsent(), aside=aside) == StartFresh()
    assert decide(DestinationUnfinished(job="photos", point="2026-11-18T020000Z"), aside=aside) == ResumeRestore()


@pytest.mark.parametrize("found", OTHERS)
def test_anything_else_is_moved_aside_only_when_told(found: DestinationState) -> None:
    assert decide(found, aside=True, destination="/srv/photos/") == MoveAside(
        path="/srv/photos.aside-2026-11-20T023000Z"
    )
    assert "--aside: what is there is renamed to /srv/photos.aside-2026-11-20T023000Z" in refused(decide(found)).hint


def test_a_refusal_tells_what_is_there() -> None:
    told = [(refused(decide(found)).why, refused(decide(found)).evidence) for found in OTHERS]
    ending = "; a restore overwrites nothing"
    assert told == [
        (
            f"/srv/photos holds an unfinished restore of photos 2026-11-17T020000Z{ending}",
            ("it is of job photos",),
        ),
        (
            f"/srv/photos holds an unfinished restore of mail 2026-11-18T020000Z{ending}",
            ("it is of job mail",),
        ),
        (f"/srv/photos holds 2 entries{ending}", ("a\\xff", "b")),
        (f"/srv/photos is a file{ending}", ()),
    ]
    assert "holds 1 entry" in refused(decide(DestinationOccupied(entries=1, examples=()))).why


def test_what_finishes_an_unfinished_restore_is_offered_before_what_sets_it_aside() -> None:
    """The newest point is another one after each run: a restore that was cut is then of a point that must be named."""
    found, finish = (
        DestinationUnfinished(job="photos", point="2026-11-17T020000Z", path="a"),
        "poolferry restore run photos",
    )
    refusal = refused(
        decide_destination(
            found, job="photos", point="2026-11-17T020000Z", destination="/srv", aside=False, now=NOW, finish=finish
        )
    )
    assert refusal.hint.startswith(
        f"to finish that one: {finish}; or give another destination, or use --aside: what is there"
    )
    assert "2026-11-17T020000Z --path 'a'" in refusal.why


def test_the_root_cannot_be_moved_aside() -> None:
    assert refused(decide(FULL, aside=True, destination="/")).hint == "give another destination"


def mounted(path: bytes, *, full: bool, wanted: bool) -> MountPoint:
    return MountPoint(path=path, full=full, wanted=wanted)


def test_only_where_both_have_files_something_would_be_overwritten() -> None:
    harmless = [mounted(b"a", full=True, wanted=False), mounted(b"b", full=False, wanted=True)]
    assert refuse_mounts(harmless, (), destination="/srv") is None
    both = [*harmless, mounted(b"c d", full=True, wanted=True)]
    refusal = refused(refuse_mounts(both, (), destination="/srv/"))
    assert (refusal.evidence, refusal.why.startswith("/srv/c d is mounted, and holds files")) == (("/srv/c d",), True)
    assert refuse_mounts(both, (b"c d",), destination="/srv") is None, "an earlier restore has begun to fill it"


def test_what_is_mounted_lies_where() -> None:
    assert list(outermost_paths([b"b/c", b"a", b"b", b"a b", b"a/x/y", b"a"])) == [b"a b", b"a", b"b"]
    assert [leads_to_mount(path, [b"in/deep"]) for path in (b"in", b"in/deep", b"in/deep/er", b"inner", b"i")] == [
        True, True, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "to", ["/backup/points", "/backup/points/x", "/backup/.poolferry/work/", f"/backup/points/{point_name(NOW)}/a"]
)
def test_a_destination_among_the_copies_is_refused(to: str) -> None:
    refusal = refuse_own_rooms(to, f"/backup/points/{point_name(NOW)}", job="photos")
    assert refusal is not None
    assert refusal.why == f"{to} lies among the copies of photos, where nothing may change"
    assert refusal.hint == "give a destination outside of them"


def test_beside_the_copies_is_free_and_a_mirror_is_a_copy_as_a_whole() -> None:
    for to in ("/backup/other", "/backup", "/backup/points2", "/srv"):
        assert refuse_own_rooms(to, f"/backup/points/{point_name(NOW)}/", job="photos") is None
    assert refuse_own_rooms("/backup/mirror/below", "/backup/mirror/", job="photos") is not None
    assert refuse_own_rooms("/backup/mirror2", "/backup/mirror", job="photos") is None


def test_what_holds_copies_is_not_carried_off() -> None:
    folders = own_copy_folders(f"/backup/points/{point_name(NOW)}", job="photos")
    for to in ("/backup", "/backup/", "/", "/backup/points"):
        refusal = refuse_around(to, folders)
        assert refusal is not None
        assert refusal.why == f"{to} holds the copies of photos, which stay where they are"
    for to in ("/backup/other", "/back", "/backup/points/x"):
        assert refuse_around(to, folders) is None
