"""The text of notices: subjects and bodies, with the rule that sent them."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import printable_line, show_name
from orchestrator.domain.notice import Message, NoticeType
from orchestrator.domain.run_values import with_former_keys
from orchestrator.planners.health import JobState
from orchestrator.planners.notifications import CopyStatus, Notice
from orchestrator.views.format import format_iso, indent, shorten

_NAMED = 6
_ORDER = (
    JobState.UP,
    JobState.LATE,
    JobState.FAILING,
    JobState.INCOMPLETE,
    JobState.NO_FILE,
    JobState.WAITING,
    JobState.PAUSED,
    JobState.NEW,
)
_ALWAYS = (JobState.UP, JobState.LATE, JobState.FAILING)
_WELL = (
    "Rule: the end of a problem is reported once, when a verified copy is there again; of a problem that comes and goes "
    "(three times within 7 days), when it has been well for 2 days."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekSummary:
    """The totals of a job's runs within the last 7 days."""

    well: int = 0
    badly: int = 0
    moved_bytes: int = 0


def notices_message(
    kind: NoticeType, notices: Sequence[Notice], *, host: str, states: Sequence[str], now: datetime, rule: str = ""
) -> Message:
    """Build one message of all current notices of one kind. `rule`: what sent them; by default that of the kind."""
    rule = rule or _rule(kind, notices, states)
    blocks = [line for notice in notices for line in (*_block(notice), "")]
    about = ", ".join(dict.fromkeys(notice.seen.name for notice in notices))
    subject = f"poolferry on {host}: {_subject(kind, notices)}"
    facts = {"notices": [_facts(notice) for notice in notices], "rule": rule}
    return message(kind, about, subject, [*blocks, rule], facts, host=host, now=now)


def message(
    kind: NoticeType, about: str, subject: str, lines: Sequence[str], facts: dict[str, Any], *, host: str, now: datetime
) -> Message:
    """Build a message with the facts that every message has."""
    told = {
        "format": 1,
        "kind": kind.value,
        "host": host,
        "at": format_iso(now),
        "about": about,
        "subject": subject,
        **facts,
    }
    return Message(
        kind=kind,
        about=about,
        made_at=now,
        subject=subject,
        body="\n".join(map(printable_line, lines)) + "\n",
        facts=json.dumps(with_former_keys(told)),
    )


def test_message(name: str, *, host: str, now: datetime) -> Message:
    """Build the message of `poolferry notices test`."""
    lines = [f"This is a test of the channel {name}. Nothing has happened, and nothing is to be done."]
    return message(NoticeType.TEST, name, f"poolferry on {host}: a test of {name}", lines, {}, host=host, now=now)


def digest_message(
    rows: Sequence[tuple[CopyStatus, WeekSummary]],
    day: str,
    *,
    at: str,
    host: str,
    now: datetime,
    waiting: Sequence[str],
) -> Message:
    """Build the digest of all jobs, those with problems first. `waiting`: messages about the notices' queue itself."""
    counts = Counter(seen.state for seen, _ in rows)
    told = [f"{counts[state]} {state}" for state in _ORDER if counts[state] or state in _ALWAYS]
    ranks = {
        JobState.FAILING: 0,
        JobState.LATE: 1,
        JobState.NO_FILE: 2,
        JobState.INCOMPLETE: 3,
        JobState.PAUSED: 4,
        JobState.WAITING: 5,
        JobState.NEW: 6,
        JobState.UP: 7,
    }
    lines = [line for row in sorted(rows, key=lambda row: (ranks[row[0].state], row[0].job)) for line in _row(*row)]
    rule = (
        f"Rule: the digest is sent each week ({at}), also when all is well: when it does not come, poolferry or the way "
        "to you is broken."
    )
    facts = {
        "counts": {state.value: counts[state] for state in _ORDER},
        "jobs": [{**_copy_facts(seen), "well": week.well, "badly": week.badly, "moved_bytes": week.moved_bytes} for seen, week in rows],
        "rule": rule,
    }  # fmt: skip
    subject = f"poolferry on {host}: {', '.join(told)}"
    return message(NoticeType.DIGEST, day, subject, [*lines, *waiting, rule], facts, host=host, now=now)


