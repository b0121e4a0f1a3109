"""Test what a look comes to: failure, scrub, pause, waiting, or that all is well."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.plan import Decision, Effect, NothingToDo, Plan, Refusal
from orchestrator.domain.run import Outcome
from orchestrator.domain.source_identity import SOURCE_IDENTITY
from orchestrator.engines.pool.model import PoolScan, ScrubState
from orchestrator.engines.pool.plan import plan
from tests.engines.pool.builders import ASKED, DAY, FAR, MIRROR, NOW, ROOT, disk, group, job, scan, status, world

MONTH = 30 * DAY
SEND = ("zfs send of tank/photos",)


def decided(last: PoolScan | None, *, every: float | None = MONTH, **more: Any) -> Decision:
    return plan(job(scrub_every=every), world(status(scan=last), **more), ASKED)


def line(decision: Decision) -> str:
    """The one command of a plan."""
    assert isinstance(decision, Plan), decision
    (step,) = decision.steps
    assert step.effect is Effect.WRITES
    return str(step.work)


def test_a_sound_pool_is_nothing_to_do_and_proved() -> None:
    found = decided(scan())
    assert found == NothingToDo(why="tank is sound, 40% full; the last scrub ended 1 d ago", current="tank")


@pytest.mark.parametrize(
    ("known", "said"), [("0 8 tank", True), ("0 7 tank", False), ("0 0 tank", False), ("0 8 lake", False), ("", False)]
)
def test_another_pool_of_the_same_name_is_told(known: str, said: bool) -> None:
    """Seen: after the loss of a pool, the one that was made in its place was called sound, and nothing else."""
    found = plan(job(), world(), replace(ASKED, remembered={SOURCE_IDENTITY: known}))
    assert isinstance(found, NothingToDo)
    told = "tank is another pool than at the last run: its guid was 8 and is 7; it was made anew, or `zpool reguid` gave it another one"
    assert (told in found.warnings) is said


def test_advice_is_a_warning() -> None:
    found = plan(job(), world(status(disk("/dev/sda"))), ASKED)
    assert isinstance(found, NothingToDo)
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith("/dev/sda in tank is named")


def test_what_loses_data_is_a_failure_with_all_findings() -> None:
    broken = status(group("mirror-0", disk("red", "FAULTED"), disk("/dev/sdb", reads=1)), state="DEGRADED")
    found = plan(job(scrub_every=MONTH), world(broken), ASKED)
    assert isinstance(found, Refusal)
    assert found.outcome is Outcome.FAILED
    assert found.why.startswith("/dev/disk/by-id/red in mirror-0 of tank is FAULTED")
    assert found.why.endswith("; and 1 more finding")
    assert "zpool replace" in found.hint
    errors, advice = found.evidence
    assert errors.startswith("/dev/sdb of tank gave 1 read error: ")
    assert advice.startswith("advice: /dev/sdb in tank is named")


@pytest.mark.parametrize(
    ("last", "why"),
    [
        (None, "never scrubbed"),
        (scan(ago=31 * DAY), "ended 31 d ago; scrub-every is 30 d"),
        (scan("canceled"), "was cancelled"),
        (scan(kind="resilver"), "the last scan was a resilver"),
    ],
)
def test_a_scrub_is_started_when_one_is_due(last: PoolScan | None, why: str) -> None:
    found = decided(last)
    assert line(found) == "zpool scrub tank"
    assert isinstance(found, Plan)
    assert why in found.steps[0].why
    assert found.steps[0].confirmation == ScrubState(root=ROOT, since=NOW, paused=False)
    assert isinstance(decided(last, every=None), NothingToDo)


def test_none_is_started_before_its_time_or_beside_another() -> None:
    for last in (scan(ago=29 * DAY), scan("running"), scan("running", kind="resilver")):
        assert isinstance(decided(last), NothingToDo)
    goes = decided(scan("running", share=0.43, left=7200))
    assert isinstance(goes, NothingToDo)
    assert goes.why.endswith("a scrub is running, 43% done, about 2 h left")
    guessed = decided(scan("running", share=0.25, ago=3600))
    assert isinstance(guessed, NothingToDo)
    assert guessed.why.endswith("a scrub is running, 25% done, about 3 h left")
    begun = decided(scan("running", share=0.0))
    assert isinstance(begun, NothingToDo)
    assert begun.why.endswith("a scrub is running, 0% done")


@pytest.mark.parametrize("last", [scan(ago=31 * DAY), scan("paused")])
def test_a_backup_goes_before_a_scrub(last: PoolScan) -> None:
    found = decided(last, at_work=SEND)
    assert isinstance(found, Refusal)
    assert found.outcome is Outcome.WAITING
    assert found.evidence == ("at work: zfs send of tank/photos",)
    assert "tank is sound; its scrub waits" in found.why


def test_a_scrub_that_goes_on_is_paused_for_a_backup_and_goes_on_after_it() -> None:
    assert line(decided(scan("running"), at_work=SEND)) == "zpool scrub -p tank"
    assert line(decided(scan("paused"))) == "zpool scrub tank"
    for last in (scan("running"), scan("paused")):
        assert isinstance(decided(last, every=None, at_work=SEND), NothingToDo)
        assert isinstance(decided(last, every=None), NothingToDo)


def test_a_resilver_is_not_paused() -> None:
    assert isinstance(decided(scan("running", kind="resilver"), at_work=SEND), NothingToDo)


@pytest.mark.parametrize("last", [scan(ago=41 * DAY), scan("paused", ago=41 * DAY)])
def test_a_scrub_that_is_very_late_waits_for_nobody(last: PoolScan) -> None:
    assert line(decided(last, at_work=SEND)) == "zpool scrub tank"
    assert isinstance(decided(scan("running", ago=41 * DAY), at_work=SEND), NothingToDo)


def test_on_a_host_the_scrub_finds_its_program() -> None:
    found = plan(job(FAR, scrub_every=MONTH), world(status(MIRROR, scan=None), root=FAR), ASKED)
    assert line(found).startswith("ssh root@master 'sh -c ")
    assert "zpool.sh " in line(found)
    assert line(found).endswith(" scrub tank'")
