"""Orders: only what a daemon takes and what does no harm twice, and nothing that a centre could slip in."""

from datetime import UTC, datetime

import pytest

from orchestrator.domain.act import ActRequest, ActVerb
from orchestrator.domain.fleet_watch import FleetFinding, FleetWatch
from orchestrator.domain.order import ORDERED, OrderRecord, OrderState, describe_unknown_end, order_request

KEY = "10e3fc3b-1760-4feb-8cf2-0ee784c1c783"


def test_an_order_is_a_request_of_the_closed_list() -> None:
    assert order_request("pause", "photos", span="3d", user="ann", key=KEY, attempt=2) == ActRequest(
        verb=ActVerb.PAUSE, job="photos", span="3d", user="ann", order=f"{KEY}.2"
    )
    assert order_request("run", "photos").order == ""
    assert order_request("evacuate", "tank") == ActRequest(verb=ActVerb.EVACUATE, pool="tank")
    assert not {ActVerb.RESTORE, ActVerb.EJECT, ActVerb.SNOOZE, ActVerb.ACKNOWLEDGE} & set(ORDERED)


def test_what_is_told_of_an_end_that_nobody_knows_is_known_again() -> None:
    at = datetime(2026, 11, 27, tzinfo=UTC)
    for request, looks in (
        (ActRequest(verb=ActVerb.EVACUATE, pool="tank"), "status"),
        (ActRequest(verb=ActVerb.PAUSE, job="photos"), "schedule photos"),
    ):
        said = describe_unknown_end(request)
        assert f"`poolferry {looks}`" in said
        for state, known in ((OrderState.FAILED, True), (OrderState.DONE, False)):
            order = OrderRecord(
                id=1, host="web-1", verb=request.verb, subject=request.job or request.pool, about="", asked_by="ann", asked_at=at, deadline=at,
                state=state, attempt=1, act=None, said=said, told_at=at,
            )  # fmt: skip
            assert order.unknown_end is known


@pytest.mark.parametrize(
    ("verb", "job", "more", "said"),
    [
        ("restore", "photos", {}, "cannot be ordered"), ("rm", "photos", {}, "cannot be ordered"), ("run", "", {}, "run needs job"),
        ("evacuate", "../x", {}, "pool: not a name"),
        ("run", "../x", {}, "job: not a name"), ("run", "photos", {"span": "3d"}, "run takes job alone"),
        ("pause", "photos", {"span": "9y"}, "span: expected one of"), ("run", "photos", {"key": "17"}, "without a key"),
        ("run", "photos", {"user": "ann\nroot"}, "user: not a name"), ("run", "photos", {"key": KEY, "attempt": 0}, "order: not a name"),
    ],
)  # fmt: skip
def test_anything_else_is_refused(verb: str, job: str, more: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        order_request(verb, job, **more)  # type: ignore[arg-type]


def test_a_watch_names_what_needs_a_person() -> None:
    well, bad = (FleetFinding(about="host a", kind="silent", bad=bad, why="x") for bad in (False, True))
    assert FleetWatch(findings=(well, bad), removed=0).bad == (bad,)


@pytest.mark.parametrize(
    ("state", "said", "unknown"),
    [
        (OrderState.REFUSED, "not understood: evacuate cannot be ordered; there are run, plan", True),
        (OrderState.REFUSED, "not understood: pool: not a name that one can have", False),
        (OrderState.FAILED, "not understood: evacuate cannot be ordered; there are run, plan", False),
    ],
)  # fmt: skip
def test_a_verb_that_the_host_lacks_is_told_from_all_else_that_it_refuses(
    state: OrderState, said: str, unknown: bool
) -> None:
    noon = datetime(2026, 11, 23, 12, tzinfo=UTC)
    record = OrderRecord(
        id=1, host="web-1", verb=ActVerb.EVACUATE, subject="tank", about="", asked_by="ann", asked_at=noon, deadline=noon, state=state,
        attempt=1, act=None, said=said, told_at=noon,
    )  # fmt: skip
    assert record.unknown_there is unknown
