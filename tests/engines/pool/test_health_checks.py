"""Each thing that can be wrong with a pool is one sentence with its cure."""

from dataclasses import replace

import pytest

from orchestrator.domain.job import Limit
from orchestrator.engines.pool.health_checks import judge_health
from orchestrator.engines.pool.model import ADVICE, DatasetProperty, MemoryUsage, PoolFinding, PoolSurvey, Vdev
from orchestrator.engines.pool.options import PoolOptions
from tests.engines.pool.builders import DAY, GIB, MIRROR, disk, group, scan, status, usage, world

RAID = group("raidz2-0", *(disk(f"d{number}") for number in range(5)), state="DEGRADED")


def judged(seen: PoolSurvey, **options: object) -> tuple[PoolFinding, ...]:
    return judge_health(seen, PoolOptions(**options))  # type: ignore[arg-type]


def only(seen: PoolSurvey, **options: object) -> PoolFinding:
    """The one finding."""
    (finding,) = judged(seen, **options)
    return finding


def gone(*devices: Vdev, **more: object) -> PoolSurvey:
    return world(status(*devices, **{"state": "DEGRADED", **more}))


def test_a_sound_pool_is_not_spoken_of() -> None:
    assert judged(world()) == ()


@pytest.mark.parametrize(
    ("state", "meaning", "hint"),
    [
        ("FAULTED", "no longer uses it", "zpool replace tank /dev/disk/by-id/red NEW-DEVICE"),
        ("DEGRADED", "too many errors", "zpool replace tank /dev/disk/by-id/red NEW-DEVICE"),
        ("UNAVAIL", "is missing", "zpool online tank /dev/disk/by-id/red"),
        ("REMOVED", "pulled out", "zpool online tank /dev/disk/by-id/red"),
        ("OFFLINE", "somebody took it out", "zpool online tank /dev/disk/by-id/red"),
        ("STRANGE", "is STRANGE", "zpool status -v tank"),
    ],
)
def test_a_device_that_is_not_in_use(state: str, meaning: str, hint: str) -> None:
    found = only(gone(group("mirror-0", disk("red", state), disk("blue"), state="DEGRADED")))
    assert found.grave
    assert found.says.startswith("/dev/disk/by-id/red in mirror-0 of tank")
    assert meaning in found.says
    assert found.says.endswith("mirror-0 has no redundancy left")
    assert hint in found.hint
    assert "{" not in str(found)


def test_what_redundancy_is_left() -> None:
    def lost(*bad: int) -> str:
        devices = tuple(replace(each, state="UNAVAIL") if at in bad else each for at, each in enumerate(RAID.below))
        return judged(gone(replace(RAID, below=devices)))[0].says

    assert "redundancy" not in lost(1)
    assert "no redundancy left" in lost(1, 2)
    assert "lost more than it can spare" in lost(1, 2, 3)


def test_a_disk_being_replaced_counts_once_and_the_resilver_is_told() -> None:
    replacing = group("replacing-0", disk("old", "UNAVAIL"), disk("new"), state="DEGRADED")
    goes = scan("running", kind="resilver", share=0.43)
    found = only(gone(group("mirror-0", replacing, disk("blue"), state="DEGRADED"), scan=goes))
    assert "old in mirror-0" in found.says
    assert "no redundancy" not in found.says
    assert found.says.endswith("a resilver is running, 43% done")


def test_a_spare_or_a_cache_that_is_gone_loses_nothing() -> None:
    found = only(world(status(MIRROR, disk("spare", "UNAVAIL", role="spares"))))
    assert not found.grave
    assert judged(world(status(MIRROR, disk("spare", "UNAVAIL", role="spares"))), accept=("device",)) == ()
    assert only(gone(MIRROR, disk("log", "FAULTED", role="logs"))).grave


def test_errors_that_were_counted() -> None:
    found = only(world(status(group("mirror-0", disk("red", reads=1, checksums=12), disk("blue")))))
    assert (found.grave, found.says) == (True, "/dev/disk/by-id/red of tank gave 1 read error and 12 checksum errors")
    assert "zpool clear tank" in found.hint
    above = only(world(status(replace(MIRROR, checksums=3))))
    assert above.says == "mirror-0 of tank gave 3 checksum errors"


def test_lost_files_are_named_the_first_of_them() -> None:
    files = tuple(f"/tank/{number}" for number in range(7))
    found = only(world(status(errors=7, damaged=files, says="One or more devices has experienced an error")))
    assert "7 errors that nothing could repair" in found.says
    assert found.says.endswith("/tank/4 and 2 more")
    assert found.grave
    assert only(world(status(errors=1))).says.endswith("data is lost")


def test_a_pool_that_lost_all_its_disks() -> None:
    assert "hangs" in only(world(status(state="SUSPENDED"))).says
    assert only(world(status(state="FAULTED", says="no label", action="Restore it."))).hint == "Restore it."


@pytest.mark.parametrize(
    ("used", "grave", "how"),
    [(0.89, None, ""), (0.91, False, "becomes slow"), (0.96, False, "is slow"), (0.98, True, "stops")],
)
def test_room(used: float, grave: bool | None, how: str) -> None:
    found = judged(world(used=used))
    assert [each.grave for each in found] == ([] if grave is None else [grave])
    assert not found or how in found[0].says
    limits = {"capacity_warn": Limit(number=50, percent=True), "capacity_fail": Limit(number=60, percent=True)}
    assert only(world(used=used), **limits).grave


