"""Calls of the owner's executables at the events of a run (contract 1)."""

import json
import os
import shlex
from collections.abc import Iterable
from typing import Any

from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import Evidence, NotNow, OutsideError, Stopped
from orchestrator.domain.names import printable_word
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.domain.run import RunReport
from orchestrator.domain.run_values import report_value, with_former_keys
from orchestrator.process.executor import PipelineResult, StopReason, Writer
from orchestrator.process.pipeline import child_environment
from orchestrator.process.program_path import is_missing
from orchestrator.process.stop import StopRequest
from orchestrator.runner.run_recorder import RunRecorder

BEGINNING = "before"
DECIDING = (BEGINNING, "snapshot-before")  # what follows these events waits for their hooks, and for their leave
NOT_NOW = 75
_LINE = 1000
_MOST_OUTPUT = 64 << 10


def call_hooks(event: str, journal: RunRecorder, report: RunReport | None = None) -> tuple[str, ...]:
    """Run each command that the job names for the event; return what failed. In `before`, exit 75 means not now.

    Raises: NotNow · OutsideError, in `before` and `snapshot-before` only; else a failing hook is only recorded.
    """
    failed = list[str]()
    for argv in journal.job.hooks.of(event):
        result, output = _call(event, argv, journal, report)
        if event == BEGINNING and result.stopped is StopReason.STOPPED:
            raise Stopped(journal.tools.stop.reason or "the run was asked to stop")
        code, words = result.exits[0], " ".join(output.decode(errors="replace").split())[-_LINE:]
        if event in DECIDING and code == NOT_NOW and result.stopped is None:
            raise NotNow(
                f"the hook {argv[0]} said not now" + (f": {words}" if words else ""),
                hint="it is asked again at the next run",
            )
        if code != 0 or result.stopped is not None:
            why = (
                f"took longer than {journal.job.hooks.timeout:g} s"
                if result.stopped is not None
                else _explain_code(code, find_program(argv[0], journal.tools.hook_folders))
            )
            text = f"the hook {argv[0]} for {event} {why}" + (f": {words}" if words else "")
            if event in DECIDING:
                evidence = Evidence(
                    lines=(call_line(event, argv, journal),), exits=(code,), last_output=(words[-_LINE:],)
                )
                raise OutsideError(text, evidence=evidence, hint=f"mend the hook or take it out of [hooks] {event}")
            failed.append(text)
            (journal.warn if report is None else journal.note)(text)
    return tuple(failed)


def call_line(event: str, argv: tuple[str, ...], journal: RunRecorder) -> str:
    """Return a line that calls the hook by hand."""
    program = (find_program(argv[0], journal.tools.hook_folders), *argv[1:])
    return f"POOLFERRY_EVENT={event} POOLFERRY_JOB={journal.job.name} {shlex.join(program)}"


def _call(
    event: str, argv: tuple[str, ...], journal: RunRecorder, report: RunReport | None
) -> tuple[PipelineResult, bytes]:
    tools, told = journal.tools, _hook_facts(event, journal, report)
    folder = f"{tools.state}/hooks"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    stdin = f"{folder}/{journal.run}.json"
    with open(stdin, "w", encoding="utf-8") as file:
        json.dump(with_former_keys(told), file)
    command = Command(
        argv=(find_program(argv[0], tools.hook_folders), *argv[1:]),
        effect=Effect.WRITES,
        environment=(*tools.hook_environment, *_environment(told)),
    )
    said = bytearray()

    def heard(chunk: bytes) -> None:
        said.extend(chunk)
        del said[:-_MOST_OUTPUT]

    began = tools.monotonic()
    limit = journal.job.hooks.timeout
    # Nothing has begun before `before`: a run that is asked to stop ends it. What other hooks began is theirs to end.
    if event == BEGINNING:
        stop, timeout = tools.stop, limit
    else:
        stop, timeout = StopRequest(deadline=limit, because="the hook took too long"), None
    result = Writer().stream(
        Pipeline(stages=(command,), reads=stdin),
        stop=stop,
        timeout=timeout,
        stall_after=None,
        on_output=heard,
        on_errors=heard,
    )
    os.unlink(stdin)
    tools.history.hook_called(
        journal.run, event, argv, result.exits[0], tools.monotonic() - began, bytes(said), journal.now
    )
    return result, bytes(said)


def _explain_code(code: int | None, path: str) -> str:
    """Return how a hook ended; a shell exits with 126 or 127 for a program that could not be started."""
    problem = explain_unusable(path)[0] if code in (126, 127) else ""
    return f"could not be started: {problem}" if problem else f"ended with {code}"


def _hook_facts(event: str, journal: RunRecorder, report: RunReport | None) -> dict[str, Any]:
    job = journal.job
    return {
        "format": 1,
        "contract": 1,
        "event": event,
        "job": job.name,
        "run": journal.run,
        "engine": job.engine,
        "source": str(job.tree),
        "target": str(job.target.location),
        "disk": job.target.disk,
        "outcome": report.outcome.value if report else "",
        "why": report.why if report else "",
        "moved_bytes": report.moved_bytes if report else None,
        "seconds": round(report.took_s, 3) if report else None,
        "report": report_value(report) if report else None,
    }


def _environment(told: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    names = (
        "contract",
        "event",
        "job",
        "run",
        "engine",
        "source",
        "target",
        "disk",
        "outcome",
        "why",
        "moved_bytes",
        "seconds",
    )
    shown = {
        **told,
        "why": printable_word(_line(told["why"])),
    }  # a hook prints it as it is; a path it may need as it is
    return tuple((f"POOLFERRY_{name.upper()}", _line(shown[name])) for name in names)


def _line(value: object) -> str:
    """Return one line for an environment variable; empty when unknown."""
    return "" if value is None else " ".join(str(value).split("\n")).replace("\0", "")


def find_program(program: str, folders: Iterable[str]) -> str:
    """Return the program's path: a bare name is searched in these folders; else it is left to PATH.

    Why a file that is not executable counts too: the owner means this one, not another of its name later in PATH.
    """
    if "/" in program:
        return program
    candidates = (os.path.join(folder, program) for folder in folders)
    return next((path for path in candidates if os.path.isfile(path)), program)


def explain_unusable(path: str) -> tuple[str, str]:
    """Return why a program that `find_program` gave cannot be run, and what would help; two empty texts when it can."""
    if "/" not in path:
        environment = child_environment(Command(argv=(path,), effect=Effect.READS))
        if not is_missing(path, environment):
            return "", ""
        return f"there is no program {path}", "the whole path of an executable file"
    if not os.path.lexists(path):
        return f"{path} does not exist", "the path of an executable file"
    if not os.path.exists(path):
        return f"{path} is a link to a file that does not exist", "the path of an executable file"
    if not os.path.isfile(path):
        return f"{path} is not a file", "the path of an executable file"
    return (
        ("", "")
        if os.access(path, os.X_OK)
        else (f"{path} is not executable", f"an executable file: chmod +x {quoted(path)}")
    )
