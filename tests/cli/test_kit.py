"""The recovery kit by the real command, and datasets as the destination of a restore."""

from datetime import UTC, datetime

from orchestrator.domain.kit import KitContents
from orchestrator.history.store import open_history
from tests.ferry import Ferry

KIT = KitContents(content='{"create": "zpool create tank"}', layout="", recovery="# Do this\n", guids="tank@a\t1\n")


def test_the_page_of_the_newest_kit_and_its_files(ferry: Ferry) -> None:
    ferry.job()
    ferry.run("run", "photos")
    none = ferry.run("kit", "photos")
    assert (none.code, "there is no recovery kit of photos" in none.err) == (1, True)
    with open_history(str(ferry.state / "history.sqlite")) as history:
        history.kits.keep("photos", KIT, datetime(2026, 1, 2, tzinfo=UTC))
    assert ferry.run("kit", "photos").out == "# Do this\n"
    told = ferry.run("kit", "photos", "--to", "kit", "--json").value
    assert (told["made"], told["kit"]["create"]) == ("2026-01-02T00:00:00Z", "zpool create tank")
    folder = ferry.root / "kit"
    assert told["files"] == [str(folder / name) for name in ("RECOVERY.md", "kit.json", "guids.tsv")]
    assert (folder / "guids.tsv").read_text() == KIT.guids


def datasets(ferry: Ferry) -> None:
    (ferry.config / "targets.toml").write_text('[place.vault]\ndataset = "vault/copies"\n')
    (ferry.config / "jobs" / "photos.toml").write_text('engine = "zfs"\nsource = "tank/photos"\ntarget = "vault"\n')


def test_a_destination_that_is_no_dataset_is_wrong_usage(ferry: Ferry) -> None:
    datasets(ferry)
    for wrong in ("tank/a@b", "1tank/a", "tank//a", "ssh://u@/x"):
        told = ferry.run("restore", "plan", "photos", "--to", wrong)
        assert (told.code, "expected" in told.err) == (2, True), told


def test_a_dataset_and_a_path_are_told_apart(ferry: Ferry) -> None:
    """Without a pool both come as far as the look, and the relative name is no path."""
    datasets(ferry)
    for place in ("tank/photos", "/srv/back", "./back"):
        told = ferry.run("restore", "run", "photos", "--to", place, "--json", PATH="/nowhere")
        assert told.code == 1, told
        (run,) = ferry.run("history", "photos", "--json").value["runs"][:1]
        assert run["requested"].endswith({"./back": f"{ferry.root}/back"}.get(place, place))
