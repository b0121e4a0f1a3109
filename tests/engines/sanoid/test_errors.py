"""Test what a failed call of sanoid means, by the words that sanoid, perl, zfs and ssh really say."""

import pytest

from orchestrator.domain.errors import (
    HostUnreachable,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    SourceMissing,
    Stalled,
    Stopped,
    TargetFull,
    Unexplained,
    VerificationFailed,
)
from orchestrator.engines.sanoid.errors import explain
from orchestrator.engines.sanoid.model import EXIT_NOT_TAKEN, EXIT_TOLD
from orchestrator.process.pipeline import StopReason
from tests.engines.sanoid.builders import failed

CASES: list[tuple[str, int, type[Exception], str]] = [
    ("sanoid: not found", 127, ProgramMissing, "not installed"),
    ("sh: 1: sanoid: not found", 127, ProgramMissing, "not installed"),
    ("Can't locate Config/IniFiles.pm in @INC (you may need to install …) (@INC contains: …)", 2, ProgramMissing, "part"),
    ("sh: 1: zfs: not found", 127, ProgramMissing, "ZFS is not there"),
    ("The ZFS modules cannot be loaded.\nTry running 'modprobe zfs' as root to load them.", 1, ProgramMissing, "ZFS"),
    (
        "FATAL ERROR: I don't understand the setting nonsense you've set in [tank/a] in /f/sanoid.conf.",
        255, OutsideError, "different versions",
    ),
    (
        "FATAL: cannot load /f/sanoid.conf - please create a valid local config file before running sanoid!",
        2, OutsideError, "its configuration",
    ),
    (
        "FATAL: cannot load /usr/share/sanoid/sanoid.defaults.conf - please restore a clean copy, …",
        2, OutsideError, "different versions",
    ),
    ("cannot open 'tank/nope': dataset does not exist", 1, SourceMissing, "not there"),
    (
        "cannot open 'tank/a': dataset does not exist\nusage:\n\tsnapshot [-r] …\nCRITICAL ERROR: zfs snapshot tank/a@x failed, 512",
        EXIT_TOLD, SourceMissing, "not there",
    ),
    ("cannot create snapshot 'tank/a@x': out of space", EXIT_TOLD, TargetFull, "no space"),
    ("cannot create snapshots : permission denied", EXIT_TOLD, PermissionDenied, "may not"),
    ("cannot destroy snapshot tank/a@x: permission denied", EXIT_TOLD, PermissionDenied, "may not"),
    ("cannot create snapshots : pool I/O is currently suspended", EXIT_TOLD, OutsideError, "waits for them"),
    ("cannot create snapshot 'tank/a@x': I/O error", EXIT_TOLD, OutsideError, "a disk"),
    ("cannot create snapshot 'tank/a@x': Read-only file system", EXIT_TOLD, PermissionDenied, "read-only"),
    ("sh: 1: cannot create /tmp/a/sanoid.conf: No space left on device", 2, OutsideError, "works in"),
    ("root@backup: Permission denied (publickey).", 255, PermissionDenied, "refused our login"),
    ("Host key verification failed.", 255, PermissionDenied, "key"),
    ("ssh: connect to host backup port 22: Connection refused", 255, HostUnreachable, "did not answer"),
    ("client_loop: send disconnect: Broken pipe", 255, HostUnreachable, "broke off"),
    ("", 255, HostUnreachable, "broke off"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "code", "error", "why"), CASES)
def test_each_sentence_has_its_meaning_and_its_cure(words: str, code: int, error: type[Exception], why: str) -> None:
    told = explain(failed(words, code))
    assert type(told) is error
    assert why in told.why
    assert told.hint
    assert words.splitlines()[:1] == [] or any(line.strip() in told.why for line in words.splitlines())


def test_what_nobody_has_met_is_told_as_it_is() -> None:
    told = explain(failed("taking snapshot a@b\nERROR: Valid lock already exists - I refuse to overwrite it.", 255))
    assert isinstance(told, Unexplained)
    assert told.why == "sanoid ended with 255: ERROR: Valid lock already exists - I refuse to overwrite it."
    assert explain(failed("hm", 9)).why == "sanoid ended with 9: hm"
    assert explain(failed("", 9)).why == "sanoid ended with 9: no words"


def test_a_snapshot_that_is_not_there_is_a_broken_promise() -> None:
    told = explain(failed("INFO: taking snapshots...\nno daily snapshot of tank/a was taken", EXIT_NOT_TAKEN))
    assert isinstance(told, VerificationFailed)
    assert "no daily snapshot of tank/a was taken" in told.why


def test_our_own_end_is_no_failure_of_sanoids() -> None:
    assert isinstance(explain(failed(stopped=StopReason.STOPPED)), Stopped)
    assert isinstance(explain(failed(stopped=StopReason.STALLED)), Stalled)
    assert isinstance(explain(failed(stopped=StopReason.TIMED_OUT)), Stalled)
