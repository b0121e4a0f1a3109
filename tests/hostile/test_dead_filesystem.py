"""A filesystem that no longer answers, as of a server that has gone, holds up its own jobs alone, and those can be stopped."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.processes import family
from tests.whole.house import House, wait_until

pytestmark = [pytest.mark.root, pytest.mark.namespace]


def dead(folder: Path, owner: int = 0) -> tuple[str, ...]:
    """The words before a command, by which a folder never answers it; or one of a user's own program, which root may not enter."""
    return (sys.executable, "-m", "tests.hostile.dead_filesystem", str(owner), str(folder))


@pytest.mark.parametrize("side", ["source", "target"])
def test_it_holds_up_no_other_job(house: House, side: str) -> None:
    house.job()
    house.write(house.folder / "other/file", "content")
    house.job("other", source=str(house.folder / "other"), target=str(house.folder / "copies"))
    gone = house.source if side == "source" else house.target
    gone.mkdir(exist_ok=True)
    ran = house.call("run", "other", before=dead(gone))
    assert ran.outcome == "done", ran
    told = house.call("status", before=dead(gone))
    assert [job["job"] for job in told.value["jobs"]] == ["other", "photos"], told


def test_a_run_that_waits_for_it_is_stopped_like_any_other(house: House) -> None:
    """Also a first copy, whose source is listed before anything else: by a program, which can be left behind."""
    house.job()
    for _ in range(2):
        run = subprocess.Popen(
            [*dead(house.source), *house.argv("run", "photos")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=house.environment, start_new_session=True,
        )  # fmt: skip
        wait_until(partial(is_listing, run.pid))
        run.send_signal(signal.SIGTERM)
        ran = house.ended(run)
        assert ran.outcome == "interrupted", ran
        house.write("file", "content")
        assert house.run().outcome in ("done", "nothing-to-do")


def test_a_users_own_filesystem_is_named_also_where_several_rsyncs_were_to_share_its_folder(house: House) -> None:
    """Root may not even look at it: a listing does not know it, so no lane would copy it, nor miss it."""
    for number in range(40):
        house.write(f"{number % 8}/{number}", "content")
    (house.source / "hers").mkdir()
    house.job(rsync={"parallel": 2})
    assert "none of several would" in str(house.call("plan", "photos", before=dead(house.source / "hers", 65534)).value)
    ran = house.call("run", "photos", before=dead(house.source / "hers", 65534))
    assert (ran.outcome, "hers" in str(ran.value)) == ("incomplete", True), ran
    assert len([path for path in house.point().rglob("*") if path.is_file()]) == 40
    ran = house.run()
    assert ran.outcome == "done", ran


def test_a_review_of_a_source_judges_what_can_be_looked_at_and_names_the_rest(house: House) -> None:
    """A user mounted something of her own on a folder that was copied: what is not hers is judged, a rotten file beside it found."""
    rotten, hers = house.write("kept", "good"), house.write("hers/file", "copied before")
    house.job()
    house.run()
    told = house.call("verify", "photos", "--source", before=dead(hers.parent, 65534))
    assert (told.outcome, "hers" in str(told["warnings"])) == ("incomplete", True), told
    assert dict(told["source"]["counts"]) == {"unreadable": 2}, told
    before = rotten.stat()
    house.write("kept", "rots")
    os.utime(rotten, ns=(before.st_atime_ns, before.st_mtime_ns))
    told = house.call("verify", "photos", "--source", before=dead(hers.parent, 65534))
    assert (told.outcome, "rotten at the source: kept" in str(told["warnings"])) == ("failed", True), told


def is_listing(run: int) -> bool:
    """Return whether a run has started a program that looks at its source."""
    return bool({"find", "sh"} & {name for _, name in family(run)})
