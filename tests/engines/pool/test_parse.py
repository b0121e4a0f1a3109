"""Test that what real pools answered, on OpenZFS 2.1 as text and on 2.3 as JSON, means the same."""

import json
from dataclasses import replace

import pytest

from orchestrator.engines.pool import status_json, status_text
from orchestrator.engines.pool.health_checks import judge_health
from orchestrator.engines.pool.model import DatasetProperty, MemoryUsage, PoolSurvey
from orchestrator.engines.pool.options import PoolOptions
from orchestrator.engines.pool.parse import _memory, active_processes, parse_scrub, parse_survey, parse_version
from orchestrator.engines.pool.status_text import UnreadableStatus
from tests.engines.pool.builders import RECORDED, ROOT, sample

BOTH = ("2.1", "2.3")
BY_ID = "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_d"


def seen(name: str) -> PoolSurvey:
    return parse_survey(sample(name), ROOT)


def grave(name: str) -> list[str]:
    return [finding.says for finding in judge_health(seen(name), PoolOptions()) if finding.grave]


def advice(name: str) -> list[str]:
    return [finding.word for finding in judge_health(seen(name), PoolOptions()) if not finding.grave]


@pytest.mark.parametrize("version", BOTH)
def test_a_sound_mirror(version: str) -> None:
    world = seen(f"sound-{version}")
    assert world.version[:2] == tuple(map(int, version.split(".")))
    (mirror,) = world.status.devices
    assert (mirror.name, mirror.kind, mirror.role, mirror.state) == ("mirror-0", "mirror", "data", "ONLINE")
    assert [device.name for device in mirror.below] == [f"{BY_ID}0-part1", f"{BY_ID}1-part1"]
    assert all(device.leaf and device.kind == "disk" for device in mirror.below)
    assert [vdev.name for vdev in world.vdevs] == ["mirror-0"]
    assert world.whole.size == world.vdevs[0].size == 1006632960
    assert world.whole.used + world.whole.free == world.whole.size
    assert world.guid.isdigit()
    assert world.memory.arc_most == 96 << 20
    assert (world.memory.total or 0) > 900 << 20
    assert world.memory.dedup is None
    assert (grave(f"sound-{version}"), advice(f"sound-{version}")) == ([], [])


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(
    ("name", "kind", "state"),
    [
        ("sound", "scrub", "finished"),
        ("scrubbing", "scrub", "running"),
        ("paused", "scrub", "paused"),
        ("canceled", "scrub", "canceled"),
        ("resilvering", "resilver", "running"),
    ],
)
def test_scans(name: str, kind: str, state: str, version: str) -> None:
    world = seen(f"{name}-{version}")
    scan = world.status.scan
    assert scan is not None
    assert (scan.kind, scan.state, scan.repaired, scan.errors) == (kind, state, 0, 0)
    over = state in ("finished", "canceled")
    assert (scan.ended is not None, scan.share is None) == (over, over)
    told = scan.ended or scan.began
    assert told is not None
    assert 0 <= (world.at - told).total_seconds() < 20
    assert grave(f"{name}-{version}") == []


@pytest.mark.parametrize(
    ("name", "clean"),
    [("sound-2.1", True), ("sound-2.3", True), ("repaired-2.3", True), ("lost-2.3", False), ("paused-2.3", False),
     ("scrubbing-2.1", False), ("scrubbing-2.3", False), ("canceled-2.3", False), ("canceled-2.1", None),
     ("resilvering-2.1", None), ("removed-2.3", None), ("never-2.1", None), ("never-2.3", None)],
)  # fmt: skip
def test_a_scrub_is_clean_only_when_it_ended_and_left_nothing_damaged(name: str, clean: bool | None) -> None:
    found = parse_scrub(sample(name))
    assert (found and found.clean) is clean
    scan = seen(name).status.scan
    assert found is None or (scan is not None and (found.began, found.at) == (scan.began, seen(name).at))


@pytest.mark.parametrize(("examined", "clean"), [(63057920, True), (55000000, False), (0, False)])
def test_a_scrub_of_a_part_is_not_clean(examined: int, clean: bool) -> None:
    """`zpool scrub -C` looks at what was written since the last one alone."""
    told = sample("sound-2.3").replace(b'"examined":63057920', b'"examined":%d' % examined)
    assert b"%d" % examined in told
    found = parse_scrub(told)
    assert found is not None
    assert found.clean is clean


