"""All command lines of the zfs engine, each flag with its reason beside it.

The scripts lie in `engines/zfs/scripts/`. One call is one login over ssh. Names are passed as arguments: nothing is ever spliced
into a text.
"""

import math
import shlex
from collections.abc import Iterable, Iterator

from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.gate import ALONE
from orchestrator.domain.job import PipeOptions
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.zfs.model import (
    FLAGS,
    PLACEHOLDER,
    RECEIVE_MARK,
    RECEIVE_MARK_BARE,
    WAITS,
    DatasetType,
    MbufferConnection,
    ReceiveEncryption,
    SendFlags,
    SideSurvey,
)
from orchestrator.process import scripts
from orchestrator.process.own_program import own_environment, own_program

# A login without a terminal, and an ordinary user, often have no sbin in their PATH.
PATH = "PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin"
SUDO = 'zfs() { sudo -n zfs "$@"; }'
_ROOM = "engines/zfs"
MOUNT_FUNCTIONS = "mount-safely.sh"
PROPERTY_FUNCTIONS = "properties-by-line.sh"
HOLD_FUNCTIONS = "holds-by-dataset.sh"
# One argument may have 128 KiB, and a whole remote line is one argument of the remote shell.
LONGEST = 96 << 10
MOST_CHANGES = 2000  # of one dataset; more are never only mountpoint folders
_TOGETHER = 4  # bookmarks; fewer are destroyed sooner than a Python starts
_LEAST = 2 << 20  # mbuffer needs memory for some of its blocks
_PROPERTIES = "type,guid,createtxg,origin,encryption,encryptionroot,keystatus"
_SOURCE_PROPERTIES = f"{_PROPERTIES},used,checksum,copies,dedup,sync,zoned,{FLAGS},{WAITS}"
_TARGET_PROPERTIES = f"{_PROPERTIES},receive_resume_token,inconsistent,written,mounted,readonly,canmount,available,{FLAGS},{PLACEHOLDER},{WAITS}"
# Properties that a stream must not change on the target, as they mount, share, or limit the space.
_ELSEWHERE = ("mountpoint", "sharenfs", "sharesmb")
_SPACE_PROPERTIES = {
    DatasetType.FILESYSTEM: ("quota", "refquota", "reservation", "refreservation"),
    DatasetType.VOLUME: ("reservation", "refreservation"),
}
# Properties that a volume cannot have; zfs warns, or refuses the stream. Source: zfsprops(7).
_NOT_OF_VOLUMES = frozenset(
    "aclinherit aclmode acltype atime canmount casesensitivity defaultuserquota devices exec filesystem_limit mountpoint "
    "nbmand normalization overlay quota recordsize refquota relatime setuid sharenfs sharesmb snapdir snapshot_limit "
    "special_small_blocks utf8only version vscan xattr zoned".split()
)
_TAKEN_OVER = ("readonly", "canmount", FLAGS)
_OPEN = ("-o", "encryption=off")
# Changes nothing, as no dataset has that property: it shows in the list of processes that we began the receive.
_OURS = ("-x", RECEIVE_MARK)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandHost:
    """The place where a command runs, and whether changes there need sudo."""

    host: Host | None = None
    sudo: bool = False


def command_host(side: SideSurvey) -> CommandHost:
    """Return the place where a side's commands run."""
    return CommandHost(host=side.root.host, sudo=side.sudo)


def script_command(
    name: str,
    *values: str,
    effect: Effect,
    where: CommandHost,
    before: str = "",
    with_functions: str = "",
    prefix: tuple[str, ...] = (),
) -> Command:
    """Build the command of one of the scripts in `engines/zfs/scripts/`, with its values as arguments.

    `before`: text that it needs in front. `with_functions`: the script that holds functions which this one calls. `prefix`:
    words of the programs that start the shell.
    """
    front = "".join(f"{line}\n" for line in (PATH, *((SUDO,) if where.sudo else ())))
    return scripts.script_command(
        _ROOM,
        name,
        *values,
        effect=effect,
        host=where.host,
        before=front + before,
        with_functions=with_functions,
        prefix=prefix,
    )


def hold_functions() -> str:
    """Return the functions of scripts that list holds."""
    return scripts.script(_ROOM, HOLD_FUNCTIONS)


