"""Several folders as the sources of one job: one point holds them by their whole paths, and none can empty the copy of another."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.whole.house import House, trees_equal

PARTS = ("home", "etc", "srv/www")


def make_folders(house: House) -> list[str]:
    """Return the paths of three folders with files in them, below the house's own."""
    for name in (*(f"home/user/{number}" for number in range(30)), "etc/hosts", "srv/www/site/page", "srv/other/no"):
        house.write(name, name)
    os.link(house.source / "home/user/1", house.source / "srv/www/site/linked")
    (house.source / "srv").chmod(0o750)
    return [str(house.source / part) for part in PARTS]


def tops(tree: Path, house: House) -> dict[str, Path]:
    """Return the copies of the three folders that a tree holds."""
    below = tree / str(house.source)[1:]
    return {part: below / part for part in PARTS if (below / part).is_dir()}


def assert_copied(house: House, tree: Path) -> None:
    copies = tops(tree, house)
    assert all(trees_equal(house.source / part, copies[part]) for part in PARTS)
    above = tree / str(house.source)[1:] / "srv"
    assert (sorted(os.listdir(above)), above.stat().st_mode & 0o777) == (["www"], 0o750)


@pytest.mark.parametrize(
    "options", [{}, {"parallel": 3}, {"excludes": ["*.none"]}], ids=["one", "parallel", "excludes"]
)
@pytest.mark.sample(1)
def test_one_point_holds_all_folders(house: House, options: dict[str, object]) -> None:
    house.job(sources=make_folders(house), source=None, rsync=options)
    assert house.run().outcome == "done"
    assert_copied(house, house.point())
    linked = [house.point() / str(house.source)[1:] / name for name in ("home/user/1", "srv/www/site/linked")]
    assert linked[0].stat().st_ino == linked[1].stat().st_ino
    assert house.run().outcome == "nothing-to-do"
    house.write("etc/hosts", "changed")
    (house.source / "home/user/2").unlink()
    assert house.run().outcome == "done"
    assert_copied(house, house.point())
    assert house.point().stat().st_mode & 0o777 == 0o755  # not what the run's own folder had
    first, second = (house.point(which) / str(house.source)[1:] / "home/user/3" for which in (0, 1))
    assert first.stat().st_ino == second.stat().st_ino
    assert house.call("verify", "photos", "--source").code == 0
    assert house.call("drill", "photos").outcome == "done"


def test_a_folder_that_is_gone_or_emptied_keeps_its_copy_and_is_named(house: House) -> None:
    folders = make_folders(house)
    house.job(sources=folders, source=None)
    assert house.run().outcome == "done"
    away = house.folder / "away"
    house.source.joinpath("etc").rename(away)
    refused = house.run("photos", "--allow", "source-empty", "--allow", "max-deleted")
    assert (refused.code, refused["why"]) == (3, f"the source {folders[1]} is not there")
    house.source.joinpath("etc").mkdir()
    refused = house.run()
    assert (
        refused["why"] == f"the source {folders[1]} is empty, and its copy in the newest point is not: is it mounted?"
    )
    house.source.joinpath("etc").rmdir()
    house.source.joinpath("etc").symlink_to(away)
    refused = house.run()
    assert (refused["why"], str(away) in refused["hint"]) == (f"a link leads to the source {folders[1]}", True)
    house.source.joinpath("etc").unlink()
    away.rename(house.source / "etc")
    for number in range(25):  # most of one folder, and less than half of all
        house.write(f"srv/www/site/{number}", "x")
        house.write(f"etc/{number}", "x")
    assert house.run().outcome == "done"
    for number in range(25):
        (house.source / "etc" / str(number)).unlink()
    refused = house.run()
    assert (refused.outcome, "etc/: 25 of 26 entries are gone" in refused["why"]) == ("refused", True), refused
    assert tops(house.point(), house).keys() == set(PARTS)
    assert house.run("photos", "--allow", "max-deleted").outcome == "done"