@pytest.mark.parametrize("version", BOTH)
def test_a_pool_that_was_never_scrubbed(version: str) -> None:
    assert seen(f"never-{version}").status.scan is None
    assert advice(f"never-{version}") == ["old-scrub"]


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("offline", f"{BY_ID}1-part1 in mirror-0 of tank is OFFLINE: somebody took it out of use; mirror-0 has no redundancy left"),
        ("faulted", f"{BY_ID}2-part1 in mirror-0 of tank is FAULTED, so ZFS no longer uses it (external device fault); mirror-0 has no"),
        ("spare-in-use", f"{BY_ID}2-part1 in mirror-0 of tank is FAULTED, so ZFS no longer uses it (external device fault)"),
    ],
)  # fmt: skip
def test_devices_that_are_not_in_use(name: str, says: str, version: str) -> None:
    (found,) = grave(f"{name}-{version}")
    assert found.startswith(says)


@pytest.mark.parametrize("version", BOTH)
def test_a_device_that_is_gone_goes_by_its_number(version: str) -> None:
    (found,) = grave(f"unavail-{version}")
    number, _, rest = found.partition(" ")
    assert number.isdigit()
    assert rest.startswith("in mirror-0 of tank is UNAVAIL: it is missing")
    assert f"was {BY_ID}1-part1" in rest


@pytest.mark.parametrize("version", BOTH)
def test_a_suspended_pool_is_told_without_asking_zfs(version: str) -> None:
    world = seen(f"suspended-{version}")
    assert (world.status.state, world.settings, world.at_work) == ("SUSPENDED", (), ())
    found = grave(f"suspended-{version}")
    assert found[0] == "tank is SUSPENDED: it lost its disks, and all that uses it hangs"
    assert not [says for says in found if "data is lost" in says]


@pytest.mark.parametrize("version", BOTH)
def test_every_kind_of_vdev_has_its_role(version: str) -> None:
    world = seen(f"advice-{version}")
    roles = [(device.name, device.kind, device.role) for device in world.status.each()]
    assert roles == [
        ("/dev/sda1", "disk", "data"), ("mirror-1", "mirror", "data"), ("/dev/sdb1", "disk", "data"),
        ("/dev/sdc1", "disk", "data"), ("/dev/sdd1", "disk", "special"), ("/dev/sde1", "disk", "logs"),
        ("/dev/sdf1", "disk", "cache"),
    ]  # fmt: skip
    assert [vdev.name for vdev in world.vdevs] == ["/dev/sda1", "mirror-1"]
    assert set(world.settings) == {
        DatasetProperty(dataset="tank/d", name="checksum", value="off"), DatasetProperty(dataset="tank/d", name="dedup", value="on"),
        DatasetProperty(dataset="tank/dd", name="dedup", value="on"), DatasetProperty(dataset="tank/photos", name="sync", value="disabled"),
    }  # fmt: skip
    assert world.memory.dedup == {"2.1": 160 * 358, "2.3": 163840}[version]
    assert advice(f"advice-{version}") == ["old-scrub", "mixed", "device-names", "sync-disabled", "checksum-off"]


@pytest.mark.parametrize("version", BOTH)
def test_what_is_odd_and_sound(version: str) -> None:
    for name in ("removed", "draid"):
        assert (grave(f"{name}-{version}"), advice(f"{name}-{version}")) == ([], ["old-scrub"])
    assert len(seen(f"removed-{version}").vdevs) == 2


def test_a_raidz_that_can_spare_one_more() -> None:
    (found,) = grave("raidz-2.1")
    assert "in raidz2-0 of tank is OFFLINE" in found
    assert "redundancy" not in found


def test_errors_that_were_repaired_and_such_that_were_not() -> None:
    world = seen("repaired-2.3")
    assert world.status.scan is not None
    assert world.status.scan.repaired == 50523136
    assert grave("repaired-2.3") == [f"{BY_ID}0-part1 of tank gave 407 checksum errors"]
    assert seen("lost-2.3").status.damaged == ("/tank/c",)
    assert grave("lost-2.3")[1] == "tank has 33 errors that nothing could repair, so data is lost: /tank/c"


# As OpenZFS 2.1 says it; names of files may be anything.
LOST = """\
  pool: tank
 state: ONLINE
status: One or more devices has experienced an error resulting in data
\tcorruption.  Applications may be affected.
  scan: scrub repaired 4.50M in 1 days 02:03:04 with 3 errors on Fri Nov 20 15:10:58 2026
config:

\tNAME         STATE     READ WRITE CKSUM  SLOW
\ttank         ONLINE       0     0     0     0
\t  /dev/sdb1  ONLINE       1     2     3     4

errors: Permanent errors have been detected in the following files:

        /tank/a b
        tank/my own@s:/ dedup: x
        errors: y

 dedup: no DDT entries
"""


