"""The [hooks] of a job file: which commands each event calls. Pure."""

from orchestrator.config.fill import Table
from orchestrator.config.sheet import Sheet, nearest, one_of, shown
from orchestrator.config.times import parse_span
from orchestrator.domain.job import EVENTS, Hooks

Argv = tuple[str, ...]
SHAPES = '"/path/program", ["/path/program", "argument"], or a list of such lists'
TIMEOUT = "end a hook that runs longer"
EVENT = f"what to call at this event: {SHAPES}"


def read_hooks(sheet: Sheet, table: Table) -> Hooks:
    """The declared hooks, in the order written; each mistake noted on the way."""
    calls: list[tuple[str, tuple[Argv, ...]]] = []
    timeout = Hooks().timeout
    for name, written in table.items():
        if name == "timeout":
            try:
                timeout = parse_span(written if isinstance(written, str) else "")
            except ValueError as error:
                sheet.say(("hooks", name), f"{shown(written)} does not fit", str(error))
        elif name not in EVENTS:
            near = nearest(name, (*EVENTS, "timeout"))
            sheet.say(("hooks", name), "unknown event", f'"{near}", the nearest name' if near else one_of(EVENTS))
        elif commands := _commands(written):
            calls.append((name, commands))
        else:
            sheet.say(("hooks", name), "is empty" if written in ("", []) else f"{shown(written)} does not fit", SHAPES)
    return Hooks(calls=tuple(calls), timeout=timeout)


def _commands(written: object) -> tuple[Argv, ...]:
    """The commands of one event; none: what is written names none, or names one wrongly."""
    if isinstance(written, list) and all(isinstance(each, list) for each in written):
        found = [_argv(each) for each in written]
    else:
        found = [_argv(written if isinstance(written, list) else [written])]
    return tuple(found) if all(found) else ()


def _argv(parts: list[object]) -> Argv:
    """The program and its arguments; none: not all are texts, or there is no program."""
    texts = tuple(part for part in parts if isinstance(part, str) and "\x00" not in part)
    return texts if len(texts) == len(parts) and texts and texts[0].strip() else ()
