"""`plan --files` names what the run then does; `run --dry-run` and `run --all`."""

import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.ferry import Ferry
from tests.whole.house import House, facts

# The point that a plan would make is named after the second in which it was asked for.
POINT = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z")
RED = os.fsdecode(b"\x1b[31mred\nremoved -  lie\xff")


def without_times(text: str) -> str:
    told, number = POINT.subn("POINT", text)
    assert number, text
    return told


def planned(house: House) -> dict[str, set[str]]:
    found = house.call("plan", "photos", "--files")
    assert found.code == 0, found
    assert Counter(each["change"] for each in found["files"]) == Counter(
        {key: number for key, number in found["file_counts"].items() if number}
    )
    told: dict[str, set[str]] = {}
    for each in found["files"]:
        told.setdefault(each["change"], set()).add(each["path"])
    return told


@pytest.mark.parametrize("rsync", [{}, {"points": False, "delete": True}], ids=["points", "mirror"])
@pytest.mark.sample(1)
def test_the_files_of_a_plan_are_what_the_run_does(house: House, rsync: dict[str, object]) -> None:
    house.write("deep/a", "one")
    house.write("same", "x")
    house.write("owner", "x")
    house.job(rsync=rsync, guard={"max-deleted": "100%"})
    before = facts(house.target) if house.target.exists() else None
    assert planned(house) == {"added": {"deep", "deep/a", "same", "owner"}}
    assert (facts(house.target) if house.target.exists() else None) == before, "nothing was changed"
    assert house.run().outcome == "done"
    assert planned(house) == {}
    house.write(RED, "new")
    house.write("deep/a", "longer")
    os.chmod(house.source / "owner", 0o600)
    os.unlink(house.source / "same")
    told = planned(house)
    assert told == {
        "added": {"\\x1b[31mred\\nremoved -  lie\\xff"}, "changed": {"deep/a"}, "metadata": {"owner"}, "removed": {"same"},
    }  # fmt: skip
    assert house.run().outcome == "done"
    assert planned(house) == {}


def test_people_see_a_thousand_files_and_the_count(house: House) -> None:
    for number in range(1203):
        house.write(f"{number:04}", b"12")
    house.write(RED, "new")
    house.job()
    argv = [word for word in house.argv("plan", "photos", "--files") if word != "--json"]
    told = subprocess.run(argv, capture_output=True, env=house.environment, check=True).stdout
    assert b"\x1b" not in told
    lines = told.decode().splitlines()
    assert len([line for line in lines if line.startswith("  added ")]) == 1000
    assert (
        lines[-1]
        == "files: 1204 added, 0 changed, 0 metadata, 0 removed; 2.4 KiB to copy; 204 more are not listed here: --json has all"
    )
    assert len(house.call("plan", "photos", "--files")["files"]) == 1204


def test_a_plan_that_cannot_name_files_says_so_before_it_looks(house: House) -> None:
    gone = house.job(source=str(house.folder / "gone"))
    told = house.call("plan", gone, "--files")
    assert told.code in (1, 3), told
    house.write(house.config / "jobs" / "sets.toml", 'engine = "zfs"\nsource = "tank/x"\ntarget = "pool"\n')
    with open(house.config / "targets.toml", "a") as file:
        file.write('\n[place.pool]\ndataset = "vault/x"\n')
    datasets = house.call("plan", "sets", "--files")
    assert datasets.code == 1, datasets
    assert "zfs diff -FH tank/x@SNAPSHOT tank/x" in datasets["hint"]


def test_a_dry_run_is_the_plan(ferry: Ferry, tmp_path: Path) -> None:
    source = ferry.job()
    ferry.job("music")
    told = ferry.run("run", "photos", "--dry-run")
    assert (told.code, without_times(told.out)) == (0, without_times(ferry.run("plan", "photos").out))
    assert not ferry.target().exists()
    both = ferry.run("run", "--all", "-n", "--json").value["plans"]
    assert [each["job"] for each in both] == ["music", "photos"]
    assert ferry.run("run", "photos", "-n", "--json").value["job"] == "photos"
    source.rename(tmp_path / "away")
    assert ferry.run("run", "photos", "-n").code == ferry.run("plan", "photos").code != 0


def test_all_runs_all_but_what_rests(ferry: Ferry) -> None:
    for name in ("photos", "music", "mails"):
        ferry.job(name)
    assert ferry.run("pause", "music").code == 0
    told = ferry.run("run", "--all", "--json")
    assert told.code == 0, told
    assert [each["job"] for each in told.value["runs"]] == ["mails", "photos"]
    assert "paused, so not run: music; `poolferry run music` runs one all the same" in told.err
    assert ferry.run("run", "music").code == 0
    for name in ("photos", "mails"):
        ferry.run("pause", name)
    none = ferry.run("run", "--all")
    assert (none.code, none.out) == (2, "")
    assert "there is no job to run" in none.err
