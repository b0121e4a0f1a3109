"""The centre's own look at its fleet: hosts that fell silent, what no host can see alone, and notices about both.

Notices go through the channels of the machine that watches, by the same rules as a job's: once for each cause, again after 1, 3 and 7
days, and the end of a silence.
"""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.fleet_members import connect_administrator
from orchestrator.app.notify import remember_notices
from orchestrator.app.notify_queue import DeliveryContext, deliver_messages, host_name, make_sender_context
from orchestrator.app.settings import Settings
from orchestrator.domain.errors import CentreRefused, CentreUnreachable, OrchestratorError
from orchestrator.domain.fleet_status import FleetHost, HostState
from orchestrator.domain.fleet_watch import FleetFinding, FleetWatch
from orchestrator.domain.notice import NoticeType, PingChannel
from orchestrator.domain.units import Seconds, show_duration
from orchestrator.planners.health import JobState
from orchestrator.planners.notifications import CopyStatus

if TYPE_CHECKING:
    from orchestrator.domain.machine import MachineConfig
    from orchestrator.history.store import History

_MEMORY = ":fleet "  # before a channel's name: what it was told of the fleet, apart from what it was told of jobs
_SEND_S = Seconds(10)
_ALL = 1_000_000  # hosts


def watch_once(settings: Settings, *, centre: str | None, keep: timedelta) -> FleetWatch:
    """Look at the fleet once, send what is due, and remove old rows. Raises: CentreUnreachable, CentreRefused, HistoryError."""
    from orchestrator.fleet.cross_checks import cross_check, remove_old_rows
    from orchestrator.fleet.overview import find_hosts

    now = compose.now()
    with connect_administrator(settings, centre) as session:
        hosts = [
            _finding(each, now)
            for each in find_hosts(session, limit=_ALL)
            if each.state in (HostState.HEARD, HostState.SILENT)
        ]
        found = FleetWatch(findings=(*hosts, *cross_check(session)), removed=remove_old_rows(session, keep))
    machine = compose.read_machine_config(settings.where)
    if machine.notice:
        _notify(settings, machine, found.findings, now)
    return found


def watch_again_and_again(settings: Settings, *, centre: str | None, keep: timedelta, every_s: float) -> None:
    """Look at the fleet again and again until a signal ends the process; a centre that is away is said once, and its return."""
    away = ""
    while True:
        try:
            watch_once(settings, centre=centre, keep=keep)
            why = ""
        except (CentreUnreachable, CentreRefused) as error:
            why = error.why
        if why != away:
            settings.say(why or "the centre answers again")
        away = why
        compose.sleep(every_s)


def _finding(host: FleetHost, now: datetime) -> FleetFinding:
    if host.state is HostState.HEARD:
        return FleetFinding(about=f"host {host.name}", kind="silent", bad=False, why="it gives signs of life")
    long = f"for {show_duration((now - host.seen).total_seconds())}" if host.seen else "since it joined"
    return FleetFinding(
        about=f"host {host.name}", kind="silent", bad=True,
        why=f"it has been silent {long}: it is off, cut off, or its daemon has ended; nobody knows whether its runs go on",
        hint="on that host: systemctl status poolferry",
    )  # fmt: skip


def _notify(settings: Settings, machine: "MachineConfig", findings: tuple[FleetFinding, ...], now: datetime) -> None:
    """Queue what each channel is to know, and send it; a channel that fails is tried again at the next look."""
    with compose.open_history(settings.where) as history:
        _queue_notices(history, machine, findings, now)
        post = DeliveryContext(channels=machine.notice, means=make_sender_context(settings.where), say=settings.say)
        try:
            deliver_messages(post, history.notifications, now, within=_SEND_S)
        except OrchestratorError as error:
            settings.say(f"notices: {error}")


def _queue_notices(
    history: "History", machine: "MachineConfig", findings: tuple[FleetFinding, ...], now: datetime
) -> None:
    from orchestrator.views.fleet_watch import watch_message

    seen = [_status(each) for each in findings]
    with history.together():
        for channel in machine.notice:
            if isinstance(channel, PingChannel):
                continue
            writes, notices = remember_notices(
                f"{_MEMORY}{channel.name}", channel.states, seen, history.notifications, now
            )
            for write in writes:
                write(history.notifications)
            for kind in (NoticeType.TROUBLE, NoticeType.REMINDER, NoticeType.RECOVERY):
                if told := [notice for notice in notices if notice.kind is kind]:
                    history.notifications.queue(channel.name, watch_message(kind, told, host=host_name(), now=now))


def _status(finding: FleetFinding) -> CopyStatus:
    """Return a finding as what the rules of notices decide on: a silence ends, anything else is forgotten when it is gone."""
    state = JobState.UP if not finding.bad else JobState.LATE if finding.kind == "silent" else JobState.FAILING
    return CopyStatus(
        job=finding.about, target="the fleet", state=state, why=finding.why, cause=finding.kind, hint=finding.hint, called=finding.about
    )  # fmt: skip