def namespace_command(
    name: str,
    *values: str,
    effect: Effect,
    host: Host | None,
    sudo: bool,
    with_functions: str = "",
    keeps_disks: bool = False,
) -> Command:
    """Build the command of a script that mounts, in a mount namespace of its own, which root alone can make.

    `keeps_disks`: other disks stay mounted in it, as an owner's program may read there.
    """
    prefix = (*(("sudo", "-n") if sudo else ()), *scripts.MOUNT_NAMESPACE)
    return script_command(
        name,
        *values,
        effect=effect,
        where=CommandHost(host=host),
        before=scripts.script(_ROOM, MOUNT_FUNCTIONS) + ("" if keeps_disks else scripts.let_go_of_disks()),
        with_functions=with_functions,
        prefix=prefix,
    )


def runs_with_sudo(command: Command) -> bool:
    """Return whether the command runs zfs with sudo."""
    return command.argv[0] == "sudo" or (command.argv[:2] == ("sh", "-c") and SUDO in command.argv[2])


def zfs_command(*words: str, effect: Effect, where: CommandHost) -> Command:
    """Build one zfs command; on a remote host, through a script that finds the zfs program."""
    if where.host is not None:
        return script_command("zfs.sh", *words, effect=effect, where=where)
    return Command(argv=(*(("sudo", "-n") if where.sudo else ()), "zfs", *words), effect=effect)


def hinted_zfs_command(*words: str, side: SideSurvey) -> Command:
    """Build one zfs command for a hint, as a person types it; on a remote host by ssh."""
    sudo = ("sudo",) if side.sudo else ()
    return Command(argv=(*sudo, "zfs", *words), effect=Effect.DESTROYS, host=side.root.host)


def hinted_rename(dataset: str, to: str, kind: DatasetType, side: SideSurvey) -> Command:
    """Build the rename of a dataset for a hint; no volume takes -u."""
    return hinted_zfs_command("rename", *(() if kind is DatasetType.VOLUME else ("-u",)), dataset, to, side=side)


def find_below_command(guid: int, pool_guid: int, former: str, root: str) -> Command:
    """Build the command that looks for a dataset by its guid, on this machine, at a root and below it alone."""
    from orchestrator.process.moved_dataset import find_datasets_command  # rarely asked, and it starts programs itself

    return find_datasets_command(guid, pool_guid, former, None, within=root)


def hello_command(host: Host, hello: str) -> Command:
    """Build the request by which a gate says what it is; any other host says nothing."""
    return script_command("hello.sh", hello, ALONE, effect=Effect.READS, where=CommandHost(host=host))


# Surveys.


def survey_command(
    root: Location,
    *,
    target: bool,
    recursive: bool,
    sudo: bool,
    above: bool,
    created: bool,
    newest: bool = False,
    marks_apart: bool = False,
) -> Command:
    """Build the command that prints all data of one side for a plan. `above`: the root's parents even if it exists.

    Only names, guids and createtxg of snapshots: any other property opens every one of them. `newest`: of each dataset's
    snapshots only the newest. Why: for each listed snapshot zfs opens its dataset again unless that is mounted, and copies are
    not. `marks_apart`: our own properties one by one, as the value of one has several lines.
    """
    properties = _TARGET_PROPERTIES if target else _SOURCE_PROPERTIES
    if marks_apart:
        properties = ",".join(name for name in properties.split(",") if ":" not in name)
    columns = "name,guid,createtxg" + (",creation" if created else "")
    return script_command(
        "survey.sh",
        "sudo" if sudo else "plain",
        root.path.partition("/")[0],
        root.path,
        "-r" if recursive else "-d1",  # a dataset's snapshots are one level below it
        "-r" if recursive else "-d0",
        ("prevsnap," if newest else "") + properties,
        columns,
        "newest" if newest else "snapshot" if target else "snapshot,bookmark",
        "yes" if above else "no",
        *_ancestors(root.path),
        effect=Effect.READS,
        where=CommandHost(host=root.host),
    )


def _ancestors(path: str) -> Iterator[str]:
    parts = path.split("/")
    return ("/".join(parts[:depth]) for depth in range(1, len(parts)))


def changes_command(snapshots: tuple[str, ...], side: SideSurvey) -> Command:
    """Build the command that prints what changed in datasets since these snapshots of theirs."""
    return namespace_command(
        "list-changes.sh", str(MOST_CHANGES), *snapshots, effect=Effect.READS, host=side.root.host, sudo=side.sudo
    )


def receiving_command(host: Host | None, *below: str) -> Command:
    """Build the command that prints every process that receives a stream, with its arguments; `below`: only into datasets below it."""
    before = scripts.own_process_function()
    return script_command("receivers.sh", *below, effect=Effect.READS, where=CommandHost(host=host), before=before)


