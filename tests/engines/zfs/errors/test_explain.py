"""Test what a failed command or stream means: each sentence and class, by the words that zfs, mbuffer, sudo and ssh really say."""

import pytest

from orchestrator.domain.errors import (
    BaseGone,
    HostUnreachable,
    NotNow,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    QuotaReached,
    RecordsRefused,
    RetryClass,
    Stalled,
    Stopped,
    StreamBroken,
    TargetFull,
    TokenStale,
    Unexplained,
    UnreadableAnswer,
)
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.engines.contract.copies import PartialCopier
from orchestrator.engines.contract.engine import implements
from orchestrator.engines.zfs import ENGINE
from orchestrator.engines.zfs.errors.explain import explain, redact
from orchestrator.process.pipeline import PipelineFailed, PipelineResult, StopReason, pipeline_failure
from tests.engines.zfs.sides import FIRST, HOST, LATER

CUT = "cannot receive: failed to read from stream"
SAVED = (
    "cannot receive new filesystem stream: checksum mismatch or incomplete stream.\n"
    "Partially received snapshot is saved.\n"
    f"A resuming stream can be generated on the sending system by running:\n    zfs send -t {FIRST}"
)
SIZES = "full\ttank/out of space@quota exceeded\t21021552\nsize\t21021552\n"

