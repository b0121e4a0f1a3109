"""Acts that were asked for on the status page, as rows: what, by whom, and what became of it."""

from collections.abc import Callable, Sequence
from datetime import datetime

from orchestrator.domain.act import ActRecord, ActRequest, ActVerb
from orchestrator.domain.age import is_over
from orchestrator.domain.command_line import quoted
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Seconds
from orchestrator.views.format import format_brief
from orchestrator.views.point_page import restore_commands

_RECENT_S = 900.0
# By the verb: what goes on, what was asked for.
_WORDS = {
    ActVerb.RUN: "run", ActVerb.PLAN: "plan of", ActVerb.PAUSE: "pause", ActVerb.RESUME: "resume", ActVerb.VERIFY: "verify", ActVerb.SNOOZE: "snooze disk",
    ActVerb.EJECT: "eject disk", ActVerb.RESTORE: "restore aside from", ActVerb.ACKNOWLEDGE: "acknowledge", ActVerb.DRILL: "restore test of",
    ActVerb.EVACUATE: "evacuate pool",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ActRow:
    """One act. `kind`: "live", "good" or "bad"; `state`: the same as a word."""

    id: int
    sentence: str
    subject: str
    job: str
    who: str
    when: str
    asked: datetime
    kind: str
    state: str
    said: str
    runs: tuple[int, ...]


def act_row(act: ActRecord, now: datetime) -> ActRow:
    """Return one act as a row."""
    kind = "live" if act.well is None else "good" if act.well else "bad"
    return ActRow(
        id=act.id, sentence=" ".join(filter(None, (_WORDS[act.verb], act.subject, act.about))), who=act.who, subject=act.subject,
        job="" if act.verb in (ActVerb.SNOOZE, ActVerb.EJECT, ActVerb.EVACUATE) else act.subject,
        when=format_brief(act.asked, now=now), asked=act.asked, kind=kind, state={"live": "goes on", "good": "done", "bad": "not done"}[kind],
        said=act.said, runs=act.runs,
    )  # fmt: skip


def recent_acts(acts: Sequence[ActRecord], now: datetime) -> tuple[ActRow, ...]:
    """Return the acts that go on, and those that ended within the last quarter of an hour."""
    return tuple(
        act_row(each, now)
        for each in acts
        if each.verb is not ActVerb.PLAN and (each.ended is None or not is_over(each.ended, Seconds(_RECENT_S), now))
    )


def typed_commands(request: ActRequest, repeat: Callable[[str], str]) -> tuple[str, ...]:
    """Return the commands that do the same as an act; none for one that is only recorded. `repeat`: adds the directories of this configuration."""
    name = request.subject
    match request.verb:
        case ActVerb.ACKNOWLEDGE:
            return ()
        case ActVerb.RESTORE:
            return restore_commands(repeat, name, request.point, request.paths)
        case ActVerb.SNOOZE | ActVerb.EJECT:
            words = f"disks {request.verb} {quoted(name)}"
        case _:
            words = f"{request.verb} {quoted(name)}"
    return (repeat(f"{words} --for {request.span}" if request.span else words),)


def newest_plan(acts: Sequence[ActRecord], now: datetime) -> ActRow | None:
    """Return the newest plan that was asked for, whatever its age; None: there is none among these."""
    return next((act_row(each, now) for each in acts if each.verb is ActVerb.PLAN), None)