def confirm_command(names: tuple[str, ...], host: Host | None) -> Command:
    """Build the command that prints guids of snapshots and newest snapshots of datasets; it skips missing ones."""
    return script_command("confirm.sh", *names, effect=Effect.READS, where=CommandHost(host=host))


def newest_command(datasets: tuple[str, ...], host: Host | None) -> Command:
    """Build the command that prints name, guid and createtxg of the datasets' own snapshots."""
    return script_command("newest.sh", *datasets, effect=Effect.READS, where=CommandHost(host=host))


def points_command(root: Location) -> Command:
    """Build the command that prints name and time of the root's own snapshots, oldest first; nothing without it."""
    return script_command("points.sh", root.path, effect=Effect.READS, where=CommandHost(host=root.host))


def rights_command(root: Location) -> Command:
    """Build the command that prints our user and its permissions on the dataset, or on the nearest one above."""
    pool = root.path.partition("/")[0]
    return script_command("rights.sh", pool, root.path, effect=Effect.READS, where=CommandHost(host=root.host))


def sudo_command(root: Location) -> Command:
    """Build a command that succeeds when sudo lets us run zfs without a question."""
    return zfs_command("version", effect=Effect.READS, where=CommandHost(host=root.host, sudo=True))


def send_sizes_command(sends: Iterable[Command], where: CommandHost) -> Command:
    """Build the command that prints, for each send command, the size that its dry run reports."""
    words = (word for send in sends for word in _four(send_arguments(send) or ()))
    return script_command("send-sizes.sh", *words, effect=Effect.READS, where=where)


def space_command(root: Location, near: str) -> Command:
    """Build the command that prints the free space at `near`, the root or a dataset above, and the root's snapshots."""
    pool = root.path.partition("/")[0]
    return script_command("space.sh", pool, near, root.path, effect=Effect.READS, where=CommandHost(host=root.host))


def compression_command(root: Location) -> Command:
    """Build the command that prints the compression of each dataset."""
    words = ("get", "-Hp", "-r", "-t", "filesystem,volume", "-o", "name,value", "compression", root.path)
    return zfs_command(*words, effect=Effect.READS, where=CommandHost(host=root.host))


def destroy_command(root: Location, names: Iterable[str]) -> Command:
    """Build the command that destroys snapshots of a copy and of all below it; it is only shown, never run."""
    return zfs_command(
        "destroy", "-r", f"{root.path}@{','.join(names)}", effect=Effect.DESTROYS, where=CommandHost(host=root.host)
    )


def dry_destroy_command(root: Location, names: Iterable[str]) -> Command:
    """Build the command that prints the space that `destroy_command` would free, and destroys nothing (-n)."""
    return zfs_command(
        "destroy", "-nvpr", f"{root.path}@{','.join(names)}", effect=Effect.READS, where=CommandHost(host=root.host)
    )


def send_arguments(command: Command) -> tuple[str, ...] | None:
    """Return the words after `send` in a sending command; None for any other command."""
    return command.argv[command.argv.index("send") + 1 :] if "send" in command.argv else None


def _four(words: tuple[str, ...]) -> tuple[str, str, str, str]:
    """Return flags, mode, base or token, and snapshot of a send."""
    match words:
        case (flags, snapshot):
            return flags, "", "", snapshot
        case (flags, "-t", token):
            return flags, "-t", token, ""
        case (flags, mode, base, snapshot):
            return flags, mode, base, snapshot
    raise ValueError(f"no send of ours: {words}")


# Sends.


def full_send_arguments(snapshot: str, flags: SendFlags, *, properties: bool) -> tuple[str, ...]:
    """Build the words that send a full snapshot."""
    return ("send", _cluster(flags, properties), snapshot)


def incremental_send_arguments(
    base: str, snapshot: str, flags: SendFlags, *, between: bool, properties: bool
) -> tuple[str, ...]:
    """Build the words of an incremental send; `between`: with the snapshots between, and from a snapshot only."""
    return ("send", _cluster(flags, properties), "-I" if between else "-i", base, snapshot)


def resumed_send_arguments(token: str) -> tuple[str, ...]:
    """Build the words that send the rest of an interrupted stream; the flags are the token's own."""
    return ("send", "-P", "-t", token)


