"""Test what a failed rsync means: each sentence and class by the words that rsync, ssh and sh really say."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.errors import (
    EntryVanished,
    HostUnreachable,
    NamesExhausted,
    NotNow,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    RetryClass,
    SourceMissing,
    Stalled,
    Stopped,
    StreamBroken,
    TargetFull,
    Unexplained,
    WritesLost,
)
from orchestrator.domain.place import Location
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.contract.engine import SkippedEntries
from orchestrator.engines.rsync.errors import exit_code, explain, find_skipped_entries, is_partial
from orchestrator.process.pipeline import StopReason
from tests.engines.rsync.builders import failed


def tree_at(path: str) -> SourceTree:
    return SourceTree(root=Location(path=path))


SOURCE = tree_at("/s")
PARTLY = (
    "rsync error: some files/attrs were not transferred (see previous errors) (code 23) at main.c(1394) [sender=3.5.0]"
)
CUT = (
    "rsync: connection unexpectedly closed (62 bytes received so far) [generator]\n"
    "rsync error: error in rsync protocol data stream (code 12) at io.c(285) [generator=3.5.0]"
)
UNKNOWN_THERE = "rsync: on remote machine: --open-noatime: unknown option\n" + CUT
CUT_BY_SSH = (
    "Connection to backup closed by remote host.\r\nrsync: connection unexpectedly closed (9 bytes received so far)"
)

# (exit code, last words, class, what the sentence begins with)
TABLE: list[tuple[int, str, type[OrchestratorError], str]] = [
    (1, "rsync: --nosuch: unknown option\nrsync error: syntax or usage error (code 1) at main.c(1886) [client=3.5.0]",
     ProgramMissing, "the two sides' rsync do not understand"),
    (2, ("protocol version mismatch -- is your shell clean?\n(see the rsync manpage for an explanation)\n"
     "rsync error: protocol incompatibility (code 2) at compat.c(625) [sender=3.5.0]"),
     OutsideError, "the remote shell prints something"),
    (1, "sync: error syncing '/b': Input/output error", WritesLost, "the disk did not take all"),
    (1, "sync: error syncing 'unwritten': No space left on device", TargetFull, "the disk did not take all"),
    (1, "sync: error syncing '/b': Disk quota exceeded", TargetFull, "the disk did not take all"),
    (3, ('rsync: [Receiver] ERROR: cannot stat destination "/tmp/file/": Not a directory (20)\n'
     "rsync error: errors selecting input/output files, dirs (code 3) at main.c(789) [Receiver=3.5.0]"),
     OutsideError, "a file lies where a folder is needed"),
    (3, ("refusing to follow a symlink owned by an untrusted user; use --insecure-links locally or …\n"
     'rsync: [Receiver] change_dir#1 "/x/l/" failed: Too many levels of symbolic links (40)'),
     PermissionDenied, "the path leads over a symbolic link"),
    (4, "unknown checksum name: nosuch\nrsync error: requested action not supported (code 4) at checksum.c(157)",
     ProgramMissing, "the two sides' rsync do not understand"),
    (10, "ssh: Could not resolve hostname nowhere: Name or service not known", HostUnreachable, "the host's name"),
    (10, "rsync error: error in socket IO (code 10) at clientserver.c(139)", HostUnreachable, "the connection failed"),
    (11, ('rsync: [receiver] write failed on "/t/f": No space left on device (28)\n'
     "rsync error: error in file IO (code 11) at receiver.c(657) [receiver=3.5.0]\n"
     "rsync: [sender] write error: Broken pipe (32)"), TargetFull, "the target has no space left"),
    (11, 'rsync: [receiver] write failed on "/t/f": Disk quota exceeded (122)', TargetFull, "a quota at the target is used up"),
    (2, ("invalid file mode 00 for a/gone [Receiver]\n"
     "rsync error: protocol incompatibility (code 2) at flist.c(874) [Receiver=3.2.7]"), EntryVanished, "a file vanished while it was copied"),
    (11, ('rsync: [Receiver] mkdir "/no/such" failed: No such file or directory (2)\n'
     "rsync error: error in file IO (code 11) at main.c(808) [Receiver=3.5.0]"),
     OutsideError, "the folder above the target is not there"),
    (11, 'rsync: [receiver] write failed on "/t/f": Input/output error (5)', OutsideError, "a disk could not be"),
    (12, CUT, StreamBroken, "the transfer broke off in the middle"),
    (12, "", StreamBroken, "the transfer broke off in the middle"),
    (12, UNKNOWN_THERE, ProgramMissing, "the two sides' rsync do not understand"),
    (12, "The server is configured to refuse --compress\nrsync error: requested action not supported (code 4)",
     ProgramMissing, "the two sides' rsync do not understand"),
    (12, "/usr/bin/rrsync: -zz is disabled on this server", ProgramMissing, "the two sides' rsync do not understand"),
    (12, "bash: line 1: rsync: command not found\n" + CUT, ProgramMissing, "a program is not installed"),
    (12, "bash: /usr/local/bin/rsync: Permission denied\n" + CUT, PermissionDenied, "something may not be read"),
    (12, "Another instance of rrsync is already accessing this directory.\n" + CUT, NotNow, "another copy"),
    (13, "rsync error: errors with program diagnostics (code 13) at log.c(503) [generator=3.5.0]", OutsideError,
     "rsync could not print a message"),
    (13, 'rsync: [generator] link "/t/a" => b failed: Too many links (31)', NamesExhausted, "the target's filesystem allows"),
    (14, ("rsync: [sender] Failed to exec ssh: No such file or directory (2)\n"
     "rsync error: error in IPC code (code 14) at pipe.c(85) [sender=3.5.0]"), ProgramMissing, "a program is not installed"),
    (1, "find: './a': Permission not known", Unexplained, "find ended with 1: find: './a'"),
    (14, "rsync error: error in IPC code (code 14) at pipe.c(85)", Unexplained, "rsync ended with 14: rsync error"),
    (15, "rsync error: sibling process crashed (code 15)", Unexplained, "rsync ended with 15"),
    (20, "rsync error: received SIGINT, SIGTERM, or SIGHUP (code 20) at rsync.c(874)", StreamBroken, "rsync was ended"),
    (21, "", Unexplained, "rsync ended with 21: no words"),
    (22, "ERROR: out of memory in flist_expand [sender]\nrsync error: error allocating core memory buffers (code 22)",
     OutsideError, "memory was too short"),
    (22, "[Receiver] exceeded --max-alloc=1073741824 setting (file=util2.c, line=72)", OutsideError, "memory was too"),
    (23, 'rsync: [sender] change_dir "/tmp/nosuch" failed: No such file or directory (2)\n' + PARTLY,
     SourceMissing, "the source is not there"),
    (23, 'rsync: [sender] link_stat "/tmp/nosuch" failed: No such file or directory (2)\n' + PARTLY,
     SourceMissing, "the source is not there"),
    (23, 'rsync: [receiver] mkstemp "/t/.18.u7adTQ" failed: No space left on device (28)\n' + PARTLY,
     TargetFull, "the target has no space left"),
    (23, 'rsync: [receiver] mkstemp "/t/.18.zfRNI3" failed: Read-only file system (30)\n' + PARTLY,
     PermissionDenied, "the target is mounted read-only"),
    (1, "find: '/t/.poolferry/work/./shut': Permission denied",
     PermissionDenied, "a folder of the source is closed to its own owner"),
    (23, 'rsync: [receiver] mkstemp "/t/.f.ByLdc9" failed: Permission denied (13)\n' + PARTLY,
     PermissionDenied, "something may not be read or written"),
    (23, 'rsync: [generator] failed to set times on "/t/.": Operation not permitted (1)\n' + PARTLY,
     PermissionDenied, "something may not be read or written"),
    (23, 'rsync: [sender] read errors mapping "/s/f": Input/output error (5)\n' + PARTLY, OutsideError, "a disk could"),
    (23, PARTLY, Unexplained, "rsync ended with 23: rsync error: some files"),
    (24, "rsync warning: some files vanished before they could be transferred (code 24)", Unexplained, "rsync ended with 24"),
    (30, "[sender] io timeout after 1 seconds -- exiting\nrsync error: timeout in data send/receive (code 30)",
     StreamBroken, "the transfer broke off in the middle"),
    (30, "", Stalled, "nothing moved for too long"),
    (75, "rsync: connection unexpectedly closed (0 bytes received so far) [sender]", NotNow, "another copy"),
    (126, "", ProgramMissing, "the program there could not be started"),
    (127, "sh: 1: flock: not found\n" + CUT, ProgramMissing, "a program is not installed there (sh: 1: flock: not found)"),
    (127, "", ProgramMissing, "rsync is not installed there"),
    (-9, "", StreamBroken, "rsync was killed"),
    (137, "", StreamBroken, "rsync was killed"),
    (-15, "", StreamBroken, "rsync was ended by a signal"),
    (143, "", StreamBroken, "rsync was ended by a signal"),
    (255, "Host key verification failed.\r\n" + CUT, PermissionDenied, "the host's key is not the one"),
    (255, "root@backup: Permission denied (publickey,password).\r\n" + CUT, PermissionDenied, "the host refused our login"),
    (255, "ssh: connect to host backup port 22: Connection refused\r\n" + CUT, HostUnreachable, "the host did not answer"),
    (255, "ssh: connect to host backup port 22: No route to host", HostUnreachable, "the host did not answer"),
    (255, "ssh: Could not resolve hostname nowhere: Temporary failure in name resolution", HostUnreachable, "the host's name"),
    (255, CUT_BY_SSH, StreamBroken, "the transfer broke off in the middle"),
    (255, "", HostUnreachable, "the connection to the host broke off"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "words", "error", "why"), TABLE)
def test_what_an_end_means(code: int, words: str, error: type[OrchestratorError], why: str) -> None:
    found = explain(failed(words, code))
    assert type(found) is error
    assert found.why.startswith(why)
    assert found.hint
    if isinstance(found, OutsideError):
        assert found.evidence.exits == (code,)
        assert found.evidence.lines == ("rsync --archive /a/ /b/",)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("IMG (28).jpg", PermissionDenied),
        ("bill (122)", PermissionDenied),
        ("No space left on device", PermissionDenied),
        ("Connection refused, exec rsync: No such file", PermissionDenied),
        ("Input/output error", PermissionDenied),
    ],
)
def test_a_name_that_sounds_like_a_failure_is_none(name: str, error: type[OutsideError]) -> None:
    line = f'rsync: [receiver] mkstemp "/t/.{name}.AbCdEf" failed: Permission denied (13)'
    found = explain(failed(f"{line}\n{PARTLY}"))
    assert type(found) is error
    assert line in found.why  # the sentence shows the name nevertheless


@pytest.mark.parametrize(
    ("stopped", "error", "retry"),
    [
        (StopReason.STALLED, Stalled, RetryClass.LATER),
        (StopReason.STOPPED, Stopped, RetryClass.WHEN_IT_CHANGES),
        (StopReason.LET_GO, Stopped, RetryClass.WHEN_IT_CHANGES),
    ],
)
def test_what_we_ended_ourselves_is_not_read(stopped: StopReason, error: type, retry: RetryClass) -> None:
    broken = failed("rsync error: No space left on device", -15, stopped=stopped)
    found = explain(broken)
    assert (type(found), found.retry) == (error, retry)
    assert not is_partial(failed(PARTLY, 23, stopped=stopped))
    assert (
        find_skipped_entries(failed(PARTLY, 23, stopped=stopped), [b'file has vanished: "/s/a"'], SOURCE, "/t") is None
    )


@pytest.mark.parametrize(("code", "told"), [(23, 23), (-9, 137), (0, None), (None, None)])
def test_exit_codes_as_a_shell_tells_them(code: int | None, told: int | None) -> None:
    assert exit_code(failed("", code)) == told


GONE = b'file has vanished: "/s/a"'
END_23 = PARTLY.encode()
END_24 = b"rsync warning: some files vanished before they could be transferred (code 24) at main.c(1394) [sender=3.5.0]"
DENIED = b'rsync: [sender] send_files failed to open "/s/d/f": Permission denied (13)'
EIO = b'rsync: [sender] read errors mapping "/s/f": Input/output error (5)'
SHRANK = b'rsync: [sender] read errors mapping "/s/a": No data available (61)'
AGAIN = b"WARNING: f failed verification -- update discarded (will try again)."
TORN = b"ERROR: f failed verification -- update discarded."
BOTH = SkippedEntries(unreadable=((b"d/f", "Permission denied"),), vanished=(b"a",))

# (exit code, what rsync said, what was left out)
LEFT: list[tuple[int, list[bytes], SkippedEntries | None]] = [
    (24, [GONE, END_24], SkippedEntries(vanished=(b"a",))),
    (24, [b'directory has vanished: "/s/d/e"', b"", END_24], SkippedEntries(vanished=(b"d/e",))),
    (23, [GONE, DENIED, END_23], BOTH),
    (23, [b'rsync: send_files failed to open "/s/d/f": Permission denied (13)', END_23],  # before 3.2
     SkippedEntries(unreadable=((b"d/f", "Permission denied"),))),
    (23, [b'rsync: [sender] opendir "/s/d" failed: Permission denied (13)',
          b"IO error encountered -- skipping file deletion", END_23], SkippedEntries(unreadable=((b"d", "Permission denied"),))),
    (23, [b'rsync: [sender] readlink_stat("/s/l") failed: Input/output error (5)', END_23],
     SkippedEntries(unreadable=((b"l", "Input/output error"),))),
    (23, [EIO, AGAIN, EIO, TORN, END_23], SkippedEntries(unreadable=((b"f", "Input/output error"),))),
    (23, [SHRANK, AGAIN, END_23], SkippedEntries()),  # rsync copied it again by itself
    (23, [SHRANK, AGAIN, b"ERROR: a failed verification -- update retained.", END_23], None),  # torn
    (23, [rb'rsync: [sender] send_files failed to open "/s/ba\#012d "q" \\#134#012 \#377": Permission denied (13)'],
     SkippedEntries(unreadable=((b'ba\nd "q" \\\\#012 \xff', "Permission denied"),))),
    (23, [DENIED + b"\r", END_23], SkippedEntries(unreadable=((b"d/f", "Permission denied"),))),
    (23, [END_23], None),  # nothing says why
    (23, [DENIED, b'rsync: [receiver] mkstemp "/t/.x.AbCdEf" failed: No space left on device (28)', END_23], None),
    (23, [DENIED, b'rsync: [generator] failed to set times on "/t/.": Operation not permitted (1)', END_23], None),
    (23, [DENIED, b'rsync: [generator] opendir "/t/d" failed: Permission denied (13)', END_23], None),  # the target's
    (23, [b'rsync: [sender] opendir "/s/." failed: Permission denied (13)', END_23], None),  # the whole source
    (23, [b'rsync: [sender] change_dir "/s" failed: Permission denied (13)', END_23], None),
    (24, [b'directory has vanished: "/s/."', END_24], None),
    (24, [b'file has vanished: "/elsewhere/a"', END_24], None),
    (12, [GONE, END_24], None),
    (11, [DENIED], None),
]  # fmt: skip


@pytest.mark.parametrize(("code", "errors", "expected"), LEFT)
def test_what_a_copy_had_to_leave_out(code: int, errors: list[bytes], expected: SkippedEntries | None) -> None:
    assert find_skipped_entries(failed("", code), errors, SOURCE, "/t") == expected


def test_names_are_told_below_any_root() -> None:
    assert find_skipped_entries(failed("", 24), [b'file has vanished: "/etc/x"'], tree_at("/"), "/t") == SkippedEntries(
        vanished=(b"etc/x",)
    )
    raw = os.fsdecode(b"/r\xff")
    assert find_skipped_entries(
        failed("", 24), [b'file has vanished: "/r\\#377/x"'], tree_at(raw), "/t"
    ) == SkippedEntries(vanished=(b"x",))


# The same with the rsync of this machine.


def rsync(*arguments: str, cwd: Path, before: tuple[str, ...] = ()) -> tuple[int, str]:
    argv = [*before, "rsync", "-a", "--out-format=pf:%i|%n", *arguments]
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
    return done.returncode, done.stderr


def meaning(ended: tuple[int, str]) -> tuple[type, str]:
    code, words = ended
    assert code
    found = explain(failed(words, code))
    return type(found), found.why


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source `s` of a file and a folder, beside which everything else may be made."""
    (tmp_path / "s/d").mkdir(parents=True)
    (tmp_path / "s/f").write_bytes(bytes(200_000))
    (tmp_path / "s/d/g").write_text("g")
    return tmp_path