def test_the_list_may_change_and_a_cut_copy_follows_it(house: House) -> None:
    folders = make_folders(house)
    house.job(sources=folders[:2], source=None)
    assert house.run().outcome == "done"
    house.job(sources=folders[1:], source=None)
    ran = house.run()
    assert (ran.outcome, len(ran["warnings"])) == ("done", 1), ran
    assert f"until {house.points()[0]}: {folders[0][1:]}" in ran["warnings"][0]
    assert tops(house.point(), house).keys() == {"etc", "srv/www"}
    assert tops(house.point(0), house).keys() == {"home", "etc"}
    work = house.target / ".poolferry/work" / folders[0][1:]  # as a run leaves it that was cut before the list changed
    work.mkdir(parents=True)
    (work / "left").touch()
    house.write("etc/hosts", "changed")
    assert house.run().outcome == "done"
    assert tops(house.point(), house).keys() == {"etc", "srv/www"}
    assert house.run().outcome == "nothing-to-do"


def test_a_mirror_of_several_folders_deletes_only_inside_of_them(house: House) -> None:
    house.job(sources=make_folders(house), source=None, rsync={"points": False, "delete": True})
    house.target.mkdir()
    assert house.run().outcome == "done"
    house.target.chmod(0o711)
    (house.source / "home/user/1").unlink()
    assert house.run().outcome == "done"
    assert_copied(house, house.target)
    assert house.target.stat().st_mode & 0o777 == 0o711
    assert house.run().outcome == "nothing-to-do"
    house.job(
        sources=[str(house.source / "etc"), str(house.source / "srv/www")],
        source=None,
        rsync={"points": False, "delete": True},
    )
    house.write("etc/new", "x")
    ran = house.run()
    assert (ran.outcome, "where it stays" in ran["warnings"][0]) == ("done", True), ran
    assert tops(house.target, house).keys() == set(PARTS)


def test_each_folder_is_found_and_brought_back_by_its_whole_path(house: House) -> None:
    folders = make_folders(house)
    house.job(sources=folders, source=None)
    assert house.run().outcome == "done"
    path = folders[2][1:]
    assert house.call("ls", "photos", path).code == 0
    assert house.call("find", "photos", "page").code == 0
    shutil.rmtree(folders[2])
    assert house.call("restore", "run", "photos", "--path", path, "--to", folders[2]).outcome == "done"
    assert house.run().outcome == "nothing-to-do"
    refused = house.call("restore", "run", "photos", "--to", "/")
    assert (refused.code, f"--path {folders[0][1:]} --to {folders[0]}" in refused.outcome) == (2, True), refused
    shutil.rmtree(folders[0])
    assert house.follow(refused.outcome, -1).outcome == "done"
    assert house.run().outcome == "nothing-to-do"
    page = (house.target / ".poolferry/RECOVERY.md").read_text()
    back = house.folder / "back"
    blocks = page.split("```sh\n")[1:]
    script = "\n".join(block.split("```")[0] for block in blocks).replace("to=''", f"to={back}")
    subprocess.run(["sh", "-eu", "-c", script], check=True, capture_output=True)
    assert all(trees_equal(house.source / part, tops(back, house)[part]) for part in PARTS)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_folder_on_a_filesystem_of_its_own_is_copied_and_missed(house: House) -> None:
    folders = make_folders(house)
    mounted, inside = folders[2], f"{folders[0]}/inside"
    os.mkdir(inside)
    house.job(sources=folders, source=None)
    try:
        for folder in (mounted, inside):
            subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
            Path(folder, "file").write_text("there")
        assert house.run().outcome == "done"
        copy = house.point() / folders[2][1:]
        assert (os.listdir(copy), os.listdir(house.point() / inside[1:])) == (["file"], [])
        subprocess.run(["umount", mounted], check=True)
        refused = house.run()
        assert f"{mounted} lies on another filesystem than at the newest point" in refused["why"], refused
    finally:
        for folder in (mounted, inside):
            subprocess.run(["umount", folder], capture_output=True)


EXCLUDES = ["*.tmp", "+ /mail/***", "+ /www/", "+ /www/site/***", "*"]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_rules_choose_folders_below_one_source(house: House) -> None:
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
