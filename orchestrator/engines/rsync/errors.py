r"""The failures of rsync by exit code and last output → what happened, what it means, what to do.

The exit code alone is never enough: 12 is a broken link, a refused option and a missing program; 23 is everything from one
unreadable file to a target without inodes. So the table is tried from the top, messages before mere codes, and names in quotes
are ignored: a picture may be called "IMG (28).jpg" or "Permission denied".
"""

import re
from collections.abc import Iterable

from orchestrator.domain.answers import split_lines, too_much
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import (
    BaseGone,
    EntryVanished,
    HostUnreachable,
    NamesExhausted,
    NotNow,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    SourceMissing,
    Stalled,
    Stopped,
    StreamBroken,
    TargetFull,
    Unexplained,
    WritesLost,
)
from orchestrator.domain.failure_table import (
    LOGIN,
    NETWORK,
    SSH_ENDED,
    WHOLE_OUTPUT,
    FailureRow,
    find_failure,
    first_line,
    hint_of,
)
from orchestrator.domain.hint_phrases import EARLIER_WHOLE, GOES_ON, KEEP_FEWER, LOOKS_AGAIN
from orchestrator.domain.names import shorten
from orchestrator.domain.place import Location
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.contract.engine import SkippedEntries
from orchestrator.engines.rsync.abilities import UNABLE, explain_unable
from orchestrator.engines.rsync.model import BUSY
from orchestrator.engines.rsync.parse import parse_name
from orchestrator.process.pipeline import PipelineFailed, StopReason

EXIT_PARTIAL = 23
EXIT_VANISHED = 24
_QUOTED = re.compile(r'"[^"\n]*"')
_PROGRAM = re.compile(r"(?P<program>[a-z][a-z0-9_.-]*): ")
FIND_LINKS = (
    "if the target takes no link of so many bytes (XFS: 1,024), `{}` lists them: shorten or exclude those that lie deep"
)
_LINKS = "find {} -xdev -type l -size +1024c"


