"""Test what a pool that is made anew is told of: what to say, what is missing, whether it is another one; and how it is shown."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.app.attached_disks import AttachedDisks
from orchestrator.app.pool_evacuation import (
    CopySurveyor,
    EvacuationSurvey,
    judge_copies,
    refuse_own_place,
    waits_for_mount,
)
from orchestrator.app.pool_rebuild import (
    commands_to_create,
    datasets_of_kits,
    is_new_pool,
    missing_dataset_lines,
    mounts_of_datasets,
    plan_parts,
    were_files_restored,
)
from orchestrator.app.settings import Settings
from orchestrator.domain.evacuation import DatasetCopy, KitFacts, PoolContents, PoolDataset
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.plan import Refusal
from orchestrator.domain.run import Outcome, RunType
from orchestrator.engines.registry import load_engine
from orchestrator.engines.rsync.options import RsyncOptions
from orchestrator.history.rebuilds import PoolRebuild
from orchestrator.history.store import open_history
from orchestrator.runner.restore.request import restore_reason
from orchestrator.views.pool_rebuild import evacuation_lines, part_told
from tests.history.records import finish

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
ABOVE = "zfs create -o compression=lz4 'tank/my data'"
FACTS = KitFacts(top_guid=1, create="zpool create tank a", above=(ABOVE,), guids={"tank/my data/a": (5, 6)})


def job(source: str = "tank/my data/a", target: str = "vault") -> Job:
    place = Place(name=target, location=Location(path=f"{target}/copies/a"))
    return Job(name="a", file="a.toml", engine="zfs", source=Location(path=source), target=place, options=None)


def held(name: str, *guids: int, guid: int = 9) -> PoolDataset:
    snapshots = tuple((f"s{one}", one) for one in guids)
    return PoolDataset(name=name, volume=False, guid=guid, snapshots=snapshots, written=0, empty=not guids)


def here(*datasets: PoolDataset, copies: tuple[DatasetCopy, ...] = ()) -> EvacuationSurvey:
    pool = PoolContents(name="tank", datasets=datasets, mounts=(("/dev/sda1", "/"), *((one.name, f"/{one.name}") for one in datasets)))  # fmt: skip
    return EvacuationSurvey(pool=pool, jobs=(job(),), placed=tuple((job(), one) for one in copies), keeps={})


def never(_: Job) -> bool:
    return False


def copy(*guids: int, place: str = "vault") -> DatasetCopy:
    return DatasetCopy(job="a", place=place, held={"tank/my data/a": frozenset(guids)}, known_at=NOW)


AWAY = DatasetCopy(job="a", place="red", held=None, why="its pool is not imported", known_at=NOW)


def test_what_the_user_has_to_say() -> None:
    assert commands_to_create("tank", {"a": FACTS}, there=True) == ("zpool destroy tank", "zpool create tank a", ABOVE)
    assert commands_to_create("tank", {"a": FACTS, "b": FACTS}, there=False) == ("zpool create tank a", ABOVE)
    assert missing_dataset_lines(here(held("tank")), {"a": FACTS}) == (ABOVE,)
    assert missing_dataset_lines(here(held("tank"), held("tank/my data")), {"a": FACTS}) == ()


def test_whether_it_is_another_pool() -> None:
    known = PoolRebuild(id=1, begun_at=NOW, top_guid=3, lost=(), kits={})
    assert [is_new_pool(here(held("tank", guid=guid)), None, {"a": FACTS}) for guid in (1, 3)] == [False, True]
    assert [is_new_pool(here(held("tank", guid=guid)), known, {"a": FACTS}) for guid in (1, 3)] == [True, False]
    assert not is_new_pool(here(), known, {})
    assert not is_new_pool(here(held("tank")), None, {}), "without a kit nobody can tell"


def test_a_renamed_copy_is_named_with_what_gives_its_name_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan said that the pool of the copy is not imported, or has no copy of it."""
    engine = type(load_engine("zfs"))
    found = Refusal(why="the copy vault/copies/a is called vault/b now, by its guid", evidence=(), hint="zfs rename …")
    monkeypatch.setattr(engine, "survey_copy_guids", lambda *_: {})
    monkeypatch.setattr(engine, "explain_moved_copy", lambda *_: found)
    settings = Settings(config=str(tmp_path), state=str(tmp_path))
    with open_history(str(tmp_path / "history.sqlite")) as history, AttachedDisks(settings, None) as stays:
        surveyor = CopySurveyor(settings, here(held("tank")).pool, history.views, stays)
        ((_, seen),) = surveyor.at_datasets(job())
    assert (seen.held, seen.why) == (None, f"{found.why}: {found.hint}")
    (part,) = plan_parts(here(held("tank"), copies=(seen,)), {"a": FACTS}, never)
    assert found.hint in part.why


