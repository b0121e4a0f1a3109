"""A run that waits holds nothing up: no permit between two attempts, and no transaction of the history while a line is shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.events import RunEvent
from orchestrator.domain.permit import RunVoice
from orchestrator.domain.units import Seconds
from orchestrator.history.store import History, open_history
from orchestrator.process.stop import StopRequest
from orchestrator.runner.run import _waited_in_vain
from tests.runner.journals import journal, small


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A history of its own."""
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


class Lent:
    """A permit that notes when it is given back."""

    def __init__(self) -> None:
        self.here, self.seen = True, list[bool]()

    def obtain(self, voice: RunVoice) -> None:
        """Wait for it."""

    @contextmanager
    def hold(self, voice: RunVoice) -> Iterator[None]:
        """Hold it."""
        yield

    @contextmanager
    def give_back_meanwhile(self, voice: RunVoice) -> Iterator[None]:
        """Give it back while inside."""
        self.here = False
        yield
        self.here = True


class Watched(StopRequest):
    """A request that notes at each wait whether the permit is held."""

    def __init__(self, permit: Lent) -> None:
        super().__init__()
        self._permit = permit

    def wait(self, seconds: float) -> bool:
        """Wait not at all."""
        self._permit.seen.append(self._permit.here)
        return False


def test_a_run_that_waits_for_its_next_attempt_gives_its_permit_back(history: History, tmp_path: Path) -> None:
    permit = Lent()
    made = journal(history, tmp_path)
    made.tools = replace(made.tools, permit=permit, stop=Watched(permit))
    assert [_waited_in_vain(made, Seconds(each)) for each in (30, 2)] == [False, False]
    assert permit.seen == [False, True], "and keeps it for some seconds"
    assert permit.here


def test_nothing_is_shown_while_the_history_is_locked(history: History, tmp_path: Path) -> None:
    """Seen: a warning of a step was printed within the transaction of its end, and a terminal that took nothing held all other processes up."""
    shown: list[tuple[str, bool]] = []

    class Terminal(list[RunEvent]):
        def append(self, event: RunEvent) -> None:
            shown.append((type(event).__name__, history._database._depth > 0))

    made = journal(history, tmp_path, Terminal())
    with history.together():
        made.step_begun(small())
        with history.together():
            made.warn("left out: a socket")
        made.say("goes on")
        made.note("after the end")
        made.waits("for nothing")
        assert len(shown) == 1, "all comes after the end of the transaction"
    with pytest.raises(KeyError), history.together():  # noqa: PT012 - the transaction is what fails
        made.warn("this is still true")
        raise KeyError
    names = ["RunStarted", "StepStarted", "RunMessage", "RunMessage", "RunMessage", "RunWaits", "RunMessage"]
    assert shown == [(name, False) for name in names]
