"""Jobs that copy datasets: where their copies lie, who may share a place, and jobs that copy nothing."""

from pathlib import Path

import pytest

from orchestrator.config.load import load_configuration
from orchestrator.config.models import Configuration, EngineSection
from orchestrator.domain.errors import DeclarationError
from orchestrator.domain.place import Location
from orchestrator.engines.sanoid.options import SanoidOptions
from orchestrator.engines.zfs.options import ZfsOptions, copy_location, mistakes
from tests.config.given import written

ENGINES = {
    "zfs": EngineSection(name="zfs", options=ZfsOptions, datasets=True, check=mistakes, lands=copy_location),
    "sanoid": EngineSection(name="sanoid", options=SanoidOptions, datasets=True, stays=True),
}
TARGETS = '[place.vault]\ndataset = "ssh://root@nas/vault/replicas"\n[place.red]\ndataset = "red"\n'


def zfs(source: str, target: str = "vault", more: str = "") -> str:
    return f'engine = "zfs"\nsource = "{source}"\ntarget = "{target}"\n{more}\n'


def loaded(folder: Path, **jobs: str) -> Configuration:
    files = {f"jobs/{name}.toml": text for name, text in jobs.items()}
    return load_configuration(written(folder, {"targets.toml": TARGETS, **files}), ENGINES)


def mistake(folder: Path, **jobs: str) -> str:
    with pytest.raises(DeclarationError) as caught:
        loaded(folder, **jobs)
    assert len(caught.value.mistakes) == 1
    return str(caught.value)


def test_a_copy_lies_below_the_place_under_the_sources_last_part(tmp_path: Path) -> None:
    found = loaded(tmp_path, photos=zfs("tank/home/photos"), tank=zfs("tank", "red"), old=zfs("old/photos", "red"))
    there = found.job("photos").target.location
    assert (there.path, str(there.host)) == ("vault/replicas/photos", "root@nas")
    assert found.job("tank").target.location == Location(path="red/tank")
    assert found.job("old").target.name == "red"


def test_a_copy_may_have_a_name_of_its_own(tmp_path: Path) -> None:
    job = loaded(tmp_path, photos=zfs("tank/photos", more='zfs.name = "pictures"')).job("photos")
    assert job.target.location.path == "vault/replicas/pictures"


def test_two_jobs_do_not_write_one_copy(tmp_path: Path) -> None:
    told = mistake(tmp_path, a=zfs("tank/photos"), b=zfs("old/photos"))
    assert 'b.toml:3: target: job "a" writes to ssh://root@nas/vault/replicas/photos too' in told


def test_a_copy_does_not_lie_inside_its_source(tmp_path: Path) -> None:
    assert "lies inside the source" in mistake(tmp_path, a=zfs("red", "red"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('zfs.name = "a/b"', "zfs.name"),
        ('zfs.exclude = ["/scratch"]', 'zfs.exclude: "/scratch" fits nothing'),
        ('zfs.snapshots = ["@daily"]', 'zfs.snapshots: "@daily" fits nothing'),
        ('zfs.skip-snapshots = ["tank@daily"]', 'zfs.skip-snapshots: "tank@daily" fits nothing'),
        ('zfs.raw = "yes"\nzfs.may-decrypt = true', "zfs.may-decrypt"),
        ('zfs.catch-up = "some"', "zfs.catch-up"),
        ('zfs.may-destroy = ["all"]', "zfs.may-destroy"),
        ('pipe.transport = "tcp"', "pipe.transport"),
        ("[snapshots]", "snapshots: keeps nothing"),
    ],
)
def test_what_does_not_fit(tmp_path: Path, more: str, words: str) -> None:
    assert words in mistake(tmp_path, a=zfs("tank", more=more))


@pytest.mark.parametrize(("host", "public"), [("198.51.100.7", True), ("192.168.7.7", False), ("nas", False)])
def test_an_open_connection_needs_consent_to_go_in_public(tmp_path: Path, host: str, *, public: bool) -> None:
    text = zfs(f"ssh://root@{host}/tank", "red", '[pipe]\ntransport = "mbuffer"')
    if not public:
        assert loaded(tmp_path, a=text).jobs
        return
    told = mistake(tmp_path, a=text)
    assert "a.toml:5: pipe.transport: 198.51.100.7 is a public address" in told
    assert loaded(tmp_path / "told", a=f"{text}public-transport = true").jobs


def test_snapshots_are_the_jobs_own(tmp_path: Path) -> None:
    found = loaded(tmp_path, a=zfs("tank", more="[snapshots]\ndaily = 7"), b=zfs("pool"))
    assert found.job("b").snapshots is None
    snapshots = found.job("a").snapshots
    assert snapshots is not None
    assert (snapshots.daily, snapshots.hourly, snapshots.autosnap, snapshots.recursive) == (7, 0, True, True)


def test_one_dataset_has_one_set_of_rules(tmp_path: Path) -> None:
    rules = "[snapshots]\ndaily = 7"
    told = mistake(tmp_path, a=zfs("tank/home", more=rules), b=zfs("tank/home/ann", "red", more=rules))
    assert 'b.toml:4: snapshots: job "a" has rules for the snapshots of tank/home too' in told
    assert loaded(tmp_path / "two", a=zfs("tank/a", more=rules), b=zfs("tank/ab", more=rules)).jobs
    alone = f"{rules}\nrecursive = false"
    assert loaded(tmp_path / "apart", a=zfs("tank/a", more=alone), b=zfs("tank/a/b", "red", more=rules)).jobs
    assert "rules for the snapshots of tank/a/b too" in mistake(
        tmp_path / "above", a=zfs("tank/a/b", more=rules), b=zfs("tank/a", "red", more=rules)
    )


def test_a_job_that_copies_nothing_has_no_target(tmp_path: Path) -> None:
    job = 'engine = "sanoid"\nsource = "tank/photos"\n{}[snapshots]\ndaily = 7\n'
    found = loaded(tmp_path / "good", snaps=job.format(""), copy=zfs("tank/photos")).job("snaps")
    assert (found.target.location, found.target.name) == (Location(path="tank/photos"), "snaps")
    assert "the engine sanoid works on the source alone, expected no target" in mistake(
        tmp_path / "bad", snaps=job.format('target = "vault"\n')
    )


SNAPSHOTS = 'engine = "sanoid"\nsource = "tank"\n[snapshots]\ndaily = 7\n'


def test_jobs_that_copy_nothing_need_no_targets(tmp_path: Path) -> None:
    found = load_configuration(written(tmp_path, {"jobs/tank.toml": SNAPSHOTS}), ENGINES)
    assert [job.name for job in found.jobs] == ["tank"]
    assert found.places == ()
    files = {"jobs/tank.toml": SNAPSHOTS, "jobs/photos.toml": zfs("tank/photos"), "jobs/mail.toml": zfs("tank/mail")}
    with pytest.raises(DeclarationError) as caught:
        load_configuration(written(tmp_path, files), ENGINES)
    (told,) = caught.value.mistakes
    assert (told.file, told.what) == (f"{tmp_path}/targets.toml", "there is no such file")
    assert told.expected.startswith("a file with a [place.NAME], where mail and photos put copies; ")