def test_each_source_with_the_copy_that_it_comes_from() -> None:
    (part,) = plan_parts(here(held("tank"), copies=(copy(5), copy(5, 6, place="blue"), AWAY)), {"a": FACTS}, never)
    assert (part.copy and part.copy.place, part.back) == ("blue", False)
    (part,) = plan_parts(here(held("tank/my data/a", 6), copies=(copy(5, 6),)), {"a": FACTS}, never)
    assert part.back
    (part,) = plan_parts(here(held("tank"), copies=(AWAY,)), {"a": FACTS}, never)
    assert (part.job, part.why) == (None, "red: its pool is not imported")


def test_how_it_is_shown() -> None:
    seen = here(held("tank"), held("tank/my data/a", 5, 6), held("tank/x", 7), copies=(copy(5), AWAY))
    assert evacuation_lines(judge_copies(seen, ("tank/x",))) == [
        "tank: empty",
        "tank/my data/a: 2 snapshots: 1 on vault (a); @s6 on no copy",
        "tank/x: 1 snapshot, and no copy, and may be lost",
        "not counted: a on red (its pool is not imported; history knows it as of 2026-01-02 03:04 UTC)",
    ]


DOCS = replace(job("/tank/docs", "backup"), name="docs", engine="rsync", options=RsyncOptions())
KEY = "files of docs tank/my docs"
OWN = KitFacts(
    top_guid=1, create="zpool create tank a", above=(), guids={}, own="zfs create -o mountpoint=/d 'tank/my docs'"
)


def test_a_dataset_of_which_only_files_are_copied_is_made_by_hand() -> None:
    told = {"a": replace(FACTS, own="zfs create 'tank/my data/a'"), KEY: OWN}
    assert commands_to_create("tank", told, there=False) == ("zpool create tank a", ABOVE, OWN.own)
    assert missing_dataset_lines(here(held("tank"), held("tank/my data")), told) == (OWN.own,)
    assert missing_dataset_lines(here(held("tank"), held("tank/my data"), held("tank/my docs")), told) == ()
    assert datasets_of_kits(told) == {"docs": ("tank/my docs",)}
    place = {"place of guests tank/copies": replace(OWN, own="zfs create tank/copies")}
    assert commands_to_create("tank", told | place, there=False)[1:] == ("zfs create tank/copies", ABOVE, OWN.own)
    assert missing_dataset_lines(here(held("tank"), held("tank/my data"), held("tank/my docs")), told | place) == (
        "zfs create tank/copies",
    )
    assert datasets_of_kits(place) == {}


def test_files_return_to_a_folder_that_lies_on_the_pool_again() -> None:
    found = DatasetCopy(job="docs", place="backup", held={}, files={"tank/docs": ""}, point="p1")
    seen = here(held("tank"), held("tank/docs"))
    seen = replace(seen, trees=(DOCS,), jobs=(), placed=((DOCS, found),))
    for back in (True, False):
        (part,) = plan_parts(seen, {}, lambda _, told=back: told)  # type: ignore[misc]
        assert (part.job, part.copy, part.back) == (DOCS, found, back)
    (part,) = plan_parts(replace(seen, pool=replace(seen.pool, mounts=(("/dev/sda1", "/"),))), {KEY: OWN}, never)
    assert (part.job, part.why) == (None, "/tank/docs does not lie on tank: mount it (zfs mount -a)")
    assert part_told(part) == ("your turn", [part.why, "then run the same command again"])
    away = replace(found, point="", held=None, why="it is not plugged in", disk="red", where="the office")
    (part,) = plan_parts(replace(seen, placed=((DOCS, away),)), {}, never)
    assert (part.job, part.why) == (None, "disk red at the office: it is not plugged in")
    covered = replace(seen, jobs=(job("tank/docs"),))
    assert [str(part.source) for part in plan_parts(covered, {}, never)] == ["tank/docs"], (
        "it comes back with its dataset"
    )


