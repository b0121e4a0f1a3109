"""A pool comes back under another name: the jobs of the real configuration follow it, and their chains stay where they are."""

from pathlib import Path

import pytest

from orchestrator.app.pool_rebuild import rename_kits
from orchestrator.app.renamed_pool import RenamedSettings, rename_in_configuration
from orchestrator.app.settings import Settings
from orchestrator.planners.evacuation import is_source_in

TARGETS = """# ours
[place.vault]
dataset = "vault/copies"
[place.inside]
  dataset = "tank/copies"  # on the pool itself
[place.nas]
path = "/srv/nas"
"""
ROOT = 'engine = "zfs"\nsource = "tank"\ntarget = "vault"\n'
PHOTOS = "# mine\nengine = 'zfs'\nsource   = 'tank/photos' # all of them\ntarget = \"vault\"\n"
JOBS = {
    "root": ROOT, "photos": PHOTOS, "guests": 'engine = "zfs"\nsource = "other/guests"\ntarget = "inside"\n',
    "docs": 'engine = "rsync"\nsource = "/tank/docs"\ntarget = "nas"\n', "far": 'engine = "zfs"\nsource = "ssh://root@nas/tank/x"\ntarget = "vault"\n',
    "near": 'engine = "zfs"\nsource = "tanker/y"\ntarget = "vault"\n', "watch": 'engine = "pool"\nsource = "tank"\n',
}  # fmt: skip


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "jobs").mkdir(parents=True)
    (tmp_path / "targets.toml").write_text(TARGETS)
    for name, text in JOBS.items():
        (tmp_path / "jobs" / f"{name}.toml").write_text(text)
    return Settings(config=str(tmp_path), state=str(tmp_path / "state"))


def job_text(settings: Settings, name: str) -> str:
    return Path(settings.where.config, "jobs", f"{name}.toml").read_text()


def test_jobs_are_read_with_the_new_name_and_their_copies_stay(settings: Settings) -> None:
    before = settings.configuration()
    found = RenamedSettings(settings, "tank", "lake").configuration()
    assert [job.name for job in found.jobs if is_source_in(job, "lake")] == ["photos", "root", "watch"]
    assert not any(is_source_in(job, "tank") for job in found.jobs)
    copies = {job.name: job.target.location for job in found.jobs if job.copies}
    assert copies["photos"] == before.job("photos").target.location
    assert str(copies["root"]) == "vault/copies/tank"
    assert str(copies["guests"]) == "lake/copies/guests"
    assert {name: found.job(name).source for name in ("docs", "far", "near")} == {
        name: before.job(name).source for name in ("docs", "far", "near")
    }


def test_the_files_follow_and_every_copy_keeps_its_place(settings: Settings) -> None:
    renamed = RenamedSettings(settings, "tank", "lake").configuration()
    state, lines = rename_in_configuration(settings, "tank", "lake")
    assert state == "written", lines
    assert [line.partition(": ")[2] for line in lines] == [
        'dataset = "lake/copies"  # on the pool itself', "source   = 'lake/photos' # all of them", 'source = "lake"',
        '[zfs] name = "tank"  # the copy keeps its name, so its chain goes on', 'source = "lake"',
    ]  # fmt: skip
    written = settings.configuration()
    for job in written.jobs:
        assert (job.source, job.target.location) == (
            renamed.job(job.name).source,
            renamed.job(job.name).target.location,
        )
    assert job_text(settings, "photos") == PHOTOS.replace("tank/", "lake/")
    assert {name: job_text(settings, name) for name in ("docs", "far", "near", "guests")} == {
        name: JOBS[name] for name in ("docs", "far", "near", "guests")
    }
    assert rename_in_configuration(settings, "tank", "lake") == ("written", []), (
        "said again, nothing is left to be done"
    )


def test_a_section_that_is_there_gets_the_line(settings: Settings) -> None:
    Path(settings.where.config, "jobs", "root.toml").write_text(ROOT + "[zfs]\nparallel = 3\n[keep]\ndaily = 2")
    assert rename_in_configuration(settings, "tank", "lake")[0] == "written"
    assert job_text(settings, "root").endswith('[zfs]\nname = "tank"\nparallel = 3\n[keep]\ndaily = 2')
    assert str(settings.configuration().job("root").target.location) == "vault/copies/tank"


def test_what_is_not_understood_is_left_as_it_is_and_said(settings: Settings) -> None:
    text = 'engine = "zfs"\nsource = """tank/photos"""\ntarget = "vault"\n'
    Path(settings.where.config, "jobs", "photos.toml").write_text(text)
    state, lines = rename_in_configuration(settings, "tank", "lake")
    assert (state, lines[-2:]) == (
        "your turn", ["not understood: job photos", "change tank to lake there by hand: poolferry check says what is left"],
    )  # fmt: skip
    assert (job_text(settings, "photos"), job_text(settings, "root")) == (text, ROOT)
    Path(settings.where.config, "jobs", "photos.toml").write_text("engine = 3\n")
    state, lines = rename_in_configuration(settings, "tank", "lake")
    assert (state, job_text(settings, "root")) == ("your turn", ROOT), lines


def test_kits_of_files_and_of_places_follow() -> None:
    kit = '{"create": "zpool create tank a", "source": "tank/a", "snapshots": []}'
    kits = {"photos": kit, "files of docs tank/my docs": kit, "place of guests tank/copies": kit}
    assert [*rename_kits(kits, "tank", "lake", keep_paths=False)] == [
        "photos", "files of docs lake/my docs", "place of guests lake/copies",
    ]  # fmt: skip