def ping_message(kind: NoticeType, about: str, why: str, *, host: str, now: datetime) -> Message:
    """Build a ping; most monitors keep its body beside it."""
    return message(kind, about, f"{about}: {kind.value}", [f"{host}: {why}"], {"why": why}, host=host, now=now)


def _subject(kind: NoticeType, notices: Sequence[Notice]) -> str:
    called = list(dict.fromkeys(notice.seen.name for notice in notices))
    names = ", ".join(called[:_NAMED]) + (f" and {len(called) - _NAMED} more" if len(called) > _NAMED else "")
    if kind is NoticeType.RECOVERY:
        return f"{names} {'is' if len(called) == 1 else 'are'} well again"
    still = "still " if kind is NoticeType.REMINDER else ""
    if len(notices) == 1:
        return f"{names} is {still}{notices[0].seen.state}: {shorten(notices[0].seen.why, 120)}"
    counts = Counter(notice.seen.state for notice in notices)
    return f"{', '.join(f'{counts[state]} {still}{state}' for state in _ORDER if counts[state])}: {names}"


def _block(notice: Notice) -> list[str]:
    seen = notice.seen
    how = "well again" if notice.kind is NoticeType.RECOVERY else f"{seen.state}"
    told = [seen.why]
    if seen.hint and notice.kind is not NoticeType.RECOVERY:
        told.append(f"what to do: {seen.hint}")
    if seen.called:
        told.append("`poolferry disks list` shows where each disk is, and when it was filled")
    elif seen.run is not None:
        told.append(f"`poolferry show {seen.run}` shows its last run, `poolferry status {seen.job}` its state")
    if notice.kind is not NoticeType.TROUBLE:
        told.append(f"first reported: {notice.since.astimezone():%Y-%m-%d %H:%M}")
    if notice.times > 1:
        told.append(f"it comes and goes: this is time {notice.times} within 7 days")
    return [f"{seen.called or f'{seen.job} in {show_name(seen.target)}'}: {how}", *indent(told)]


def _rule(kind: NoticeType, notices: Sequence[Notice], states: Sequence[str]) -> str:
    if kind is NoticeType.RECOVERY:
        return _WELL
    jobs = list(dict.fromkeys(notice.seen.job for notice in notices if not notice.seen.called))
    rest = [
        job for job in jobs if job not in {each.seen.job for each in notices if each.seen.state is JobState.NO_FILE}
    ]
    silence = [f"`poolferry pause {rest[0] if len(rest) == 1 else 'JOB'}` silences it."] if rest else []
    disks = dict.fromkeys(notice.seen.called[5:] for notice in notices if notice.seen.called.startswith("disk "))
    if gone := [f"`poolferry disks retire {disk}`" for disk in disks]:
        silence.append(f"A disk that is gone for good is missed no more after {' or '.join(gone)}.")
    what = " or ".join(filter(None, ("a job" if jobs else "", "a disk" if len(jobs) < len(notices) else "")))
    return (
        f"Rule: {what} that becomes {' or '.join(states)} is reported once for each cause, and again after 1 day, then after 3, "
        f"then every 7, until a verified copy is there; then its end is reported. {' '.join(silence)}"
    )


def _row(seen: CopyStatus, week: WeekSummary) -> list[str]:
    from orchestrator.domain.units import show_count, show_size

    runs = f"{show_count(week.well, 'good run')}, {week.badly} bad, {show_size(week.moved_bytes)} moved in 7 days"
    return [f"{seen.job} in {show_name(seen.target)}: {seen.state}", *indent([shorten(seen.why, 300), runs]), ""]


def _copy_facts(seen: CopyStatus) -> dict[str, Any]:
    return {
        "name": seen.name,
        "job": seen.job,
        "target": show_name(seen.target),
        "state": seen.state.value,
        "why": seen.why,
        "hint": seen.hint,
        "run": seen.run,
    }


def _facts(notice: Notice) -> dict[str, Any]:
    return {**_copy_facts(notice.seen), "since": format_iso(notice.since), "times_in_7_days": notice.times}
