"""The output of a command that fails: plain lines or one JSON object, an exit code, never a traceback."""

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from orchestrator.cli.terminal import output as door
from orchestrator.cli.terminal.screen import Terminal

if TYPE_CHECKING:
    from orchestrator.domain.errors import DeclarationError, OrchestratorError

FAILED, WRONG, WAITING = 1, 2, 75
DEBUG = "POOLFERRY_DEBUG"


class WrongUsage(Exception):
    """An error for a command line that cannot be parsed. `usage`: the correct usage, if it is known."""

    def __init__(self, why: str, cure: str, usage: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.cure = cure
        self.usage = usage


class End:
    """The exit code of the command line."""

    code = 0


@contextlib.contextmanager
def explained(terminal: Terminal) -> Iterator[End]:
    """Convert every exception from inside to a message and an exit code."""
    end = End()
    try:
        yield end
    except WrongUsage as error:
        end.code = _usage(terminal, error)
    except KeyboardInterrupt:
        end.code = _tell(terminal, FAILED, "interrupted")
    except OSError as error:
        end.code = _system(terminal, error)
    except Exception as error:  # noqa: BLE001 - the last place where anything can be said about it
        end.code = _any(terminal, error)


def _any(terminal: Terminal, error: Exception) -> int:
    from orchestrator.domain.errors import DeclarationError, OrchestratorError

    match error:
        case DeclarationError():
            return _mistakes(terminal, error)
        case OrchestratorError():
            return _known(terminal, error)
    return _ours(terminal, error)


def _tell(terminal: Terminal, code: int, text: str, cure: str = "", evidence: tuple[str, ...] = (), **more: Any) -> int:
    if terminal.json:
        with contextlib.suppress(OSError):
            door.answer_value({"error": text, "cure": cure, "evidence": list(evidence), **more})
    door.say(f"poolferry: {text}")
    for line in [f"what to do: {cure}"] if cure else []:
        door.say(f"  {line}")
    for line in evidence:
        door.say(f"  {line}")
    return code


def _usage(terminal: Terminal, error: WrongUsage) -> int:
    if error.usage is not None:
        door.say(error.usage)
    return _tell(terminal, WRONG, error.why, error.cure)


def _mistakes(terminal: Terminal, error: "DeclarationError") -> int:
    found = error.mistakes
    count = "one mistake" if len(found) == 1 else f"{len(found)} mistakes"
    if terminal.json:
        value = [
            {"file": each.file, "line": each.line, "key": each.key, "what": each.what, "expected": each.expected}
            for each in found
        ]
        door.answer_value({"error": f"{count} in the configuration", "mistakes": value})
    for each in found:
        door.say(str(each))
    if len(found) > 1:
        door.say(f"{count}; nothing was done")
    return WRONG


def _known(terminal: Terminal, error: "OrchestratorError") -> int:
    from orchestrator.domain.errors import NotNow, OutsideError

    evidence: tuple[str, ...] = ()
    if isinstance(error, OutsideError):
        from orchestrator.domain.run_values import evidence_lines

        evidence = evidence_lines(error.evidence)
    return _tell(terminal, WAITING if isinstance(error, NotNow) else FAILED, error.why, error.cure, evidence)


def _system(terminal: Terminal, error: OSError) -> int:
    _trace(error)
    name = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return _tell(terminal, FAILED, f"{name}{error.strerror or error}")


def _ours(terminal: Terminal, error: Exception) -> int:
    _trace(error)
    text = f"this is a mistake in poolferry: {type(error).__name__}: {error}".replace("\n", " ")
    cure = "" if DEBUG in os.environ else f"report it with the output of the same command under {DEBUG}=1"
    return _tell(terminal, FAILED, text, cure)


def _trace(error: Exception) -> None:
    if DEBUG in os.environ:
        import traceback

        for line in "".join(traceback.format_exception(error)).splitlines():
            door.say(line)
