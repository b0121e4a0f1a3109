"""No line of a plan is wider than 200 characters, whatever engines, names and hints are in it; and hints can be pasted."""

import subprocess
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.job import SnapshotRules
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Decision, NothingToDo, Plan, Refusal
from orchestrator.domain.units import Seconds
from orchestrator.engines.contract.restore import DestinationSurvey, RestoreRequest
from orchestrator.engines.pool import plan as pool_plan
from orchestrator.engines.rsync import plan as rsync_plan
from orchestrator.engines.rsync.restore import plan_restore
from orchestrator.engines.sanoid import plan as sanoid_plan
from orchestrator.engines.zfs.plan.plan import plan as zfs_plan
from orchestrator.views.plan import dry_run_lines, fit_lines, restore_plan_lines
from tests.engines.pool import builders as pools
from tests.engines.rsync import builders as trees
from tests.engines.sanoid import builders as sanoids
from tests.engines.zfs import sides
from tests.engines.zfs.restore.builders import forward, way_back

DATASET = "tank/" + "/".join(["a-rather-long-name-of-a-dataset"] * 7)
FOLDER = "/srv/" + "/".join(["a rather long name of a folder"] * 12)
FAR = Host(name="backup-" + "x" * 50 + ".example.org", user="poolferry", port=2222)


def test_what_goes_before_the_copy_is_not_said_to_go_after_it() -> None:
    """A run removes first what [keep] lets go where there may be no room."""
    decision, removes = NothingToDo(why="up to date", current="2026-11-20"), (("2026-11-01", "no rule keeps it"),)
    told = dry_run_lines("photos", decision, removes, {}, verbose=False)
    assert told[1:] == ["  then [keep] removes 2026-11-01: no rule keeps it"]
    told = dry_run_lines("photos", decision, removes, {}, short="1 MiB is free", verbose=False)
    assert told[1:] == [
        "  there may be no room: a run removes first what [keep] lets go, and looks again",
        "  first [keep] removes 2026-11-01: no rule keeps it",
    ]


def shown(decision: Decision, *removes: tuple[str, str]) -> list[str]:
    """The lines of `plan`, of which one would be too wide if it were not made to fit."""
    forecast = {"red": f"the next run starts from {DATASET}@autosnap_2026-11-20_15:10:58_daily {'and so on ' * 20}"}
    whole = dry_run_lines("photos", decision, removes, forecast, verbose=True)
    assert max(map(len, whole)) > 200
    lines = dry_run_lines("photos", decision, removes, forecast, verbose=False)
    assert [line for line in lines if len(line) > 200] == []
    return lines


@pytest.mark.parametrize("host", [None, FAR], ids=["here", "ssh"])
@pytest.mark.parametrize("points", [True, False], ids=["points", "mirror"])
def test_trees(host: Host | None, *, points: bool) -> None:
    there = Location(path=FOLDER + "/copies", host=host)
    job = trees.job(source=Location(path=FOLDER), target=there, points=points)
    cut = tuple(trees.half(f"{FOLDER}/{number}", 3000, 5000) for number in range(30))
    target = replace(trees.USED, points=(trees.point(root=there),), work=True, half=cut) if points else trees.MIRRORED
    decision = rsync_plan.plan(job, trees.world(target), trees.ASKED)
    assert isinstance(decision, Plan), decision
    lines = shown(decision, (trees.OLD, f"{FOLDER} is not kept"))
    assert any(line.startswith("     runs: ") and "rsync" in line for line in lines)


@pytest.mark.parametrize("how", ["local", "push", "pull", "raw"])
def test_datasets(how: str) -> None:
    source = Location(path=DATASET, host=FAR if how == "pull" else None)
    copy = Location(path=DATASET.replace("tank", "vault"), host=FAR if how == "push" else None)
    job = replace(sides.job(raw="yes" if how == "raw" else "auto"), source=source)
    job = replace(job, target=replace(job.target, location=copy))
    encrypted: dict[str, Any] = {
        "encrypted": how == "raw",
        "encryption_root": DATASET if how == "raw" else None,
        "key_loaded": True,
    }
    here = sides.side(source, sides.dataset("", sides.A, sides.B, **encrypted), sides.dataset("sub", sides.A))
    there = (
        sides.side(copy, sides.dataset("", sides.A)) if how != "raw" else sides.side(copy, above=frozenset({"vault"}))
    )
    decision = zfs_plan(job, sides.world(here, there), sides.ASKED)
    assert isinstance(decision, Plan), decision
    assert any("zfs" in line or ".sh" in line for line in shown(decision) if line.startswith("     runs: "))


