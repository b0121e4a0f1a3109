"""The output of a command that fails: plain lines or one JSON object, an exit code, never a traceback."""

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from orchestrator.cli.terminal import screen
from orchestrator.cli.terminal.screen import Terminal

if TYPE_CHECKING:
    from orchestrator.domain.errors import DeclarationError, OrchestratorError

FAILED, WRONG, INTERRUPTED = 1, 2, 130  # 128 and the number of SIGINT, as shells have it
DEBUG = "POOLFERRY_DEBUG"


class WrongUsage(Exception):
    """An error for a command line that cannot be parsed. `usage`: the correct usage, if it is known."""

    def __init__(self, why: str, hint: str, usage: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.hint = hint
        self.usage = usage


class CommandResult:
    """The exit code of the command line."""

    code = 0


@contextlib.contextmanager
def report_errors(terminal: Terminal) -> Iterator[CommandResult]:
    """Convert every exception from inside to a message and an exit code."""
    end = CommandResult()
    try:
        yield end
    except WrongUsage as error:
        end.code = _usage(terminal, error)
    except KeyboardInterrupt:
        end.code = _print_error(terminal, INTERRUPTED, "interrupted")
    except OSError as error:
        end.code = _system(terminal, error)
    except Exception as error:  # noqa: BLE001 - the last place that can report it
        end.code = _any(terminal, error)


def _any(terminal: Terminal, error: Exception) -> int:
    from orchestrator.domain.errors import DeclarationError, OrchestratorError

    match error:
        case DeclarationError():
            return _mistakes(terminal, error)
        case OrchestratorError():
            return print_known_error(terminal, error)
    return _ours(terminal, error)


def _print_error(
    terminal: Terminal, code: int, text: str, hint: str = "", evidence: tuple[str, ...] = (), **more: Any
) -> int:
    if terminal.json:
        with contextlib.suppress(OSError):
            screen.print_json({"error": text, "hint": hint, "evidence": list(evidence), **more})
    screen.print_message(f"poolferry: {text}")
    for line in [f"what to do: {hint}"] if hint else []:
        screen.print_message(f"  {line}")
    for line in evidence:
        screen.print_message(f"  {line}")
    return code


def _usage(terminal: Terminal, error: WrongUsage) -> int:
    if error.usage is not None:
        for line in error.usage.split("\n"):
            screen.print_message(line)
    return _print_error(terminal, WRONG, error.why, error.hint)


def _mistakes(terminal: Terminal, error: "DeclarationError") -> int:
    found = error.mistakes
    count = "one mistake" if len(found) == 1 else f"{len(found)} mistakes"
    if terminal.json:
        value = [
            {"file": each.file, "line": each.line, "key": each.key, "what": each.what, "expected": each.expected}
            for each in found
        ]
        screen.print_json({"error": f"{count} in the configuration", "mistakes": value})
    for each in found:
        screen.print_message(str(each))
    if len(found) > 1:
        screen.print_message(f"{count}; nothing was done")
    return WRONG


def print_known_error(terminal: Terminal, error: "OrchestratorError", **more: Any) -> int:
    """Print an error of ours, with its hint; return its exit code. `more`: what its JSON object holds besides."""
    from orchestrator.domain.errors import OutsideError
    from orchestrator.domain.run import EXIT_CODES, outcome_of

    evidence: tuple[str, ...] = ()
    if isinstance(error, OutsideError):
        from orchestrator.domain.run_values import evidence_lines

        evidence = evidence_lines(error.evidence)
    return _print_error(terminal, EXIT_CODES[outcome_of(error)], error.why, error.hint, evidence, **more)


def _system(terminal: Terminal, error: OSError) -> int:
    _trace(error)
    name = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    root = isinstance(error, PermissionError) and os.geteuid() != 0
    hint = "if that is root's, run the command as root, with sudo" if root else ""
    return _print_error(terminal, FAILED, f"{name}{error.strerror or error}", hint)


def _ours(terminal: Terminal, error: Exception) -> int:
    _trace(error)
    text = f"this is a mistake in poolferry: {type(error).__name__}: {error}".replace("\n", " ")
    hint = "" if DEBUG in os.environ else f"report it with the output of the same command under {DEBUG}=1"
    return _print_error(terminal, FAILED, text, hint)


def _trace(error: Exception) -> None:
    if DEBUG in os.environ:
        import traceback

        for line in "".join(traceback.format_exception(error)).splitlines():
            screen.print_message(line)