def test_lost_files_in_text() -> None:
    status, dedup = status_text.parse_status(LOST)
    assert status.damaged == ("/tank/a b", "tank/my own@s:/ dedup: x", "errors: y")
    assert (status.errors, dedup) == (3, None)
    (disk,) = status.devices
    assert (disk.reads, disk.writes, disk.checksums, disk.slow) == (1, 2, 3, 4)
    assert status.scan is not None
    assert (status.scan.repaired, status.scan.errors) == (int(4.5 * (1 << 20)), 3)
    assert status.says.endswith("resulting in data corruption. Applications may be affected.")


def test_what_is_left_of_a_scan() -> None:
    going = "1.2T scanned at 1G/s, 1T issued at 1G/s, 2T total\n\t0B repaired, 50.20% done, 1 days 02:03:04 to go"
    text = LOST.replace("scrub repaired 4.50M in 1 days 02:03:04 with 3 errors on", "scrub in progress since")
    status, _ = status_text.parse_status(text.replace("58 2026\n", f"58 2026\n\t{going}\n"))
    assert status.scan is not None
    assert (status.scan.share, status.scan.left) == (0.502, 86400 + 2 * 3600 + 3 * 60 + 4)


def test_the_states_that_json_calls_otherwise() -> None:
    text = next(line for line in sample("unavail-2.3").decode().splitlines() if line.startswith("{"))
    for told, meant in (("CANT_OPEN", "UNAVAIL"), ("CLOSED", "OFFLINE"), ("REMOVED", "REMOVED")):
        status, _ = status_json.parse_status(text.replace('"CANT_OPEN"', f'"{told}"'))
        assert [device.state for device in status.each() if device.leaf] == ["ONLINE", meant]
    status, _ = status_json.parse_status(text.replace('"CANT_OPEN"', '"CANT_OPEN","aux":"CORRUPT_DATA"'))
    assert [device.state for device in status.each() if device.leaf] == ["ONLINE", "FAULTED"]


def test_numbers_in_quotes_mean_the_same() -> None:
    """Without --json-int, as other programs may have recorded it."""
    text = next(line for line in sample("repaired-2.3").decode().splitlines() if line.startswith("{"))
    quoted = json.dumps(json.loads(text, parse_int=str))
    assert status_json.parse_status(quoted) == status_json.parse_status(text)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"pools": {}}', '{"pools": {"a": {}}}', "no pools available"])
def test_what_is_no_status_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableStatus):
        status_json.parse_status(text)
    with pytest.raises(UnreadableStatus):
        status_text.parse_status(text)


@pytest.mark.parametrize("name", sorted(path.stem for path in RECORDED.glob("*.txt")))
def test_no_part_of_an_answer_is_taken_for_all_of_it(name: str) -> None:
    whole = sample(name)
    lines = whole.splitlines(keepends=True)
    for at in range(len(lines)):
        with pytest.raises((UnreadableStatus, ValueError, IndexError)):
            parse_survey(b"".join(lines[:at]), ROOT)
    assert parse_survey(whole, ROOT).status.name == "tank"


@pytest.mark.parametrize("version", BOTH)
def test_what_is_at_work(version: str) -> None:
    assert seen(f"at-work-{version}").at_work == ("zfs send of tank/photos", "rsync in /tank/photos/x")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("/root\tzfs receive -s tank/copy ", "zfs receive of tank/copy"),
        ("/root\tzfs recv -s tank ", "zfs recv of tank"),
        ("/root\t/usr/sbin/zfs send -w -i @a tank/photos@b ", "zfs send of tank/photos"),
        ("/root\tzfs send -t 1-c740b4779-d0-78 ", "zfs send that resumes by a token"),
        ("/root\tzfs send tanker/photos@a ", ""),
        ("/root\tzfs receive vault/tank ", ""),
        ("/root\tsh -c zfs send tank/photos@a ", ""),
        ("/tank/my own/deep\trsync --server . . ", "rsync in /tank/my own/deep"),
        ("/root\t/usr/bin/rsync -a /srv/ /tank/photos/ ", "rsync in /tank/photos"),
        ("/root\trsync -a /srv/ /tanker/ ", ""),
        ("\t", ""),
    ],
)
def test_whose_work_it_is(line: str, told: str) -> None:
    mounts = ["tank\t/tank", "tank/my own\t/tank/my\\040own"]
    assert active_processes("tank", mounts, [line]) == ((told,) if told else ())


def test_versions() -> None:
    assert parse_version("zfs-2.2.0-rc3") == (2, 2, 0)
    with pytest.raises(UnreadableStatus):
        parse_version("unknown")
    assert replace(seen("sound-2.3"), version=()).version == ()


def test_lines_of_memory_that_nobody_knows_are_passed_over() -> None:
    assert _memory(["MemFree: 1 kB", "MemTotal: 2 kB", "", "c_max 4 7"], None) == MemoryUsage(
        total=2048, arc_most=7, dedup=None
    )
