"""The failures of zpool, zfs and ssh during a survey or scrub → what happened, what it means, what to do."""

from orchestrator.domain.answers import too_much
from orchestrator.domain.errors import (
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    SourceMissing,
    Stalled,
    Stopped,
)
from orchestrator.domain.failure_table import (
    LOGIN,
    NETWORK,
    POOL_SUSPENDED,
    SSH_ENDED,
    ZFS_MISSING,
    FailureRow,
    explain_by,
)
from orchestrator.process.pipeline import PipelineFailed, StopReason

_TABLE = (
    ZFS_MISSING,
    FailureRow(
        words=r"cannot open '[^']*': no such pool|no such pool",
        error=SourceMissing,
        why="the pool is not imported",
        hint="`zpool import` lists what can be imported; or correct the name in the job file",
    ),
    FailureRow(
        words=r"cannot scrub \S+: currently (scrubbing|resilvering)|cannot pause scrubbing|there is no active scrub|is currently resilvering",
        error=OutsideError,
        why="somebody else has begun or ended a scan meanwhile",
        hint="the next run looks again",
    ),
    POOL_SUSPENDED,
    *LOGIN,
    FailureRow(
        words=r"[Pp]ermission denied|Operation not permitted|must be (super)?user|insufficient privileges",
        error=PermissionDenied,
        why="this user may not do that to the pool",
        hint="run as root: a scrub cannot be delegated with `zfs allow`",
    ),
    FailureRow(
        words=r"[Rr]ead-only",
        error=PermissionDenied,
        why="the pool was imported read-only, so it cannot be scrubbed",
        hint="export it and import it again, or leave scrub-every out",
    ),
    *NETWORK,
    SSH_ENDED,
)


def explain(broken: PipelineFailed) -> OrchestratorError:
    """Return the error for a failed survey or scrub. Raises nothing."""
    result, evidence = broken.result, broken.evidence
    match result.stopped:
        case StopReason.STALLED | StopReason.TIMED_OUT:
            where = f" on {evidence.host}" if evidence.host else ""
            why = f"zpool or zfs{where} did not answer: the pool may have lost its disks, or one of them hangs"
            return Stalled(why, evidence=evidence, hint="look at `zpool status` there, and at the kernel's messages")
        case StopReason.FLOODED:
            hint = "see `zpool status -v` there: of very many files that lost data the list is as long; restore from a copy"
            return too_much("zpool", evidence, hint)
        case reason if reason is not None:
            return Stopped("the run was asked to stop")
    return explain_by(_TABLE, evidence, program="zpool", words="cannot")
