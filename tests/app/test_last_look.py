"""Test that nothing is said of a copy as if it were there, while the last look at its place did not find it."""

import json
import os
import shutil

import pytest

from orchestrator.app.settings import Settings
from orchestrator.app.visible_points import find_visible_points
from tests.ferry import Ferry


def said(ferry: Ferry, *words: str) -> str:
    """Return what a command says, without the line breaks of a terminal."""
    told = ferry.run(*words)
    return told.out + told.err


def test_a_place_that_is_not_mounted_takes_no_point_away(ferry: Ferry) -> None:
    """Each look that does not find the copies says so, and status, points, JSON and metrics after it; the next that does ends it."""
    ferry.job()
    assert ferry.run("run", "photos").code == 0
    away = ferry.root / "away"
    for words in (("verify", "photos"), ("points", "photos", "--look"), ("run", "photos"), ("drill", "photos"),
                  ("restore", "run", "photos", "--to", str(ferry.root / "back"))):  # fmt: skip
        ferry.target().rename(away)
        told = ferry.run(*words)
        assert told.code != 0, words
        assert "held copies of" in told.out + told.err, (words, told)
        assert "run the job first" not in told.out + told.err, words
        status = ferry.run("status")
        assert status.code == 4, (words, status)
        assert ", unseen" in status.out, (words, status)
        assert "and may be gone: not seen since " in status.out, (words, status)
        (job,) = ferry.run("status", "--json").value["jobs"]
        assert job["newest_verified"]["unseen"]["since"], words
        assert job["points"]["count"] == 1, words
        assert "yes, unseen" in said(ferry, "points", "photos"), words
        assert "copies_unseen_since_timestamp_seconds{" in said(ferry, "metrics"), words
        away.rename(ferry.target())
        assert ferry.run("points", "photos", "--look").code == 0
        assert "unseen" not in said(ferry, "status"), words
    assert "unseen_since_timestamp_seconds{" not in said(ferry, "metrics")


def test_a_look_that_failed_at_the_source_says_nothing_against_the_copies(ferry: Ferry) -> None:
    """It saw the copies, and an earlier look that did not see them is over by it."""
    ferry.job(more="[rsync]\nchecksum = true\n")
    assert ferry.run("run", "photos").code == 0
    broken = ferry.root / "bin"
    broken.mkdir()
    (broken / "rsync").write_text(
        "#!/bin/sh\necho 'rsync error: error allocating core memory buffers (code 22)' >&2\nexit 22\n"
    )
    (broken / "rsync").chmod(0o755)
    away = ferry.root / "away"
    for earlier in (False, True):
        if earlier:
            ferry.target().rename(away)
            assert ferry.run("points", "photos", "--look").code != 0
            assert ", unseen" in said(ferry, "status")
            away.rename(ferry.target())
        told = ferry.run("run", "photos", PATH=f"{broken}:{os.environ['PATH']}")
        assert (told.code, "memory" in told.out + told.err) == (1, True), told
        assert "unseen" not in said(ferry, "status"), earlier


def test_a_hint_of_status_names_the_command_that_ends_what_it_says(ferry: Ferry) -> None:
    ferry.job()
    assert ferry.run("run", "photos").code == 0
    for word, kind in (("verify", "verification"), ("drill", "restore test")):
        ferry.target().rename(ferry.root / "away")
        assert ferry.run(word, "photos").code != 0
        status = said(ferry, "status")
        assert f"the last {kind} refused: " in status, status
        assert f"poolferry {word} photos" in status, status
        (ferry.root / "away").rename(ferry.target())
        assert ferry.run(word, "photos").code == 0
        assert ferry.run("status").code == 0, word


@pytest.mark.parametrize("mirror", [False, True])
def test_another_jobs_copies_are_not_taken_for_those_of_this_one(ferry: Ferry, mirror: bool) -> None:
    more = "[rsync]\npoints = false\ndelete = true\n" if mirror else ""
    ferry.job(more=more)
    ferry.job("papers", more=more)
    assert ferry.run("run", "photos", "papers").code == 0
    shutil.rmtree(ferry.target())
    shutil.copytree(ferry.target("papers"), ferry.target(), symlinks=True)
    for word in ("verify", "run"):
        told = ferry.run(word, "photos")
        assert told.code == 3, told
        assert "belongs to the job papers" in told.out + told.err, told
    (job,) = ferry.run("status", "photos", "--json").value["jobs"]
    assert job["newest_verified"]["unseen"]["why"].endswith("belongs to the job papers"), json.dumps(job)


@pytest.mark.parametrize("first", ["run", "points", "verify"])
@pytest.mark.parametrize("mirror", [False, True])
@pytest.mark.sample(2)
def test_a_place_that_has_another_name_and_path_is_one_place(ferry: Ferry, first: str, mirror: bool) -> None:
    """Whoever looks there first says so, once; a copy of the place, which was not left, is another one."""
    ferry.job(more="[rsync]\npoints = false\ndelete = true\n" if mirror else "")
    assert ferry.run("run", "photos").code == 0
    assert ferry.run("verify", "photos").code == 0
    (ferry.root / "disk").mkdir()
    ferry.target().rename(ferry.root / "disk/copies")
    targets, job = ferry.config / "targets.toml", ferry.config / "jobs/photos.toml"
    targets.write_text(f'[place.cellar]\npath = "{ferry.root}/disk/copies"\n')
    job.write_text(job.read_text().replace("photos-copies", "cellar"))
    told = said(ferry, first, "photos", *(("--look",) if first == "points" else ()))
    assert told.count("the place photos-copies (") + (first == "points") == 1, told
    (point,) = ferry.run("points", "photos", "--json").value["points"]
    assert (point["place"], point["sound"]) == ("cellar", True), point
    assert ferry.run("run", "photos").code == 0
    assert "photos-copies" not in said(ferry, "status") + said(ferry, "points", "photos")
    shutil.copytree(ferry.root / "disk/copies", ferry.root / "other", symlinks=True)
    targets.write_text(f'[place.attic]\npath = "{ferry.root}/other"\n')
    job.write_text(job.read_text().replace("cellar", "attic"))
    assert ferry.run("run", "photos").code == 0
    points = ferry.run("points", "photos", "--json").value["points"]
    assert {(each["place"], each["sound"]) for each in points} == {("cellar", True), ("attic", None)}, points


def test_a_page_lists_points_by_a_program_that_can_be_left_behind(
    ferry: Ferry, monkeypatch: pytest.MonkeyPatch
) -> None:
    ferry.job()
    assert ferry.run("run", "photos").code == 0
    settings, lines = Settings(config=str(ferry.config), state=str(ferry.state)), list[str]()
    monkeypatch.setattr(settings, "log", lines.append)
    assert len(find_visible_points(settings, settings.configuration().job("photos"))) == 1
    assert lines