def test_a_source_that_is_not_there(tree: Path) -> None:
    assert meaning(rsync(f"{tree}/none/", "t/", cwd=tree))[0] is SourceMissing


def test_no_folder_to_copy_into(tree: Path) -> None:
    (tree / "file").touch()
    assert meaning(rsync("s/", "no/such/", cwd=tree))[1].startswith("the folder above the target")
    assert meaning(rsync("s/", f"{tree}/file/", cwd=tree))[1].startswith("a file lies where")


def shell(script: str) -> str:
    """A remote shell for rsync's -e that is no ssh."""
    return f"sh -c '{script}' sh"


@pytest.mark.parametrize(
    ("script", "rsync_path", "error", "why"),
    [
        (
            'shift; sh -c "$*"',
            "PATH=/nowhere rsync",
            ProgramMissing,
            "a program is not installed there (sh: 1: rsync: not found",
        ),
        ('echo Welcome to this machine; shift; sh -c "$*"', "rsync", OutsideError, "the remote shell prints something"),
        ("exit 255", "rsync", StreamBroken, "the transfer broke off"),
        ("exit 0", "rsync", StreamBroken, "the transfer broke off"),
        ('shift; sh -c "$* --no-such-option"', "rsync", ProgramMissing, "the two sides"),
    ],
)
def test_far_sides_that_go_wrong(
    tree: Path, script: str, rsync_path: str, error: type[OrchestratorError], why: str
) -> None:
    told = meaning(rsync("-e", shell(script), f"--rsync-path={rsync_path}", "s/", f"host:{tree}/t/", cwd=tree))
    assert told[0] is error, told
    assert told[1].startswith(why), told


