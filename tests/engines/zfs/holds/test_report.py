"""Test who wants which hold and bookmark: what may go, what must stay, and what is only not to be seen now."""

import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.domain.job import Job
from orchestrator.domain.place import Host, Location, Place
from orchestrator.domain.plan import Effect, Pipeline, Step
from orchestrator.engines.contract.holds import Pin, PinReport
from orchestrator.engines.zfs import ENGINE as ZFS
from orchestrator.engines.zfs.holds.report import judge_pins, plan_release
from orchestrator.engines.zfs.holds.survey import (
    BOOKMARKS,
    HOLDS,
    HoldOrBookmark,
    PinSurvey,
    PoolPins,
    holds_command,
    parse_holds,
    pools_of_jobs,
)
from orchestrator.engines.zfs.options import ZfsOptions
from orchestrator.engines.zfs.plan.hold_names import (
    ReplicationTargetId,
    cursor_bookmark_name,
    hold_bookmark_name,
    hold_tag,
    replication_target_id,
)
from orchestrator.engines.zfs.survey.parse import UnreadableListing
from orchestrator.process.scripted import ScriptedExecutor, scripted_result

NOW = datetime(2026, 3, 4, tzinfo=UTC)
VAULT, RED, LOST = 0xA1, 0xB2, 0xC3
TANK = Location(path="tank")
HOST = Host(name="backup")


def job(
    name: str = "photos",
    source: str = "tank/photos",
    target: str = "vault/copies",
    host: Host | None = None,
    **options: Any,
) -> Job:
    place = Place(name=target.partition("/")[0], location=Location(path=f"{target}/{name}", host=host))
    return Job(
        name=name, file="", engine="zfs", source=Location(path=source), target=place, options=ZfsOptions(**options)
    )


def keeper(pool: int, copy: str | None = "copies/photos") -> ReplicationTargetId:
    """Of a copy in that pool; without one, as older names tell it."""
    return replication_target_id(pool, Location(path=f"pool/{copy}")) if copy else ReplicationTargetId(pool=pool)


def cursor(dataset: str, pool: int, copy: str | None = "copies/photos", guid: int = 1) -> HoldOrBookmark:
    ours = keeper(pool, copy)
    return HoldOrBookmark(
        kind=BOOKMARKS, dataset=dataset, name=cursor_bookmark_name(ours, guid), target_id=ours, since=NOW
    )


def hold(
    dataset: str, pool: int, copy: str | None = "copies/photos", *, days: float = 1, beside: str | None = None
) -> HoldOrBookmark:
    return HoldOrBookmark(
        kind=HOLDS, dataset=dataset, name="a", target_id=keeper(pool, copy), since=NOW - timedelta(days=days), bytes=4096,
        beside=beside,
    )  # fmt: skip


def seen(*found: HoldOrBookmark, vault: bool = True, sudo: bool = False) -> PinSurvey:
    """The pool tank with these, and vault on the same machine, where it is there."""
    pools = {7: "tank", **({VAULT: "vault"} if vault else {})}
    both = [PoolPins(root=TANK, job=job(), pools=pools, found=found, sudo=sudo)]
    if vault:
        both.append(PoolPins(root=Location(path="vault"), job=job(), pools=pools))
    return PinSurvey(pools=tuple(both), unseen=())


def judged(
    *found: HoldOrBookmark, jobs: tuple[Job, ...] = (job(),), vault: bool = True
) -> list[tuple[str | None, str]]:
    return [(pin.job, pin.why) for pin in judge_pins(jobs, seen(*found, vault=vault), NOW).pins]


def test_what_a_job_goes_on_from_is_wanted() -> None:
    assert judged(cursor("tank/photos/a", VAULT)) == [("photos", "the next increment to vault may start from it")]
    assert judged(hold("tank/photos", VAULT)) == [("photos", "a transfer to vault was cut, and needs it to go on")]


