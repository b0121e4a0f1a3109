"""Test when a run is stuck: no byte, no work, no new process, for longer than its own patience."""

from dataclasses import replace

import pytest

from orchestrator.domain.events import ProcessActivity
from orchestrator.domain.job import JobHooks, PipeOptions, RetryRules
from orchestrator.domain.units import Seconds
from orchestrator.planners.watchdog import shows_activity, silence_limit
from tests.planners.two_years import job

MINUTE = 60


def seen(pid: int = 1, worked: float = 0, moved: int | None = 0) -> ProcessActivity:
    return ProcessActivity(pid=pid, processor_s=worked, moved=moved)


@pytest.mark.parametrize(
    ("after", "life"),
    [
        (seen(), False),
        (seen(worked=0.01), False),  # it looks about itself while it waits
        (seen(worked=0.2), True),
        (seen(moved=2400), False),  # ssh's keepalives
        (seen(moved=10_000), True),
        (seen(pid=2), True),
        (seen(moved=None), False),
    ],
)
def test_a_sign_of_life_is_work_or_bytes_or_a_new_process(after: ProcessActivity, life: bool) -> None:
    assert shows_activity((seen(),), (after,), 30) is life


def test_a_process_that_has_gone_is_no_sign_of_life() -> None:
    assert not shows_activity((seen(1), seen(2, worked=9)), (seen(1),), 30)


@pytest.mark.parametrize(
    ("stall", "wait", "hook", "minutes"), [(5, 15, 1, 30), (60, 15, 1, 120), (5, 40, 1, 45), (5, 15, 90, 95)]
)
def test_patience_outlasts_every_wait_that_a_run_may_have(stall: int, wait: int, hook: int, minutes: int) -> None:
    one = replace(
        job("a", None),
        pipe=PipeOptions(stall_after=Seconds(stall * MINUTE)),
        retry=RetryRules(wait_at_most=Seconds(wait * MINUTE)),
        hooks=JobHooks(timeout=Seconds(hook * MINUTE)),
    )
    assert silence_limit(one) == Seconds(minutes * MINUTE)
