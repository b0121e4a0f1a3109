"""`poolferry rename`: chains, history, schedule and verification go on under the new name, wherever the rename was cut."""

import contextlib
import fcntl
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app import config_files
from orchestrator.app import rename_job as renames
from orchestrator.app.rename_job import rename_job
from orchestrator.app.settings import Settings
from tests.ferry import Ferry


@pytest.fixture
def ferry(tmp_path: Path) -> Ferry:
    """Two jobs, of which one runs after the other, and a channel for one of them."""
    made = Ferry(tmp_path)
    made.job(more='schedule = "0 4 * * *"\n')
    made.job("mail", 'after = ["photos"]\n')
    made.config.joinpath("poolferry.toml").write_text(
        '[notice.admin]\nkind = "ping"\nurl = "https://example.org/{job}"\njobs = ["photos", "mail"]\n'
    )
    return made


def run(ferry: Ferry, job: str) -> dict[str, Any]:
    """The report of a run."""
    return ferry.run("run", job, "--json").value


def inode(point: Path) -> int:
    return (point / "b.bin").stat().st_ino


def test_all_goes_on_under_the_new_name(ferry: Ferry) -> None:
    (ferry.config / "poolferry.toml").unlink()
    first = run(ferry, "photos")
    before = ferry.target() / ".poolferry" / "target.json"
    marked = before.read_text()
    done = ferry.run("rename", "photos", "pictures", "--json")
    assert done.code == 0, done.err
    text = (ferry.config / "jobs" / "pictures.toml").read_text()
    assert 'known-as = "photos"' in text
    assert not (ferry.config / "jobs" / "photos.toml").exists()
    assert 'after = ["pictures"]' in (ferry.config / "jobs" / "mail.toml").read_text()
    assert run(ferry, "pictures")["outcome"] == "nothing-to-do"
    (ferry.root / "photos-source" / "new").write_text("new")
    second = run(ferry, "pictures")
    assert (second["outcome"], second["warnings"]) == ("done", []), second
    points = sorted((ferry.target() / "points").glob("2*Z"))
    assert [point.name for point in points] == [first["points"][0], second["points"][0]]
    assert inode(points[0]) == inode(points[1]), "linked, so the chain went on"
    assert before.read_text() == marked
    for point in points:
        assert ferry.run("verify", "pictures", "--point", point.name).code == 0, "its manifest is believed"
    listed = ferry.run("points", "pictures", "--json").value
    assert len(listed["points"]) == 2, listed
    assert {each["job"] for each in ferry.run("history", "--json").value["runs"]} == {"pictures"}
    assert "photos" in ferry.run("run", "photos").err

    assert ferry.run("rename", "pictures", "photos").code == 0
    assert "known-as" not in (ferry.config / "jobs" / "photos.toml").read_text()
    assert run(ferry, "photos")["outcome"] == "nothing-to-do"


def test_a_job_that_prunes_what_a_gate_adds_stays_valid(ferry: Ferry) -> None:
    """The gates, by which it is judged what may be pruned, lie beside the files that are tried."""
    (ferry.root / "back").mkdir()
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1Yb2yq0Wv9Tq0l9Zs8bq4m6m0v2m0Yw1z5F7t3k9Qe laptop"
    made = ferry.run(
        "setup", "gate", "laptop", "--adds", str(ferry.root / "back"), "--key", key, "--into", str(ferry.root / "keys")
    )
    assert made.code == 0, made
    (ferry.config / "jobs" / "in.toml").write_text(
        f'engine = "prune"\nsource = "{ferry.root}/back"\n[keep]\ndaily = 3\n'
    )
    assert ferry.run("rename", "in", "laptop-in").code == 0
    added = ferry.run("init", str(ferry.root / "music"), str(ferry.root / "copies-of-music"))
    assert (added.code, ferry.run("check").code) == (0, 0), added