def test_a_remote_shell_that_is_not_installed(tree: Path) -> None:
    told = meaning(rsync("-e", f"{tree}/no-ssh", "s/", "host:/t/", cwd=tree))
    assert told[0] is ProgramMissing
    assert "no-ssh" in told[1]


@pytest.fixture
def tiny(tree: Path) -> Iterator[Path]:
    """A filesystem of 64 KiB and ten inodes."""
    place = tree / "tiny"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,nr_inodes=10", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.root
def test_a_target_that_is_full_or_read_only(tree: Path, tiny: Path) -> None:
    assert meaning(rsync("s/", f"{tiny}/", cwd=tree))[0] is TargetFull
    (tree / "many").mkdir()
    for number in range(20):
        (tree / f"many/{number}").touch()
    assert meaning(rsync("many/", f"{tiny}/", cwd=tree))[0] is TargetFull
    subprocess.run(["mount", "-o", "remount,ro", tiny], check=True)
    assert meaning(rsync("many/", f"{tiny}/", cwd=tree))[1].startswith("the target is mounted read-only")


NOBODY = ("setpriv", "--reuid", "65534", "--clear-groups")


@pytest.fixture
def open_tree() -> Iterator[Path]:
    """A source `s` and a target `t` where nobody may go: tmp_path lies in a folder that is only root's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        place = Path(folder)
        place.chmod(0o755)
        (place / "s").mkdir(0o755)
        (place / "s/f").write_text("f")
        (place / "t").mkdir()
        os.chown(place / "t", 65534, 65534)
        yield place


@pytest.mark.root
def test_what_may_not_be_read_is_left_out(open_tree: Path) -> None:
    source = open_tree / "s"
    hostile = os.fsencode(source) + b'/ba\nd "q" \\#012 \xff'
    with open(hostile, "wb"):
        os.chmod(hostile, 0)
    (source / "f").chmod(0)
    (source / "e").mkdir(0)
    code, words = rsync(f"{source}/", "t/", cwd=open_tree, before=NOBODY)
    found = find_skipped_entries(failed(words, code), words.encode().splitlines(), tree_at(str(source)), "/t")
    assert found is not None
    assert dict(found.unreadable) == dict.fromkeys((b"f", b"e", b'ba\nd "q" \\#012 \xff'), "Permission denied")
    assert found.vanished == ()


@pytest.mark.root
def test_what_may_not_be_written_is_a_failure(open_tree: Path) -> None:
    os.chown(open_tree / "t", 0, 0)
    code, words = rsync("s/", "t/", cwd=open_tree, before=NOBODY)
    assert (
        find_skipped_entries(failed(words, code), words.encode().splitlines(), tree_at(f"{open_tree}/s"), "/t") is None
    )
    assert meaning((code, words))[0] is PermissionDenied


@pytest.mark.root
def test_a_source_that_may_not_be_listed_is_a_failure(open_tree: Path) -> None:
    (open_tree / "s").chmod(0o711)
    code, words = rsync("s/", "t/", cwd=open_tree, before=NOBODY)
    assert (
        find_skipped_entries(failed(words, code), words.encode().splitlines(), tree_at(f"{open_tree}/s"), "/t") is None
    )
    assert meaning((code, words))[0] is PermissionDenied
