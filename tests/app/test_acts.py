"""Acts of a daemon: how many go on at once, and that no two of them are one."""

import pytest

from orchestrator.app.acts import MOST_AT_ONCE, ActContext, ActService, list_acts
from orchestrator.app.settings import Settings
from orchestrator.domain.act import ActRequest, ActVerb
from orchestrator.history.store import open_history
from tests.ferry import Ferry


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
