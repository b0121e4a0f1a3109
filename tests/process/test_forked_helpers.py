"""Helpers forked from a process: what they answer and tell, their errors, and their end with it."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from orchestrator.process.forks import ForkedHelpers
from tests.processes import lives

# Python 3.12 and later warn of any other thread, such as other tests have left.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
Tell = Callable[[bytes], None]


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Overlook threads that other tests have left in this process: they hold nothing that a helper needs."""
    monkeypatch.setattr(threading, "active_count", lambda: 1)


def started(answer: Callable[[bytes, Tell], bytes]) -> ForkedHelpers:
    found = ForkedHelpers.start(answer)
    assert found is not None
    return found


def heard(helpers: ForkedHelpers) -> tuple[bool, bytes]:
    found = helpers.heard(30)
    assert found is not None
    return found


def test_each_request_has_its_answer() -> None:
    with started(lambda request, _: request[::-1] * 1000) as helpers:
        many = helpers.idle
        assert many >= 2
        for number in range(many):
            assert not helpers.busy or number
            helpers.ask(b"%d-" % number)
        assert (helpers.idle, helpers.busy) == (0, True)
        found = {heard(helpers) for _ in range(many)}
        assert found == {(True, b"-%d" % number * 1000) for number in range(many)}
        assert (helpers.idle, helpers.busy) == (many, False)
        assert helpers.heard(0) is None


def test_something_is_told_meanwhile() -> None:
    def answer(request: bytes, tell: Tell) -> bytes:
        tell(b"half of " + request)
        return b"all of " + request

    with started(answer) as helpers:
        helpers.ask(b"it")
        assert heard(helpers) == (False, b"half of it")
        assert helpers.busy
        assert heard(helpers) == (True, b"all of it")


def test_an_error_of_the_system_comes_back_as_it_was() -> None:
    def answer(request: bytes, _: Tell) -> bytes:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT), os.fsdecode(request))

    with started(answer) as helpers:
        helpers.ask(b"a\xff")
        with pytest.raises(OSError, match="quota") as caught:
            helpers.heard(30)
        assert (caught.value.errno, os.fsencode(caught.value.filename)) == (errno.EDQUOT, b"a\xff")


@pytest.mark.parametrize("how", ["killed", "another error"])
def test_a_helper_that_ends_is_an_error(how: str) -> None:
    def answer(request: bytes, _: Tell) -> bytes:
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError(request)

    with started(answer) as helpers:
        helpers.ask(b"it")
        with pytest.raises(ChildProcessError, match="has ended" if how == "killed" else r"ValueError\(b'it'\)"):
            helpers.heard(30)


def test_a_helper_that_was_killed_while_it_was_idle_is_the_same_error() -> None:
    with started(lambda request, _: request) as helpers:
        for child, _connection in helpers._children.values():
            os.kill(child, signal.SIGKILL)
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)  # not collected: its end does that
        with pytest.raises(ChildProcessError, match="has ended"):
            helpers.ask(b"it")


def test_helpers_end_with_a_process_that_is_killed() -> None:
    program = """
import os, sys, time
from orchestrator.process.forks import ForkedHelpers
helpers = ForkedHelpers.start(lambda request, tell: b"")
print(*(child for child, _ in helpers._children.values()), flush=True)
time.sleep(600)
"""
    main = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert main.stdout is not None
    with main.stdout:
        children = [int(word) for word in main.stdout.readline().split()]
    assert all(map(lives, children))
    main.kill()
    main.wait()
    end = time.monotonic() + 60
    while any(map(lives, children)):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_keys_that_interrupt_are_for_the_process_alone() -> None:
    """The terminal sends them to all of its group; the one that asks ends the others."""

    def answer(request: bytes, _: Tell) -> bytes:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGHUP)
        return request

    with started(answer) as helpers:
        helpers.ask(b"it")
        assert heard(helpers) == (True, b"it")
