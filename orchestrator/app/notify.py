"""Notices about changes: a check of all jobs, the result for each channel, and the queue's delivery.

Called after each run, by the daemon on each check, and by `poolferry notices send`. Two processes may do so at once: the
notices are decided in one transaction, and each message is claimed before it is sent. Nothing here raises, so a channel never
makes a run fail.
"""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta

from orchestrator import compose
from orchestrator.app.ended_jobs import stray_copies
from orchestrator.app.job_status import JobHealth, Pauses, judge_job, lasting_run
from orchestrator.app.notify_queue import DeliveryContext, Say, deliver_messages, host_name, make_sender_context
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.machine import DAYS, MachineConfig, has_subscribers
from orchestrator.domain.notice import Channel, Message, MessageChannel, NoticeType, PingChannel
from orchestrator.domain.problem import ProblemType, problem_sentence
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import Seconds
from orchestrator.history.notification_queue import NotificationQueue, NotifiedRecord
from orchestrator.history.store import History
from orchestrator.history.views import HistoryReader
from orchestrator.planners import notifications as noticing
from orchestrator.planners.health import BAD, JobState
from orchestrator.planners.notifications import ChannelMemory, CopyStatus, Notice, Trouble
from orchestrator.views.notification_text import WeekSummary, digest_message, notices_message, ping_message
from orchestrator.views.status import StrayCopies

ALL_JOBS = "all jobs"
# The notices that hooks received are kept under names that no channel can have.
HOOKS, DISK_HOOKS = ":late", ":disk-overdue"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyContext:
    """The input of a check. `awake`: since when the machine is on again, if it was off or asleep lately."""

    jobs: tuple[Job, ...]
    machine: MachineConfig
    awake: datetime | None = None


def notify_changes(
    where: compose.Directories,
    jobs: Sequence[Job],
    machine: MachineConfig,
    now: datetime,
    *,
    say: Say,
    awake: datetime | None = None,
    within: Seconds = Seconds(10),
    eagerly: bool = False,
) -> None:
    """Decide which notices of all jobs are due, queue them, and deliver the due messages.

    `jobs`: all declared ones. `say`: receives a line for each undelivered message. `awake`: since when the machine is on again
    after it was off or asleep; for an hour a missed run that is being caught up is not called late. `within`: time limit for
    sending in all, plus 2 s; the rest waits. `eagerly`: also messages that are due for a later try.
    """
    if not has_subscribers(jobs, machine):
        return
    context = NotifyContext(jobs=tuple(jobs), machine=machine, awake=awake)
    try:
        with compose.open_history(where) as history:
            late = decide_notices(context, history, now)
            post = DeliveryContext(channels=machine.notice, means=make_sender_context(where), say=say)
            deliver_messages(post, history.notifications, now, within=within, eagerly=eagerly)
            if late:
                from orchestrator.app.late_hooks import call_late_hooks

                call_late_hooks(where, jobs, late, history, say=say)
    except OrchestratorError as error:
        say(f"notices: {error}")


def decide_notices(context: NotifyContext, history: History, now: datetime) -> tuple[Notice, ...]:
    """Queue the due messages; return the notices for `late` hooks. Write nothing while nothing changes."""
    with history.views.glance():
        writes, _ = _decisions(context, history.views, history.notifications, now)
    if not writes:
        return ()
    with history.together():  # checked again: another process may have sent it meanwhile
        writes, late = _decisions(context, history.views, history.notifications, now)
        for write in writes:
            write(history.notifications)
    return late


Write = Callable[[NotificationQueue], None]


def _decisions(
    context: NotifyContext, views: HistoryReader, notifications: NotificationQueue, now: datetime
) -> tuple[list[Write], tuple[Notice, ...]]:
    """Return all writes, messages included, and the notices for the `late` hooks."""
    pauses = views.due_runs.pauses()
    seen = (
        *(survey_copy_status(job, views, now=now, pauses=pauses, awake=context.awake) for job in context.jobs),
        *map(_stray_status, stray_copies(context.jobs, views)),
    )
    bad = {each.job for each in seen if each.state in BAD}
    writes: list[Write] = []
    for channel in context.machine.notice:
        ours = tuple(each for each in seen if not channel.jobs or each.job in channel.jobs)
        members = _disks(context.jobs, views, now, of=channel.jobs, bad=bad)
        if isinstance(channel, PingChannel):
            writes += _protection(channel, (*ours, *members), notifications, now)
        else:
            writes += _changes(channel, (*ours, *members), notifications, now)
            writes += _digest(context, channel, ours, views, notifications, now)
    named = {job.name for job in context.jobs if job.hooks.of("late")}
    noted, late = remember_notices(HOOKS, ("late",), [each for each in seen if each.job in named], notifications, now)
    named = {job.name for job in context.jobs if job.hooks.of("disk-overdue")}
    disks = [each for each in _disks(context.jobs, views, now, of=named, bad=bad) if not each.whole] if named else []
    more, overdue = remember_notices(DISK_HOOKS, ("late",), disks, notifications, now)
    told = tuple(notice for notice in (*late, *overdue) if notice.kind is not NoticeType.RECOVERY)
    return [*writes, *noted, *more], told