_TABLE = (
    FailureRow(
        words=r"cannot overwrite directory '\.\./latest'",
        error=OutsideError,
        why="a folder lies in the target where `latest` is to name the newest point, which is there by its own name",
        hint="look what it holds, and give it another name, in the target's folder: `mv -nT latest latest.old`; then run again",
    ),
    FailureRow(
        words=r"get_acl: sys_acl_get_file\([^\n]*/points/[^\n]*\): Too many levels of symbolic links",
        error=OutsideError,
        why="the newest point is not as it was made: a link lies where one of its folders was",
        hint="`poolferry verify JOB` names it, and the run after that links nothing to that point, and mends it where the source has the same",
    ),
    FailureRow(
        words=r"sync: error syncing [^\n]*: Disk quota exceeded",
        error=TargetFull,
        why="the disk did not take all that was written, as a quota at the target is used up",
        hint=f"raise the quota of what it lies on, or free space below it; {EARLIER_WHOLE}, and the next run, or the same "
        "restore again, copies anew what it may have lost",
    ),
    FailureRow(
        words=r"sync: error syncing [^\n]*: No space left on device",
        error=TargetFull,
        why="the disk did not take all that was written, as no space is left (space or quota)",
        hint=f"free space on what it lies on, such as a thin pool or a quota; {EARLIER_WHOLE}, and the next run, or the same "
        "restore again, copies anew what it may have lost",
    ),
    FailureRow(
        words=r"sync: error syncing ",
        error=WritesLost,
        why="the disk did not take all that was written",
        hint="look at the kernel's messages and the disk's health (smartctl -a), and at the space of what it lies on, such as a thin pool; "
        f"{EARLIER_WHOLE}, and the next run, or the same restore again, copies anew what it may have lost",
    ),
    FailureRow(
        words=r"Disk quota exceeded",
        error=TargetFull,
        why="a quota at the target is used up",
        hint="see which, there, where FOLDER is the target's: `zfs get quota,refquota,userquota@OWNER FOLDER` (ZFS), `btrfs qgroup show -re FOLDER`, or "
        "`repquota -a`; raise it, or free space below it, or let [keep] keep fewer points; every earlier point is whole",
    ),
    FailureRow(
        words=r"No space left on device",
        error=TargetFull,
        why="the target has no space left (space, inodes or quota)",
        hint=f"free space on the target, {KEEP_FEWER}; {EARLIER_WHOLE}",
    ),
    FailureRow(
        words=r"BusyBox v\d|\bnot GNU's: |unrecognized: -printf|unrecognized option: (printf|E|T)\b",
        error=ProgramMissing,
        why="the programs there are not GNU's",
        hint="apt install findutils coreutils util-linux on that machine; `poolferry check --system` names what is missing",
    ),
    *LOGIN,
    *NETWORK,
    FailureRow(
        words=r"[gs]etfattr: not found",
        error=ProgramMissing,
        why="a program is not installed there that fake-super needs",
        hint="apt install attr on that machine",
    ),
    FailureRow(
        words=(
            r"rsync: (command )?not found|rsync: No such file|Failed to exec|exec.*rsync.*No such file|"
            r"sh: \d+: [a-z]+: not found|command not found"
        ),
        error=ProgramMissing,
        why="a program is not installed there",
        hint="apt install rsync util-linux findutils coreutils on that machine",
    ),
    FailureRow(  # Debian 12's rsync, 3.2.7-1+deb12u6, takes no entry that --delete-missing-args is to remove
        words=r"invalid file mode 0+ for ",
        error=EntryVanished,
        why="a file vanished while it was copied",
        hint="the next run looks again",
        exits=(2,),
    ),
    FailureRow(
        words=(
            r"unknown option|on remote machine: -|syntax or usage error|requested action not supported|"
            r"No common checksum|disabled on this server"
        ),
        error=ProgramMissing,
        why="the two sides' rsync do not understand each other",
        hint="upgrade the older rsync; `poolferry check --system` names both versions",
        exits=(1, 2, 4, 12),
    ),
    FailureRow(
        words=r"protocol version mismatch|is your shell clean",
        error=OutsideError,
        why="the remote shell prints something before rsync speaks",
        hint="`ssh HOST true` must print nothing: mend the login scripts there",
        exits=(2,),
    ),
    FailureRow(
        words=r"Read-only file system",
        error=PermissionDenied,
        why="the target is mounted read-only",
        hint="look at the kernel's messages for a disk error, then mount it writable",
    ),
    FailureRow(
        words=r"Input/output error",
        error=OutsideError,
        why="a disk could not be read or written",
        hint="look at the kernel's messages and the disk's health (smartctl -a) before anything else",
    ),
    FailureRow(
        words=r"sync: error opening [^\n]*: No such file",
        error=SourceMissing,
        why="the folder is not there",
        hint="mount it, or correct its path in the job file or in targets.toml",
    ),
    FailureRow(
        words=r'(change_dir|link_stat) "" failed: No such file',
        error=SourceMissing,
        why="the source is not there",
        hint="mount it, or correct `source` in the job file",
    ),
    FailureRow(
        words=r'mkdir "" failed: No such file',
        error=OutsideError,
        why="the folder above the target is not there",
        hint="mount it, or make the folder",
    ),
    FailureRow(
        words=r'recv_generator: failed to stat "": Not a directory',
        error=BaseGone,
        why="a file became a folder at the source while it was copied",
        hint=GOES_ON,
    ),
    FailureRow(
        words=r"\[sender\] (?:link_stat|get_acl)\b.*: (?:Not a directory|Too many levels of symbolic links)",
        error=BaseGone,
        why="a folder became something else at the source while it was copied",
        hint=GOES_ON,
    ),
    FailureRow(
        words=r"Not a directory",
        error=OutsideError,
        why="a file lies where a folder is needed",
        hint="move it away, or name another place in targets.toml",
    ),
    FailureRow(
        words=r"symlink owned by an untrusted user|is a link of another user",
        error=PermissionDenied,
        why="the path leads over a symbolic link that somebody else owns, and rsync does not follow it",
        hint="write the real path (`realpath` prints it), or give the link to the user who runs poolferry",
    ),
    FailureRow(
        words=r"was exchanged for a link just now|should be a folder that poolferry made",
        error=PermissionDenied,
        why="another user put something else in place of a folder, and nothing was written there",
        hint="look who may write into the folder above: `ls -ld` of each shows it",
    ),
    FailureRow(
        words=r"Too many links",
        error=NamesExhausted,
        why="the target's filesystem allows no more names for one file",
        hint=(
            "write hard-links = false in [rsync]: each name is copied as a file of its own then, and takes its space; or copy to "
            "XFS, btrfs or ZFS, which allow more names (ext4: 65,000)"
        ),
    ),
    FailureRow(
        words=r"File name too long|Invalid or incomplete multibyte|File too large|Value too large for defined",
        error=OutsideError,
        why="the target's filesystem does not take an entry: its name or its size is beyond it",
        hint="copy or restore to a filesystem that takes it (ext4, XFS, btrfs, ZFS), or change or exclude the entry that is named",
    ),
    FailureRow(
        words=r"errors with program diagnostics",
        error=OutsideError,
        why="rsync could not print a message: of a link that was not taken, it is too long where path and text together are more than 5 KB",
        hint=FIND_LINKS.format(_LINKS.format("SOURCE")),
    ),
    FailureRow(
        words=r"out of memory|Cannot allocate memory|exceeded --max-alloc",
        error=OutsideError,
        why="memory was too short for the list of files",
        hint="give the smaller machine more memory, or split the source into several jobs",
    ),
    FailureRow(
        words=r"find: '[^\n]*/\.poolferry/work/[^\n]*': Permission denied",
        error=PermissionDenied,
        why="a folder of the source is closed to its own owner, so the copy's user, who is not root there, may not read it again",
        hint="let its owner read and enter that folder at the source, or name it in excludes in [rsync]; or, over ssh, keep modes in attributes: "
        "fake-super = true in [rsync], with a place that holds no copies yet",
    ),
    FailureRow(
        words=r"Permission denied|Operation not permitted",
        error=PermissionDenied,
        why="something may not be read or written by this user",
        hint="run as root, or give this user the rights",
    ),
    FailureRow(
        words=(
            r"io timeout after|timeout in data|connection unexpectedly closed|Broken pipe|Connection reset|"
            r"closed by remote host|error in rsync protocol|connection lost"
        ),
        error=StreamBroken,
        why="the transfer broke off in the middle",
        hint=GOES_ON,
    ),
    FailureRow(
        exits=(10,),
        error=HostUnreachable,
        why="the connection failed",
        hint="check the network between both machines",
    ),
    FailureRow(exits=(12,), error=StreamBroken, why="the transfer broke off in the middle", hint=GOES_ON),
    FailureRow(exits=(20, 143), error=StreamBroken, why="rsync was ended by a signal", hint=GOES_ON),
    FailureRow(exits=(30,), error=Stalled, why="nothing moved for too long", hint=GOES_ON),
    FailureRow(
        exits=(124, 125, 126),
        error=ProgramMissing,
        why="the program there could not be started",
        hint="try `ssh HOST rsync --version` by hand",
    ),
    FailureRow(exits=(127,), error=ProgramMissing, why="rsync is not installed there", hint="apt install rsync"),
    FailureRow(
        exits=(137,),
        error=StreamBroken,
        why="rsync was killed",
        hint=f"was memory short? (see the kernel's messages); {GOES_ON}",
    ),
    SSH_ENDED,
)


