"""The failures of zfs during a survey or a pruning → what happened, what it means, what to do."""

from orchestrator.domain.answers import too_much
from orchestrator.domain.errors import (
    LookAgain,
    NotNow,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    SourceMissing,
    Stalled,
    Stopped,
    Unexplained,
)
from orchestrator.domain.failure_table import FailureRow, find_failure, first_line, hint_of, whole_lines
from orchestrator.engines.prune.model import EXIT_STAYED
from orchestrator.process.pipeline import PipelineFailed, StopReason

_OTHER = "is not the snapshot with the guid"
_TABLE = (
    FailureRow(
        words=r"zfs: (command )?not found|/dev/zfs|ZFS modules? (is|are|cannot be) (not )?loaded",
        error=ProgramMissing,
        why="ZFS is not there, or its kernel module is not loaded",
        hint="apt install zfsutils-linux zfs-dkms and `modprobe zfs`",
    ),
    FailureRow(
        words=r"cannot open '[^']*': (dataset does not exist|no such pool)|no such pool available",
        error=SourceMissing,
        why="the dataset is not there",
        hint="import its pool, or correct the name in the job file",
    ),
    FailureRow(
        words=r"pool I/O is currently suspended|pool is suspended",
        error=OutsideError,
        why="the pool lost its disks and waits for them",
        hint="attach the disks again, then `zpool clear`",
    ),
    FailureRow(
        words=r"[Pp]ermission denied|Operation not permitted",
        error=PermissionDenied,
        why="this user may not do that to the pool",
        hint="run as root, or `zfs allow -u USER destroy,mount DATASET`",
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
        return NotNow(why, hint="the next run tries again; all others that were to go are gone")
    if _OTHER in said:
        return LookAgain(f"snapshots changed after the look: {first_line(said)}")
    if found := find_failure(_TABLE, said, codes=() if code is None else (code,)):
        row, line = found.row, whole_lines(said, found.at) if found.at else first_line(said)
        return row.error(f"{row.why} ({line})" if line else row.why, evidence=evidence, hint=hint_of(row, said))
    return Unexplained(
        f"zfs ended with {code}: {first_line(said) or 'no words'}",
        evidence=evidence,
        hint="the whole output is in `poolferry show RUN`",
    )
