"""Notices about changes: a check of all jobs, the result for each channel, and the queue's delivery.

Called after each run, by the daemon on each look, and by `poolferry notices send`. Two processes may do so at once: what
is told is decided in one transaction, and each message is claimed before it is sent. Nothing here raises: a channel never
harms a run.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta

from orchestrator import compose
from orchestrator.app.job_status import Pauses, judged, kept
from orchestrator.app.notify_queue import Post, Say, deliver, host, means_of
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.machine import DAYS, Machine, anybody_listens
from orchestrator.domain.notice import Channel, Kind, Message, Ping, Teller
from orchestrator.domain.units import Seconds
from orchestrator.history.notification_queue import Telling, ToldRecord
from orchestrator.history.store import History
from orchestrator.history.views import Views
from orchestrator.planners import notifications as noticing
from orchestrator.planners.health import State
from orchestrator.planners.notifications import Memory, Notice, Seen, Trouble
from orchestrator.views.notification_text import Week, digest_message, notices_message, ping_message

PROTECTED = "all jobs"
# What hooks were told is kept under names that no channel can have.
HOOKS, DISK_HOOKS = ":late", ":disk-overdue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The input of a check. `awake`: since when the machine is on again, if it was off or asleep lately."""

    jobs: tuple[Job, ...]
    machine: Machine
    awake: datetime | None = None


def tell_what_changed(
    where: compose.Directories,
    jobs: Sequence[Job],
    machine: Machine,
    now: datetime,
    *,
    say: Say,
    awake: datetime | None = None,
    within: Seconds = Seconds(10),
    eagerly: bool = False,
) -> None:
    """Decide which notices of all jobs are due, queue them, and deliver the due messages.

    `jobs`: all that are declared. `say`: gets a line for what is not delivered. `awake`: since when the machine is back
    from being off or asleep; for an hour nothing is called late that is being made up for. `within`: how long sending may
    take in all, and 2 s more; the rest waits. `eagerly`: also what would be tried again later.
    """
    if not anybody_listens(jobs, machine):
        return
    desk = Desk(jobs=tuple(jobs), machine=machine, awake=awake)
    try:
        with compose.open_history(where) as history:
            late = decide(desk, history, now)
            post = Post(channels=machine.notice, means=means_of(where), say=say)
            deliver(post, history.telling, now, within=within, eagerly=eagerly)
            if late:
                from orchestrator.app.late_hooks import call_late_hooks

                call_late_hooks(where, jobs, late, history, say=say)
    except OrchestratorError as error:
        say(f"notices: {error}")


def decide(desk: Desk, history: History, now: datetime) -> tuple[Notice, ...]:
    """Queue the due messages; return the notices for `late` hooks. Write nothing while nothing changes."""
    with history.views.glance():
        writes, _ = _decisions(desk, history.views, history.telling, now)
    if not writes:
        return ()
    with history.together():  # looked again: another process may have told it meanwhile
        writes, late = _decisions(desk, history.views, history.telling, now)
        for write in writes:
            write(history.telling)
    return late


Write = Callable[[Telling], None]


def _decisions(desk: Desk, views: Views, telling: Telling, now: datetime) -> tuple[list[Write], tuple[Notice, ...]]:
    """Return all writes, messages included, and the notices for the `late` hooks."""
    pauses = views.owing.pauses()
    seen = tuple(see(job, views, now=now, pauses=pauses, awake=desk.awake) for job in desk.jobs)
    bad = {each.job for each in seen if each.state in (State.LATE, State.FAILING)}
    writes: list[Write] = []
    for channel in desk.machine.notice:
        ours = tuple(each for each in seen if not channel.jobs or each.job in channel.jobs)
        members = _disks(desk.jobs, views, now, of=channel.jobs, bad=bad)
        if isinstance(channel, Ping):
            writes += _protection(channel, (*ours, *members), telling, now)
        else:
            writes += _changes(channel, (*ours, *members), telling, now)
            writes += _digest(desk, channel, ours, views, telling, now)
    named = {job.name for job in desk.jobs if job.hooks.of("late")}
    noted, late = _noted(HOOKS, ("late",), [each for each in seen if each.job in named], telling, now)
    named = {job.name for job in desk.jobs if job.hooks.of("disk-overdue")}
    disks = [each for each in _disks(desk.jobs, views, now, of=named, bad=bad) if not each.whole] if named else []
    more, overdue = _noted(DISK_HOOKS, ("late",), disks, telling, now)
    told = tuple(notice for notice in (*late, *overdue) if notice.kind is not Kind.RECOVERY)
    return [*writes, *noted, *more], told