def find_links(source: Location) -> str:
    """Return what helps where rsync cannot name a link that a target did not take."""
    line = _LINKS.format(quoted(source.path))
    return FIND_LINKS.format(f"{source.host.ssh} {quoted(line)}" if source.host else line)


def explain(broken: PipelineFailed) -> OrchestratorError:
    """Return the error for a failed pipeline. Raises nothing."""
    result, evidence = broken.result, broken.evidence
    if result.stopped is StopReason.STALLED:
        where = f" to or from {evidence.host}" if evidence.host else ""
        why = f"nothing moved for too long{where}, so the transfer was ended"
        return Stalled(why, evidence=evidence, hint=GOES_ON)
    if result.stopped is StopReason.TIMED_OUT:
        why = f"{evidence.host or 'this machine'} did not answer in time"
        return Stalled(why, evidence=evidence, hint=f"look at its disks and its load; {LOOKS_AGAIN}")
    if result.stopped is StopReason.FLOODED:
        return too_much("rsync's host", evidence)
    if result.stopped is not None:
        return Stopped("the run was asked to stop")
    code, said = exit_code(broken), "\n".join(evidence.last_output)
    if code == BUSY or "Another instance of rrsync" in said:
        return NotNow(
            "another copy into this target is still alive", hint="it ends by itself, or with the far side's timeout"
        )
    if code == UNABLE:
        return explain_unable(split_lines(said))
    found = find_failure(_TABLE, _QUOTED.sub('""', said), codes=() if code is None else (code,))
    if found is not None:
        row = found.row
        line = _first_line(said, row.words or r"\S")
        return row.error(f"{row.why} ({line})" if line else row.why, evidence=evidence, hint=hint_of(row, said))
    line = first_line(said)
    named = _PROGRAM.match(line)
    return Unexplained(
        f"{named['program'] if named else 'rsync'} ended with {code}: {line or 'no words'}",
        evidence=evidence,
        hint=WHOLE_OUTPUT,
    )


