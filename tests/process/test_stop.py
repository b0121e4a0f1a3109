"""The request to stop."""

import gc
import select
import signal
import threading
import time

from orchestrator.domain.units import Seconds
from orchestrator.process.stop import StopRequest
from tests.process.pipelines import open_descriptors


def test_nothing_is_requested_at_first() -> None:
    stop = StopRequest()
    assert stop.reason is None
    assert not stop.wait(0.01)


def test_the_first_reason_stays() -> None:
    stop = StopRequest()
    stop.request("signal 15")
    stop.request("again")
    assert stop.reason == "signal 15"
    assert stop.wait(60)


def test_every_waiting_thread_wakes_up() -> None:
    stop = StopRequest()
    woken: list[bool] = []
    threads = [threading.Thread(target=lambda: woken.append(stop.wait(60))) for _ in range(3)]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    stop.request("enough")
    for thread in threads:
        thread.join(60)
    assert woken == [True] * 3
    assert time.monotonic() - began < 30


def test_the_deadline_requests_it_by_itself() -> None:
    stop = StopRequest(deadline=Seconds(0.05), because="the window has ended")
    assert stop.reason is None
    assert stop.wait(60)
    assert stop.reason == "the window has ended"


def test_a_request_before_the_deadline_names_its_own_reason() -> None:
    stop = StopRequest(deadline=Seconds(0))
    other = StopRequest(deadline=Seconds(3600))
    other.request("asked")
    assert (stop.reason, other.reason) == ("the time window has ended", "asked")


def test_the_bell_stays_readable_for_everybody() -> None:
    stop = StopRequest()
    stop.request("now")
    for _ in range(2):
        poll = select.poll()
        poll.register(stop.fileno(), select.POLLIN)
        assert poll.poll(0)


def test_a_signal_may_request_it_in_the_midst_of_a_wait() -> None:
    stop = StopRequest()
    before = signal.signal(signal.SIGALRM, lambda *_: stop.request("alarm"))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert stop.wait(60)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert stop.reason == "alarm"


def test_it_leaves_no_descriptor_behind() -> None:
    gc.collect()
    before = open_descriptors()
    for _ in range(5):
        StopRequest().request("x")
    gc.collect()
    # Fewer than one for each: another thread of this process may have opened some of its own meanwhile.
    assert open_descriptors() - before < 5