def test_wherever_it_is_cut_the_same_command_finishes_it(ferry: Ferry, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each change of the disk is the last one, one after the other: the first time none, then one more each time."""
    run(ferry, "photos")
    settings = Settings(config=str(ferry.config), state=str(ferry.state))
    names, cut = ["photos", "pictures"], 0
    while True:
        left = [cut]
        with monkeypatch.context() as patch:
            patch.setattr(renames, "replace_file", _counted(config_files.replace_file, left))
            patch.setattr(renames, "os", Cut(left, "rename", "unlink"))
            with contextlib.suppress(KeyboardInterrupt):
                rename_job(settings, *names)
        whole = left[0] >= 0
        if not whole:
            rename_job(settings, *names)
        assert sorted(path.name for path in (ferry.config / "jobs").iterdir()) == sorted(
            ["mail.toml", f"{names[1]}.toml"]
        )
        assert json.dumps(names[1]) in (ferry.config / "poolferry.toml").read_text()
        assert settings.configuration().job("mail").after == (names[1],)
        with settings.views() as views:
            assert (len(views.runs(names[1], 9)), len(views.runs(names[0], 9))) == (1, 0)
        if whole:
            break
        names.reverse()
        cut += 1
    assert cut > 6
    assert not list(ferry.state.glob("*/rename*"))


def test_between_a_cut_and_its_end_no_run_begins(ferry: Ferry, monkeypatch: pytest.MonkeyPatch) -> None:
    run(ferry, "photos")
    with monkeypatch.context() as patch:
        patch.setattr(renames, "os", Cut([0], "unlink"))
        with pytest.raises(KeyboardInterrupt):
            rename_job(Settings(config=str(ferry.config), state=str(ferry.state)), "photos", "pictures")
    told = ferry.run("run", "pictures")
    assert (told.code, "was cut" in told.out) == (75, True), told
    assert ferry.run("rename", "photos", "x").code == 2
    assert ferry.run("rename", "photos", "pictures").code == 0
    assert run(ferry, "pictures")["outcome"] == "nothing-to-do"


def test_on_removable_disks_the_copies_stay_where_they_are(tmp_path: Path) -> None:
    """Also on those that are away."""
    ferry = Ferry(tmp_path)
    text = '[set.drawer]\n[disk.red]\nset = "drawer"\nidentity = "0b7f2c1e-8a55-4c1d-9f5e-3f0c6a1b2d4e"\n'
    (ferry.config / "targets.toml").write_text(text)
    (ferry.config / "jobs" / "photos.toml").write_text('engine = "rsync"\nsource = "/srv"\ntarget = "drawer"\n')
    settings = Settings(config=str(ferry.config), state=str(ferry.state))
    before = settings.configuration().job("photos").target
    rename_job(settings, "photos", "pictures")
    assert settings.configuration().job("pictures").target == before


class Cut:
    """The module os, of which these functions work so often, and then die as a killed program does."""

    def __init__(self, left: list[int], *names: str) -> None:
        self._left, self._names = left, names

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        return _counted(found, self._left) if name in self._names else found


def _counted(real: Callable[..., Any], left: list[int]) -> Callable[..., Any]:
    """A function that works so often, and then dies as a killed program does."""

    def call(*arguments: Any, **more: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return real(*arguments, **more)

    return call


def test_while_a_run_goes_on_and_for_names_that_are_taken_it_is_refused(ferry: Ferry) -> None:
    run(ferry, "photos")
    run(ferry, "mail")
    with (ferry.state / "locks" / "job-photos").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        busy = ferry.run("rename", "photos", "pictures")
    assert (busy.code, "still runs" in busy.err) == (75, True), busy
    for old, new, words in (
        ("photos", "mail", "already"), ("nothing", "x", "nothing"), ("photos", "../x", "is no name for a job"),
    ):  # fmt: skip
        refused = ferry.run("rename", old, new)
        assert (refused.code, words in refused.err) == (2, True), refused
    assert ferry.run("rename", "mail", "letters").code == 0
    (ferry.config / "jobs" / "mail.toml").write_text(
        (ferry.config / "jobs" / "letters.toml").read_text().replace("known-as", "#")
    )
    told = ferry.run("check")
    assert "the copies of job" in told.out + told.err, told