def _disks(
    jobs: Sequence[Job], views: Views, now: datetime, *, of: Collection[str], bad: Collection[str]
) -> tuple[Seen, ...]:
    """Return the state of the jobs' rotation sets and disks, as `members_seen` does. Most machines have none."""
    if not any(job.target.rotates for job in jobs):
        return ()
    from orchestrator.app.disk_status import members_seen

    return members_seen(jobs, views, now, of=of, bad=bad)


def see(job: Job, views: Views, *, now: datetime, pauses: Pauses, awake: datetime | None = None) -> Seen:
    """Return the state of a job's copy at its target."""
    found = judged(job, views, now=now, alive=compose.alive, pauses=pauses, awake=awake)
    last, health, named = found.blamed, found.health, kept(found.blamed, job, views)
    return Seen(
        job=job.name,
        target=job.target.name,
        state=health.state,
        why=health.why,
        cause=noticing.cause_of(health.state, last.outcome if last else None, (last.why or "") if last else ""),
        passing=health.passing,
        cure=(last.cure or "") if last and health.state in (State.FAILING, State.LATE, State.WAITING) else "",
        run=named.id if named else None,
    )


def _changes(channel: Teller, seen: Sequence[Seen], telling: Telling, now: datetime) -> list[Write]:
    """Return the writes for this channel about the copies, with one message of each kind."""
    writes, notices = _noted(channel.name, channel.states, seen, telling, now)
    for kind in (Kind.TROUBLE, Kind.REMINDER, Kind.RECOVERY):
        if told_now := [notice for notice in notices if notice.kind is kind]:
            letter = notices_message(kind, told_now, host=host(), states=channel.states, now=now)
            writes.append(_queue(channel, letter))
    return writes


def _noted(
    channel: str, states: Sequence[str], seen: Sequence[Seen], telling: Telling, now: datetime
) -> tuple[list[Write], list[Notice]]:
    """Return a channel's notices, and the writes that remember them; entries no longer declared are dropped."""
    known = {(told.job, told.target): told for told in telling.told(channel)}
    writes: list[Write] = []
    notices: list[Notice] = []
    for each in seen:
        before = _memory(known.pop((each.job, each.target), None))
        after, notice = noticing.decide_notice(each, before, states=states, now=now)
        if after != before:
            writes.append(_keep(channel, _record(each, after)))
        notices += [notice] if notice else []
    return [*writes, *(_forget(channel, gone) for gone in known.values())], notices


def _digest(
    desk: Desk, channel: Teller, seen: Sequence[Seen], views: Views, telling: Telling, now: datetime
) -> list[Write]:
    """Return the writes of a due weekly digest; the first one is due a week after the start at the latest."""
    rule = desk.machine.digest
    if not channel.digest or rule.day not in DAYS:
        return []
    day = noticing.digest_day(now.astimezone(), DAYS.index(rule.day), rule.at)
    last = telling.digest(channel.name)
    if not noticing.is_last_believable(day, last):
        return [lambda telling: telling.keep_digest(channel.name, day)]
    if not noticing.is_digest_due(day, last):
        return []
    rows = [(each, _week(each.job, views, now)) for each in seen]
    letter = digest_message(
        rows, day.isoformat(), at=f"{rule.day} {rule.at:%H:%M}", host=host(), now=now,
        waiting=[*_left_plugged_in(desk.jobs, views), *_troubled_channels(telling)],
    )  # fmt: skip
    return [_queue(channel, letter), lambda telling: telling.keep_digest(channel.name, day)]


