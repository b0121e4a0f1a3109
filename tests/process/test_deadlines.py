"""Deadlines: what is to end a wait happens in time, never after its end, and costs no thread for each wait."""

import os
import threading
from collections.abc import Callable

from orchestrator.process import deadlines
from orchestrator.process.deadlines import call_at_deadline

LONG = 3600.0


def heard(event: threading.Event) -> bool:
    """Return True once it is set; never within the time of the tests: False."""
    return event.wait(60)


def test_the_earlier_deadline_is_kept_whichever_was_set_first_and_however_one_ends() -> None:
    later = call_at_deadline(LONG, lambda: None)
    order, done = list[str](), threading.Event()

    def note(name: str) -> Callable[[], None]:
        return lambda: order.append(name)

    def fail() -> None:
        raise OSError("the line was closed meanwhile")

    with deadlines._watch.changed:
        call_at_deadline(0.0, note("over")).cancel()
    call_at_deadline(0.05, fail)
    call_at_deadline(0.1, note("first"))
    call_at_deadline(0.2, done.set)
    assert heard(done)
    assert order == ["first"]
    later.cancel()


def test_all_waits_of_a_process_share_one_thread() -> None:
    waits = [call_at_deadline(LONG, lambda: None) for _ in range(100)]
    assert [each.name for each in threading.enumerate()].count("deadlines") == 1
    for each in waits:
        each.cancel()
    done = threading.Event()
    call_at_deadline(0.0, done.set)
    assert heard(done)


def test_a_forked_child_has_deadlines_of_its_own() -> None:
    """It has no thread of its parent, and a lock that another thread held at the fork stays held in it."""
    call_at_deadline(LONG, lambda: None).cancel()
    with deadlines._watch.changed:
        child = os.fork()
        if child == 0:
            done = threading.Event()
            call_at_deadline(0.01, done.set)
            os._exit(0 if done.wait(60) else 1)
    assert os.waitpid(child, 0)[1] == 0
