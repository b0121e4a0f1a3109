"""Error messages of zfs, zpool, mbuffer, sudo and ssh, and their meanings: one table, tried from the top.

Messages before mere exit codes, causes before consequences: errors that follow from a broken connection come last.
Source: openzfs, lib/libzfs/libzfs_sendrecv.c and libzfs_util.c; ssh(1).
"""

from orchestrator.domain.errors import (
    BaseGone,
    HostUnreachable,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    QuotaReached,
    RecordsRefused,
    Stalled,
    StreamBroken,
    TargetFull,
    TokenStale,
)
from orchestrator.domain.failure_table import GATES, NETWORK, PLAIN_LOGIN, ends, says
from orchestrator.domain.hint_phrases import FROM_SCRATCH, GOES_ON, LOOKS_AGAIN, WITHOUT_RECORDS
from orchestrator.domain.problem import SAME_COMMAND

_TOKENS = (
    says(
        r"used in the initial send no longer exists",
        TokenStale, "the snapshot that a cut send was about is gone from the source", LOOKS_AGAIN,
    ),
    says(
        r"is no longer the same snapshot used in the initial send",
        TokenStale, "the snapshot that a cut send was about is another one now, under the same name", LOOKS_AGAIN,
    ),
    says(
        r"incremental source \S* ?no longer exists",
        TokenStale, "what a cut send starts from is gone from the source, as a snapshot and as a bookmark", LOOKS_AGAIN,
    ),
    says(
        r"resume token is corrupt|resume token .*(invalid|version)|cannot resume send",
        TokenStale, "the resume token cannot be used: it is damaged, or of another version of ZFS", LOOKS_AGAIN,
    ),
    says(
        r"contains partially-complete state from|Resuming recv on existing d",
        TokenStale, "the target holds what a cut receive left, and this stream is not its rest",
        f"it may still be closing; {LOOKS_AGAIN}",
    ),
    # zfs prints one of these two for each EINVAL of a resumed stream: also where what the target keeps has grown after its token was read.
    # Source: OpenZFS, dmu_recv.c: resume_check; libzfs_sendrecv.c: zfs_receive_one.
    says(
        r"cannot receive resume stream: kernel modules must be upgraded",
        TokenStale, "the stream does not begin where the target stopped, or is of a newer ZFS than the target's", LOOKS_AGAIN,
    ),
    says(
        r"embedded data.* encrypted|incompatible embedded data",
        TokenStale, "the stream does not begin where the target stopped, or holds embedded blocks, which an encrypted target cannot take",
        LOOKS_AGAIN,
    ),
)  # fmt: skip
_BASES = (
    says(
        r"most recent snapshot of .* does not\s+match incremental source|incremental source .* does not exist",
        BaseGone, "the target's newest snapshot is not the one that this stream starts from", LOOKS_AGAIN,
    ),
    says(
        r"has been modified\s+since most recent snapshot",
        BaseGone, "the target was written to since its newest snapshot", f"set readonly=on there; {LOOKS_AGAIN}",
    ),
    says(
        r"destination has snapshots \(eg|must destroy them to overwrite|more recent snapshots or bookmarks exist",
        BaseGone, "the target has got snapshots since the look", LOOKS_AGAIN,
    ),
    says(
        r"is a clone\s+must destroy it|must destroy it to overwrite it",
        OutsideError, "the target is a clone, and a whole stream cannot replace it",
        f"`zfs promote` it there, or {FROM_SCRATCH}",
    ),
    says(
        r"has dependent clones|clones of previous snapshots exist",
        OutsideError, "a clone on the target hangs on a snapshot that would have to go",
        f"`zfs promote` or destroy the clone there; a name that ends in %recv is what a cut receive left: {SAME_COMMAND}",
    ),
)  # fmt: skip
_ENCRYPTION = (
    says(
        r"raw receive on top of existing unencrypted|cannot be used to destroy an encrypted|overwrite an unencrypted",
        OutsideError, "one side is encrypted and the other is not, so the stream does not fit what is there",
        FROM_SCRATCH,
    ),
    says(
        r"IV set guid m",
        OutsideError, "the target's newest snapshot was not received raw, so a raw stream cannot follow it",
        FROM_SCRATCH,
    ),
    says(
        r"was received as a raw stream, but this incremental is not raw",
        OutsideError, "the copy was received raw and this stream is not: every later raw one would be refused",
        'write raw = "auto" in [zfs]',
    ),
    says(
        r"encryption key does not match existing key",
        OutsideError, "the stream's key is not the copy's: it was changed on one side",
        f"compare `zfs get encryptionroot,keyformat,pbkdf2salt` on both sides; or {FROM_SCRATCH}",
    ),
    says(
        r"may not be sent with properties without the raw flag",
        OutsideError, "zfs sends properties of encrypted datasets only with a raw stream",
        'write raw = "auto", or properties = false, in [zfs]',
    ),
    says(
        r"(?i)key (must be|is not|not) loaded|key unavailable",
        PermissionDenied, "a key is not loaded",
        '`zfs load-key -a` on that side asks for all that are missing; or write raw = "auto" in [zfs], which needs no key',
    ),
    says(
        r"requires -L|--large-block",
        OutsideError, "earlier streams of this chain held large blocks, and this one was sent without",
        f"`zfs set poolferry:flags=Lce` on the copy (wLce when it is raw), and {SAME_COMMAND}",
    ),
)  # fmt: skip
# Where the source itself can record nothing. A channel program tells only the number of an error.
_BOOKMARKS = (
    says(
        r"Channel program execution failed[^\n]*\n?[^\n]*read-only|cannot (create bookmark|hold)\b[^\n]*read-only",
        RecordsRefused, "the source's pool is imported read-only, so no bookmark can be made there",
        f"{WITHOUT_RECORDS}; or `zpool export` it, and `zpool import` it without readonly=on",
    ),
    says(
        r"cannot create bookmark\b[^\n]*(: error 28\b|out of space)|cannot hold\b[^\n]*out of space",
        RecordsRefused, "the source's pool has no space left, not even for a bookmark",
        f"destroy snapshots or files there that nobody needs; {WITHOUT_RECORDS}",
    ),
    says(
        r"cannot create bookmark\b[^\n]*(: error 95\b|bookmark feature not enabled)",
        RecordsRefused, "the source's pool is older than bookmarks",
        f"`zpool upgrade` it, or `zpool set feature@bookmarks=enabled` on it; {WITHOUT_RECORDS}",
    ),
)  # fmt: skip
_SPACE = (
    says(
        r"(?i)quota exceeded",
        QuotaReached, "a quota on the target is reached",
        f"`zfs get -r quota,refquota` there names it: raise it; {GOES_ON}",
    ),
    says(
        r"(?i)out of space|no space left on device",
        TargetFull, "the target pool has no space left",
        f"destroy snapshots there that nobody needs, or give it more disks; {GOES_ON}",
    ),
)  # fmt: skip
_POOLS = (
    says(
        r"(?i)suspended",
        OutsideError, "a pool is suspended: its disks are gone or failing",
        f"`zpool status` names the fault: bring the disks back, then `zpool clear`; {GOES_ON}",
    ),
    says(
        r"(?i)pool is read-only",
        OutsideError, "a pool is imported read-only, so nothing can be written to it",
        "`zpool export` it on that side, then `zpool import` it without readonly=on; `zpool get readonly` names it",
    ),
    says(
        r"must be upgraded|unsupported (feature|version)|requires a newer|cannot be received.*version",
        ProgramMissing, "the target's ZFS, or its pool, is older than the stream needs",
        "`poolferry check --system` names both versions; upgrade ZFS there, then `zpool upgrade` the pool",
    ),
    says(
        r"modules? (are not|cannot be) (auto-)?loaded|/dev/zfs and|zfs_version_kernel",
        ProgramMissing, "the kernel's zfs module is not loaded",
        "modprobe zfs; after a kernel upgrade it may have to be built again (`dkms status`)",
    ),
    says(
        r"Input/output error|I/O error|Invalid exchange",
        OutsideError, "a disk could not be read or written",
        "`zpool status -v` names the pool's errors; look at the kernel's messages and the disks (smartctl -a)",
    ),
)  # fmt: skip
_RIGHTS = (
    *PLAIN_LOGIN,
    says(
        r"sudo: .*(password|terminal|askpass|not allowed)|may not run sudo|is not in the sudoers",
        PermissionDenied, "sudo does not let this user run zfs without a password",
        "a line in sudoers: USER ALL=(root) NOPASSWD: /usr/sbin/zfs, /usr/bin/kill; or `zfs allow` without sudo",
    ),
    says(
        r"unshare: ",
        PermissionDenied, "contents can be read by root alone, who may mount snapshots",
        "verify as root; or write sudo = true in [zfs], and allow `sudo -n unshare` on that machine",
    ),
    says(
        r"(?i)permission denied|operation not permitted|insufficient privileges",
        PermissionDenied, "this user may not do that with this dataset",
        "run as root, or write sudo = true in [zfs]; or `zfs allow` it: `poolferry check --system` says what is needed",
    ),
    says(
        r"\bperl: (command )?not found|Can't locate \S+\.pm",
        ProgramMissing, "perl is not installed there, which an mbuffer connection needs",
        'apt install perl-base on that machine; or write transport = "ssh" in [pipe]',
    ),
    says(
        r"\bnot found\b|: No such file or directory",
        ProgramMissing, "a program is not installed there", "apt install zfsutils-linux mbuffer on that machine",
    ),
)  # fmt: skip
_OPEN = (
    says(
        r"a stranger connected",
        OutsideError, "somebody else connected to mbuffer's port, and the sender did not; nothing of it was received",
        'find out who, on the sending machine; if a router between changes ports, write transport = "ssh" in [pipe]',
    ),
    says(
        r"rejected connection from",
        OutsideError, "the sender's connection comes from another address than its ssh connection",
        'a jump host or a translated address lies between: write transport = "ssh" in [pipe]',
    ),
    says(
        r"could not bind to socket .*Cannot assign requested address",
        OutsideError, "the receiving machine does not have the address by which the other one sees it",
        'a jump host or a translated address lies between: write transport = "ssh" in [pipe]',
    ),
    says(
        r"in place of our receiver|not prove to be our receiver",
        StreamBroken, "somebody else may hold mbuffer's port on the receiving machine",
        "each attempt takes another port; `ss -ltnp` on that machine names who holds which",
    ),
    says(
        r"could not bind to socket",
        StreamBroken, "mbuffer's port was taken", f"each attempt takes another one; {LOOKS_AGAIN}",
    ),
    *(
        says(
            words, HostUnreachable, "mbuffer's own connection could not be made",
            'let the ports 61000 to 65535 through to the receiver, or write transport = "ssh" in [pipe]',
        )
        for words in (r"unable to connect to", r"no sender has connected|left before it proved itself")  # what tells more first
    ),
    says(
        r"watchdog timeout",
        Stalled, "nothing moved for too long, so the receiving side gave up", GOES_ON,
    ),
)  # fmt: skip
_SURPRISES = (
    says(
        r"\bexists\s+must specify -F|destination already exists|dataset already exists|bookmark exists",
        BaseGone, "something of that name is there, which the look did not show", LOOKS_AGAIN,
    ),
    says(
        r"does not exist",
        BaseGone, "something that was there at the look is gone", LOOKS_AGAIN,
    ),
    says(
        r"is busy|process \d+ does not end",
        Stalled, "something still uses a dataset: a receive, a mount or a hold",
        "it may end by itself; else `zfs holds`, `zfs mount` and the list of processes show what it is",
    ),
    says(
        r"cannot receive \S+ property on",
        OutsideError, "a property could not be set on the copy; its data arrived",
        f"name the property in [zfs] protect, and {SAME_COMMAND}",
    ),
)  # fmt: skip
_CUTS = (
    says(
        r"Timeout, server .* not responding|Connection (reset|closed)|client_loop|closed by remote host",
        StreamBroken, "the link broke off in the middle", GOES_ON,
    ),
    ends((127,), ProgramMissing, "a program is not installed there", "apt install zfsutils-linux mbuffer there"),
    ends((126,), ProgramMissing, "a program there could not be started", "try `zfs version` there by hand"),
    ends((255,), HostUnreachable, "the connection to the host broke off or could not be made", GOES_ON),
    ends(
        (137,), StreamBroken, "a program of the stream was killed",
        f"was memory short? (see the kernel's messages); {GOES_ON}",
    ),
    says(
        r"incomplete stream|checksum mismatch|failed to read from stream|[Bb]roken pipe|Partially received|"
        r"invalid (stream|backup stream)|signal received|[Ii]nterrupted",
        StreamBroken, "the stream broke off in the middle", GOES_ON,
    ),
    ends((129, 130, 141, 143), StreamBroken, "the stream was ended in the middle", GOES_ON),
)  # fmt: skip
ERROR_RULES = (
    *GATES,
    *_TOKENS,
    *_BASES,
    *_ENCRYPTION,
    *_BOOKMARKS,
    *_SPACE,
    *_POOLS,
    *_RIGHTS,
    *_OPEN,
    *NETWORK,
    *_SURPRISES,
    *_CUTS,
)
