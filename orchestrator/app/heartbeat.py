"""Dead-man pings of single runs: the start during the run, the end through the queue of notices.

A start is sent only for a run that takes longer than some seconds: most runs that find their disk away or their lock busy end
before, and a monitor that received the start would wait for their end. It is tried once: a late start would be false.
"""

import threading
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.notify_queue import ONE_MESSAGE, Say, host_name, make_sender_context
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.notice import DeliveryFailed, NoticeType, PingChannel
from orchestrator.domain.run import Outcome
from orchestrator.notices.transport import SenderContext
from orchestrator.views.notification_text import ping_message

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.domain.machine import MachineConfig
    from orchestrator.domain.run import RunReport

AFTER = 3.0
_ENDS = {
    Outcome.DONE: NoticeType.SUCCESS,
    Outcome.NOTHING: NoticeType.SUCCESS,
    Outcome.INCOMPLETE: NoticeType.FAIL,
    Outcome.FAILED: NoticeType.FAIL,
    Outcome.REFUSED: NoticeType.FAIL,
    Outcome.INTERRUPTED: NoticeType.FAIL,
}


class StartPing:
    """A thread that sends the start ping after a while, during the run."""

    def __init__(self, channels: "tuple[PingChannel, ...]", job: "Job", means: SenderContext, say: Say) -> None:
        self._channels = channels
        self._message = ping_message(NoticeType.START, job.name, "a run has begun", host=means.host, now=compose.now())
        self._means = means
        self._say = say
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="start ping", daemon=True)
        self._thread.start()

    def over(self) -> None:
        """End the ping with its run: wait for a start that is being sent, so that it does not follow the end."""
        self._over.set()
        self._thread.join(ONE_MESSAGE)

    def _tell(self) -> None:
        from orchestrator.notices.send import send_message

        if self._over.wait(AFTER):
            return
        for channel in self._channels:
            try:
                send_message(channel, self._message, self._means)
            except DeliveryFailed as error:
                self._say(f"the start could not be sent to {channel.name}: {error}")


def _of(machine: "MachineConfig", job: "Job") -> tuple[PingChannel, ...]:
    pings = (channel for channel in machine.notice if isinstance(channel, PingChannel) and channel.of == "runs")
    return tuple(ping for ping in pings if not ping.jobs or job.name in ping.jobs)


def start_ping(where: compose.Directories, job: "Job", machine: "MachineConfig", say: Say) -> StartPing | None:
    """Begin the start ping, when a monitor accepts starts; else return None. A plain monitor accepts none."""
    wanted = tuple(ping for ping in _of(machine, job) if ping.style == "healthchecks")
    return StartPing(wanted, job, make_sender_context(where), say) if wanted else None


def queue_end_ping(
    where: compose.Directories, job: "Job", report: "RunReport", machine: "MachineConfig", say: Say
) -> None:
    """Queue the end for each monitor of the job; a waiting run is no end. A plain monitor gets only successes."""
    kind = _ENDS.get(report.outcome)
    wanted = [
        ping for ping in _of(machine, job) if kind is NoticeType.SUCCESS or (kind and ping.style == "healthchecks")
    ]
    if kind is None or not wanted:
        return
    why = f"{report.outcome}: {report.why} (run {report.run})"
    message = ping_message(kind, job.name, why, host=host_name(), now=compose.now())
    try:
        with compose.open_history(where) as history:
            for ping in wanted:
                history.notifications.queue(ping.name, message)
    except OrchestratorError as error:
        say(f"notices: {error}")
