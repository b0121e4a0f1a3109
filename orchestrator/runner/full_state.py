"""The state directory's part in a failure: what a run keeps there finds no room, and the words of programs blame the target."""

import errno
import os

from orchestrator.domain.errors import Evidence, OrchestratorError, OutsideError, TargetFull, VerificationFailed
from orchestrator.domain.place import Location

_LEAST = 1 << 20  # bytes; a filesystem that refused to take more has less
_SPACE = (errno.ENOSPC, errno.EDQUOT)


def name_full_state(error: OrchestratorError | OSError, state: str, target: Location) -> OrchestratorError | OSError:
    """Return the error that names the state directory where that is full and may be the cause; else the error itself.

    Why by a look: rsync ends well when nobody can keep what it says, and no program says which file it could not write.
    """
    spaceless = isinstance(error, TargetFull | VerificationFailed) or getattr(error, "errno", None) in _SPACE
    if not spaceless or not _is_full(state):
        return error
    evidence = error.evidence if isinstance(error, OutsideError) else None
    lasting = evidence or Evidence(lines=(), exits=(), last_output=(str(error),))
    hint = f"free space on the filesystem of {state}, or make it larger; the next run continues from what is there"
    if isinstance(error, TargetFull) and (
        target.host is not None or not target.path.startswith("/") or _is_full(target.path)
    ):
        return OutsideError(
            f"{error.why}; the state directory {state} is full, too", evidence=lasting, hint=f"{error.hint}; {hint}"
        )
    lost = f": {error.why}" if isinstance(error, VerificationFailed) else ""
    why = f"the state directory {state} is full, so what the run keeps there, such as what it has copied, found no room{lost}"
    return OutsideError(why, evidence=lasting, hint=hint)


def _is_full(path: str) -> bool:
    """Return whether next to nothing is free there for this user."""
    try:
        seen = os.statvfs(path)
    except OSError:
        return False
    free = seen.f_bfree if os.geteuid() == 0 else seen.f_bavail
    return free * seen.f_frsize < _LEAST or (seen.f_files > 0 and seen.f_favail == 0)
