"""Source, target and destination that overlap by a mount, which their paths do not show: nothing is copied into itself."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.whole.house import House

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.namespace]
Mount = Callable[[Path, Path], Path]


@pytest.fixture
def mount() -> Iterator[Mount]:
    """A function that mounts a folder a second time; after the test it is there once."""
    made: list[Path] = []

    def mount_again(folder: Path, there: Path) -> Path:
        there.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "--bind", folder, there], check=True)
        made.append(there)
        return there

    yield mount_again
    for there in reversed(made):
        subprocess.run(["umount", there], check=True)


@pytest.mark.parametrize(
    ("source", "target", "why", "options"),
    [
        ("again", "source/copies", "lies inside the source", {}),
        ("again", "source/docs/mirror", "lies inside the source", {"points": False, "delete": True}),
        ("again", "source", "is the source", {}),
        ("again/docs", "source", "holds the source", {}),
        ("outer", "source/copies", "lies in what is mounted inside the source", {}),
        ("outer", "source/copies", "", {"excludes": ["/source again/copies/"]}),
        ("again/docs", "source/other", "", {}),
        ("again", "source/copies", "", {"excludes": ["/copies"]}),
    ],
)
def test_no_copy_is_copied_into_itself(
    house: House, mount: Mount, source: str, target: str, why: str, options: dict[str, Any]
) -> None:
    house.write("docs/a", "x")
    mount(house.source, house.folder / "again")
    mount(house.source, house.folder / "outer/source again")
    house.job(source=str(house.folder / source), target=str(house.folder / target), rsync=options)
    done = house.run()
    assert done.outcome == ("refused" if why else "done"), done
    assert why in done["why"]
    said = "keeps no points: it is a mirror" if options.get("delete") else "keeps every point"
    assert house.call("check")["jobs"][0]["meaning"].endswith(said)
    assert why == "" or sorted(path.name for path in house.source.rglob("*")) == ["a", "docs"]


def test_nothing_comes_back_among_the_copies(house: House, mount: Mount) -> None:
    house.write("docs/a", "x")
    house.job()
    assert house.run().outcome == "done"
    [name] = house.points()
    again, points = mount(house.target, house.folder / "again"), mount(house.target / "points", house.folder / "points")
    for to in (again / "points/new", again / ".poolferry/new", points / "new", points / name):
        done = house.call("restore", "run", "photos", "--to", str(to), "--aside")
        assert done.outcome == "refused", done
        assert "lies among the copies" in done["why"]
    assert house.call("restore", "run", "photos", "--to", str(again / "new")).outcome == "done"
    assert sorted(path.name for path in (house.target / "points").iterdir()) == [name, f"{name}.manifest.gz"]