def _left_plugged_in(jobs: Sequence[Job], views: Views) -> list[str]:
    """Return the digest's lines about disks that are still plugged in."""
    sets = {job.target.rotation.name: job.target.rotation for job in jobs if job.target.rotation is not None}
    if not sets:
        return []
    from orchestrator.app.disk_report import last_visits
    from orchestrator.app.hotplug import left_plugged_in

    lines = [line for rotation in sets.values() for line in left_plugged_in(rotation, last_visits(views))]
    return [*lines, ""] if lines else []


def _week(job: str, views: Views, now: datetime) -> Week:
    runs = [run for run in views.runs(job, 1000) if run.begun_at > now - timedelta(days=7) and run.outcome]
    well = sum(run.outcome in ("done", "nothing-to-do") for run in runs)
    badly = sum(run.outcome in ("failed", "refused", "interrupted") for run in runs)
    return Week(well=well, badly=badly, moved_bytes=sum(run.moved_bytes or 0 for run in runs))


def _troubled_channels(telling: Telling) -> list[str]:
    """Return the digest's lines about channels that fail to deliver."""
    stuck = [found for found in telling.queued() if found.error]
    lines = dict.fromkeys(f"The channel {found.channel} does not get through: {found.error}" for found in stuck)
    return [*lines, ""] if lines else []


def _protection(channel: Ping, seen: Sequence[Seen], telling: Telling, now: datetime) -> list[Write]:
    """Return the writes of the ping about protection: protected or not, at each interval, and at once after a change.

    While a job has never run neither can be said, and the monitor waits in vain.
    """
    if channel.of != "protected":
        return []
    bad = [each for each in seen if each.state in (State.LATE, State.FAILING) and not each.passing]
    if not bad and any(each.state is State.NEW for each in seen):
        return []
    kind = Kind.UNPROTECTED if bad else Kind.PROTECTED
    last = telling.last(channel.name, PROTECTED, kind)
    if last and not noticing.is_ping_due(last.message.made_at, channel.every, now):
        return []
    counts = ", ".join(f"{number} {state}" for state, number in Counter(each.state for each in seen).items())
    why = "; ".join(f"{each.job}: {each.state}: {each.why}" for each in bad) or f"none is late or failing: {counts}"
    return [_queue(channel, ping_message(kind, PROTECTED, why, host=host(), now=now))]


def _keep(channel: str, told: ToldRecord) -> Write:
    return lambda telling: telling.keep_told(channel, told)


def _forget(channel: str, told: ToldRecord) -> Write:
    return lambda telling: telling.forget_told(channel, told.job, told.target)


def _queue(channel: Channel, letter: Message) -> Write:
    def write(telling: Telling) -> None:
        telling.queue(channel.name, letter)

    return write


def _memory(told: ToldRecord | None) -> Memory:
    if told is None:
        return Memory()
    if told.begun_at is None or told.told_at is None:
        return Memory(earlier=told.earlier)
    trouble = Trouble(
        begun_at=told.begun_at,
        told_at=told.told_at,
        reminders=told.reminders,
        causes=told.causes,
        unsteady=told.unsteady,
        well_since=told.well_since,
    )
    return Memory(trouble=trouble, earlier=told.earlier)


def _record(seen: Seen, memory: Memory) -> ToldRecord:
    trouble = memory.trouble
    if trouble is None:
        return ToldRecord(job=seen.job, target=seen.target, earlier=memory.earlier)
    return ToldRecord(
        job=seen.job,
        target=seen.target,
        begun_at=trouble.begun_at,
        told_at=trouble.told_at,
        reminders=trouble.reminders,
        causes=trouble.causes,
        unsteady=trouble.unsteady,
        well_since=trouble.well_since,
        earlier=memory.earlier,
    )