def test_grave_room_cannot_be_accepted() -> None:
    assert judged(world(used=0.92), accept=ADVICE) == ()
    assert only(world(used=0.98), accept=ADVICE).grave


def test_scans() -> None:
    assert only(world(status(scan=None))).says == "tank was never scrubbed"
    assert "last read 41 d ago; scrub-late is 40 d" in only(world(status(scan=scan(ago=41 * DAY)))).says
    assert judged(world(status(scan=scan(ago=39 * DAY)))) == ()
    assert "was cancelled 1 d ago" in only(world(status(scan=scan("canceled")))).says
    assert "repaired 4.0 MiB" in only(world(status(scan=scan(repaired=4 << 20)))).says
    assert "3 errors that it could not repair" in only(world(status(scan=scan(errors=3)))).says
    assert "this job" in only(world(status(scan=None)), scrub_every=DAY).hint


def test_slow_answers() -> None:
    assert "more than 30 s for 2 answers" in only(world(status(group("mirror-0", disk("red", slow=2), disk("b"))))).says


def test_vdevs_that_do_not_fit_together() -> None:
    alone = only(world(status(MIRROR, disk("lonely"))))
    assert alone.says.startswith("/dev/disk/by-id/lonely stands alone in tank")
    assert alone.hint.startswith("`zpool attach tank /dev/disk/by-id/lonely NEW-DEVICE`")
    triple = group("mirror-1", disk("a"), disk("b"), disk("c"))
    assert "mirror-0 of 2, mirror-1 of 3" in only(world(status(MIRROR, triple))).says
    assert "holds metadata of tank alone" in only(world(status(MIRROR, disk("fast", role="special")))).says
    assert judged(world(status(disk("a"), disk("b")))) == ()
    assert judged(world(status(MIRROR, disk("log", role="logs"), disk("cache", role="cache")))) == ()


def test_unevenly_filled_vdevs() -> None:
    found = only(world(vdevs=(usage("mirror-0", 0.91), usage("mirror-1", 0.05))))
    assert "mirror-0 is 91% full, mirror-1 5%; nearly all that is written goes to mirror-1" in found.says
    assert judged(world(vdevs=(usage("mirror-0", 0.4), usage("mirror-1", 0.0)))) == ()
    assert judged(world(vdevs=(usage("mirror-0", 0.7), usage("mirror-1", 0.5)))) == ()


@pytest.mark.parametrize("name", ["/dev/sda", "/dev/sdab1", "/dev/nvme0n1p2", "/dev/vdb", "/dev/dm-3"])
def test_names_that_change(name: str) -> None:
    found = only(world(status(disk(name))))
    assert found.says.startswith(f"{name} in tank is named in the order")
    assert found.hint == "`zpool export tank && zpool import -d /dev/disk/by-id tank`"
    assert judged(world(status(disk(name))), accept=("device-names",)) == ()


@pytest.mark.parametrize(
    "name", ["/dev/disk/by-id/x", "/dev/mapper/x", "/dev/disk/by-partuuid/x", "/images/sda", "173"]
)
def test_names_that_stay(name: str) -> None:
    assert judged(world(status(replace(disk("x"), name=name)))) == ()


def test_properties_that_risk_data() -> None:
    settings = [("tank/db", "sync", "disabled"), ("tank/vm", "sync", "disabled"), ("tank/x", "checksum", "off")]
    others = [("tank", "sync", "standard"), ("tank", "checksum", "sha256"), ("tank", "dedup", "on")]
    told = tuple(DatasetProperty(dataset=where, name=name, value=value) for where, name, value in (*settings, *others))
    sync, checksum = judged(world(settings=told))
    assert sync.says.startswith("sync=disabled is set on tank/db, tank/vm: ")
    assert sync.hint == "`zfs inherit sync tank/db`, and so for the others"
    assert checksum.says.startswith("checksum=off is set on tank/x: ")


def test_memory() -> None:
    assert (
        "may grow to 63.0 GiB of 64.0 GiB: 1.0 GiB are left"
        in only(world(memory=MemoryUsage(total=64 * GIB, arc_most=63 * GIB))).says
    )
    assert judged(world(memory=MemoryUsage(total=2 * GIB, arc_most=GIB))) == ()
    assert judged(world(memory=MemoryUsage())) == ()
    tables = MemoryUsage(total=16 * GIB, arc_most=8 * GIB, dedup=3 * GIB)
    found = only(world(memory=tables, settings=(DatasetProperty(dataset="tank", name="dedup", value="on"),)))
    assert found.says.startswith("the dedup tables of tank take 3.0 GiB, and the ARC may have 8.0 GiB")
    assert "zfs set dedup=off tank" in found.hint
    assert judged(world(memory=replace(tables, dedup=GIB))) == ()


def test_what_zpool_says_itself_is_never_swallowed() -> None:
    assert only(world(status(says="The pool was last accessed by another system.", action="Import it."))).says == (
        "zpool says of tank: The pool was last accessed by another system."
    )
    assert judged(world(status(says="Some supported and requested features are not enabled on the pool."))) == ()
    resilvering = scan("running", kind="resilver")
    assert judged(world(status(says="One or more devices is currently being resilvered.", scan=resilvering))) == ()


def test_grave_findings_come_first() -> None:
    found = judged(world(status(scan=None, errors=1), used=0.98))
    assert [each.grave for each in found] == [True, True, False]