def exit_code(broken: PipelineFailed) -> int | None:
    """Return the exit code of the last failed stage, as a shell reports it: 128 plus the number of the signal."""
    codes = [code for code in broken.evidence.exits if code]
    if not codes:
        return None
    return codes[-1] if codes[-1] > 0 else 128 - codes[-1]


def _first_line(said: str, words: str) -> str:
    lines = (line.strip() for line in split_lines(said))
    return shorten(next((line for line in lines if re.search(words, _QUOTED.sub('""', line))), ""))


def is_partial(broken: PipelineFailed) -> bool:
    """Return True when rsync did all it could and only some files were left out."""
    return broken.result.stopped is None and exit_code(broken) in (EXIT_PARTIAL, EXIT_VANISHED)


_GONE = re.compile(rb'(?:file|directory) has vanished: "(?P<name>.*)"')
_SHRANK = re.compile(rb'.*read errors mapping "(?P<name>.*)": No data available \(61\)')
_UNREADABLE = re.compile(
    rb".*(?:send_files failed to open|read errors mapping|opendir|readdir\(|readlink_stat\(|lstat|get_xattr_names: llistxattr\(|"
    rb'get_xattr_data: lgetxattr\(|get_acl: (?:sys_acl_get_file|xacl_get)\() ?"(?P<name>.*)"'
    rb'(?:,"[^"]*")?(?:, ?(?:-?\d+|ACL_TYPE_[A-Z]+))?\)?(?: failed)?: (?P<why>.*) \(\d+\)'
)
# What the sender cannot put in its list. Anybody may make such a path in a folder of hers: it must not end the copy of all others.
_NOT_LISTED = (
    (
        re.compile(rb"filename overflows max-path len by \d+: (?P<name>.*)"),
        "its path is longer than the 4,096 bytes that rsync carries",
    ),
    (
        re.compile(rb"skipping overly long name: (?P<name>.*)"),
        "its path is longer than the 4,096 bytes that rsync carries",
    ),
    (re.compile(rb"skipping symlink with 0-length value: (?P<name>.*)"), "a symlink without a text"),
    (
        re.compile(rb"skipping file with bogus \(zero\) st_mode: (?P<name>.*)"),
        "its filesystem does not tell what it is",
    ),
    (re.compile(rb"cannot send file with empty name in (?P<name>.*)"), "its filesystem lists an entry without a name"),
)
# Attributes and access lists that are too large for the target, such as more than 4 KiB on ext4: E2BIG, ENOSPC, ERANGE, EDQUOT. The
# comparison after the copy names the entry: here it may be that of a temporary file.
_NOT_STORED = re.compile(
    rb"rsync: \[(?:receiver|generator)\] (?:(?:rsync_xal_set|set_xattr_acl|copy_xattrs): [fl]?setxattr|set_acl: (?:sys_acl_set_file|xacl_set))"
    rb"\(.*\)(?: failed)?: .* \((?:7|28|34|122)\)"
)
# One more name of a file than the target's filesystem takes: ext4 takes 65,000. Anybody may make as many elsewhere.
_NOT_LINKED = re.compile(rb'rsync: (?:\[generator\] )?link "(?P<name>.*)" => .* failed: Too many links \(31\)')
_TOO_MANY_NAMES = "its file has more names than the target's filesystem takes (ext4: 65,000)"
_TORN = re.compile(rb"ERROR: (?P<name>.*) failed verification -- update .*")
HARMLESS = re.compile(
    rb"|rsync error: some files.*|rsync warning: some files vanished.*|IO error encountered -- skipping file deletion"
    rb"|WARNING: .* failed verification -- update .*"
)


