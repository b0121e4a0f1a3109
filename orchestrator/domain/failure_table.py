"""Table of failures: messages and exit codes of programs, their meaning, and a hint.

Each engine and the disks have a short table of their own and add the shared rows of ssh from here. A table is tried from the
top: messages before mere exit codes, causes before consequences.
Why here: disks and engines may not import each other, and both may import this package.
"""

import re
import shlex
from collections.abc import Collection, Iterable

from orchestrator.domain.answers import split_lines
from orchestrator.domain.errors import (
    Evidence,
    HostUnreachable,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    SourceMissing,
    TargetFull,
    Unexplained,
)
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.gate import ABSENT_OF_GATE, GATE_ROOT_ABSENT
from orchestrator.domain.hint_phrases import LOOKS_AGAIN
from orchestrator.domain.names import shorten


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRow:
    """One row. It fits when the output matches `words` (None: any), and `program` and one of `exits` fit where given."""

    words: str | None = None
    exits: tuple[int, ...] = ()
    program: str = ""
    error: type[OutsideError]
    why: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureMatch:
    """The row that fits, and where in the text its pattern matched; None: it fits by an exit code alone."""

    row: FailureRow
    at: tuple[int, int] | None


def find_failure(
    table: Iterable[FailureRow], said: str, *, codes: Collection[int] = (), program: str = ""
) -> FailureMatch | None:
    """Return the first row that fits. `codes`: exit codes as a shell reports them; `program`: the one that failed."""
    for row in table:
        if (row.exits and not set(row.exits) & set(codes)) or row.program not in ("", program):
            continue
        found = re.search(row.words, said) if row.words is not None else None
        if found is not None or row.words is None:
            return FailureMatch(row=row, at=found.span() if found else None)
    return None


def explain_by(table: Iterable[FailureRow], evidence: Evidence, *, program: str, words: str) -> OutsideError:
    """Return the error of the first row that fits. `words`: a pattern of the line that tells most where no row does."""
    said = "\n".join(evidence.last_output)
    code = next((code for code in reversed(evidence.exits) if code), None)
    if found := find_failure(table, said, codes=() if code is None else (code,)):
        row, line = found.row, whole_lines(said, found.at) if found.at and not found.row.exits else first_line(said)
        return row.error(f"{row.why} ({line})" if line else row.why, evidence=evidence, hint=hint_of(row, said))
    line = matching_line(said, words) or first_line(said) or "no words"
    return Unexplained(f"{program} ended with {code}: {line}", evidence=evidence, hint=WHOLE_OUTPUT)


def says(words: str, error: type[OutsideError], why: str, hint: str) -> FailureRow:
    """Return a row that fits by a message."""
    return FailureRow(words=words, error=error, why=why, hint=hint)


def ends(exits: tuple[int, ...], error: type[OutsideError], why: str, hint: str) -> FailureRow:
    """Return a row that fits by an exit code alone."""
    return FailureRow(exits=exits, error=error, why=why, hint=hint)


def hint_of(row: FailureRow, said: str) -> str:
    """Return the hint of a row; for a changed host key with the very command that ssh named, which knows file and port."""
    named = _REMOVES_KEY.search(said) if row is CHANGED_KEY else None
    if named is None:
        return row.hint
    command = shlex.join(("ssh-keygen", "-f", named[1], "-R", named[2]))
    return row.hint.replace(_ANY_KEY, f"`{command}` here")


def whole_lines(said: str, at: tuple[int, int]) -> str:
    """Return the whole lines that contain the match, joined into one."""
    start = said.rfind("\n", 0, at[0]) + 1
    end = said.find("\n", at[1])
    return " ".join(line.strip() for line in split_lines(said[start : end if end >= 0 else len(said)]))


def first_line(said: str) -> str:
    """Return the first line that is not empty, with its middle left out where it is very long."""
    return shorten(next((line.strip() for line in split_lines(said) if line.strip()), ""))


def matching_line(said: str, words: str) -> str:
    """Return the first line that matches the pattern, with its middle left out where it is very long; empty: none."""
    return shorten(next((line.strip() for line in split_lines(said) if re.search(words, line)), ""))


WHOLE_OUTPUT = "the whole output is in `poolferry show RUN`"
_REMOVES_KEY = re.compile(r'ssh-keygen -f ["\']([ -~]+?)["\'] -R ["\']([ -~]+?)["\']')
_ANY_KEY = "`ssh-keygen -R HOST` here (`-R [HOST]:PORT` for another port than 22)"