def test_a_hold_on_a_copy_is_wanted_by_the_restore_that_was_cut() -> None:
    for copy in ("vault/copies/photos", "vault/copies/photos/a"):
        told = "a restore from this copy was cut, and needs it to go on"
        assert judged(hold(copy, 7, "photos")) == [("photos", told)]
        assert judged(hold(copy, 7, "photos", days=15))[0][0] is None
    assert judged(hold("vault/copies/photosets", 7, "photos"))[0][0] is None
    onward = (job(), job("offsite", "vault/copies/photos", "far/copies"))
    told = "a restore from this copy was cut, and needs it to go on"
    assert judged(hold("vault/copies/photos", 7, "photos"), jobs=onward) == [("photos", told)], (
        "the copy is a source, too"
    )


def test_a_hold_is_wanted_for_a_time() -> None:
    assert judged(hold("tank/photos", VAULT, days=13.9))[0][0] == "photos"
    assert judged(hold("tank/photos", VAULT, days=15)) == [(None, "held for 15 d, longer than hold-for (14 d)")]
    longer = (job(hold_for=30 * 86400),)
    assert judged(hold("tank/photos", VAULT, days=15), jobs=longer)[0][0] == "photos"


@pytest.mark.parametrize(
    "jobs",
    [
        (job(source="tank/other"),),
        (job(source="tank/photo"),),
        (job(exclude=("a",)),),
        (job(recursive=False),),
        (replace(job(), source=Location(path="tank/photos", host=HOST)),),
    ],
)
def test_what_no_job_copies_may_go(jobs: tuple[Job, ...]) -> None:
    for dataset in ("tank/photos/a", "tank/photos/a/b"):
        assert judged(cursor(dataset, VAULT), jobs=jobs) == [(None, "no job copies this dataset any more")]


def test_what_was_for_another_pool_may_go_once_all_places_were_seen() -> None:
    gone = cursor("tank/photos", LOST)
    assert judged(gone) == [(None, "no job copies it to that place any more")]
    (kept,) = judged(gone, vault=False)
    assert kept == ("photos", "it may be for vault (vault/copies/photos), which was not seen now")
    two = (job(), job("red", target="red/copies"))
    assert judged(gone, jobs=two)[0][0] is None
    for copy in ("copies/red", None):
        assert judged(cursor("tank/photos", LOST, copy), jobs=two)[0][0] == "red"
        assert judged(hold("tank/photos", LOST, copy, days=99), jobs=two)[0][0] == "red"


def test_two_jobs_into_one_pool_each_want_their_own() -> None:
    two = (job(), job("again", target="vault/others"))
    own = cursor("tank/photos", VAULT)
    other = cursor("tank/photos", VAULT, "others/again")
    assert [name for name, _ in judged(own, other, hold("tank/photos", VAULT, "others/again"), jobs=two)] == [
        "photos", "again", "again",
    ]  # fmt: skip
    assert judged(own, other) == [
        ("photos", "the next increment to vault may start from it"), (None, "no job copies it to that place any more"),
    ]  # fmt: skip


def test_an_older_name_serves_each_job_that_has_none_of_its_own_yet() -> None:
    two = (job(), job("again", target="vault/others"))
    older, own = cursor("tank/photos", VAULT, None), cursor("tank/photos", VAULT)
    other = cursor("tank/photos", VAULT, "others/again")
    assert judged(older)[0][0] == "photos"
    assert judged(older, own, jobs=two)[0][0] == "again"
    assert judged(older, own, cursor("tank/photos/x", VAULT, "others/again"), jobs=two)[0][0] == "again"
    taken_over = (None, "each job that copies it to that pool has bookmarks of its own by now")
    assert judged(older, own)[0] == judged(older, own, other, jobs=two)[0] == taken_over
    assert judged(hold("tank/photos", VAULT, None), own)[0][0] == "photos"


def test_a_machine_tells_of_all_its_pools() -> None:
    only_tank = PinSurvey(pools=seen(cursor("tank/photos", LOST)).pools[:1], unseen=((Location(path="vault"), "no"),))
    assert [pin.job for pin in judge_pins((job(),), only_tank, NOW).pins] == [None]
    far = (job(host=HOST),)  # of the same name, on a machine that was not seen
    assert [pin.job for pin in judge_pins(far, only_tank, NOW).pins] == ["photos"]


