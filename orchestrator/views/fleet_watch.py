"""The findings of a centre when it looked at its fleet: for a terminal, and as a notice."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

from orchestrator.domain.fleet_status import FleetStatus, FleetWeek
from orchestrator.domain.fleet_watch import FleetFinding, FleetWatch
from orchestrator.domain.names import printable_line
from orchestrator.domain.notice import Message, NoticeType
from orchestrator.domain.units import show_count, show_size
from orchestrator.planners.notifications import Notice
from orchestrator.views.fleet import fleet_lines, fleet_value
from orchestrator.views.notification_text import message

T = TypeVar("T")
_LETTER_RULE = "Rule: this letter is sent each week, also when all is well: when it does not come, `poolferry fleet watch` or the way to you is broken."
_RULE = "Rule: of a fleet each is reported once for each cause, and again after 1 day, then after 3, then every 7; then its end."


_NAMED, _SHOWN = (
    5,
    50,
)  # in a subject; of one kind in a body: a letter of ten thousand hosts is read by nobody, and no mail takes it


def watch_lines(found: FleetWatch) -> list[str]:
    """Render what needs a person, at most fifty of each kind; or that nothing does."""
    hosts = sum(each.kind == "silent" for each in found.findings)
    shown = _first(found.bad, lambda each: each.kind)
    lines = [found.silent_sentence] if found.silent_sentence else []
    lines += [line for each in shown for line in (f"{each.about}: {each.why}", f"  what to do: {each.hint}")]
    lines += _more(len(found.bad) - len(shown))
    removed = [f"{show_count(found.removed, 'old row')} removed"] if found.removed else []
    return [*map(printable_line, lines or [f"{show_count(hosts, 'host')}, none is silent"]), *removed]


def watch_value(found: FleetWatch) -> dict[str, object]:
    """Return all findings for a program."""
    findings = [{"about": each.about, "kind": each.kind, "bad": each.bad, "why": each.why, "hint": each.hint} for each in found.findings]  # fmt: skip
    return {"findings": findings, "removed": found.removed}


def _first(each: Sequence[T], kind: Callable[[T], str]) -> list[T]:
    """Return those that are shown: of each kind the first, in their order."""
    seen: Counter[str] = Counter()
    shown = []
    for one in each:
        seen[kind(one)] += 1
        if seen[kind(one)] <= _SHOWN:
            shown.append(one)
    return shown


def _more(number: int) -> list[str]:
    return [f"and {number} more: poolferry fleet status, poolferry fleet hosts --only silent"] if number else []


def watch_message(
    kind: NoticeType, notices: Sequence[Notice], *, silent: str = "", host: str, now: datetime
) -> Message:
    """Build one message of all notices of one kind. `silent`: what it means that most hosts are silent."""
    names = ", ".join(notice.seen.called for notice in notices[:_NAMED])
    names += f" and {len(notices) - _NAMED} more" if len(notices) > _NAMED else ""
    word = {NoticeType.RECOVERY: "well again", NoticeType.REMINDER: "still needs a person"}.get(kind, "needs a person")
    shown = _first(notices, lambda notice: notice.seen.cause)
    blocks = [silent, ""] if silent and kind is not NoticeType.RECOVERY else []
    for notice in shown:
        well = kind is NoticeType.RECOVERY
        hint = [f"  what to do: {notice.seen.hint}"] if notice.seen.hint and not well else []
        blocks += [f"{notice.seen.called}: {'well again' if well else notice.seen.why}", *hint, ""]
    blocks += [*more, ""] if (more := _more(len(notices) - len(shown))) else []
    facts = {
        "count": len(notices),
        "notices": [
            {"name": notice.seen.called, "kind": notice.seen.cause, "why": notice.seen.why} for notice in shown
        ],
    }
    return message(kind, names, f"poolferry's fleet, seen from {host}: {names}: {word}", [*blocks, _RULE], facts, host=host, now=now)  # fmt: skip


def fleet_letter(
    status: FleetStatus, week: FleetWeek, findings: Sequence[FleetFinding], day: str, *, host: str, now: datetime
) -> Message:
    """Build the weekly letter about all hosts: their numbers, what ran, and what needs a person."""
    bad = [each for each in findings if each.bad and each.kind != "silent"]  # silent ones are among the hosts
    runs = f"The last 7 days: {show_count(week.well, 'run')} well, {week.badly} badly, {show_size(week.moved_bytes)} moved."
    worst = [f"  {name}: {show_count(number, 'run')} badly" for name, number in week.worst]
    lines = [*fleet_lines(status, now, lambda text, _: text), "", runs, *worst, ""]
    shown = _first(bad, lambda each: each.kind)
    lines += [line for each in shown for line in (f"{each.about}: {each.why}", f"  what to do: {each.hint}", "")]
    lines += _more(len(bad) - len(shown))
    counts = ", ".join(f"{number} {state}" for state, number in status.hosts) or "no host"
    facts = fleet_value(status) | {"runs": {"well": week.well, "badly": week.badly, "moved_bytes": week.moved_bytes}}
    subject = (
        f"poolferry's fleet, seen from {host}: hosts: {counts}; {show_count(status.bad_count, 'job')} late or failing"
    )
    return message(NoticeType.DIGEST, day, subject, [*lines, _LETTER_RULE], facts, host=host, now=now)
