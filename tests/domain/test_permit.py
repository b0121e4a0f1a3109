"""Permits: how a job file says what a run does while the centre is away, and what is said of a wait."""

import pytest

from orchestrator.domain.permit import (
    PermitAnswer,
    PermitRequest,
    describe_absence,
    describe_lapse,
    describe_wait,
    parse_limit_name,
    parse_permit_away,
)
from orchestrator.domain.units import Seconds


def test_a_run_goes_on_or_waits_for_a_while() -> None:
    assert parse_permit_away("go-on") is None
    assert parse_permit_away("wait 30m") == Seconds(1800)
    for wrong in ("", "wait", "wait 30", "wait 0s", "wait 8d", "go on", "30m"):
        with pytest.raises(ValueError, match='"go-on", or how long to wait'):
            parse_permit_away(wrong)


def test_a_limit_has_a_plain_name() -> None:
    assert parse_limit_name("link-nas") == "link-nas"
    for wrong in ("", "1", "-x", "a b", "é", "x" * 101):
        with pytest.raises(ValueError, match="the name of a limit"):
            parse_limit_name(wrong)


def test_a_wait_says_for_what_and_with_which_place() -> None:
    full = PermitAnswer(permit=1, granted=False, place=2, limit="lab", used=3, slots=4)
    assert describe_wait(full) == "waits for the permit lab: 3 of 4 slots lent; number 2 in the queue"
    closed = PermitAnswer(permit=1, granted=False, limit="lab", opens="18:00 (UTC)")
    assert describe_wait(closed) == "waits for the permit lab, which is closed until 18:00 (UTC)"
    at_once, patient = PermitRequest(limits=("lab", "link")), PermitRequest(limits=("lab",), patience=Seconds(60))
    assert describe_absence(at_once, "no answer") == "goes on without the permit lab and link: no answer"
    assert describe_absence(patient, "no answer").startswith(
        "waits up to 1 min for the centre, which lends the permit lab"
    )
    assert describe_lapse(at_once).startswith(
        "the centre heard nothing of this run for so long that it gave up its permit lab and link"
    )
