"""The failures of sanoid, zfs and ssh → what happened, what it means, what to do.

sanoid has almost no useful exit codes: it ends with 0 when a snapshot could not be taken, and with any number when it dies. So
its messages decide, and the two codes of our own script.
"""

from orchestrator.domain.answers import too_much
from orchestrator.domain.errors import (
    HostUnreachable,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    Stalled,
    Stopped,
    TargetFull,
    VerificationFailed,
)
from orchestrator.domain.failure_table import (
    DATASET_MISSING,
    LOGIN,
    NETWORK,
    POOL_SUSPENDED,
    ZFS_MISSING,
    FailureRow,
    explain_by,
    matching_line,
)
from orchestrator.engines.sanoid.model import EXIT_NOT_TAKEN
from orchestrator.process.pipeline import PipelineFailed, StopReason

_TRY = "look at `zpool status` there"


_TABLE = (
    FailureRow(
        words=r"sanoid: (command )?not found|sanoid: No such file",
        error=ProgramMissing,
        why="sanoid is not installed",
        hint="apt install sanoid on the machine that holds the pool",
    ),
    FailureRow(
        words=r"Can't locate \S+\.pm in @INC",
        error=ProgramMissing,
        why="a part of sanoid is missing",
        hint="apt install libconfig-inifiles-perl libcapture-tiny-perl there",
    ),
    ZFS_MISSING,
    FailureRow(
        words=r"I don't understand the setting|requires a minimum sanoid\.defaults\.conf|cannot load .*sanoid\.defaults\.conf",
        error=OutsideError,
        why="sanoid and its own defaults are of different versions",
        hint="apt install --reinstall sanoid there",
    ),
    FailureRow(
        words=r"FATAL: cannot load .*sanoid\.conf",
        error=OutsideError,
        why="sanoid cannot read its configuration",
        hint="look whether [snapshots] use names a directory with a sanoid.conf; `sanoid --readonly` there shows more",
    ),
    DATASET_MISSING,
    POOL_SUSPENDED,
    FailureRow(
        words=r"out of space|quota exceeded",
        error=TargetFull,
        why="the pool has no space left",
        hint="free space, or keep fewer snapshots in [snapshots]",
    ),
    *LOGIN,
    FailureRow(
        words=r"[Pp]ermission denied|Operation not permitted",
        error=PermissionDenied,
        why="this user may not do that to the pool",
        hint="run as root, or `zfs allow -u USER snapshot,destroy,mount DATASET`",
    ),
    FailureRow(
        words=r"[Rr]ead-only",
        error=PermissionDenied,
        why="the pool or a folder of sanoid's is read-only",
        hint=_TRY,
    ),
    FailureRow(
        words=r"I/O error",
        error=OutsideError,
        why="a disk could not be read or written",
        hint=f"{_TRY}, and at the kernel's messages",
    ),
    FailureRow(
        words=r"No space left on device",
        error=OutsideError,
        why="the folder that sanoid works in has no space",
        hint="free space below the state directory, on a host below /tmp",
    ),
    *NETWORK,
    FailureRow(
        exits=(255,),
        words=r"(?s)\A(?!.*(FATAL|ERROR))",  # perl itself may die with 255 too
        error=HostUnreachable,
        why="the connection to the host broke off or could not be made",
        hint="check the network, and `ssh HOST true` by hand",
    ),
)


def explain(broken: PipelineFailed) -> OrchestratorError:
    """Return the error for a failed call of sanoid. Raises nothing."""
    result, evidence = broken.result, broken.evidence
    if result.stopped in (StopReason.STALLED, StopReason.TIMED_OUT):
        where = f" on {evidence.host}" if evidence.host else ""
        return Stalled(f"sanoid{where} said nothing for too long, so it was ended", evidence=evidence, hint=_TRY)
    if result.stopped is StopReason.FLOODED:
        return too_much("sanoid", evidence)
    if result.stopped is not None:
        return Stopped("the run was asked to stop")
    said = "\n".join(evidence.last_output)
    code = next((code for code in reversed(evidence.exits) if code), None)
    if code == EXIT_NOT_TAKEN:
        return VerificationFailed(
            f"sanoid ended well, and the snapshot is not there ({matching_line(said, 'was taken')})",
            hint="`sanoid --take-snapshots --verbose` there by hand shows more; is another sanoid at work on this dataset?",
        )
    return explain_by(_TABLE, evidence, program="sanoid", words=r"cannot|ERROR|FATAL")
