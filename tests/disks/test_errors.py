"""Test what programs say when they fail, and what we make of it."""

import pytest

from orchestrator.disks.errors import DiskBusy, DiskDamaged, DiskLocked, FilesystemNeedsCheck, PoolTooNew, explain
from orchestrator.domain.errors import (
    OrchestratorError,
    PermissionDenied,
    ProgramMissing,
    Stalled,
    Stopped,
    TargetFull,
    Unexplained,
)
from orchestrator.domain.plan import Effect, single_command
from orchestrator.process.pipeline import PipelineResult, StopReason, pipeline_failure

# Words as util-linux, e2fsprogs, cryptsetup and OpenZFS of Debian 12 and 13 say them.
SAID = [
    ("umount", 32, "umount: /run/poolferry/disks/red: target is busy.", DiskBusy),
    ("zpool", 1, "cannot export 'poolferry-red': pool is busy", DiskBusy),
    ("dmsetup", 1, "device-mapper: remove ioctl on poolferry-red  failed: Device or resource busy", DiskBusy),
    ("cryptsetup", 5, "Device poolferry-red is still in use.", DiskBusy),
    ("e2fsck", 8, "/dev/sdb is in use.\ne2fsck: Cannot continue, aborting.", DiskBusy),
    ("mount", 32, "mount: /run/poolferry/disks/red: /dev/sdb already mounted or mount point busy.", DiskBusy),
    ("mount", 32, "mount: /run/poolferry/disks/red: fsconfig() failed: /dev/sdb: Can't open blockdev.", DiskBusy),
    ("cryptsetup", 2, "No key available with this passphrase.", DiskLocked),
    ("cryptsetup", 1, "Failed to open key file.", DiskLocked),
    ("zfs", 255, "Key load error: Incorrect key provided for 'poolferry-red'.", DiskLocked),
    ("e2fsck", 4, "red: UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY.", FilesystemNeedsCheck),
    (
        "mount",
        32,
        "mount: /run/poolferry/disks/red: mount(2) system call failed: Structure needs cleaning.",
        FilesystemNeedsCheck,
    ),
    ("zpool", 1, "cannot import 'x': pool is formatted using an unsupported feature", PoolTooNew),
    ("zpool", 1, "cannot import 'x': unsupported version or feature", PoolTooNew),
    ("zpool", 1, "cannot import 'x': pool was previously in use from another system.", DiskDamaged),
    ("mount", 32, "mount: /run/poolferry/disks/red: can't read superblock on /dev/sdb.", DiskDamaged),
    ("dd", 1, "dd: fsync failed for '/m/x': Input/output error", DiskDamaged),
    ("zpool", 1, "cannot clear errors for poolferry-red: I/O error", DiskDamaged),
    ("dd", 1, "dd: error writing '/m/x': No space left on device", TargetFull),
    ("mount", 1, "mount: /m: must be superuser to use mount.", PermissionDenied),
    ("cryptsetup", 127, "cryptsetup: command not found", ProgramMissing),
    ("mount", 32, "mount: something new", Unexplained),
    ("mount", 32, "", Unexplained),
]


def failed(program: str, code: int | None, words: str, stopped: StopReason | None = None) -> OrchestratorError:
    result = PipelineResult(exits=(code,), last_output=(words,), stopped=stopped)
    return explain(pipeline_failure(single_command(program, "x", effect=Effect.WRITES), result))


@pytest.mark.parametrize(("program", "code", "words", "error"), SAID)
def test_what_it_means(program: str, code: int, words: str, error: type[OrchestratorError]) -> None:
    found = failed(program, code, words)
    assert type(found) is error
    assert found.why
    assert found.hint


def test_new_words_are_told_as_they_are() -> None:
    assert failed("mount", 32, "a\nmount: something new\n").why == "mount: mount: something new"
    assert failed("mount", 32, "").why == "mount: exit 32"


def test_what_was_ended_was_ended() -> None:
    assert isinstance(failed("zpool", None, "", StopReason.STALLED), Stalled)
    assert isinstance(failed("zpool", None, "", StopReason.TIMED_OUT), Stalled)
    assert isinstance(failed("zpool", None, "", StopReason.STOPPED), Stopped)
