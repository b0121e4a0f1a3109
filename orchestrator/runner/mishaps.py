"""What a step left out or could not do, as words and errors. Pure."""

import errno

from orchestrator.domain.errors import (
    BaseGone,
    Evidence,
    HostUnreachable,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    Stalled,
    Stopped,
    StreamBroken,
    TargetFull,
    TokenStale,
    Unexplained,
)
from orchestrator.domain.names import show_name
from orchestrator.domain.plan import Step
from orchestrator.engines.contract import LeftOut
from orchestrator.runner.telling import step_commands

_NAMED = 20  # warnings name so many entries; the manifest and history's output name all
# What the next lane would only meet again.
HALTS = (Stopped, HostUnreachable, TargetFull, ProgramMissing)
# What speaks against the stream itself: not that its host, its room or its rights were missing.
OF_ITSELF = (BaseGone, Stalled, StreamBroken, TokenStale, Unexplained)


def own_error(error: OSError, step: Step) -> OutsideError:
    """A file of ours that could not be written or read, as the error that a program's failure would be."""
    evidence = Evidence(lines=step_commands(step), exits=(None,), last_words=(str(error),))
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        why = f"the target, or the state directory, has no room left for the manifest ({error.strerror})"
        return TargetFull(why, evidence=evidence, cure="free room there; the next run goes on from what is there")
    kind = PermissionDenied if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else OutsideError
    return kind(f"{step.does}: {error}", evidence=evidence, cure="see whether the file's disk is sound and writable")


def gravest(errors: list[OrchestratorError]) -> OrchestratorError:
    """The error that speaks for a stage: one that ends everything first, else the first; it tells how many more failed."""
    chosen = next((error for error in errors if isinstance(error, HALTS)), errors[0])
    if len(errors) > 1:
        chosen.why = f"{chosen.why} (and {len(errors) - 1} more failed beside it)"
    return chosen


def warnings_of(left_out: LeftOut | None) -> tuple[str, ...]:
    """One line for each entry that a copy had to leave out, up to a number."""
    if left_out is None:
        return ()
    unreadable = [
        f"could not be read, so it is missing in this point: {show_name(name)} ({why})"
        for name, why in left_out.unreadable
    ]
    vanished = [f"vanished while it was copied: {show_name(name)}" for name in left_out.vanished]
    return (*_first(unreadable, "entries could not be read"), *_first(vanished, "entries vanished"))


def _first(lines: list[str], what: str) -> tuple[str, ...]:
    more = len(lines) - _NAMED
    return (*lines[:_NAMED], *((f"and {more} more {what}",) if more > 0 else ()))
