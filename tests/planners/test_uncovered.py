"""Test what no job copies: the topmost datasets and the folders beside the sources."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.planners.uncovered import DatasetMount, find_uncovered_datasets, find_uncovered_folders

NAMES = "tank tank/db tank/db/a tank/home tank/home/ann tank/scratch tank/scratch/x tank/vm vault vault/copies vault/copies/db".split()


def datasets(*names: str, copied: str = "", alone: str = "", paths: str = "", targets: str = "") -> tuple[str, ...]:
    there = [DatasetMount(name=name, mountpoint=f"/{name}") for name in names]
    return find_uncovered_datasets(
        there, copied=copied.split(), alone=alone.split(), paths=paths.split(), targets=targets.split()
    )


def test_the_topmost_of_each_tree_is_named_and_what_only_leads_to_a_source_is_not() -> None:
    found = datasets(*NAMES, copied="tank/db", alone="tank/home", targets="vault/copies")
    assert found == ("tank/home/ann", "tank/scratch", "tank/vm")
    assert datasets(*NAMES, copied="tank vault") == ()
    assert datasets(*NAMES, copied="tank/db", paths="/tank/vm /tank/home", targets="vault") == ("tank/scratch",)
    deep = ("tank", "tank/a", "tank/a/b", "tank/a/b/c", "tank/a/b/c/d", "tank/a/x")
    assert datasets(*deep, copied="tank/a/b/c/d") == ("tank/a/x",), "each dataset above a source only leads to it"
    assert datasets("tank/dbx", "tank/db", copied="tank/db") == ("tank/dbx",), "a longer name is another dataset"


def test_what_was_set_aside_below_a_source_is_named_until_the_job_sends_it() -> None:
    aside = "tank/db_aside_2026-03-04T050607Z"
    there = [DatasetMount(name=name, mountpoint="none") for name in ("tank", "tank/db", aside, f"{aside}/kid")]
    found = partial(find_uncovered_datasets, there, alone=(), paths=())
    assert found(copied=["tank"], targets=()) == (aside,)
    assert found(copied=["tank"], targets=(), with_aside=["tank"]) == ()
    assert found(copied=["tank/db"], targets=["tank"]) == (), "on a pool of copies"
    assert found(copied=[aside, "tank/db"], targets=()) == (), "it is a source itself"


def test_folders_beside_the_sources_are_named() -> None:
    beside = ["/srv/photos", "/srv/music", "/srv/photos2", "/home", "/usr", "/proc", "/backup", "/var", "/etc"]
    found = find_uncovered_folders(
        beside, copied=["/srv/photos", "/home"], others=["/backup/photos", "/var/lib/poolferry"]
    )
    assert found == ("/etc", "/srv/music", "/srv/photos2")


@given(st.sets(st.sampled_from(NAMES)), st.sets(st.sampled_from(NAMES), max_size=3))
def test_each_dataset_is_copied_or_named_or_below_a_named_one_or_leads_to_a_source(
    there: set[str], copied: set[str]
) -> None:
    found = datasets(*there, copied=" ".join(copied))
    for name in there:
        inside = any(name == each or name.startswith(f"{each}/") for each in (*copied, *found))
        assert inside or any(each.startswith(f"{name}/") for each in copied), name
    assert not any(name == each or name.startswith(f"{each}/") for name in found for each in copied)