def _cluster(flags: SendFlags, properties: bool) -> str:
    """Return all flags as one word. Never -R: it would let a receive destroy. P: sizes for programs, on stderr.

    b instead of p: only the received properties, without values set on the copy; so the source's own values return.
    """
    letters = str(replace(flags, backup=False)).removeprefix("-")
    return f"-P{letters}{('b' if flags.backup else 'p') if properties else ''}"


def receive_arguments(
    target: str,
    kind: DatasetType,
    *,
    first: bool,
    properties: bool,
    flags: SendFlags | None,
    protect: tuple[str, ...] = (),
    onto_placeholder: bool = False,
    encryption: ReceiveEncryption | None = None,
    origin: str | None = None,
    burdens: tuple[str, ...] = (),
    local: bool = False,
) -> tuple[str, ...]:
    """Build the words that receive into a dataset, resumably (-s) and without mounting (-u).

    `properties`: the stream brings some; overridden ones stay as received values, which `zfs inherit -S` restores. `burdens`:
    those of the source's that would weaken the copy, or burden its pool. `local`: on this machine, with no gate that knows other words. Why quotas
    and reservations are set to none and not excluded: an excluded value that cannot be inherited is not kept, and OpenZFS 2.1
    accepts that of the next increment. `onto_placeholder`: the only case of -F, and the dataset is an empty one of ours.
    """
    words = ["receive", "-s", "-u", *(["-F"] if onto_placeholder else []), *_OURS]
    bare = len(words)
    given = _given(kind, flags, first=first)
    for name, value in given.items():
        words += ["-o", f"{name}={value}"]
    if origin is not None:
        words += ["-o", f"origin={origin}"]  # otherwise zfs searches the pool for the guid, and may find another copy
    words += {None: (), ReceiveEncryption.AS_ABOVE: ("-x", "encryption"), ReceiveEncryption.OFF: _OPEN}[encryption]
    if properties:
        for name in _aside(kind, (*protect, *burdens), given):
            words += ["-x", name]
    if local and len(words) == bare and not onto_placeholder:
        words = ["receive", *RECEIVE_MARK_BARE]
    return (*words, target)


def _given(kind: DatasetType, flags: SendFlags | None, *, first: bool) -> dict[str, str]:
    """Return the properties of a new copy. noauto: it is never mounted automatically. readonly: nothing changes it."""
    if not first:
        return {}
    given = {"readonly": "on", **dict.fromkeys(_SPACE_PROPERTIES[kind], "none")}
    if kind is DatasetType.FILESYSTEM:
        given["canmount"] = "noauto"
    if flags is not None:
        given[FLAGS] = str(flags)
    return given


def overridden_properties(kind: DatasetType) -> tuple[str, ...]:
    """Return the properties that a copy keeps as its own or its parent's, with any stream."""
    given = {name: value for name, value in _given(kind, None, first=True).items() if name != FLAGS}
    return (*given, *_aside(kind, (), given))


def never_received() -> tuple[str, ...]:
    """Return the properties that no copy takes as received ones, whatever its kind and job."""
    return (*_ELSEWHERE, *_SPACE_PROPERTIES[DatasetType.FILESYSTEM])


def _aside(kind: DatasetType, protect: tuple[str, ...], given: dict[str, str]) -> Iterator[str]:
    for name in dict.fromkeys((*_ELSEWHERE, *_SPACE_PROPERTIES[kind], *protect)):
        if name not in given and not (kind is DatasetType.VOLUME and name in _NOT_OF_VOLUMES):
            yield name


def buffer_command(pipe: PipeOptions, *, streams: int) -> Command:
    """Build the mbuffer command that smooths the stream, and limits it to one stream's share of the rate."""
    rate = ("-r", str(_share(pipe, streams))) if pipe.rate_limit else ()
    return Command(argv=("mbuffer", "-q", "-s", "128k", "-m", _memory(pipe), *rate), effect=Effect.READS)


def _memory(pipe: PipeOptions) -> str:
    return f"{max(_LEAST, pipe.buffer) >> 10}k"


def send_command(words: tuple[str, ...], side: SideSurvey, pipe: PipeOptions) -> Command:
    """Build the sending command; on a remote host with its own buffer, if mbuffer is installed there."""
    if side.root.host is not None and side.mbuffer:
        return script_command(
            "send.sh", _memory(pipe), _patience(pipe), *words, effect=Effect.READS, where=command_host(side)
        )
    return zfs_command(*words, effect=Effect.READS, where=command_host(side))


