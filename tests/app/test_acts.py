"""Acts of a daemon: how many go on at once, and that no two of them are one."""

import pytest

from orchestrator.app.acts import MOST_AT_ONCE, ActContext, ActService, list_acts
from orchestrator.app.settings import Settings
from orchestrator.domain.act import ENDED_WITH_DAEMON, ActRequest, ActVerb
from orchestrator.domain.run import Outcome
from orchestrator.history.store import open_history
from tests.ferry import Ferry
from tests.history.records import begin, finish, later


@pytest.mark.slow
def test_no_more_than_some_go_on_at_once_and_none_twice(ferry: Ferry) -> None:
    waits = ferry.root / "waits"
    waits.write_text("#!/bin/sh\nexec sleep 600\n")
    waits.chmod(0o755)
    names = [f"job-{number}" for number in range(MOST_AT_ONCE + 1)]
    for name in names:
        ferry.job(name, f'[hooks]\nbefore = ["{waits}"]\n')
    settings = Settings(config=str(ferry.config), state=str(ferry.state))
    with open_history(settings.where.history) as history:
        context = ActContext(where=settings.where, configuration=settings.configuration())
        service = ActService(history, lambda: context, lambda _: None)
        try:
            told = [service.ask(ActRequest(verb=ActVerb.RUN, job=name), "ann") for name in names]
            assert [each.accepted for each in told] == [True] * MOST_AT_ONCE + [False]
            assert told[-1].said.startswith(f"{MOST_AT_ONCE} requests are being carried out")
            again = service.ask(ActRequest(verb=ActVerb.RUN, job=names[0]), "ann")
            assert (again.accepted, again.said) == (False, f"run of {names[0]} was asked for, and goes on")
        finally:
            service.end(60)
    assert len(list_acts(settings, 50)) == MOST_AT_ONCE, "what was refused is no act"
    assert all(each.ended for each in list_acts(settings, 50))


def test_what_ended_before_its_daemon_could_write_that_down_is_told_by_its_runs_and_not_done_again(
    ferry: Ferry,
) -> None:
    """Seen: an order whose run had ended well was carried out a second time, as the daemon was killed before it had recorded the end."""
    told = {
        "ended": ((Outcome.DONE,), True), "badly": ((Outcome.DONE, Outcome.FAILED), False), "cut": ((None,), None),
        "killed": ((Outcome.DONE, Outcome.INTERRUPTED), None), "nothing": ((), None),
    }  # fmt: skip
    ferry.job()
    settings = Settings(config=str(ferry.config), state=str(ferry.state))
    with open_history(settings.where.history) as history:
        acts = dict[str, int]()
        for pid, (job, (outcomes, _)) in enumerate(told.items(), 100):
            finish(history, Outcome.DONE, job, now=later(days=-1), pid=pid)  # of another process with its number
            acts[job] = history.acts.asked(ActVerb.RUN, job, "", "ann by the centre", later())
            history.acts.begun(acts[job], pid)
            for outcome in outcomes:
                at = later(minutes=pid)
                if outcome is None:
                    begin(history, job, now=at, pid=pid)
                else:
                    finish(history, outcome, job, now=at, pid=pid)
        evacuated = history.acts.asked(ActVerb.EVACUATE, "tank", "", "ann by the centre", later())
        context = ActContext(where=settings.where, configuration=settings.configuration())
        ActService(history, lambda: context, lambda _: None)
        found = {job: history.acts.of(act) for job, act in (*acts.items(), ("tank", evacuated))}
    for job, (_, well) in (*told.items(), ("tank", ((), None))):
        act = found[job]
        assert act is not None
        assert act.ended is not None
        assert (job, act.well, act.said == ENDED_WITH_DAEMON) == (job, bool(well), well is None), act
