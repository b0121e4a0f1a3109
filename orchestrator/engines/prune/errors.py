"""The failures of zfs during a survey or a pruning → what happened, what it means, what to do."""

from orchestrator.domain.answers import too_much
from orchestrator.domain.errors import (
    LookAgain,
    NotNow,
    OrchestratorError,
    PermissionDenied,
    SourceMissing,
    Stalled,
    Stopped,
)
from orchestrator.domain.failure_table import (
    DATASET_MISSING,
    POOL_SUSPENDED,
    ZFS_MISSING,
    FailureRow,
    explain_by,
    first_line,
)
from orchestrator.engines.prune.model import EXIT_STAYED
from orchestrator.process.pipeline import PipelineFailed, StopReason

_OTHER = "is not the snapshot with the guid"
_TABLE = (
    FailureRow(
        words=r"find: .*No such file or directory",
        error=SourceMissing,
        why="the folder is not there",
        hint="see whether its disk is mounted (`findmnt`)",
    ),
    ZFS_MISSING,
    DATASET_MISSING,
    POOL_SUSPENDED,
    FailureRow(
        words=r"[Pp]ermission denied|Operation not permitted",
        error=PermissionDenied,
        why="this user may not do that to the pool",
        hint="run as root, or let this user destroy and mount there, by `zfs allow`",
    ),
    FailureRow(
        words=r"[Rr]ead-only",
        error=PermissionDenied,
        why="the pool was imported read-only",
        hint="export it and import it again",
    ),
)


def explain(broken: PipelineFailed) -> OrchestratorError:
    """Return the error for a failed survey or pruning. Raises nothing."""
    result, evidence = broken.result, broken.evidence
    match result.stopped:
        case StopReason.STALLED | StopReason.TIMED_OUT:
            why = "zfs did not answer: the pool may have lost its disks, or one of them hangs"
            return Stalled(why, evidence=evidence, hint="look at `zpool status`, and at the kernel's messages")
        case StopReason.FLOODED:
            return too_much("zfs", evidence)
        case reason if reason is not None:
            return Stopped("the run was asked to stop")
    said = "\n".join(evidence.last_output)
    code = next((code for code in reversed(evidence.exits) if code), None)
    if code == EXIT_STAYED:
        why = f"some snapshots are in use and stay ({first_line(said)})"
        return NotNow(why, hint="what was removed until then is gone; the next run goes on")
    if _OTHER in said:
        return LookAgain(f"snapshots changed after the look: {first_line(said)}")
    return explain_by(_TABLE, evidence, program="zfs", words="cannot")
