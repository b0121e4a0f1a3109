"""The centre's own look at its fleet: hosts that fell silent, what no host can see alone, and notices about both.

Notices go through the channels of the machine that watches, by the same rules as a job's: once for each cause, again after 1, 3 and 7
days, and the end of a silence; and once a week a letter about all hosts, also when all is well.
"""

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.fleet_members import connect_administrator
from orchestrator.app.notify import remember_notices
from orchestrator.app.notify_queue import DeliveryContext, deliver_messages, host_name, make_sender_context
from orchestrator.app.settings import Settings
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import CentreUnreachable, OrchestratorError
from orchestrator.domain.fleet_status import FleetHost, HostState, twice_as_much
from orchestrator.domain.fleet_watch import FleetFinding, FleetWatch
from orchestrator.domain.machine import DAYS
from orchestrator.domain.notice import NoticeType, PingChannel
from orchestrator.domain.units import Seconds, show_duration, show_size
from orchestrator.planners.health import JobState
from orchestrator.planners.notifications import CopyStatus, digest_day, is_digest_due, is_last_believable

if TYPE_CHECKING:
    from orchestrator.domain.machine import MachineConfig
    from orchestrator.fleet.connection import CentreSession
    from orchestrator.history.store import History

_MEMORY = ":fleet "  # before a channel's name: what it was told of the fleet, apart from what it was told of jobs
_SEND_S = Seconds(10)
_LOOK_AT_LOCKS_S = Seconds(1)
_ALL = 1_000_000  # hosts


def watch_once(settings: Settings, *, centre: str | None, keep: timedelta, guarded: bool = False) -> FleetWatch:
    """Look at the fleet once, send what is due, and remove old rows. Raises: CentreUnreachable, CentreRefused, HistoryError.

    `guarded`: somebody guards the centre's locks meanwhile, with a reserve of which there is one.
    """
    from orchestrator.fleet.cross_checks import (
        cross_check,
        end_long_transactions,
        end_prepared_transactions,
        find_held_permits,
        find_unknown_ends,
        find_wrong_clock,
        remove_old_rows,
    )
    from orchestrator.fleet.lock_guard import LockGuard, find_shut_out
    from orchestrator.fleet.overview import find_hosts
    from orchestrator.fleet.tickets import find_copies

    now = compose.now()
    with connect_administrator(settings, centre) as session:
        if not guarded:  # first: without locks nobody can do anything
            _tell_shut_out(settings, LockGuard(session).look())
        hosts = [
            finding
            for each in find_hosts(session, limit=_ALL)
            if each.state in (HostState.HEARD, HostState.SILENT)
            for finding in (_finding(each, now), *_quota(each))
        ]
        long = (
            *end_prepared_transactions(session),
            *end_long_transactions(session),
        )  # first: what they hold, all else could wait for
        findings = (
            *hosts, *find_copies(session), *cross_check(session), *find_shut_out(session), *find_held_permits(session),
            *find_unknown_ends(session), *find_wrong_clock(session), *long,
        )  # fmt: skip
        machine = compose.read_machine_config(settings.where)
        if machine.notice:
            _notify(settings, machine, session, findings, now)
        return FleetWatch(findings=findings, removed=remove_old_rows(session, keep))


def watch_again_and_again(settings: Settings, *, centre: str | None, keep: timedelta, every_s: float) -> None:
    """Look at the fleet again and again until a signal ends the process; a centre that is away is said once, and its return."""
    away = ""
    guard_locks(settings, centre=centre)
    while True:
        try:
            watch_once(settings, centre=centre, keep=keep, guarded=True)
            why = ""
        except OrchestratorError as error:  # also a history or a poolferry.toml that cannot be read
            why = error.why
        if why != away:
            settings.say(why or "the fleet is looked at again")
        away = why
        compose.sleep(every_s)


def guard_locks(settings: Settings, *, centre: str | None) -> None:
    """Guard the table of locks at the centre, in a thread that ends with the process: a host that fills it is shut out within seconds."""
    away = ""

    def tell(why: str) -> None:
        nonlocal away
        if why != away:
            settings.say(f"locks: {why or 'they are looked at again'}")
        away = why

    def go() -> None:
        while True:
            try:
                with connect_administrator(settings, centre) as session:
                    _look_each_second(settings, session, tell)
            except Exception as error:  # noqa: BLE001 - a thread that dies silently would guard nothing any more
                tell(
                    error.why if isinstance(error, OrchestratorError) else f"this is a mistake in poolferry: {error!r}"
                )
            compose.sleep(_LOOK_AT_LOCKS_S)

    threading.Thread(target=go, name="locks", daemon=True).start()