def test_snapshots() -> None:
    decision = sanoid_plan.plan(
        sanoids.job(SnapshotRules(daily=2), source=Location(path=DATASET)),
        sanoids.world(root=Location(path=DATASET)),
        sanoids.ASKED,
    )
    assert isinstance(decision, Plan), decision
    shown(decision)


@pytest.mark.parametrize("state", ["due", "busy", "lost"])
def test_pools(state: str) -> None:
    damaged = tuple(f"{DATASET}:{FOLDER}/{number}" for number in range(20))
    told = pools.status(
        scan=pools.scan(ago=20 * pools.DAY), damaged=damaged if state == "lost" else (), errors=20 * (state == "lost")
    )
    work = (f"send of {DATASET}",) * 3 if state == "busy" else ()
    decision = pool_plan.plan(
        pools.job(scrub_every=Seconds(7 * pools.DAY)), pools.world(told, at_work=work), pools.ASKED
    )
    assert isinstance(decision, Plan if state == "due" else Refusal), decision
    shown(decision)


def test_restores_of_trees() -> None:
    to = Location(path=FOLDER)
    wanted = RestoreRequest(point=trees.point(root=Location(path=FOLDER + "/copies")), path=b"", to=to)
    seen = DestinationSurvey(kind="none", entries=0, examples=(), unfinished=None, wanted="folder", to=to)
    lines = restore_plan_lines("photos", plan_restore(trees.job(), wanted, seen, aside=None), None, verbose=False)
    assert [line for line in lines if len(line) > 200] == []
    assert f"bring point {trees.OLD} back to" in lines[0]


def test_restores_of_datasets() -> None:
    name = "another-long-name-of-a-dataset" * 7
    decision = way_back(forward("a", "b", below=(name,)), f"tank/{name}").plan().decision
    assert isinstance(decision, Plan), decision
    shown(decision)


def test_points_that_keep_removes() -> None:
    nothing = NothingToDo(why="as new as the source", current=None)
    names = [
        (f"{DATASET[60:]}@{(trees.NOW - timedelta(days=day)):%Y-%m-%d}", f"no rule keeps {FOLDER}") for day in range(9)
    ]
    text = " ".join(line.strip() for line in shown(nothing, *names))
    assert all(name in text for name, _ in names)


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\n\0"), min_size=1, max_size=250)


@given(st.lists(WORDS, min_size=1, max_size=8), st.integers(0, 12))
def test_any_text_fits(words: list[str], margin: int) -> None:
    assert max(map(len, fit_lines([" " * margin + " ".join(words)]))) <= 200


def test_what_fits_stays_as_it_is() -> None:
    lines = ["photos: two streams", "  1. send  it", "", "x" * 200, "y " * 99]
    assert fit_lines(lines) == lines


def test_a_longer_word_is_cut_in_its_middle() -> None:
    (line,) = fit_lines(["  1. prepare " + "a" * 185 + "b" * 185])[1:]
    assert (line[6], line[-1], line.count("…"), len(line) <= 200) == ("a", "b", 1, True)


def test_a_hint_that_goes_on_is_one_command_for_a_shell() -> None:
    words = ["run", "it's mine", "--to=a b", "ä ö", *(f"part {number}" for number in range(40)), "x" * 250]
    import shlex

    refusal = Refusal(why="no", evidence=(), hint="printf '%s\\n' " + shlex.join(words))
    lines = dry_run_lines("photos", refusal, (), {}, verbose=False)
    assert sum(len(line) > 200 for line in lines) == 1, "but a word that is longer than a line"
    command = "\n".join(lines[1:]).removeprefix("  what to do: ")
    assert len(lines) > 3
    assert (
        subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout.splitlines() == words
    )