# (what the sender said, what the receiver said, class, what the sentence begins with)
TABLE: list[tuple[str, str, type[OrchestratorError], str]] = [
    # Tokens.
    ("cannot resume send: 'tank/p@a' used in the initial send no longer exists", CUT, TokenStale,
     "the snapshot that a cut send was about is gone"),
    ("cannot resume send: 'tank/p@a' is no longer the same snapshot used in the initial send", CUT, TokenStale,
     "the snapshot that a cut send was about is another one now"),
    ("cannot resume send: incremental source 0xc849937581aa027c no longer exists", CUT, TokenStale,
     "what a cut send starts from is gone"),
    ("cannot resume send: resume token is corrupt (nvlist_unpack failed)", CUT, TokenStale, "the resume token cannot be"),
    ("cannot resume send: resume token is corrupt (version 2)", CUT, TokenStale, "the resume token cannot be used"),
    ("", ("cannot receive incremental stream: destination vault/r/p contains partially-complete state from "
     '"zfs receive -s".'), TokenStale, "the target holds what a cut receive left"),
    ("", ("cannot receive resume stream: Resuming recv on existing destination 'vault/r/h'\n"
     "must specify -F to overwrite it"), TokenStale, "the target holds what a cut receive left"),
    ("", "cannot receive resume stream: Resuming recv on existing dataset without force", TokenStale, "the target holds"),
    ("", "cannot receive: incompatible embedded data stream feature with encrypted receive.", TokenStale,
     "the stream does not begin where the target stopped, or holds embedded blocks"),
    # Bases.
    ("", ("cannot receive incremental stream: most recent snapshot of vault/r/p does not\nmatch incremental source"),
     BaseGone, "the target's newest snapshot is not"),
    ("", "cannot receive incremental stream: destination vault/r/p has been modified\nsince most recent snapshot",
     BaseGone, "the target was written to"),
    ("", ("cannot receive new filesystem stream: destination has snapshots (eg. vault/r/p@a)\n"
     "must destroy them to overwrite it"), BaseGone, "the target has got snapshots"),
    ("cannot rollback to 'v/p@a': more recent snapshots or bookmarks exist\nuse '-r' to force deletion of the following", "",
     BaseGone, "the target has got snapshots"),
    ("", "cannot receive new filesystem stream: destination 'vault/r/p' is a clone\nmust destroy it to overwrite it",
     OutsideError, "the target is a clone"),
    ("cannot destroy 'v/p@a': snapshot has dependent clones\nuse '-R' to destroy the following datasets:\nv/p/%recv", "",
     OutsideError, "a clone on the target hangs"),
    ("cannot rollback to 'v/p@a': clones of previous snapshots exist\nuse '-R' to force deletion of the following", "",
     OutsideError, "a clone on the target hangs"),
    # Encryption.
    ("", "cannot receive new filesystem stream: cannot perform raw receive on top of existing unencrypted dataset",
     OutsideError, "one side is encrypted"),
    ("", ("cannot receive new filesystem stream: zfs receive -F cannot be used to destroy an encrypted filesystem or "
     "overwrite an unencrypted one with an encrypted one"), OutsideError, "one side is encrypted"),
    ("", "cannot receive incremental stream: IV set guid missing. See errata 4 at https://openzfs.github.io/…",
     OutsideError, "the target's newest snapshot was not received raw"),
    ("", "cannot receive incremental stream: IV set guid mismatch. See the 'zfs receive' man page", OutsideError,
     "the target's newest snapshot was not received raw"),
    ("", ("cannot receive incremental stream: encryption key does not match existing key"), OutsideError,
     "the stream's key is not the copy's"),
    ("warning: vault/r/p was received as a raw stream, but this incremental is not raw", CUT, OutsideError,
     "the copy was received raw"),
    ("", "cannot receive incremental stream: inherited key must be loaded", PermissionDenied, "a key is not loaded"),
    ("warning: cannot send 'tank/e@a': dataset key must be loaded", CUT, PermissionDenied, "a key is not loaded"),
    ("cannot send tank/e@a: encrypted dataset tank/e may not be sent with properties without the raw flag", CUT,
     OutsideError, "zfs sends properties of encrypted"),
    ("", "cannot receive incremental stream: incremental send stream requires -L (--large-block), to match previous receive.",
     OutsideError, "earlier streams of this chain"),
    # Room.
    ("warning: cannot send 'tank/p@a': signal received", "cannot receive new filesystem stream: out of space", TargetFull,
     "the target pool has no space"),
    ("", "cannot receive new filesystem stream: destination 'v/p' space quota exceeded.", QuotaReached, "a quota on the target"),
    ("", "cannot create 'vault/p': out of space", TargetFull, "the target pool has no space"),
    # The source's own pool.
    ("[string \"channel program\"]:18: cannot create bookmark of 'tank/p@a': error 28", "",
     RecordsRefused, "the source's pool has no space left, not even for a bookmark"),
    ("cannot create bookmark 'tank/p#a': out of space", "", RecordsRefused, "the source's pool has no space left"),
    ("cannot hold snapshot 'tank/p@a': out of space", "", RecordsRefused, "the source's pool has no space left"),
    ("[string \"channel program\"]:18: cannot create bookmark of 'tank/p@a': error 95", "",
     RecordsRefused, "the source's pool is older than bookmarks"),
    ("cannot create bookmark 'tank/p#a': bookmark feature not enabled", "", RecordsRefused, "the source's pool is older"),
    ("Channel program execution failed: pool is read-only", "", RecordsRefused, "the source's pool is imported read-only"),
    ("cannot hold: pool is read-only", "", RecordsRefused, "the source's pool is imported read-only"),
    # Pools and versions.
    ("", "cannot receive new filesystem stream: pool is read-only", OutsideError, "a pool is imported read-only"),
    ("", "cannot receive: pool I/O is currently suspended", OutsideError, "a pool is suspended"),
    ("", "cannot open 'vault': pool I/O is currently suspended", OutsideError, "a pool is suspended"),
    ("", "cannot receive: pool must be upgraded to receive this stream.", ProgramMissing, "the target's ZFS"),
    ("", ("cannot receive: stream has unsupported feature, feature flags = 2000000 (unknown)"), ProgramMissing, "the target's"),
    ("", "cannot receive resume stream: kernel modules must be upgraded to receive this stream.", TokenStale, "the stream does not begin"),
    ("The ZFS modules cannot be auto-loaded.\nTry running 'modprobe zfs' as root to manually load them.", "", ProgramMissing,
     "the kernel's zfs module"),
    ("The ZFS modules are not loaded.\nTry running '/sbin/modprobe zfs' as root to load them.", "", ProgramMissing, "the ker"),
    ("warning: cannot send 'tank/p@a': Input/output error", SAVED, OutsideError, "a disk could not be read"),
    ("warning: cannot send 'tank/p@a': Invalid exchange", SAVED, OutsideError, "a disk could not be read"),
    # Rights and programs.
    ("", "cannot receive new filesystem stream: permission denied", PermissionDenied, "this user may not"),
    ("cannot send 'tank/p': permission denied", CUT, PermissionDenied, "this user may not"),
    ("sudo: a password is required", CUT, PermissionDenied, "sudo does not let"),
    ("Unable to open /dev/zfs: Permission denied.", "", PermissionDenied, "this user may not"),
    ("root@backup: Permission denied (publickey,password).", CUT, PermissionDenied, "the host refused our login"),
    ("Host key verification failed.", CUT, PermissionDenied, "the host's key"),
    ("sh: 1: zfs: not found", CUT, ProgramMissing, "a program is not installed"),
    ("bash: line 1: mbuffer: command not found", CUT, ProgramMissing, "a program is not installed"),
    # Hosts.
    ("ssh: Could not resolve hostname nowhere: Name or service not known", CUT, HostUnreachable, "the host's name"),
    ("ssh: connect to host backup port 22: Connection refused", CUT, HostUnreachable, "the host did not answer"),
    # What changed under us.
    ("cannot open 'tank/p@zz': dataset does not exist", CUT, BaseGone, "something that was there"),
    ("", "cannot receive new filesystem stream: destination 'vault/r/p' exists\nmust specify -F to overwrite it", BaseGone,
     "something of that name"),
    ("cannot create 'vault/r': dataset already exists", "", BaseGone, "something of that name"),
    ("cannot rename 'v/a': dataset is busy", "", Stalled, "something still uses"),
    ("", "cannot receive new filesystem stream: destination is busy", Stalled, "something still uses"),
    ("the receiving process 7 does not end", "", Stalled, "something still uses"),
    ("", "cannot receive compression property on vault/r/p: pool must be upgraded", ProgramMissing, "the target's ZFS"),
    ("", "cannot receive sharenfs property on vault/r/p: invalid value", OutsideError, "a property could not be set"),
    # mbuffer's own connection.
    ("", "a stranger connected from 10.0.0.1:40000 in place of the sender\nno sender has connected", OutsideError,
     "somebody else connected to mbuffer's port"),
    ("", "rejected connection from 10.0.0.9:40000\nno sender has connected", OutsideError,
     "the sender's connection comes from another address"),
    ("", "could not bind to socket for 10.0.0.2:61992: Address already in use", StreamBroken, "mbuffer's port was taken"),
    ("", "could not bind to socket for 203.0.113.9:61992: Cannot assign requested address\nno sender has connected", OutsideError,
     "the receiving machine does not have the address"),
    ("someone else listens on 10.0.0.2:61992 in place of our receiver; nothing was sent",
     "could not bind to socket for 10.0.0.2:61992: Address already in use", StreamBroken, "somebody else may hold"),
    ("who listens on 10.0.0.2:61992 does not prove to be our receiver; nothing was sent", "no sender has connected",
     StreamBroken, "somebody else may hold mbuffer's port"),
    ("unable to connect to 127.0.0.1:61999: Connection refused", "no sender has connected", HostUnreachable,
     "mbuffer's own connection could not be made"),
    ("", "no sender has connected", HostUnreachable, "mbuffer's own connection could not be made"),
    ("", "the sender left before it proved itself", HostUnreachable, "mbuffer's own connection could not be made"),
    ("listen.sh: 1: perl: not found", "", ProgramMissing, "perl is not installed there"),
    ("", "mbuffer: error: watchdog timeout: input stalled; sending SIGINT", Stalled, "nothing moved for too long"),
    ("mbuffer: error: outputThread: error writing to 10.0.0.2:61234 at offset 0x64f221: Connection reset by peer", SAVED,
     StreamBroken, "the link broke off"),
    # Cuts.
    ("", SAVED, StreamBroken, "the stream broke off"),
    ("", "cannot receive incremental stream: incomplete stream", StreamBroken, "the stream broke off"),
    ("", CUT, StreamBroken, "the stream broke off"),
    ("", "cannot receive: invalid stream (bad magic number)", StreamBroken, "the stream broke off"),
    ("warning: cannot send 'tank/p@a': Broken pipe", "", StreamBroken, "the stream broke off"),
    ("Timeout, server backup not responding.", SAVED, StreamBroken, "the link broke off"),
    ("client_loop: send disconnect: Broken pipe", "", StreamBroken, "the link broke off"),
    ("Connection to backup closed by remote host.", "", StreamBroken, "the link broke off"),
]  # fmt: skip