@pytest.mark.parametrize(
    ("folder", "unmounted", "waits"),
    [
        ("{gone}", ("tank", "{gone}"), True),
        ("{gone}/photos/2024", ("tank", "{gone}"), True),
        ("{gone}", ("tank", "{gone}-other"), False),
        ("{full}", ("tank", "{full}"), False),  # another filesystem's files, in a folder that a dataset would cover
        ("{gone}/docs", ("tank/my data/a", "{gone}/docs"), False),  # comes back as a dataset
    ],
)
def test_a_folder_whose_dataset_is_not_mounted_yet_is_not_passed_over(
    tmp_path: Path, folder: str, unmounted: tuple[str, str], *, waits: bool
) -> None:
    """Without a kit of it, as the pool was lost at once: nobody knows then that the folder lay on the pool."""
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").touch()
    at = {"gone": str(tmp_path / "gone"), "full": str(tmp_path / "full")}
    docs = replace(DOCS, source=Location(path=folder.format(**at)))
    found = DatasetCopy(job="docs", place="backup", held={}, files={}, point="p1")
    seen = here(held("tank"))
    pool = replace(seen.pool, mounts=(("/dev/sda1", "/"),), unmounted=((unmounted[0], unmounted[1].format(**at)),))
    assert waits_for_mount(docs, pool, seen.jobs) is waits
    parts = plan_parts(replace(seen, pool=pool, trees=(docs,), placed=((docs, found),)), {}, never)
    asked = [part.why for part in parts if part.source == docs.source]
    assert asked == [f"{docs.source.path} does not lie on tank: mount it (zfs mount -a)"] * waits


def test_what_is_mounted_and_came_as_a_dataset_stays_as_it_is() -> None:
    seen = here(
        held("tank"), held("tank/my data"), held("tank/my data/a", 5), held("tank/my data/a/b", 6), held("tank/docs")
    )
    assert mounts_of_datasets(seen) == ("/tank/my data/a", "/tank/my data/a/b")


def test_where_each_copy_is_is_told() -> None:
    far = DatasetCopy(job="a", place="vault", held={"tank/my data/a": frozenset({5})}, where="backup")
    red = DatasetCopy(job="a", place="red", held=None, disk="red", where="the office", why="it is not plugged in", known_at=NOW,
               told={"tank/my data/a": frozenset({6})})  # fmt: skip
    files = DatasetCopy(
        job="docs", place="nas", held={}, files={"tank/docs": "", "tank": "only what is below /tank/x"}, point="p1"
    )
    seen = here(
        held("tank"),
        held("tank/my data/a", 5, 6),
        held("tank/docs"),
        held("tank/poolferry-kit"),
        copies=(far, red, files),
    )
    seen = replace(
        seen, keeps={"tank/docs": ("web (of /srv/web)",)},
        pool=replace(seen.pool, datasets=tuple(replace(one, empty=None) for one in seen.pool.datasets)),
    )  # fmt: skip
    known = "not looked at: as history knows it, as of 2026-01-02 03:04 UTC"
    assert evacuation_lines(judge_copies(seen, (), ("red",))) == [
        "tank: no snapshot, and not all its files on a copy: only what is below /tank/x",
        f"tank/my data/a: 2 snapshots: 1 on vault at backup (a), 1 on disk red at the office (a; {known})",
        "tank/docs: its files on nas (docs, point p1); it holds the copies of job web (of /srv/web)",
        "tank/poolferry-kit: recovery kits alone, made again by the next runs",
    ]
    assert evacuation_lines(judge_copies(seen, ()))[1:2] == [
        "tank/my data/a: 2 snapshots: 1 on vault at backup (a); @s6 on no copy"
    ]


@pytest.mark.parametrize(
    ("where", "why"),
    [
        (("/etc/poolferry", "/var/lib/poolferry"), None),
        (("/etc/poolferry", "/tank/state"), "poolferry's own /tank/state/history.sqlite lies on it"),
        (("/tank/etc", "/tank/state"), "poolferry's own /tank/etc and /tank/state/history.sqlite lie on it"),
    ],
)
def test_a_pool_with_our_own_history_stays(where: tuple[str, str], why: str | None) -> None:
    refusal = refuse_own_place(Settings(config=where[0], state=where[1]), here(held("tank")).pool)
    assert (refusal.why if refusal else None) == why


def test_files_are_back_only_by_a_restore_that_ended_well_since_then(tmp_path: Path) -> None:
    why, later = "restore to /tank/docs", NOW + timedelta(hours=1)
    with open_history(str(tmp_path / "history.sqlite")) as history:
        for outcome, kind, told, at in (
            (Outcome.DONE, RunType.RESTORE, why, NOW),
            (Outcome.FAILED, RunType.RESTORE, why, later),
            (Outcome.DONE, RunType.RUN, why, later),
            (Outcome.DONE, RunType.RESTORE, "restore a to /tank/docs", later),
        ):
            finish(history, outcome, "docs", now=at, kind=kind, why=told)
        assert not were_files_restored(DOCS, history.views, later)
        assert not were_files_restored(DOCS, history.views, None)
        finish(history, Outcome.DONE, "docs", now=later, kind=RunType.RESTORE, why=restore_reason(b"", DOCS.source))
        assert were_files_restored(DOCS, history.views, later)