def find_skipped_entries(
    broken: PipelineFailed, errors: Iterable[bytes], tree: SourceTree, into: str
) -> SkippedEntries | None:
    """Return the entries that a copy had to leave out; None when anything else failed too: then the copy has failed.

    `into`: the root of the tree that it wrote.

    A file that shrank while it was read is copied again by rsync itself; only one that changes again during that is a failure.
    """
    if not is_partial(broken):
        return None
    source, tops = tree.root.path, {b"", *tree.tops}
    vanished: list[bytes] = []
    unreadable: dict[bytes, str] = {}
    unlinked: dict[bytes, str] = {}
    shrank: list[bytes] = []
    torn: set[bytes] = set()
    refused = 0
    for line in map(bytes.strip, errors):
        if found := _GONE.fullmatch(line):
            vanished.append(below(found["name"], source))
        elif found := _SHRANK.fullmatch(line):
            shrank.append(found["name"])
        elif found := _UNREADABLE.fullmatch(line):
            unreadable[below(found["name"], source)] = found["why"].decode(errors="replace")
        elif (found := _NOT_LINKED.fullmatch(line)) and (name := below(found["name"], into)):
            unlinked[name] = _TOO_MANY_NAMES
        elif found := _TORN.fullmatch(line):
            torn.add(parse_name(found["name"]))
        elif passed := _passed_over(line):
            unreadable[below(passed[0], source)] = passed[1]
        elif _NOT_STORED.fullmatch(line):
            refused += 1
        elif not HARMLESS.fullmatch(line):
            return None
    explained = vanished or unreadable or unlinked or shrank or refused
    if not explained or tops & {*unreadable, *vanished} or not torn <= unreadable.keys():
        return None
    return SkippedEntries(
        unreadable=tuple(unreadable.items()),
        unlinked=tuple(unlinked.items()),
        vanished=tuple(vanished),
        refused=refused,
    )


def _passed_over(line: bytes) -> tuple[bytes, str] | None:
    for words, why in _NOT_LISTED:
        if found := words.fullmatch(line):
            return found["name"], why
    return None


def below(name: bytes, root_path: str) -> bytes:
    """Return the path below a root from a name as rsync prints it; empty for the root itself, and for a path outside of it."""
    root = root_path.rstrip("/").encode("utf-8", "surrogateescape") + b"/"
    path = parse_name(name)
    if path.startswith(b"/"):
        if not path.startswith(root):
            return b""
        path = path.removeprefix(root)
    return b"/".join(part for part in path.split(b"/") if part not in (b"", b"."))
