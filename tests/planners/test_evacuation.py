"""Test whether a pool may go: what is elsewhere by guid, what is on no copy, and in which order and from where all returns."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.evacuation import DatasetCopy, GuestPool, PoolContents, PoolDataset
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import HERE, Host, Location, Place
from orchestrator.domain.point import Verdict, VerificationResult, VerifyJobResult
from orchestrator.domain.run import Outcome, RunReport, unrecorded_report
from orchestrator.engines.rsync.options import RsyncOptions
from orchestrator.engines.zfs.options import ZfsOptions
from orchestrator.planners.evacuation import (
    choose_best_copy,
    dataset_of,
    dataset_to_mount,
    datasets_of_folder,
    explain_changed_pool,
    find_jobs_of_pool,
    find_source_pools,
    guids_from_history,
    has_come_back,
    is_source_in,
    judge_evacuation,
    judge_job,
    missing_above,
    refuse_evacuation,
    refuse_guests,
    refuse_other_pool,
    remembered_guids,
    restore_order,
)

ROOT = PoolDataset(name="tank", volume=False, guid=1, snapshots=(), written=0, empty=True)


def held(name: str, *guids: int, written: int = 0, **more: bool) -> PoolDataset:
    snapshots = tuple((f"s{guid}", guid) for guid in guids)
    return PoolDataset(name=f"tank/{name}", volume=False, guid=2, snapshots=snapshots, written=written, **more)


def pool(*datasets: PoolDataset) -> PoolContents:
    return PoolContents(name="tank", datasets=(ROOT, *datasets))


def copy(place: str = "vault", below: set[int] | None = None, **held_by: set[int]) -> DatasetCopy:
    held = {f"tank/{name}": frozenset(own) for name, own in held_by.items()}
    return DatasetCopy(job="photos", place=place, held=held | ({"tank/a/x": frozenset(below)} if below else {}))


AWAY = DatasetCopy(job="photos", place="red", held=None, why="it is not here")


def job(source: str, host: Host | None = None) -> Job:
    place = Place(name="vault", location=Location(path="vault/copies"))
    return Job(
        name=source.replace("/", "-"), file="x.toml", engine="zfs", source=Location(path=source, host=host),
        target=place, options=None,
    )  # fmt: skip


def lost(seen: PoolContents, *copies: DatasetCopy, lose: tuple[str, ...] = ()) -> dict[str, str]:
    return {one.dataset: one.lost for one in judge_evacuation(seen, copies, lose).lost}


def test_all_of_it_on_one_copy_or_on_several_together() -> None:
    seen = pool(held("a", 1, 2), held("b", 3))
    assert lost(seen, copy(a={1, 2}, b={3})) == {}
    assert lost(seen, copy(a={1}), copy("red", a={2}, b={3, 9})) == {}
    assert refuse_evacuation(seen, judge_evacuation(seen, (copy(a={1, 2}, b={3}),), ())) is None


@pytest.mark.parametrize(
    ("one", "copies", "why"),
    [
        (held("a", 1, 2), (copy(a={1}),), "@s2 on no copy"),
        (held("a", 1, 2, 3, 4, 5), (copy(a={5}),), "@s1, @s2, @s3 and 1 more on no copy"),
        (held("a", 1), (), "1 snapshot, and no copy"),
        (held("a", 1), (AWAY,), "1 snapshot, and no copy"),
        (held("a", 1), (copy(b={1}),), "1 snapshot, and no copy"),
        (held("a", 1, written=2048), (copy(a={1}),), "2.0 KiB written since @s1"),
        (held("a"), (copy(a={1}),), "no snapshot, so no copy of it"),
        (held("a", empty=False), (), "no snapshot, so no copy of it"),
    ],
)
def test_what_is_on_no_copy_is_named(one: PoolDataset, copies: tuple[DatasetCopy, ...], why: str) -> None:
    seen = pool(one)
    assert lost(seen, *copies) == {"tank/a": why}
    refusal = refuse_evacuation(seen, judge_evacuation(seen, copies, ()))
    assert refusal is not None
    assert (refusal.why, refusal.evidence) == ("1 dataset of tank would be lost", (f"tank/a: {why}",))
    assert "--lose tank/a" in refusal.hint


def test_what_may_be_lost_has_to_be_named() -> None:
    seen = pool(held("a", 1), held("a/x", 2), held("ab", 3))
    assert list(lost(seen, lose=("tank/a",))) == ["tank/a/x", "tank/ab"]
    assert list(lost(seen, lose=("tank/a/",))) == ["tank/ab"]
    assert list(lost(seen, lose=("tank/a/x",))) == ["tank/a", "tank/ab"]
    assert len(lost(seen, lose=("tank",))) == 3, "a pool's own name takes nothing along"
    assert lost(seen, lose=("tank/",)) == {}


def test_copies_that_nobody_saw_are_told() -> None:
    assert judge_evacuation(pool(), (AWAY, copy(a={1})), ()).unseen == (AWAY,)


def test_a_disk_that_is_away_counts_only_by_name() -> None:
    seen, red = pool(held("a", 1, 2)), replace(AWAY, disk="red", where="office", told={"tank/a": frozenset({1, 2})})
    assert lost(seen, red) == {"tank/a": "2 snapshots, and no copy"}
    refusal = refuse_evacuation(seen, judge_evacuation(seen, (red, replace(red, place="old", disk="old", told={})), ()))
    assert refusal is not None
    assert refusal.hint.startswith("plug in disk red (at office), or count by what history knows: --trust red; ")
    told = judge_evacuation(seen, (red,), (), trusted=("red",))
    assert ([one.lost for one in told.standings], told.unseen) == (["", ""], ())
    assert judge_evacuation(seen, (replace(red, disk=""),), (), trusted=("red",)).lost, (
        "a place that is no disk is looked at"
    )


def test_files_count_where_there_is_no_snapshot() -> None:
    whole, part = (
        DatasetCopy(job="docs", place="nas", held={}, files={"tank/a": why}) for why in ("", "something has changed")
    )
    assert lost(pool(held("a")), whole) == {}
    assert lost(pool(held("a")), part, whole) == {}
    assert lost(pool(held("a")), part) == {
        "tank/a": "no snapshot, and not all its files on a copy: something has changed"
    }
    assert lost(pool(held("a", 1)), whole) == {"tank/a": "1 snapshot, and no copy"}
    assert lost(pool(held("poolferry-kit"))) == {}


def test_what_history_knows_of_a_disk() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    seen = replace(pool(held("a", 1, 2, 3), held("b", 4)), taken={1: at, 2: at, 3: at + timedelta(days=1), 4: at})
    points = (("s1", at), ("s3", at), ("s4", at + timedelta(minutes=1)))
    assert guids_from_history(seen, ("tank/a", "tank/b"), points) == {
        "tank/a": frozenset({1}),
        "tank/b": frozenset({4}),
    }
    assert guids_from_history(seen, ("tank/a",), points) == {"tank/a": frozenset({1})}, (
        "another dataset is not of the job"
    )


def test_what_lies_where() -> None:
    mounts = (
        ("/dev/sda1", "/"),
        ("tank", "/tank"),
        ("tank/a", "/tank/a"),
        ("/dev/sdb1", "/tank/a/usb"),
        ("tank/b", "/srv"),
    )
    seen = replace(pool(held("a"), held("b")), mounts=mounts)
    at = {path: dataset_of(path, seen) for path in ("/tank/a/x", "/tank/ab", "/srv", "/tank/a/usb/x", "/home")}
    assert at == {"/tank/a/x": ("tank/a", "/tank/a"), "/tank/ab": ("tank", "/tank"), "/srv": ("tank/b", "/srv"),
                  "/tank/a/usb/x": None, "/home": None}  # fmt: skip
    assert dataset_of("/srv", replace(seen, mounts=(*mounts, ("tmpfs", "/srv")))) is None, "something covers it"
    assert datasets_of_folder("/tank/a", seen, below=False) == {"tank/a": ""}
    assert datasets_of_folder("/tank", seen, below=True) == {"tank": "", "tank/a": ""}
    assert datasets_of_folder("/tank/ab", seen, below=False) == {"tank": "only what is below /tank/ab"}
    assert datasets_of_folder("/", seen, below=False) == {}
    assert datasets_of_folder("/", seen, below=True) == {"tank": "", "tank/a": "", "tank/b": ""}


def test_what_lies_above_returns_first_and_each_source_once() -> None:
    jobs = [job("tank/b/x"), job("tank/b"), job("tank"), job("tank/a"), job("tank/b")]
    assert [(str(source), len(each)) for source, each in restore_order(jobs)] == [
        ("tank", 1), ("tank/a", 1), ("tank/b", 2), ("tank/b/x", 1),
    ]  # fmt: skip
    assert [is_source_in(each, "tank") for each in (job("tank"), job("tank/a"), job("tanker/a"))] == [True, True, False]
    assert not is_source_in(job("tank/a", Host(name="far")), "tank")
    assert list(missing_above(Location(path="tank/b/x/y"), pool(held("b")))) == ["tank/b/x"]


def test_the_newest_copy_is_taken_and_of_equals_the_fuller_one() -> None:
    source, known = Location(path="tank/a"), {"tank/a": (1, 2, 3)}
    old, new, full = copy("old", a={1, 2}), copy("new", a={3}), copy("full", a={2, 3})
    assert choose_best_copy(source, (old, new), known) is new
    assert choose_best_copy(source, (new, full, old), known) is full
    assert choose_best_copy(source, (AWAY, copy(b={1})), known) is None
    assert choose_best_copy(source, (old, AWAY), {}) is old


def test_what_is_back_and_in_use() -> None:
    source = Location(path="tank/a")
    one = copy(below={3}, a={1, 2}, b={9})
    assert has_come_back(source, pool(held("a", 1, 2), held("a/x", 3)), one)
    assert has_come_back(source, pool(held("a", 2, 7), held("a/x", 3)), one)
    assert not has_come_back(source, pool(held("a", 1, 2)), one)
    assert not has_come_back(source, pool(held("a", 5), held("a/x", 3)), one)
    assert not has_come_back(source, pool(held("a", 1, 2, unsettled=True), held("a/x", 3)), one)
    assert not has_come_back(source, pool(), copy(b={9}))


def test_pools_that_lie_on_it_keep_it() -> None:
    seen = pool(replace(held("v"), volume=True), held("a"))
    assert refuse_guests(seen) is None
    on = (
        GuestPool(pool="inner", device="/dev/zd0p1", dataset="tank/v"), GuestPool(pool="filed", device="/tank/a/img", dataset="tank/a"),
        GuestPool(pool="filed", device="/dev/zd16", dataset=""),
    )  # fmt: skip
    refusal = refuse_guests(replace(seen, guests=on))
    assert refusal is not None
    assert refusal.why == "the pools inner, filed lie on it, and would go with it"
    assert refusal.evidence == (
        "inner: /dev/zd0p1 is on the volume tank/v",
        "filed: /tank/a/img is a file in tank/a",
        "filed: /dev/zd16 is a volume, and udev has no link that names its dataset (/dev/zvol)",
    )
    assert "`zpool export inner` and `zpool export filed`" in refusal.hint
    alone = refuse_guests(replace(seen, guests=on[:1]))
    assert alone is not None
    assert alone.why == "the pool inner lies on it, and would go with it"


def test_a_folder_outside_of_all_mounts_is_of_no_dataset() -> None:
    assert dataset_of("/srv", replace(pool(held("a")), mounts=())) is None


def test_the_innermost_dataset_that_is_still_to_be_mounted_holds_a_folder() -> None:
    seen = replace(pool(), unmounted=(("tank", "/tank"), ("tank/a", "/tank/a"), ("tank/b", "/srv/b/")))
    found = [dataset_to_mount(folder, seen) for folder in ("/tank", "/tank/a/x", "/srv/b", "/tanker", "/home")]
    assert found == ["tank", "tank/a", "tank/b", None, None]


MOUNTS = (
    ("rpool/root", "/"), ("", "/proc"), ("tank/home", "/home"), ("", "/home/tmp"), ("tank/old", "/srv"), ("lake/srv", "/srv"),
    ("tank", "/var/lib/data"),
)  # fmt: skip


def tree(folder: str, target: str = "/copies", *, disk: str = "", **options: object) -> Job:
    place = Place(name="copies", location=Location(path=target), disk=disk)
    of_rsync = RsyncOptions(**options)  # type: ignore[arg-type]
    return replace(job(folder), engine="rsync", target=place, options=of_rsync)


def test_the_jobs_of_a_pool_are_those_of_its_datasets_and_of_folders_on_them() -> None:
    on = [job("tank"), job("tank/a"), tree("/home/ann")]
    off = [
        job("tanker/a"), job("tank/a", Host(name="far")), tree("/home/tmp/x"), tree("/srv/x"), tree("/homes"), tree("/var/lib"), tree("/proc"),
    ]  # fmt: skip
    found = find_jobs_of_pool("tank", [*on, *off], MOUNTS)
    assert [(one.name, kept) for one, kept in found] == [(each.name, "") for each in on]
    assert find_source_pools([*on, *off], MOUNTS) == ("lake", "rpool", "tank", "tanker")
    below = tree("/var/lib", one_file_system=False)
    assert [one for one, _ in find_jobs_of_pool("tank", [below], MOUNTS)] == [below]
    assert find_source_pools([tree("/x")], ()) == ()


def test_a_job_that_copies_nothing_or_to_the_pool_itself_brings_nothing_elsewhere() -> None:
    inside = replace(job("tank/a"), target=Place(name="tank", location=Location(path="tank/copies")))
    still = replace(job("tank/a"), target=Place(name="tank", location=Location(path="tank/a")))
    on_disk = tree("/home/ann", "/home/disk", disk="red")
    hosts = (HERE, Host(name="Web-1"), Host(name="nas"), Host(name="web-1", port=2222))
    by_ssh = [
        replace(job("tank/a"), target=Place(name="far", location=Location(path="tank/copies", host=host)))
        for host in hosts
    ]
    jobs = [inside, still, tree("/home/ann", "/home/copies"), on_disk, tree("/home/ann", "/srv/copies")]
    here = "its copy lies on this very pool"
    assert [kept for _, kept in find_jobs_of_pool("tank", jobs, MOUNTS)] == [here, "it copies nothing", here, "", ""]
    kept = [kept for _, kept in find_jobs_of_pool("tank", by_ssh, MOUNTS, {"web-1"})]
    assert kept == [here, f"{here}, by the name of its host", "", ""], "a port may be a tunnel's, to another machine"


def ended(outcome: Outcome, why: str) -> RunReport:
    return unrecorded_report("photos", outcome, why, hint="")


def read(outcome: Outcome = Outcome.DONE, **counts: int) -> VerifyJobResult:
    told = tuple((Verdict(verdict), count) for verdict, count in counts.items())
    reading = VerificationResult(entries=1, files_read=1, bytes_read=1, took_s=1, counts=told, findings=())
    return VerifyJobResult(report=ended(outcome, "as read"), point="p", reading=reading)


@pytest.mark.parametrize(
    ("ran", "verified", "whole", "why"),
    [
        (ended(Outcome.DONE, "copied"), read(), True, "as read"),
        (ended(Outcome.NOTHING, "as it was"), read(), True, "as read"),
        (ended(Outcome.DONE, "copied"), replace(read(), reading=None), True, "as read"),
        (ended(Outcome.DONE, "copied"), read(unproved=2), False, "as read"),
        (ended(Outcome.DONE, "copied"), read(Outcome.FAILED), False, "the run ended as done, but: as read"),
        (ended(Outcome.DONE, "copied"), None, False, "the run ended as done, but: it was not verified"),
        (ended(Outcome.INCOMPLETE, "2 left out"), read(), False, "incomplete: 2 left out; its newest copy is sound: as read"),
        (ended(Outcome.WAITING, "disk red is away"), None, False, "waiting: disk red is away"),
        (None, None, False, "its run did not begin"),
    ],
)  # fmt: skip
def test_only_what_was_copied_and_then_read_is_whole(
    ran: RunReport | None, verified: VerifyJobResult | None, whole: bool, why: str
) -> None:
    told = judge_job(tree("/home/ann"), "", ran, verified)
    assert (told.job, told.source, told.place, told.whole, told.why) == ("-home-ann", "/home/ann", "copies", whole, why)


def test_what_a_job_leaves_out_is_not_elsewhere() -> None:
    told = judge_job(tree("/home/ann", excludes=("*.tmp", "cache")), "", ended(Outcome.DONE, "copied"), read())
    assert (told.whole, told.why) == (False, "as read; but the job leaves out *.tmp, cache")
    datasets = replace(job("tank/a"), options=ZfsOptions(exclude=("scratch",)))
    assert not judge_job(datasets, "", ended(Outcome.DONE, "copied"), read()).whole
    kept = judge_job(job("tank/a"), "it copies nothing", None, None)
    assert (kept.whole, kept.why) == (False, "there is no other place: it copies nothing")


def test_of_datasets_what_their_snapshots_hold_is_elsewhere() -> None:
    said = "as read; that is what its snapshots hold: nothing that was written since the newest one"
    for recursive, below in ((True, ""), (False, ", nor of datasets below it")):
        one = replace(job("tank/a"), options=ZfsOptions(recursive=recursive))
        told = judge_job(one, "", ended(Outcome.NOTHING, "as it was"), read())
        assert (told.whole, told.why) == (True, said + below)


@pytest.mark.parametrize(
    ("now", "meant", "remembered", "refused"),
    [
        (7, None, {"photos": 7}, ""),
        (7, None, {}, ""),
        (None, None, {"photos": 7}, ""),
        (7, 7, {"photos": 8}, ""),
        (
            8,
            None,
            {"photos": 7, "mail": 8},
            "the pool tank has the guid 8, and is not the one that photos copied last: it was made anew",
        ),
        (8, 7, {}, "the pool tank has the guid 8, and not 7: it is another pool of that name, or is not imported"),
        (
            None,
            7,
            {"photos": 7},
            "the pool tank cannot be asked for its guid, and not 7: it is another pool of that name, or is not imported",
        ),
    ],
)
def test_a_pool_that_was_made_anew_is_not_taken_for_the_one_before(
    now: int | None, meant: int | None, remembered: dict[str, int], refused: str
) -> None:
    found = refuse_other_pool("tank", now, meant, remembered)
    assert (found.why if found else "") == refused


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (7, 7, ""),
        (None, None, ""),
        (7, 8, "the pool tank has the guid 8, and had 7 before the runs: another pool took its place"),
        (None, 7, "the guid of the pool tank could not be read before the runs, so it may be another pool now"),
        (7, None, "the pool tank cannot be asked for its guid any more, so it may be another one, or gone"),
    ],
)
def test_a_pool_whose_guid_could_not_be_read_is_not_called_another_one(
    before: int | None, after: int | None, told: str
) -> None:
    assert explain_changed_pool("tank", before, after) == told


def test_only_what_was_copied_from_a_pool_of_that_name_tells_its_guid() -> None:
    identities = {
        "photos": "5 7 tank/photos",
        "moved": "6 9 old/mail",
        "from-a-kit": "7 0 tank/docs",
        "new": "",
        "all": "8 7 tank",
    }
    assert remembered_guids("tank", identities) == {"photos": 7, "all": 7}