def test_another_pool_of_the_same_name_is_another_pool() -> None:
    reformatted = cursor("tank/photos", RED)
    assert judged(reformatted) == [(None, "no job copies it to that place any more")]
    (pin,) = judge_pins((job(),), seen(reformatted), NOW).pins
    assert pin.target == f"{RED:016x}"
    (known,) = judge_pins((job(),), seen(cursor("tank/photos", VAULT)), NOW).pins
    assert (known.target, known.bytes, str(known.at)) == (
        "vault",
        0,
        f"tank/photos#{cursor_bookmark_name(keeper(VAULT), 1)}",
    )


def test_the_pools_of_sources_and_places_each_once() -> None:
    far = job("far", host=HOST)
    assert list(pools_of_jobs((job(), far))) == [TANK, Location(path="vault"), Location(path="vault", host=HOST)]


LOOK = [
    "=user 0", "=pools", "tank\t7", f"vault\t{VAULT}", "=bookmarks",
    f"tank/my own#{cursor_bookmark_name(keeper(VAULT), 5)}\t1772000000",
    f"tank/my own#{hold_bookmark_name(keeper(VAULT), 6)}\t1772000000",
    f"tank/x#{hold_bookmark_name(keeper(VAULT, None), 9)}\t1772000000",
    "tank/my own#somebody's\t1772000000", "tank/my own#poolferry_short\t1772000000",
    "=snapshots", "1\t8192\t6\ttank/my own@a b", "2\t0\t8\ttank/x@c",
    "=holds", "tank/my own@a b\tof several", f"tank/my own@a b\t{hold_tag(keeper(VAULT))}\t1772582400", "tank/x@c\tkeep\t1772582400",
    f"tank/x@c\t{hold_tag(keeper(RED, None))}\tTue Mar  3 00:00 2026", "tank/x@c\tpoolferry_A1\t1772582400", "=end",
]  # fmt: skip


def test_a_look_is_read() -> None:
    found = parse_holds([line.encode() for line in LOOK], TANK, job(sudo=True))
    marks = [(one.kind, one.dataset, one.name, one.target_id, one.bytes, one.beside) for one in found.found]
    ours, older = keeper(VAULT), keeper(VAULT, None)
    assert marks == [
        (BOOKMARKS, "tank/my own", cursor_bookmark_name(ours, 5), ours, None, None),
        (HOLDS, "tank/my own", "a b", ours, 8192, hold_bookmark_name(ours, 6)),
        (BOOKMARKS, "tank/x", hold_bookmark_name(older, 9), older, None, None),
        (HOLDS, "tank/x", "c", keeper(RED, None), 0, None),
    ]
    assert {one.since for one in found.found if one.kind == HOLDS} == {
        datetime(2026, 3, 4, tzinfo=UTC) - timedelta(days=d) for d in (0, 1)
    }
    assert (found.pools, found.sudo) == ({7: "tank", VAULT: "vault"}, False)
    assert parse_holds([b"=user 1000", *(line.encode() for line in LOOK[1:])], TANK, job(sudo=True)).sudo


@pytest.mark.parametrize("lines", [[], LOOK[:-1], [*LOOK[:9], "tank/x#ours", "=end"]])
def test_a_look_that_broke_off_is_not_empty(lines: list[str]) -> None:
    with pytest.raises(UnreadableListing):
        parse_holds([line.encode() for line in lines], TANK, job())


def test_a_tag_with_returns_lets_go_nothing_of_others() -> None:
    """An owner may hold her snapshots by any tag: a line of hers is no hold of another's, and no part of the answer."""
    tag = hold_tag(keeper(VAULT))
    others = f"tank/photos/fay@s0\t{tag}\t1"
    parts = f"=pools\rzzz\t{VAULT}\r=bookmarks\rtank/photos/fay#{cursor_bookmark_name(keeper(LOST), 12)}\t1\r=holds"
    look = [*LOOK[:-1], f"tank/my own@a b\tx\t1\r{others}\r{parts}\rtank/my own@a b\tx\t1772582400", LOOK[-1]]
    executor = ScriptedExecutor([(lambda _: True, scripted_result("\n".join(look).encode()))])
    here, _ = ZFS.survey_pins((job(),), lambda _: executor).pools
    assert here == parse_holds([line.encode() for line in LOOK], TANK, job())


