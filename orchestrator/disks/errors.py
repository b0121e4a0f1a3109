"""Error messages of mount, cryptsetup, dmsetup, zpool and similar programs, with their meaning and a hint."""

from orchestrator.domain.answers import split_lines, too_much
from orchestrator.domain.errors import (
    NotNow,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    Stalled,
    Stopped,
    TargetFull,
    Unexplained,
)
from orchestrator.domain.failure_table import FailureRow, find_failure
from orchestrator.process.pipeline import PipelineFailed, StopReason


class DiskLocked(OutsideError):
    """A disk whose key does not open it."""


class DiskBusy(OutsideError):
    """A disk or pool that cannot be released because it is still in use."""


class DiskDamaged(OutsideError):
    """A damaged filesystem or pool on a disk, or a disk that is gone."""


class FilesystemNeedsCheck(DiskDamaged):
    """A filesystem that a person must check, because automatic repair was not enough."""


class PoolHangs(Stalled):
    """A pool that could not be released, and that only a restart of the machine removes."""


class PoolTooNew(OutsideError):
    """A pool with features that this machine's OpenZFS does not know."""


# DEVICE and NAME: replaced by the disk's own, see `with_disk_named`.
_CHECK = "`e2fsck -f DEVICE` shows the damage and asks before it repairs; then plug the disk in again; `smartctl -a DEVICE` shows its health"
_TAKE_OVER = (
    "plug it in there and eject it; if that machine is no more: zpool import -f -N -R /mnt poolferry-NAME && zpool export poolferry-NAME; "
    "then poolferry disks readopt NAME"
)
_TABLE = (
    FailureRow(program="cryptsetup", words=r"No key available", error=DiskLocked, why="the key does not open the disk",
          hint="look at key-file in targets.toml; poolferry disks scan tries again"),
    FailureRow(program="cryptsetup", words=r"Failed to open key file|No such file", error=DiskLocked,
          why="the file with the disk's key cannot be read", hint="look at key-file in targets.toml; poolferry disks scan tries again"),
    FailureRow(program="zfs", words=r"Key load error|Incorrect key|Failed to open key", error=DiskLocked,
          why="the key does not open the pool's datasets", hint="look at key-file in targets.toml; poolferry disks scan tries again"),
    FailureRow(words=r"(target|device|pool) is busy|mount point busy|is still in use|is in use\.|Device or resource busy|Can't open blockdev", error=DiskBusy,
          why="somebody still uses the disk", hint="leave the folder, or end the program that uses it, and try again"),
    FailureRow(program="e2fsck", words=r"UNEXPECTED INCONSISTENCY|RUN fsck MANUALLY", error=FilesystemNeedsCheck,
          why="its filesystem is damaged in a way that needs a decision", hint=_CHECK),
    FailureRow(program="mount", words=r"Structure needs cleaning|bad superblock", error=FilesystemNeedsCheck, why="its filesystem is damaged", hint=_CHECK),
    FailureRow(program="zpool", words=r"newer version|unsupported (version or )?feature|uses the following feature", error=PoolTooNew,
          why="its pool uses features that this machine's OpenZFS does not have; nothing was upgraded or changed",
          hint="install a newer OpenZFS here, or plug it in at a machine that has one; `zpool import` names the features"),
    FailureRow(program="zpool", words=r"previously in use from another system", error=DiskDamaged,
          why="the pool was not let go by the machine that used it last", hint=_TAKE_OVER),
    FailureRow(words=r"No space left on device", error=TargetFull, why="the disk has no space left",
          hint="let [keep] keep fewer points: the next run removes those first; or enroll a larger disk"),
    FailureRow(words=r"Permission denied|Operation not permitted|must be superuser", error=PermissionDenied,
          why="only root may do this", hint="run poolferry as root, or through its service"),
    FailureRow(words=r"Input/output error|I/O error|can't read superblock|bad superblock|Structure needs cleaning|"
          r"No such device|currently suspended",
          error=DiskDamaged, why="the disk does not answer, or was pulled out", hint="plug it in again; if it is plugged in: another cable or port"),
)  # fmt: skip


def explain(failure: PipelineFailed) -> OrchestratorError:
    """Build the error for the output of a failed program."""
    result, evidence = failure.result, failure.evidence
    at = result.culprit or 0
    program = failure.pipeline.stages[at].argv[0]
    if result.stopped is StopReason.STOPPED:
        return Stopped(f"{program} was asked to stop")
    if result.stopped is StopReason.FLOODED:
        return too_much(program, evidence)
    if result.stopped is not None:
        return Stalled(
            f"{program} did not end: the disk does not answer", evidence=evidence,
            hint="plug the disk in again; other jobs are not harmed by it",
        )  # fmt: skip
    words = "\n".join(result.last_output)
    if result.exits[at] == 127 and "command not found" in words:
        return ProgramMissing(f"{program} is not installed", evidence=evidence, hint=f"install {program}")
    if found := find_failure(_TABLE, words, program=program):
        return found.row.error(found.row.why, evidence=evidence, hint=found.row.hint)
    last = next((line for line in reversed(split_lines(words)) if line.strip()), f"exit {result.exits[at]}")
    return Unexplained(f"{program}: {last}", evidence=evidence, hint="see the lines of the program")


def with_disk_named(error: OrchestratorError, name: str, device: str) -> OrchestratorError:
    """Return the error with the disk's own name and device in its hint."""
    error.hint = error.hint.replace("DEVICE", device).replace("NAME", name)
    return error


def disk_away(why: str, hint: str) -> NotNow:
    """Build the error for an absent disk of a set: nothing is wrong, poolferry waits for it."""
    return NotNow(why, hint=hint)
