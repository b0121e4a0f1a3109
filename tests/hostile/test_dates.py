"""Dates that no clock had: in names of points, in answers, in files of a target. No command fails by them, and no copy is fresh by them."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable

import pytest

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.names import parse_point_name
from orchestrator.engines.pool import ENGINE as POOL
from orchestrator.engines.rsync import ENGINE as RSYNC
from orchestrator.engines.sanoid import ENGINE as SANOID
from orchestrator.engines.zfs import ENGINE as ZFS
from tests.engines.pool import builders as pools
from tests.engines.rsync import builders as trees
from tests.engines.sanoid import builders as sanoids
from tests.engines.zfs import sides
from tests.hostile.answers import HELD, LOOK, POOL_SEEN, TAKEN, TARGET, pins, reader, recorded, survey_datasets, usable
from tests.whole.house import House

SECONDS = (
    b"0", b"-1", b"-62135596800", b"-62167219200", b"4294967296", b"253402300799", b"253402300800", b"1000000000000000000",
    b"-1000000000000000000", b"9" * 40, b"nan", b"inf", b"-inf", b"1e400",
)  # fmt: skip
PLANTED = ("9999-12-31T235959Z", "0001-01-01T000000Z", "0000-01-01T000000Z", "9999-99-99T999999Z")
COMMANDS = (
    ("plan", "photos"), ("run", "photos"), ("status",), ("points", "list", "photos", "--look"), ("verify", "photos"), ("run", "photos"),
    ("restore", "plan", "photos", "--to", "/tmp/to"), ("history",),
)  # fmt: skip


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati"])
@pytest.mark.sample(1)
def test_points_of_no_year_stop_no_run_and_are_left_alone(house: House, zone: str) -> None:
    """A folder that the target's host makes; its manifest is the newest point's."""
    house.environment = {**house.environment, "TZ": zone}
    house.write("file", "x")
    house.run(house.job(keep={"daily": 1}, late_after="2h"))
    newest = house.points()[-1]
    for name in PLANTED:
        subprocess.run(["cp", "-al", house.target / "points" / newest, house.target / "points" / name], check=True)
        shutil.copy(house.target / f"points/{newest}.manifest.gz", house.target / f"points/{name}.manifest.gz")
    house.write("other", "y")
    for command in COMMANDS:
        ended = house.call(*command)
        assert ended.code == 0, (command, ended)
    assert set(PLANTED) < set(os.listdir(house.target / "points"))
    (job,) = house.call("status")["jobs"]
    assert (job["state"], job["newest_verified"]["point"]) == (
        "up",
        house.call("points", "list", "photos")["points"][-1]["point"],
    )
    assert 0 <= job["newest_verified"]["age_s"] < 600


@pytest.mark.parametrize(
    "at",
    [
        "9999-12-31",
        "9999-12-31 23:59",
        "0001-01-01",
        "0001-01-01T00:00:00+14:00",
        "-1",
        "1e18",
        "NaN",
        "9999-12-31T235959Z",
    ],
)
@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Pacific/Kiritimati"])
@pytest.mark.sample(4)
def test_a_person_may_type_any_date(house: House, zone: str, at: str) -> None:
    house.environment = {**house.environment, "TZ": zone}
    house.write("file", "x")
    house.run(house.job())
    ended = house.call("restore", "plan", "photos", "--to", str(house.folder / "to"), "--at", at)
    assert ended.code in (0, 2, 3), ended


def test_a_mirror_dated_in_the_future_is_not_fresh(house: House) -> None:
    house.write("file", "x")
    house.run(house.job(rsync={"points": False}, late_after="2h"))
    manifest = house.target / ".poolferry/manifest.gz"
    for when in (4_294_967_296, -2_000_000_000):
        os.utime(manifest, (when, when))
        assert house.call("points", "list", "photos", "--look").code == 0
        (job,) = house.call("status")["jobs"]
        assert 0 <= job["newest_verified"]["age_s"] < 600, job
        assert house.run().outcome in ("nothing-to-do", "done")


ANSWERS: dict[str, tuple[bytes, bytes, Callable[[bytes], object]]] = {
    "a mirror": (TARGET, b"1772600767.5", lambda said: RSYNC.survey(trees.mirror(target=trees.THERE), trees.ASKED, reader(said))),
    "snapshots": (LOOK, b"1700000000", survey_datasets),
    "points": (b"tank/photos@a\t1700000000\n", b"1700000000", lambda said: ZFS.points(sides.job(), reader(said))),
    "holds": (HELD, b"1700000000", pins),
    "a pool's snapshots": (POOL_SEEN, b"1700000000", lambda said: ZFS.survey_pool("tank", reader(said))),
    "sanoid": (TAKEN, b"1795187458", lambda said: SANOID.survey(sanoids.job(), sanoids.ASKED, reader(said))),
    "sanoid's clock": (TAKEN, b"1795187460", lambda said: SANOID.survey(sanoids.job(), sanoids.ASKED, reader(said))),
}  # fmt: skip


@pytest.mark.parametrize("seconds", SECONDS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_of_any_second_can_be_worked_with(answer: str, seconds: bytes) -> None:
    said, usual, read = ANSWERS[answer]
    assert usual in said
    with contextlib.suppress(OrchestratorError):
        usable(read(said.replace(usual, seconds)))


@pytest.mark.parametrize("seconds", SECONDS)
def test_a_pool_of_any_second_can_be_worked_with(seconds: bytes) -> None:
    for said in recorded("engines/pool/recorded"):
        clock, _, rest = said.partition(b"\n")
        assert clock.isdigit()
        with contextlib.suppress(OrchestratorError):
            usable(POOL.survey(pools.job(), pools.ASKED, reader(seconds + b"\n" + rest)))


@pytest.mark.parametrize("name", PLANTED)
def test_such_a_name_is_no_points(name: str) -> None:
    with pytest.raises(ValueError, match=r"not the name of a point|month|year"):
        parse_point_name(name)


def test_the_last_point_can_be_followed() -> None:
    last = parse_point_name("8999-12-31T235959Z")
    usable(last)
