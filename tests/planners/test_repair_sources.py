"""Test what heals the files that a pool names as lost."""

import pytest

from orchestrator.domain.job import Job
from orchestrator.domain.place import Host, Location, Place
from orchestrator.planners.repair_sources import DAMAGED, explain_pool_repair

FAR = Host(name="backup")


def job(name: str, source: str, target: str, *, host: Host | None = None) -> Job:
    place = Place(name="place", location=Location(path=target, host=host))
    return Job(name=name, file="", engine="x", source=Location(path=source), target=place, options=None)


NEAR = job("photos", "tank/photos", "vault/copies/photos")
REMOTE = job("far", "tank/photos", "box/photos", host=FAR)
TREE = job("home", "/tank/home", "/vault/home")
WATCH = job("watch", "tank", "tank")
JOBS = (NEAR, REMOTE, TREE, WATCH)


def lines(name: str, pool: str = "tank", jobs: tuple[Job, ...] = JOBS) -> list[str]:
    return [
        line.removeprefix(f"{name}: ")
        for line in explain_pool_repair([DAMAGED + name, "advice: none"], jobs, Location(path=pool))
    ]


def test_a_file_of_a_source_comes_back_from_each_copy() -> None:
    near, far = lines("tank/photos/sub@a:/x y")
    restored = "poolferry restore run photos --point a --path 'sub/x y' --to FOLDER"
    assert near == f"job photos has a copy in vault/copies/photos/sub: {restored}"
    assert far.startswith("job far has a copy in box/photos/sub: poolferry restore run far")
    near, _ = lines("tank/photos/sub:/x y")
    assert near.endswith("poolferry restore run photos --path 'sub/x y' --to FOLDER")


def test_a_copy_is_read_again_by_its_job() -> None:
    (line,) = lines("vault/copies/photos@a:/x", pool="vault")
    assert line == "the source of job photos is tank/photos: `poolferry verify photos --content` shows how to repair it"
    near, _ = lines("tank/photos:<0x1>")
    assert near.endswith("`poolferry verify photos --content` shows how to repair it")


def test_a_mounted_file_belongs_to_jobs_of_folders() -> None:
    assert lines("/tank/home/me/a b") == [
        "job home has a copy: poolferry restore run home --path 'me/a b' --to '/tank/home/me/a b' --aside"
    ]
    assert lines("/vault/home/points/x/y") == [
        "it belongs to the copies of job home: poolferry verify home, then poolferry run home"
    ]


@pytest.mark.parametrize(
    "name", ["<0x33>:<0x1>", "<metadata>:<0x3d>", "tank/photoshop@a:/x", "/tank/homes/x", "tank/other:/x"]
)
def test_what_no_job_has_is_not_spoken_of(name: str) -> None:
    assert lines(name) == []


def test_the_same_name_on_another_machine_is_another_pool() -> None:
    assert lines("box/photos@a:/x", pool="box") == []