def connect_command(
    words: tuple[str, ...], side: SideSurvey, line: MbufferConnection, pipe: PipeOptions, *, streams: int | None
) -> Command:
    """Build the sending end of an mbuffer connection, fed by `words`; `streams`: the streams that share the rate."""
    rate = str(_share(pipe, streams)) if streams and pipe.rate_limit else ""
    values = (line.receiver, str(line.port), _memory(pipe), _patience(pipe), rate)
    return _end_command("connect.sh", *values, *words, effect=Effect.READS, where=command_host(side))


def listen_command(words: tuple[str, ...], side: SideSurvey, line: MbufferConnection, pipe: PipeOptions) -> Command:
    """Build the receiving end: on a remote host it feeds zfs; on this machine it feeds our own buffer first."""
    values = (line.sender, line.receiver, str(line.port), _patience(pipe))
    if side.root.host is None:
        return _end_command("listen.sh", *values, *words, effect=Effect.READS, where=CommandHost())
    effect = Effect.DESTROYS if "-F" in words else Effect.WRITES
    words = ("buffered", _memory(pipe), *words)
    return _end_command("listen.sh", *values, *words, effect=effect, where=command_host(side))


def _end_command(name: str, *values: str, effect: Effect, where: CommandHost) -> Command:
    """Build one end of an mbuffer connection, with the functions that its script calls."""
    meet = f'meet() {{\nperl -e {shlex.quote(scripts.script(_ROOM, "meet.pl"))} "$@"\n}}\n'
    return script_command(
        name,
        *values,
        effect=effect,
        where=where,
        before=meet,
        with_functions="buffered.sh" if name == "listen.sh" else "",
    )


def perl_command(host: Host | None) -> Command:
    """Build the command that succeeds where perl is, with what an own connection needs of it."""
    return Command(argv=("perl", "-MSocket", "-MFcntl", "-e1"), effect=Effect.READS, host=host)


def _patience(pipe: PipeOptions) -> str:
    """Return the timeout of the other end, which cannot notice a broken link; it is longer than our own."""
    return str(max(30, 2 * math.ceil(pipe.stall_after)))