def _look_each_second(settings: Settings, session: "CentreSession", tell: Callable[[str], None]) -> None:
    """Look at the locks as long as the session lives. A look that fails costs no session: where there is no lock nobody gets a new one."""
    from orchestrator.fleet.lock_guard import LockGuard

    guard = LockGuard(session)
    tell("")
    while True:
        try:
            _tell_shut_out(settings, guard.look())
            tell("")
        except CentreUnreachable as error:
            if session.connection.closed:
                raise
            tell(error.why)
        compose.sleep(_LOOK_AT_LOCKS_S)


def _tell_shut_out(settings: Settings, names: tuple[str, ...]) -> None:
    for name in names:
        settings.say(f"locks: host {name} filled the table of locks, and is shut out")


def _finding(host: FleetHost, now: datetime) -> FleetFinding:
    if host.state is HostState.HEARD:
        return FleetFinding(about=f"host {host.name}", kind="silent", bad=False, why="it gives signs of life")
    long = f"for {show_duration((now - host.seen).total_seconds())}" if host.seen else "since it joined"
    return FleetFinding(
        about=f"host {host.name}", kind="silent", bad=True,
        why=f"it has been silent {long}: it is off, cut off, or its daemon has ended; nobody knows whether its runs go on",
        hint="on that host: systemctl status poolferry",
    )  # fmt: skip


def _quota(host: FleetHost) -> tuple[FleetFinding, ...]:
    if not host.nearly_full:
        return ()
    return (
        FleetFinding(
            about=f"quota of {host.name}", kind="quota", bad=True,
            why=f"it told {show_size(host.told)} of the {show_size(host.most)} that it may; what is more waits there, and is not seen here",
            hint=f"if that is right for this host: `poolferry fleet quota {quoted(host.name)} --most {quoted(twice_as_much(host.most))}`",
        ),
    )  # fmt: skip


def _notify(
    settings: Settings, machine: "MachineConfig", centre: "CentreSession", findings: tuple[FleetFinding, ...], now: datetime
) -> None:  # fmt: skip
    """Queue what each channel is to know, and send it; a channel that fails is tried again at the next look."""
    with compose.open_history(settings.where) as history:
        _queue_notices(history, machine, findings, now)
        _queue_letters(history, machine, centre, findings, now)
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
    silent = FleetWatch(findings=findings, removed=0).silent_sentence
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
                    message = watch_message(kind, told, silent=silent, host=host_name(), now=now)
                    history.notifications.queue(channel.name, message)


def _queue_letters(
    history: "History", machine: "MachineConfig", centre: "CentreSession", findings: tuple[FleetFinding, ...], now: datetime
) -> None:  # fmt: skip
    """Queue the weekly letter for each channel to which it is due: on the day of poolferry.toml's [digest], as that of jobs."""
    rule = machine.digest
    if rule.day not in DAYS:
        return
    day = digest_day(now.astimezone(), DAYS.index(rule.day), rule.at)
    due = list[str]()
    for channel in machine.notice:
        if isinstance(channel, PingChannel) or not channel.digest:
            continue
        last = history.notifications.digest(f"{_MEMORY}{channel.name}")
        if not is_last_believable(day, last):
            history.notifications.keep_digest(f"{_MEMORY}{channel.name}", day)
        elif is_digest_due(day, last):
            due.append(channel.name)
    if not due:
        return
    from orchestrator.fleet.overview import survey_fleet, survey_week
    from orchestrator.views.fleet_watch import fleet_letter

    letter = fleet_letter(
        survey_fleet(centre), survey_week(centre), findings, day.isoformat(), host=host_name(), now=now
    )
    with history.together():
        for name in due:
            history.notifications.queue(name, letter)
            history.notifications.keep_digest(f"{_MEMORY}{name}", day)


def _status(finding: FleetFinding) -> CopyStatus:
    """Return a finding as what the rules of notices decide on: a silence ends, anything else is forgotten when it is gone."""
    state = JobState.UP if not finding.bad else JobState.LATE if finding.kind == "silent" else JobState.FAILING
    return CopyStatus(
        job=finding.about, target="the fleet", state=state, why=finding.why, cause=finding.kind, hint=finding.hint, called=finding.about
    )  # fmt: skip
