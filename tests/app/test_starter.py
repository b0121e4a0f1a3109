"""The words of `poolferry init`: what is understood, and that it loads; nothing is guessed."""

from pathlib import Path

import pytest

from orchestrator import compose
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.app.starter import StarterRequest, plan_starter, write_starter
from orchestrator.config.load import load_configuration

Kept = tuple[str, str, str]


def understood(folder: Path, request: StarterRequest) -> list[Kept]:
    """Write the configuration and return each job's name, source and target as a run loads them."""
    write_starter(Settings(config=str(folder)), request)
    jobs = load_configuration(str(folder), compose.EngineSections()).jobs
    found = [
        (job.name, str(job.source), job.target.name if job.target.rotates else str(job.target.location)) for job in jobs
    ]
    return sorted(found)


@pytest.mark.parametrize(
    ("words", "jobs"),
    [
        (
            "/srv/photos /home root@nas:/backup",
            [
                ("home", "/home", "ssh://root@nas/backup/home"),
                ("photos", "/srv/photos", "ssh://root@nas/backup/photos"),
            ],
        ),
        ("/srv/photos /backup/photos", [("photos", "/srv/photos", "/backup/photos")]),
        ("tank/photos vault", [("photos", "tank/photos", "vault/photos")]),
        ("tank vault/copies", [("tank", "tank", "vault/copies/tank")]),
        ("nas:tank/x vault", [("x", "ssh://nas/tank/x", "vault/x")]),
        ("root@nas:tank vault/x", [("tank", "ssh://root@nas/tank", "vault/x/tank")]),
        ("ssh://nas/tank/x vault/y", [("x", "ssh://nas/tank/x", "vault/y/x")]),
        ("ssh://nas/srv/x /backup/y", [("x", "ssh://nas/srv/x", "/backup/y")]),
        ("tank/a/x tank/b/x vault", [("x", "tank/a/x", "vault/x"), ("x-2", "tank/b/x", "vault/x-2")]),
    ],
)
def test_places_are_understood(tmp_path: Path, words: str, jobs: list[Kept]) -> None:
    assert understood(tmp_path / "etc", StarterRequest(places=tuple(words.split()))) == sorted(jobs)


def test_disks_and_pools(tmp_path: Path) -> None:
    request = StarterRequest(places=("/home", "/srv"), disks="offsite", pools=("tank", "root@nas:vault"))
    assert understood(tmp_path / "etc", request) == [
        ("home", "/home", "offsite"),
        ("srv", "/srv", "offsite"),
        ("tank-watch", "tank", "tank"),
        ("vault-watch", "ssh://root@nas/vault", "ssh://root@nas/vault"),
    ]
    assert understood(tmp_path / "other", StarterRequest(places=("tank/x",), disks="away")) == [("x", "tank/x", "away")]
    assert understood(tmp_path / "alone", StarterRequest(pools=("tank",))) == [("tank-watch", "tank", "tank")]


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (StarterRequest(places=("tank/photos", "/backup")), "tank/photos is a dataset, /backup is a folder"),
        (StarterRequest(places=("/srv", "vault/x")), "/srv is a folder, vault/x is a dataset"),
        (StarterRequest(places=("/srv", "tank/x", "/backup")), "tank/x is a dataset"),
        (StarterRequest(places=("/srv",)), "poolferry init /srv /backup/copies"),
        (StarterRequest(places=("tank/x",)), "poolferry init tank/x vault/copies"),
        (StarterRequest(places=("tank", "vault")), "poolferry init tank vault/copies"),
        (StarterRequest(places=("root@nas:photos", "/backup")), "write an absolute path"),
        (StarterRequest(places=("tank/x", "vault/?")), "is no name of a dataset"),
        (StarterRequest(pools=("tank/x",)), "a whole pool, such as tank"),
        (StarterRequest(places=("/srv",), target="/backup", disks="away"), "the disks are the target"),
        (StarterRequest(places=("tank/x", "ssh://")), "expected"),
    ],
)
def test_nothing_is_guessed(request_: StarterRequest, why: str) -> None:
    with pytest.raises(WrongRequest) as refused:
        plan_starter(request_)
    assert why in f"{refused.value}; {refused.value.hint}"


def test_what_is_said_is_what_is_written(tmp_path: Path) -> None:
    made = write_starter(Settings(config=str(tmp_path / "etc")), StarterRequest(places=("tank/photos",), disks="away"))
    assert made.understood == ("photos: copy the dataset tank/photos, with all below it, to the disks of the set away",)
    assert made.following[0].startswith("poolferry disks enroll /dev/disk/by-id/usb-… --set away --name red --config ")
    again = write_starter(Settings(config=str(tmp_path / "etc")), StarterRequest(places=("/srv", "/backup")))
    assert again.understood == ("srv: copy the folder /srv to the folder /backup",)
    assert (again.written, again.added) == ((str(tmp_path / "etc/jobs/srv.toml"),), ("[place.srv-copies]",))
    usual = write_starter(Settings(config=str(tmp_path / "etc")), StarterRequest())
    assert (usual.written, usual.understood, usual.added) == ((), (), ())
    assert [line.split(" --config")[0] for line in usual.following] == ["poolferry check --system"]