def failed(
    sender: str = "",
    receiver: str = "",
    exits: tuple[int | None, ...] = (1, 0, 1),
    *,
    stopped: StopReason | None = None,
) -> PipelineFailed:
    """A stream to a host that ended so."""
    stages = (
        Command(argv=("zfs", "send", "-P", "-t", LATER), effect=Effect.READS),
        Command(argv=("mbuffer", "-q"), effect=Effect.READS),
        Command(argv=("zfs", "receive", "vault/x"), effect=Effect.WRITES, host=HOST),
    )
    words = (SIZES + sender, "", receiver)
    return pipeline_failure(Pipeline(stages=stages), PipelineResult(exits=exits, last_output=words, stopped=stopped))


@pytest.mark.parametrize(("sender", "receiver", "kind", "says"), TABLE)
def test_every_sentence_is_known(sender: str, receiver: str, kind: type[OrchestratorError], says: str) -> None:
    error = explain(failed(sender, receiver))
    assert type(error) is kind, error
    assert error.why.startswith(says)
    assert error.hint
    told = (sender or receiver).splitlines()[0]
    assert redact(told.strip()) in error.why or kind in (StreamBroken, TargetFull)
    assert "size\t" not in error.why


def test_a_sentence_over_two_lines_is_told_whole() -> None:
    error = explain(
        failed(receiver="cannot receive: most recent snapshot of vault/r/p does not\nmatch incremental source")
    )
    assert error.why.endswith("(cannot receive: most recent snapshot of vault/r/p does not match incremental source)")