def _disks(
    jobs: Sequence[Job], views: HistoryReader, now: datetime, *, of: Collection[str], bad: Collection[str]
) -> tuple[CopyStatus, ...]:
    """Return the state of the jobs' rotation sets and disks, as `survey_members` does. Most machines have none."""
    if not any(job.target.rotates for job in jobs):
        return ()
    from orchestrator.app.disk_status import survey_members

    return survey_members(jobs, views, now, of=of, bad=bad)


def survey_copy_status(
    job: Job, views: HistoryReader, *, now: datetime, pauses: Pauses, awake: datetime | None = None
) -> CopyStatus:
    """Return the state of a job's copy at its target."""
    found = judge_job(job, views, now=now, alive=compose.is_process_alive, pauses=pauses, awake=awake)
    health, named = found.health, lasting_run(found.blamed, job, views)
    filling = [problem_sentence(each) for each in found.problems if each.kind is ProblemType.UNPRUNED]
    filling = [sentence for sentence in filling if sentence not in health.why]
    return CopyStatus(
        job=job.name,
        target=job.target.name,
        state=health.state,
        why="; ".join((health.why, *filling)),
        cause="; ".join((_cause(found), *(ProblemType.UNPRUNED for _ in filling))),
        passing=health.passing,
        hint=found.hint,
        run=named.id if named else None,
    )


def _stray_status(found: StrayCopies) -> CopyStatus:
    """Return the state of copies whose job has no file."""
    return CopyStatus(
        job=found.job, target=found.target, state=JobState.NO_FILE, why=found.sentence, cause=JobState.NO_FILE.value,
        hint=found.hint,
    )  # fmt: skip


def _cause(found: JobHealth) -> str:
    """Return the key by which two problems are the same: the kind of what is wrong with the copies, or how the last run ended."""
    last = found.blamed
    failed = last is not None and last.outcome in (Outcome.FAILED, Outcome.REFUSED)
    if found.problems and not failed and found.health.state in (JobState.FAILING, JobState.INCOMPLETE):
        return f"{found.problems[0].kind}"
    return noticing.trouble_cause(found.health.state, last.outcome if last else None, (last.why or "") if last else "")


def _changes(
    channel: MessageChannel, seen: Sequence[CopyStatus], notifications: NotificationQueue, now: datetime
) -> list[Write]:
    """Return the writes for this channel about the copies, with one message of each kind."""
    writes, notices = remember_notices(channel.name, channel.states, seen, notifications, now)
    for kind in (NoticeType.TROUBLE, NoticeType.REMINDER, NoticeType.RECOVERY):
        if told_now := [notice for notice in notices if notice.kind is kind]:
            letter = notices_message(kind, told_now, host=host_name(), states=channel.states, now=now)
            writes.append(_queue(channel, letter))
    return writes


def remember_notices(
    channel: str, states: Sequence[str], seen: Sequence[CopyStatus], notifications: NotificationQueue, now: datetime
) -> tuple[list[Write], list[Notice]]:
    """Return a channel's notices, and the writes that remember them; entries no longer declared are dropped."""
    known = {(told.job, told.target): told for told in notifications.told(channel)}
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
    context: NotifyContext,
    channel: MessageChannel,
    seen: Sequence[CopyStatus],
    views: HistoryReader,
    notifications: NotificationQueue,
    now: datetime,
) -> list[Write]:
    """Return the writes of a due weekly digest; the first one is due a week after the start at the latest."""
    rule = context.machine.digest
    if not channel.digest or rule.day not in DAYS:
        return []
    day = noticing.digest_day(now.astimezone(), DAYS.index(rule.day), rule.at)
    last = notifications.digest(channel.name)
    if not noticing.is_last_believable(day, last):
        return [lambda notifications: notifications.keep_digest(channel.name, day)]
    if not noticing.is_digest_due(day, last):
        return []
    rows = [(each, _week(each.job, views, now)) for each in seen]
    letter = digest_message(
        rows, day.isoformat(), at=f"{rule.day} {rule.at:%H:%M}", host=host_name(), now=now,
        waiting=[*_left_plugged_in(context.jobs, views), *_troubled_channels(notifications)],
    )  # fmt: skip
    return [_queue(channel, letter), lambda notifications: notifications.keep_digest(channel.name, day)]