def _share(pipe: PipeOptions, streams: int) -> int:
    return max(1, (pipe.rate_limit or 0) // streams)


def receive_command(words: tuple[str, ...], side: SideSurvey, pipe: PipeOptions) -> Command:
    """Build the receiving command; on a remote host with its own buffer, if mbuffer is installed there."""
    effect = Effect.DESTROYS if "-F" in words else Effect.WRITES
    if side.root.host is not None and side.mbuffer:
        return script_command(
            "receive.sh", _memory(pipe), _patience(pipe), *words, effect=effect, where=command_host(side)
        )
    return zfs_command(*words, effect=effect, where=command_host(side))


# Small actions.


def abort_command(dataset: str, where: CommandHost) -> Command:
    """Build the command that discards an interrupted receive; it succeeds when there is none."""
    return script_command("abort-receive.sh", dataset, effect=Effect.WRITES, where=where)


def end_receive_command(dataset: str, pid: int, where: CommandHost) -> Command:
    """Build the command that ends a process that still receives into the dataset, and waits until it has ended."""
    how = "sudo" if where.sudo else "plain"
    return script_command("end-receive.sh", str(pid), dataset, how, effect=Effect.WRITES, where=where)


def rollback_command(snapshot: str, *, over_snapshots: bool, where: CommandHost) -> Command:
    """Build a rollback. `over_snapshots`: it destroys newer snapshots, which the plan names; clones never (-R)."""
    return zfs_command("rollback", *(("-r",) if over_snapshots else ()), snapshot, effect=Effect.DESTROYS, where=where)


def rename_command(dataset: str, to: str, where: CommandHost, kind: DatasetType = DatasetType.FILESYSTEM) -> Command:
    """Build the command that renames a dataset with all below it, and mounts nothing again (-u, which no volume takes)."""
    unmounted = () if kind is DatasetType.VOLUME else ("-u",)
    return zfs_command("rename", *unmounted, dataset, to, effect=Effect.WRITES, where=where)


def take_over_command(dataset: str, kind: DatasetType, flags: SendFlags, where: CommandHost) -> Command:
    """Build the command that gives a copy of another program's the properties that our copies have."""
    values = {name: value for name, value in _given(kind, flags, first=True).items() if name in _TAKEN_OVER}
    words = (f"{name}={value}" for name, value in values.items())
    return zfs_command("set", *words, dataset, effect=Effect.WRITES, where=where)


def placeholder_command(dataset: str, where: CommandHost, *, encryption: ReceiveEncryption | None = None) -> Command:
    """Build the command that creates a placeholder: a dataset that is never mounted and is marked as ours."""
    words = ("create", "-u", "-o", "canmount=off", "-o", "readonly=on", "-o", f"{PLACEHOLDER}=on")
    return zfs_command(
        *words, *(_OPEN if encryption is ReceiveEncryption.OFF else ()), dataset, effect=Effect.WRITES, where=where
    )


def no_placeholder_command(dataset: str, where: CommandHost) -> Command:
    """Build the command that removes the placeholder property."""
    return zfs_command("inherit", PLACEHOLDER, dataset, effect=Effect.WRITES, where=where)


def bookmark_commands(marks: tuple[tuple[str, str, str], ...], side: SideSurvey) -> Iterator[Command]:
    """Yield commands that create bookmarks (dataset, @snapshot, bookmark); existing ones are no error.

    Why two ways: a channel program creates all of them in one transaction, but needs root. Why the @: a snapshot's name may
    begin with "-", and zfs would take it for an option.
    """
    if side.programs:
        pool = side.root.path.partition("/")[0]
        for batch in batch_arguments(marks):
            yield channel_bookmarks_command(pool, batch, command_host(side))
    else:
        for batch in batch_arguments(marks):
            yield script_command("bookmarks-one-by-one.sh", *batch, effect=Effect.WRITES, where=command_host(side))


def channel_bookmarks_command(pool: str, marks: tuple[str, ...], where: CommandHost) -> Command:
    """Build the command that creates bookmarks by a channel program: of each dataset, @snapshot and bookmark."""
    program = scripts.printing_function("channel_program", scripts.script(_ROOM, "bookmarks.lua"))
    return script_command("bookmarks.sh", pool, *marks, effect=Effect.WRITES, where=where, before=program)


def destroy_bookmark_commands(bookmarks: tuple[str, ...], side: SideSurvey) -> Iterator[Command]:
    """Yield commands that destroy bookmarks by full name; missing ones are no error. They are ours: no data is lost.

    Several of root's own machine go together: `zfs destroy` takes one, so of 100 datasets it was started 100 times.
    """
    if any("#" not in name for name in bookmarks):
        raise ValueError(f"not all are bookmarks: {bookmarks}")
    together = side.programs and side.root.host is None and not side.sudo and len(bookmarks) >= _TOGETHER
    before = _destroy_together() if together else ""
    for batch in batch_arguments((name,) for name in bookmarks):
        yield script_command(
            "destroy-bookmarks.sh", *batch, effect=Effect.WRITES, where=command_host(side), before=before
        )


def _destroy_together() -> str:
    """Return the shell function that destroys bookmarks by a program of ours."""
    words = shlex.join(own_program("orchestrator.engines.zfs.bookmark_removal"))
    setting = " ".join(f"{name}={shlex.quote(value)}" for name, value in own_environment())
    return f'destroy_together() {{\n{setting} {words} "$@" 2> /dev/null\n}}\n'


def hold_commands(tag: str, snapshots: tuple[str, ...], side: SideSurvey) -> Iterator[Command]:
    """Yield commands that hold snapshots, so that nothing destroys them; existing holds are no error."""
    for batch in batch_arguments((name,) for name in snapshots):
        yield script_command(
            "hold.sh", tag, *batch, effect=Effect.WRITES, where=command_host(side), with_functions="in-eight.sh"
        )


def release_commands(tag: str, snapshots: tuple[str, ...], side: SideSurvey) -> Iterator[Command]:
    """Yield commands that release held snapshots; missing holds are no error."""
    for batch in batch_arguments((name,) for name in snapshots):
        yield script_command(
            "release.sh", tag, *batch, effect=Effect.WRITES, where=command_host(side), with_functions="in-eight.sh"
        )


def batch_arguments(groups: Iterable[tuple[str, ...]], longest: int = LONGEST) -> Iterator[tuple[str, ...]]:
    """Yield the words of whole groups, as many as fit on one command line, quoted for a remote shell."""
    batch: list[str] = []
    length = 0
    for group in groups:
        size = sum(len(shlex.quote(word).encode("utf-8", "surrogateescape")) + 1 for word in group)
        if batch and length + size > longest:
            yield tuple(batch)
            batch, length = [], 0
        batch += group
        length += size
    if batch:
        yield tuple(batch)