@pytest.mark.parametrize(
    ("exits", "kind"),
    [
        ((0, 0, 255), HostUnreachable), ((0, 0, 127), ProgramMissing), ((-9, 0, 1), StreamBroken), ((0, 0, -15), StreamBroken),
        ((0, 0, 126), ProgramMissing), ((-13, -13, 137), StreamBroken), ((0, 0, 3), Unexplained), ((0, None, 0), Unexplained),
    ],
)  # fmt: skip
def test_without_words_the_statuses_tell(exits: tuple[int | None, ...], kind: type[OrchestratorError]) -> None:
    error = explain(failed(exits=exits))
    assert type(error) is kind
    assert error.why
    assert error.hint


def test_what_nobody_has_met_is_told_word_for_word() -> None:
    error = explain(failed(receiver="cannot receive: the moon is in the way\nmore", exits=(0, 0, 1)))
    assert isinstance(error, Unexplained)
    assert error.why == "zfs ended with 1: cannot receive: the moon is in the way"
    assert error.retry is RetryClass.ONCE


def test_the_one_to_blame_speaks_first() -> None:
    assert "no words" in explain(failed(exits=(0, 0, 5))).why
    error = explain(failed("odd sender", "odd receiver", (1, 0, 1)))
    assert error.why == "zfs ended with 1: odd receiver"
    error = explain(failed("odd sender", "", (1, 0, 0)))
    assert error.why == "zfs ended with 1: odd sender"


@pytest.mark.parametrize("name", ["out of space", "dataset is busy", "permission denied", "no such pool", "suspended"])
def test_a_name_in_quotes_means_nothing(name: str) -> None:
    assert isinstance(explain(failed(receiver=f"cannot receive '{name}': what?")), Unexplained)


@pytest.mark.parametrize(
    ("reason", "kind", "says"),
    [
        (StopReason.STALLED, Stalled, "nothing moved"), (StopReason.TIMED_OUT, Stalled, "zfs on root@backup did not answer"),
        (StopReason.FLOODED, UnreadableAnswer, "zfs on root@backup said more than an answer may hold"), (StopReason.STOPPED, Stopped, "the run was asked"),
        (StopReason.LET_GO, Stopped, "the run was asked"),
    ],
)  # fmt: skip
def test_what_we_ended_ourselves(reason: StopReason, kind: type[OrchestratorError], says: str) -> None:
    error = explain(failed("permission denied", exits=(-15, -15, -15), stopped=reason))
    assert type(error) is kind
    assert error.why.startswith(says)


def test_a_pool_that_is_not_imported_is_waited_for() -> None:
    error = explain(failed("cannot open 'vault': no such pool"))
    assert isinstance(error, NotNow)
    assert "cannot open 'vault': no such pool" in error.why
    assert error.hint


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("cannot create bookmark 'tank/p#m': permission denied", "bookmark"),
        ("cannot hold snapshot 'tank/p@a': permission denied", "hold"),
        ("cannot send 'tank/cannot mount'@a: permission denied", "send"),
        ("cannot receive new filesystem stream: permission denied", "receive"),
    ],
)
def test_the_right_that_is_missing_is_named(said: str, right: str) -> None:
    assert f"this user may not do that with this dataset: it lacks `{right}` (" in explain(failed(said)).why
    assert "it lacks" not in explain(failed("Unable to open /dev/zfs: Permission denied.")).why


def test_no_token_is_told_to_anybody() -> None:
    error = explain(failed(receiver=SAVED))
    assert isinstance(error, OutsideError)
    told = "\n".join((error.why, error.hint, *error.evidence.lines, *error.evidence.last_output))
    assert FIRST not in told
    assert LATER not in told
    assert "zfs send -P -t (token)" in told
    assert "zfs send -t (token)" in told
    assert redact(f"{FIRST} and {LATER}!") == "(token) and (token)!"
    assert redact("1-2-3 no token, 2026-03-04 neither") == "1-2-3 no token, 2026-03-04 neither"


RETRIES: dict[type[OrchestratorError], RetryClass] = {
    TokenStale: RetryClass.NOW, BaseGone: RetryClass.NOW, StreamBroken: RetryClass.LATER, HostUnreachable: RetryClass.LATER, Stalled: RetryClass.LATER,
    TargetFull: RetryClass.ASK_A_HUMAN, QuotaReached: RetryClass.ASK_A_HUMAN, PermissionDenied: RetryClass.ASK_A_HUMAN, ProgramMissing: RetryClass.ASK_A_HUMAN,
    RecordsRefused: RetryClass.ASK_A_HUMAN, OutsideError: RetryClass.ASK_A_HUMAN,
}  # fmt: skip


@pytest.mark.parametrize("kind", RETRIES)
def test_when_to_try_again(kind: type[OrchestratorError]) -> None:
    assert kind.retry is RETRIES[kind]
    assert any(row[2] is kind for row in TABLE)


def test_no_failed_send_counts_as_done() -> None:
    assert not implements(ENGINE, PartialCopier)
