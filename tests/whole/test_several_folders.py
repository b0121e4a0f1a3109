"""Several folders below one source, chosen by rules in `excludes`, as jobs/README.md tells: one point holds all of them."""

import shutil
from pathlib import Path

from tests.whole.house import House

EXCLUDES = ["*.tmp", "+ /mail/***", "+ /www/", "+ /www/site/***", "*"]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_each_folder_lies_below_its_path_and_is_guarded_verified_and_restored(house: House) -> None:
    for name in ("mail/a", "mail/b", "www/site/deep/c", "www/other/no", "no", "mail/x.tmp"):
        house.write(name, name)
    house.job(rsync={"excludes": EXCLUDES}, guard={"max_deleted_per_folder": "90%"})
    assert house.run().outcome == "done"
    point = next((house.target / "points").glob("2*Z"))
    assert files(point) == ["mail/a", "mail/b", "www/site/deep/c"]
    house.write("www/other/no", "changed")
    assert house.run().outcome == "nothing-to-do"
    house.write("www/site/deep/c", "changed")
    assert house.run().outcome == "done"
    assert house.call("verify", "photos", "--source").code == 0
    assert house.call("drill", "photos").outcome == "done"
    back = house.folder / "back"
    assert house.call("restore", "run", "photos", "--path", "www/site", "--to", str(back)).outcome == "done"
    assert (files(back), (back / "deep" / "c").read_text()) == (["deep/c"], "changed")

    shutil.rmtree(house.source / "mail")
    (house.source / "mail").mkdir()
    refused = house.run()
    assert (refused.outcome, "mail" in refused["why"] + " ".join(refused["evidence"])) == ("refused", True), refused