def words(step: Step) -> tuple[str, ...]:
    assert isinstance(step.work, Pipeline)
    return step.work.stages[0].argv[4:]


def test_letting_go_touches_only_what_nobody_wants() -> None:
    mark = hold_bookmark_name(keeper(LOST), 4)
    there = seen(
        cursor("tank/photos", VAULT), hold("tank/photos", VAULT), cursor("tank/photos", LOST), cursor("tank/gone", VAULT),
        hold("tank/photos/x", LOST, beside=mark), hold("tank/photos/y", VAULT, days=20), sudo=True,
    )  # fmt: skip
    ((stands, steps),) = plan_release(there, judge_pins((job(),), there, NOW))
    assert (stands.name, stands.source, stands.options) == ("pins", TANK, ZfsOptions(sudo=True))
    assert [words(step) for step in steps] == [
        (hold_tag(keeper(VAULT)), "tank/photos/y@a"),
        (hold_tag(keeper(LOST)), "tank/photos/x@a"),
        (
            f"tank/photos#{cursor_bookmark_name(keeper(LOST), 1)}",
            f"tank/gone#{cursor_bookmark_name(keeper(VAULT), 1)}",
            f"tank/photos/x#{mark}",
        ),
    ]
    assert {step.effect for step in steps} == {Effect.WRITES}
    assert all("sudo -n zfs" in step.work.stages[0].argv[2] for step in steps if isinstance(step.work, Pipeline))


def test_two_holds_on_one_snapshot_are_told_apart() -> None:
    for other in (keeper(LOST), keeper(VAULT, "gone/copy")):
        unwanted = replace(hold("tank/photos", LOST), target_id=other)
        there = seen(hold("tank/photos", VAULT), unwanted)
        ((_, steps),) = plan_release(there, judge_pins((job(),), there, NOW))
        assert [words(step) for step in steps] == [(hold_tag(other), "tank/photos@a")]


def test_nothing_unwanted_is_nothing_to_do() -> None:
    there = seen(cursor("tank/photos", VAULT))
    assert plan_release(there, judge_pins((job(),), there, NOW)) == ()
    assert plan_release(there, PinReport(pins=())) == ()
    assert isinstance(judge_pins((job(),), there, NOW).pins[0], Pin)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_look_is_a_sound_script_that_only_reads(shell: str) -> None:
    command = holds_command(TANK)
    assert command.effect is Effect.READS
    subprocess.run([shell, "-n", "-c", command.argv[2]], check=True)


def test_a_pool_with_a_new_guid_keeps_the_bookmark_that_its_copy_continues_from() -> None:
    """As after `zpool reguid`: no name tells the guid of today, and the source may hold nothing else of the chain."""

    def judged_with(*found: HoldOrBookmark, guids: dict[str, frozenset[int]]) -> list[str | None]:
        survey = seen(*found)
        tank, vault = survey.pools
        survey = replace(survey, pools=(tank, replace(vault, guids=guids)))
        return [pin.job for pin in judge_pins((job(),), survey, NOW).pins]

    held = {"vault/copies/photos/a": frozenset({1, 2})}
    assert judged_with(cursor("tank/photos/a", LOST), guids=held) == ["photos"]
    assert judged_with(cursor("tank/photos/a", LOST, guid=3), guids=held) == [None]
    assert judged_with(cursor("tank/photos", LOST), guids=held) == [None]
    assert judged_with(cursor("tank/photos/a", LOST, "copies/elsewhere"), guids=held) == [None]
    both = (cursor("tank/photos/a", LOST), cursor("tank/photos/a", VAULT))
    assert judged_with(*both, guids=held) == [None, "photos"], "the newer name replaces it"


def test_guids_are_read_by_dataset() -> None:
    said = b"=user 0\n=pools\n=guids\n11\tvault/a b@one\n12\tvault/a b@two\n13\tvault/c@one\n=end"
    pool = parse_holds(said.split(b"\n"), Location(path="vault"), job())
    assert pool.guids == {"vault/a b": {11, 12}, "vault/c": {13}}