# The rows of ssh, which every engine that reaches a host needs. Source: ssh(1), OpenSSH's own messages.
CHANGED_KEY = says(
    r"REMOTE HOST IDENTIFICATION HAS CHANGED|Offending .* key in ",
    PermissionDenied, "the host's key is another one than before: it was made anew, or another machine answers",
    "compare it at the host (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` there); only if it is the host's own: "
    f"{_ANY_KEY}, then log in once by hand",
)  # fmt: skip
HOST_KEY = says(
    r"Host key verification failed",
    PermissionDenied, "the host's key is not the one this machine knows, or it knows none",
    "log in once by hand as the user who runs poolferry, and compare the key before accepting it",
)  # fmt: skip
LOGIN_REFUSED = says(
    r"[Pp]ermission denied \((publickey|password|keyboard|gssapi|hostbased)",
    PermissionDenied, "the host refused our login", "ssh-copy-id to the host, or name the key in [pipe] ssh-options",
)  # fmt: skip
GATE = says(
    r"poolferry gate \S+: refused: ",
    PermissionDenied, "the gate of our key does not let it do this",
    "`journalctl -t poolferry-gate` there says what was asked; where the poolferry there is older than this one, upgrade it",
)  # fmt: skip
GATE_ABSENT = says(
    rf"poolferry gate \S+: refused: .*{GATE_ROOT_ABSENT}",
    PermissionDenied, "the dataset into which the gate of our key receives is not there", ABSENT_OF_GATE,
)  # fmt: skip
GATE_BUSY = says(
    r"poolferry gate \S+: refused: busy: ",
    HostUnreachable, "the gate of our key answers as many requests as it may at once",
    f"{LOOKS_AGAIN}; if nothing else is under way, `connections` in the gate's file there is too small",
)  # fmt: skip
GATE_FULL = says(
    r"poolferry gate \S+: refused: .* (at-most allows|keep-free holds)",
    TargetFull, "the gate of our key lets no more in",
    "what is used there, or `at-most` or `keep-free` in the gate's file there, is for the owner of that machine to change",
)  # fmt: skip
GATE_APPEND_ONLY = says(
    r"poolferry gate \S+: refused: append-only: ",
    PermissionDenied, "our key can only add to its copies there, and this could change or remove one",
    "what has to be changed or removed there, its owner does on that machine itself: jobs/guarantees.md, \"Keys for datasets\"",
)  # fmt: skip
GATE_LACKS = says(
    r"poolferry gate \S+: refused: no right for that: ",
    PermissionDenied, "our key has not the right for this there",
    "whether it may have the right that the gate names, the owner of that machine decides, who writes it into the gate's file there "
    "(jobs/guarantees.md, \"Keys for datasets\")",
)  # fmt: skip
RRSYNC = says(
    r"rrsync error: ",
    PermissionDenied, "our key goes through rrsync there, which lets it run rsync and nothing else",
    "in authorized_keys there, put `poolferry gate` in its place, as `poolferry setup gate --help` says",
)  # fmt: skip
UNRESOLVED = says(
    r"Could not resolve hostname|Name or service not known|Temporary failure in name resolution",
    HostUnreachable, "the host's name could not be resolved", "check the name and this machine's network",
)  # fmt: skip
UNANSWERED = says(
    r"Connection refused|Connection timed out|No route to host|Network is unreachable|Operation timed out|"
    r"Connection to .* timed out|banner exchange",
    HostUnreachable, "the host did not answer", "check that the host runs, and sshd on it",
)  # fmt: skip
SSH_ENDED = ends(
    (255,), HostUnreachable, "the connection to the host broke off or could not be made",
    "check the network, and `ssh HOST true` by hand",
)  # fmt: skip
GATES = (GATE_ABSENT, GATE_BUSY, GATE_FULL, GATE_APPEND_ONLY, GATE_LACKS, GATE)
PLAIN_LOGIN = (RRSYNC, CHANGED_KEY, HOST_KEY, LOGIN_REFUSED)
LOGIN = (*GATES, *PLAIN_LOGIN)
NETWORK = (UNRESOLVED, UNANSWERED)

# The rows of ZFS that engines share which look at pools and snapshots; the engine zfs tells more of both sides of a stream.
ZFS_MISSING = says(
    r"(zpool|zfs): (command )?not found|/dev/zfs|ZFS modules? (is|are|cannot be) (not )?loaded",
    ProgramMissing, "ZFS is not there, or its kernel module is not loaded",
    "apt install zfsutils-linux zfs-dkms and `modprobe zfs` there",
)  # fmt: skip
DATASET_MISSING = says(
    r"cannot open '[^']*': (dataset does not exist|no such pool)|no such pool available",
    SourceMissing, "the dataset is not there", "import its pool, or correct the name in the job file",
)  # fmt: skip
POOL_SUSPENDED = says(
    r"I/O is currently suspended|pool is suspended",
    OutsideError, "the pool lost its disks and waits for them", "attach the disks again, then `zpool clear`",
)  # fmt: skip