def _left_plugged_in(jobs: Sequence[Job], views: HistoryReader) -> list[str]:
    """Return the digest's lines about disks that are still plugged in."""
    sets = {job.target.rotation.name: job.target.rotation for job in jobs if job.target.rotation is not None}
    if not sets:
        return []
    from orchestrator.app.disk_report import last_visits
    from orchestrator.app.hotplug import left_plugged_in_lines

    lines = [line for rotation in sets.values() for line in left_plugged_in_lines(rotation, last_visits(views))]
    return [*lines, ""] if lines else []


def _week(job: str, views: HistoryReader, now: datetime) -> WeekSummary:
    runs = [run for run in views.runs(job, 1000) if run.begun_at > now - timedelta(days=7) and run.outcome]
    well = sum(run.outcome in ("done", "nothing-to-do", "incomplete") for run in runs)
    badly = sum(run.outcome in ("failed", "refused", "interrupted") for run in runs)
    return WeekSummary(well=well, badly=badly, moved_bytes=sum(run.moved_bytes or 0 for run in runs))


def _troubled_channels(notifications: NotificationQueue) -> list[str]:
    """Return the digest's lines about channels that fail to deliver."""
    stuck = [found for found in notifications.queued() if found.error]
    lines = dict.fromkeys(f"The channel {found.channel} does not get through: {found.error}" for found in stuck)
    return [*lines, ""] if lines else []


def _protection(
    channel: PingChannel, seen: Sequence[CopyStatus], notifications: NotificationQueue, now: datetime
) -> list[Write]:
    """Return the writes of the ping about protection: protected or not, at each interval, and at once after a change.

    While a job has never run no ping is sent, as neither is known.
    """
    if channel.of != "protected":
        return []
    bad = [each for each in seen if each.state in BAD and not each.passing]
    if not bad and any(each.state is JobState.NEW for each in seen):
        return []
    kind = NoticeType.UNPROTECTED if bad else NoticeType.PROTECTED
    last = notifications.last(channel.name, ALL_JOBS, kind)
    if last and not noticing.is_ping_due(last.message.made_at, channel.every, now):
        return []
    counts = ", ".join(f"{number} {state}" for state, number in Counter(each.state for each in seen).items())
    why = "; ".join(f"{each.job}: {each.state}: {each.why}" for each in bad) or f"none is late or failing: {counts}"
    return [_queue(channel, ping_message(kind, ALL_JOBS, why, host=host_name(), now=now))]


def _keep(channel: str, told: NotifiedRecord) -> Write:
    return lambda notifications: notifications.keep_told(channel, told)


def _forget(channel: str, told: NotifiedRecord) -> Write:
    return lambda notifications: notifications.forget_told(channel, told.job, told.target)


def _queue(channel: Channel, letter: Message) -> Write:
    def write(notifications: NotificationQueue) -> None:
        notifications.queue(channel.name, letter)

    return write


def _memory(told: NotifiedRecord | None) -> ChannelMemory:
    if told is None:
        return ChannelMemory()
    if told.begun_at is None or told.notified_at is None:
        return ChannelMemory(earlier=told.earlier)
    trouble = Trouble(
        begun_at=told.begun_at,
        notified_at=told.notified_at,
        reminders=told.reminders,
        causes=told.causes,
        unsteady=told.unsteady,
        well_since=told.well_since,
    )
    return ChannelMemory(trouble=trouble, earlier=told.earlier)


def _record(seen: CopyStatus, memory: ChannelMemory) -> NotifiedRecord:
    trouble = memory.trouble
    if trouble is None:
        return NotifiedRecord(job=seen.job, target=seen.target, earlier=memory.earlier)
    return NotifiedRecord(
        job=seen.job,
        target=seen.target,
        begun_at=trouble.begun_at,
        notified_at=trouble.notified_at,
        reminders=trouble.reminders,
        causes=trouble.causes,
        unsteady=trouble.unsteady,
        well_since=trouble.well_since,
        earlier=memory.earlier,
    )
