"""Every command line of the rsync engine, each flag with its reason beside it."""

import re
import shlex
from collections.abc import Iterable

from orchestrator.domain.command_line import pack_script, rsync_shell
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.rsync.model import (
    BUSY,
    LOCK,
    OURS,
    PARTIAL,
    PARTIALS,
    RESERVED,
    TEMPORARY,
    RsyncProgram,
    RsyncSurvey,
)
from orchestrator.engines.rsync.options import RsyncOptions, options_of
from orchestrator.engines.rsync.script_commands import (
    below_command,
    in_tree_command,
    inside_command,
    list_top_command,
    path_argument,
    sums_command,
)

_PLAIN = r"[A-Za-z0-9/_.,+@%=:-]*"
_AT_GATE = r"[^\n]*"  # it takes no words from its input, and knows all that rsync escapes since 3.2.4
_WILD = r"([\\*?\[\]])"
WILD_BYTES = rb"([\\*?\[\]])"


def rsync_version_command(host: Host | None) -> Command:
    """Build the command that prints version and abilities: JSON since 3.2.7; before 3.2 `-VV` is an error."""
    return Command(argv=("rsync", "--version", "--version"), effect=Effect.READS, host=host)


def dry_run_command(
    job: Job, newest: Location, *, there: RsyncProgram | None, coarse: bool, names: str = ""
) -> Command:
    """Build the dry run that itemizes the differences between source and newest copy; it writes nothing.

    `names`: a local file with the paths that alone are compared, NUL-terminated, and neither what lies below nor what is gone.
    """
    options, far = options_of(job), job.source.host is not None
    # What the job has excluded since then must be named to a gate, which links all that is not; and what this run leaves out is in no new point.
    excluded = (bool(options.left_out) and options.points) or (
        there is not None and there.gated and bool(options.excludes)
    )
    argv = [
        "rsync", "--dry-run", *([] if options.points else _mirrored(options)), *_what(options, hides=not far),
        *(["--from0", f"--files-from={names}", "--ignore-missing-args", "--no-implied-dirs"] if names else ["--delete"]),
        *["--delete-excluded"] * excluded,
        *_comparing(options, there=there, coarse=coarse),
        "--no-human-readable", "--stats",
        # Names what our own rules leave out: it is in no copy, and a person should know. A far sender may not be asked: rrsync
        # lets no key do that. It hides such names in the copy alone, so they are among what is new here.
        *([] if far else ["--debug=FILTER"]),
        "--out-format=pf:%i|%l|%n",  # the name last: all fields before it have a fixed form
        *_pairing(job, there, job.source, newest),
        *_sources(job.tree), _argument(newest),
    ]  # fmt: skip
    return Command(argv=tuple(argv), effect=Effect.READS)


def list_selected_command(job: Job, empty: str) -> Command:
    """Build the command that names all of a source on this machine that a copy takes, compared with an empty folder there."""
    # Each name by itself, and nothing of what is in attributes: only names are asked for.
    options = replace(options_of(job), hard_links=False, acls=False, xattrs=False)
    argv = ["rsync", "--dry-run", *_what(options), "--out-format=pf:%i|%n", *_sources(job.tree), f"{empty}/"]
    return Command(argv=tuple(argv), effect=Effect.READS)


def copy_command(
    job: Job,
    into: Location,
    world: RsyncSurvey,
    *,
    base: RestorePoint | None,
    parallel_copy: bool = False,
    tidy: bool = False,
    existing: bool = False,
    linked: bool = False,
    names: str = "",
    least: int = 0,
) -> Command:
    """Build the command that copies the source into our tree; unchanged files are linked to `base`, if any.

    `names`: a local file ("-": its input) with the paths that alone are copied, NUL-terminated, and nothing below them. `least`: of files only
    those of so many bytes, and of those only the blocks that differ from what lies in their partial folders, which are written in place there.
    `parallel_copy`: only the paths on its input, with everything below. `tidy`: also removes entries from the tree that the
    source no longer has, of `names` these. `existing`: does so, and copies only what the tree has already. `linked`: does so, unless it is told `names`,
    and passes over what the tree has already, but for folders: it is linked to a point, of which nothing may be changed. Why without the folders' times: at
    its end rsync gives them even to what it passed over, such as a file of the point that has just become a folder at the source.
    """
    options = _carried(job, world)
    argv = ["rsync", *([] if options.points else _mirrored(options)), *_what(options)]
    if parallel_copy:
        argv += ["--from0", "--files-from=-", "--recursive"]  # newline-separated lists lose names with newlines
        argv += ["--force"] if world.target.work else []  # a folder of the cut copy may be a file by now
    argv += [f"--min-size={least}", "--no-whole-file"] if least else []
    if names:
        # What has left the source is among them, and a folder that is a file by now.
        argv += ["--from0", f"--files-from={names}", "--delete-missing-args" if tidy else "--ignore-missing-args"]
        argv += ["--force"] if world.target.work or not linked else []
    argv += _tidying(options) if (existing or tidy or linked) and not names else []
    argv += ["--existing"] if existing else ["--ignore-existing", "--omit-dir-times"] if linked else []
    # What the job has excluded since the cut, or since the point, is in the work tree, and else it would be published.
    argv += (
        ["--delete-excluded", f"--filter=P_{PARTIAL}"] if (existing or linked) and not names and options.hides else []
    )
    # Without notes of what a cut copy wrote, nothing says whether its files are whole: their bytes are compared.
    argv += ["--checksum"] if existing and not world.noted and not options.checksum else []
    if base is not None:
        how = "--copy-dest" if world.adds else "--link-dest"  # a gate lets no rsync link anything of a point
        argv += [f"{how}={_base(base, led=world.target.led)}"]
    argv += _writing(
        options,
        into,
        local=not (into.host or job.source.host) and not least,
        holes=world.holes is not False,
        private=world.keeps_partials,
        small=world.small,
        resumes=resumes_from_afar(world.there if into.host else world.here),
    )
    argv += _comparing(options, there=world.there, coarse=world.target.coarse)
    effect = Effect.DESTROYS if tidy and not options.points else Effect.WRITES
    tree = SourceTree(root=job.source) if parallel_copy or names else job.tree  # its list names paths below the root
    return _copy_into(job, argv, tree, into, here=world.here, there=world.there, led=world.target.led, effect=effect)


def _carried(job: Job, world: RsyncSurvey) -> RsyncOptions:
    """Return the options of a copy: where no entry has access lists or attributes, it goes without those, which take some of rsync's time.

    What comes meanwhile its review finds, and copies again with all. Why with access lists: rsync from 3.5 on follows a link of root's in
    the middle of a path by itself, past the wall, and only its look at their path then fails.
    """
    options = options_of(job)
    return options if world.bare is None else replace(options, xattrs=False)


def folder_times_command(job: Job, into: Location, world: RsyncSurvey, *, names: str = "") -> Command:
    """Build the command that copies folders alone, so that they get their times; another entry in place of one goes.

    `names`: a local file with the folders that alone are meant, NUL-terminated.
    """
    options = options_of(job)
    argv = ["rsync", *_what(options), "--include=*/", "--exclude=*"]
    argv += ["--from0", f"--files-from={names}", "--ignore-missing-args"] if names else []
    argv += _comparing(options, there=world.there, coarse=world.target.coarse)
    tree = SourceTree(root=job.source) if names else job.tree
    return _copy_into(job, argv, tree, into, here=world.here, there=world.there, led=world.target.led)


def _base(base: RestorePoint, *, led: bool) -> str:
    """Return the tree that unchanged files are linked from: by its path, or as seen from the work tree."""
    return f"../../points/{base.name}" if led else base.tree.path


def _copy_into(
    job: Job,
    argv: list[str],
    source: SourceTree,
    into: Location,
    *,
    here: RsyncProgram | None,
    there: RsyncProgram | None,
    led: bool,
    folder: bool = True,
    effect: Effect = Effect.WRITES,
) -> Command:
    """Build the command that copies into the target's tree. `led`: others may exchange what lies above the target.

    Then the program that writes is started in the very folder, which no name leads to any more.
    """
    root = Location(path=into.path.split(f"/{OURS}/")[0], host=into.host)
    ones = _sources(source, folder=folder)
    if not led:
        words = [*argv, *_moving(job, here, there, into), *ones, _argument(into, folder=folder)]
        return Command(argv=tuple(words), effect=effect)
    tree, _, below = into.path[len(root.path) :].removeprefix(f"/{OURS}/").partition("/")
    inside = Location(path=f"./{below}" if below else ".", host=into.host)
    words = [*argv, *_moving(job, here, there, into, tree=tree), *ones, _argument(inside, folder=folder)]
    return (
        Command(argv=tuple(words), effect=effect) if into.host else in_tree_command(root, tree, *words, effect=effect)
    )


def _mirrored(options: RsyncOptions) -> list[str]:
    """Return rules that keep our own folder out of a mirror, and remove foreign entries with our names, where allowed."""
    return [*(f"--filter=R_{name}" for name in RESERVED if options.delete), f"--exclude=/{OURS}"]


def _tidying(options: RsyncOptions) -> list[str]:
    """Return the delete flag. In a work tree deletion frees space first; in a mirror an early end deletes nothing."""
    return ["--delete-before" if options.points else "--delete-delay"]


def may_name_what_is_missing(world: RsyncSurvey) -> bool:
    """Return whether a name that has left the source is no failure: --ignore-missing-args, since 3.1.0."""
    return all(side is None or side.at_least(3, 1) for side in (world.here, world.there))


def settle_command(job: Job, into: Location, world: RsyncSurvey, names: str, *, anew: bool = False) -> Command:
    """Build the command that makes the files listed in the local file `names` as the source has them: what differs still.

    `anew`: each becomes a new file, so that nothing is changed in place that a point or another name shares. Why no --checksum
    then: with it rsync passes over equal files in spite of --ignore-times.
    """
    options = options_of(job)
    if job.parts:
        listed = ["--from0", f"--include-from={names}", "--exclude=*"]  # a list would be of paths below the root of all
    else:
        missing = ["--ignore-missing-args"] if may_name_what_is_missing(world) else []
        # rsync 3.5 gives the folders above a name all their attributes, whatever the rules leave out; here they have them already.
        bare = ["--no-implied-dirs"] if options.fake_super else []
        listed = ["--from0", f"--files-from={names}", *bare, *missing]
    comparing = _comparing(options, there=world.there, coarse=world.target.coarse)
    if anew:
        comparing = ["--ignore-times", *(flag for flag in comparing if flag != "--checksum")]
    argv = ["rsync", *_what(options), *listed, "--whole-file", *comparing]
    argv += ["--sparse"] if options.sparse else []
    return _copy_into(job, argv, job.tree, into, here=world.here, there=world.there, led=world.target.led)


def recopy_command(job: Job, into: Location, world: RsyncSurvey, names: str) -> Command:
    """Build the command that copies the files listed in the local file `names` again, and replaces the existing ones.

    Why rules and not --files-from: a name that has left the source must be no failure, and rsync sets the folders' times.
    `path_filter` writes the file.
    """
    argv = [
        "rsync",
        *([] if options_of(job).points else _mirrored(options_of(job))),
        *_what(options_of(job)),
        "--from0",
        f"--include-from={names}",
        "--exclude=*",
        "--ignore-times",
        "--whole-file",
        *_comparing(
            options_of(job), there=world.there, coarse=world.target.coarse
        ),  # else a folder's time stays wrong by less than a second
    ]
    argv += ["--sparse"] if options_of(job).sparse else []
    return _copy_into(job, argv, job.tree, into, here=world.here, there=world.there, led=world.target.led)


def settle_names(job: Job, paths: Iterable[bytes]) -> bytes:
    """Return the content of the file `names` of `settle_command`."""
    return path_filter(paths) if job.parts else b"".join(b"./" + path + b"\0" for path in paths)


def path_filter(paths: Iterable[bytes]) -> bytes:
    """Build rules that let exactly these paths pass, NUL-terminated: each folder above it, then the path itself.

    The root's own name, which is empty, means everything below it.
    """
    rules: dict[bytes, None] = {}
    for path in paths:
        if not path:
            return b"/**\0"
        parts = path.split(b"/")
        for depth in range(1, len(parts)):
            rules[b"/" + b"/".join(parts[:depth]) + b"/"] = None
        rules[b"/" + path] = None
    return b"".join(rule_of(rule) + b"\0" for rule in rules)


def rule_of(path: bytes) -> bytes:
    """Return a path as a rule. Source: rsync(1): a backslash escapes only in a rule that holds a wildcard."""
    return re.sub(WILD_BYTES, rb"\\\1", path) if set(path) & set(b"*?[") else path


def resumes_from_afar(receiver: RsyncProgram | None) -> bool:
    """Return whether a receiver goes on from a partial folder that has an absolute path.

    Why: Debian 12's 3.2.7, with the security fixes of 2025, does not find the bytes there: its file never passes the check.
    """
    return receiver is None or receiver.at_least(3, 4, 1)


def _writing(
    options: RsyncOptions, into: Location, *, local: bool, holes: bool, private: bool, resumes: bool, small: bool
) -> list[str]:
    """Return the flags for writing files: a new file that is renamed, or changed blocks written into the old file.

    Why no remainders of `small` files: to look for one of each takes a fifteenth of rsync's time.
    Why no partial folders beside the files of a mirror: users own folders there, and rsync before 3.5 follows a link that a
    user puts in place of a partial folder.
    """
    if options.in_place:
        return ["--inplace", "--no-whole-file"]  # without the second flag a local copy rewrites whole files
    argv: list[str] = []
    if options.points:
        argv = (
            [] if small else [f"--partial-dir={PARTIAL}"]
        )  # plain --partial lets a late receiver truncate a finished file
    elif private:
        root = into.path.rstrip("/")
        argv = [f"--partial-dir={root}/{PARTIALS}"] if resumes else []
        argv += [f"--temp-dir={root}/{TEMPORARY}"]
    argv += ["--whole-file"] if local else []  # comparing blocks of local files costs five times the copy
    # The search for zeros costs a third of a copy's processor time, so it is off when a listing has found no hole.
    return argv + (["--sparse"] if options.sparse and holes else [])


def append_command(
    job: Job,
    path: bytes,
    into: Location,
    partial: bytes,
    *,
    here: RsyncProgram | None,
    there: RsyncProgram | None,
    led: bool = False,
) -> Command:
    """Build the command that completes one partial file: its existing bytes are verified, not sent again.

    Why never with --sparse: rsync 3.5 then sends the whole file again, and without the verification writes a wrong one.
    """
    source = Location(path=f"{job.source.path.rstrip('/')}/{path_argument(path)}", host=job.source.host)
    target = Location(path=f"{into.path}/{path_argument(partial)}", host=into.host)
    argv = ["rsync", *_what(options_of(job)), "--append-verify"]
    return _copy_into(job, argv, SourceTree(root=source), target, here=here, there=there, led=led, folder=False)


def restore_command(
    tree: Location,
    to: Location,
    job: Job,
    *,
    folder: bool,
    left_out: tuple[bytes, ...] = (),
    holes: bool = True,
    names: str = "",
    single: bool = False,
    anew: bool = False,
) -> Pipeline:
    """Build the pipeline that restores a point, a folder of it or one file; a folder becomes exactly as in the point.

    `to`: a folder of ours, in which a single file keeps the name of that folder. `left_out`: what is mounted there is neither
    written nor removed, not even its own folder's owner and time. `holes`: some files may have some; the search for zeros takes
    most of the processor time of a restore of large files. `names`: a local file with the paths that this one of several brings into a
    new folder, NUL-terminated; `single`: without what lies below them. `anew`: also each file that is there with the same size and time.
    Why the names of the folder: its own owner and mode are no part of the transfer then, so that nobody enters it until all
    is back, see `restore_root_command`. Why "/" before each: rsync drops a line that begins with "#" or ";" without a word, and
    "./" would make the folder a part again.
    """
    # A partial folder that a cut left may go at the end; the marker stays.
    only = ["--from0", "--files-from=-", *(["--dirs"] if single else ["--recursive"])] if folder else []
    only += ["--delete-delay", *_kept(job, tree, left_out)] if folder and not names else []
    how = [f"--partial-dir={PARTIAL}", *([] if tree.host or to.host else ["--whole-file"])]
    how += ["--sparse"] * holes + ["--ignore-times"] * anew
    argv = [*only, *_what(options_of(job), filters=False), *how, "--modify-window=-1", *_reporting(),
            f"--timeout={max(1, int(job.pipe.stall_after))}"]  # fmt: skip
    copy = _inside(tree, to, job, argv, folder=folder)
    if not folder or names:
        return Pipeline(stages=(copy,), reads=names or None)
    return Pipeline(stages=(list_top_command(tree), copy), counts=1)


def append_restored_command(source: Location, to: Location, path: bytes, job: Job) -> Command:
    """Build the command that completes one partial file of a restore: its existing bytes are verified, not sent again."""
    folder, slash, name = map(path_argument, path.rpartition(b"/"))
    words = [*_what(options_of(job), filters=False), "--append-verify", "--modify-window=-1", *_reporting(),
             f"--timeout={max(1, int(job.pipe.stall_after))}"]  # fmt: skip
    below = f"{folder}{slash}{PARTIAL}"
    return _started_there(source, to, job, words, Location(path=f"./{name}", host=to.host), folder=False, below=below)


def restore_root_command(tree: Location, to: Location, job: Job) -> Command:
    """Build the command that gives a restored folder its own owner, mode, time, ACL and attributes."""
    argv = [*_what(options_of(job), filters=False), "--modify-window=-1", "--exclude=/*"]
    return _inside(tree, to, job, argv, folder=True)


def clear_top_command(tree: Location, to: Location, job: Job, left_out: tuple[bytes, ...]) -> Command:
    """Build the command that removes from an unfinished restore what the point does not have at its top.

    What lies deeper is removed by the copy itself.
    """
    argv = ["--dirs", "--delete", "--existing", "--ignore-existing", *_kept(job, tree, left_out)]
    argv += [f"--filter=-p_{name}" for name in RESERVED]
    return _inside(tree, to, job, argv, folder=True)


def _kept(job: Job, tree: Location, left_out: tuple[bytes, ...]) -> list[str]:
    """Return the rules for what is neither restored nor removed, as our own folder in a mirror, and for partial folders, which may be removed."""
    only = [f"--filter=R_{PARTIAL}", *(f"--exclude={path_argument(rule_of(b'/' + path))}" for path in left_out)]
    return only + ([f"--exclude=/{OURS}"] if tree == job.target.location else [])


def _inside(tree: Location, to: Location, job: Job, argv: list[str], *, folder: bool) -> Command:
    """Build the rsync command that is started, or whose far half is started, in a folder that is marked as being restored."""
    here = Location(path="." if folder else "./" + to.path.rpartition("/")[2], host=to.host)
    return _started_there(tree, to, job, argv, here, folder=folder)


def _started_there(
    tree: Location, to: Location, job: Job, argv: list[str], here: Location, *, folder: bool, below: str = ""
) -> Command:
    """Build the same command; `here` is where it writes, as seen from the marked folder, or from the one `below` that."""

    def inside(*words: str) -> Command:
        return below_command(to, below, *words) if below else inside_command(to, *words)

    words = ["rsync", *argv, *_pairing(job, None, tree, here)]
    if to.host is not None:
        words += [f"--rsync-path={shlex.join(pack_script(inside('rsync')))}"]
    words += ["--", _argument(tree, wild=True, folder=folder), _argument(here, folder=folder)]
    if to.host is not None:
        return Command(argv=tuple(words), effect=Effect.WRITES)
    return inside(*words)


def sample_command(tree: Location, to: Location, job: Job, names: str) -> Command:
    """Build the command that restores the files that the rules in `names` let pass, like `restore_command`."""
    local = [] if tree.host or to.host else ["--whole-file"]
    argv = ["rsync", *_what(options_of(job), filters=False), "--from0", f"--include-from={names}", "--exclude=*", *local,
            "--sparse", "--modify-window=-1", *_reporting(), f"--timeout={max(1, int(job.pipe.stall_after))}",
            *_pairing(job, None, tree, to), "--", _argument(tree, wild=True), _argument(to)]  # fmt: skip
    return Command(argv=tuple(argv), effect=Effect.WRITES)


def digests_command(
    tree: Location, empty: str, algorithm: str, job: Job, *, odd_names: bool = False, whole: bool = False
) -> Command:
    """Build the command that prints digests of files of a remote tree, named NUL-terminated on its input; `whole`: of all in it.

    xxh128 needs nothing but rsync there: a dry run against an empty folder compares checksums. Raises: ValueError.
    Why not always by name: rsync looks at each name's folders again, which takes four times as long as a walk.
    `odd_names`: some names hold both a wildcard and a backslash. Why: rsync 3.2.5 to 3.3 then refuses the names that it asked
    for itself, unless it trusts the sender; nothing is written here, and versions before know no such option.
    """
    if algorithm == "sha256":
        return sums_command(tree)
    if algorithm != "xxh128":
        raise ValueError(f"{algorithm} cannot be made on {tree.host}: use xxh128 or sha256 in [verify] digest")
    trust = ("--trust-sender",) if odd_names and not whole else ()
    chosen = ("--recursive", "--info=nonreg0") if whole else (*trust, "--from0", "--files-from=-")
    argv = ("rsync", "--dry-run", "--times", "--checksum", "--checksum-choice=xxh128", *chosen, "--out-format=pf:%i|%l|0|%C|%n",
            *_pairing(job, None, tree, Location(path=empty)), "--", _argument(tree, wild=True), empty + "/")  # fmt: skip
    return Command(argv=argv, effect=Effect.READS)


def _what(options: RsyncOptions, *, filters: bool = True, hides: bool = True) -> list[str]:
    """Return the flags that select a complete copy, always without names of ours. `hides` False: only what lies in those is left out.

    Why before other patterns: the first rule that fits decides, and rsync from 3.2.5 refuses names from a remote sender that
    contradict the rules. p: it protects nothing in a folder that is deleted.
    """
    flags = ["--archive", *([] if options.devices else ["--no-D"])]
    flags += ["--hard-links"] if options.hard_links else []
    flags += ["--acls"] if options.acls else []
    # Twice: once leaves out rsync's own (user.rsync.%stat), which each owner can give a file, and which a store of another rsync has.
    flags += ["--xattrs", "--xattrs"] if options.xattrs and not options.fake_super else _plain_xattrs(options, filters)
    flags += [] if options.owners else ["--no-owner", "--no-group"]
    flags += [] if options.modes else ["--no-perms"]
    flags += ["--numeric-ids"] if options.numeric_ids else []
    flags += ["--one-file-system"] if options.one_file_system and filters else []
    flags += [f"--filter=-p_{name}" if hides else f"--filter=-rp_{name}" for name in RESERVED]
    flags += [] if hides else [f"--filter=-p_{name}/*" for name in RESERVED]
    flags += ["--from0", f"--exclude-from={options.left_out}"] if options.left_out and filters else []
    flags += [f"--exclude={pattern}" for pattern in options.excludes] if filters else []
    return flags


def _plain_xattrs(options: RsyncOptions, filters: bool) -> list[str]:
    """Return the flags for attributes where the far rsync keeps its own beside them, which come from no source.

    Why system.*: without rules rsync leaves it out by itself. Why the first: else the attribute user.rsync.security.capability of an
    owner's file would be a capability after a restore.
    """
    if not options.xattrs:
        return []
    return ["--xattrs", *(["--filter=-xs_user.rsync.*", "--filter=-xs_system.*"] if filters else [])]


def _comparing(options: RsyncOptions, *, there: RsyncProgram | None, coarse: bool) -> list[str]:
    """Return the flags for comparing. Whole seconds miss edits within a second (19 of 20); nanoseconds since 3.1.3."""
    fine = not coarse and (there is None or there.at_least(3, 1, 3))
    return (["--modify-window=-1"] if fine else []) + (["--checksum"] if options.checksum else [])


def _reporting(*, digests: bool = True) -> list[str]:
    """Return the flags for reports. `digests`: %C is xxh128 from the transfer; with an old side MD5 or xxh64."""
    told = "%C" if digests else ""
    return ["--no-human-readable", "--stats", "--info=progress2", f"--out-format=pf:%i|%l|%b|{told}|%n"]


def both_support_xxh128(here: RsyncProgram | None, there: RsyncProgram | None) -> bool:
    """Return True when both sides can make xxh128 on request. Both None: this machine's own rsync on both sides."""
    if here is None or there is None:
        return here is there
    return all(side.at_least(3, 2) and "xxh128" in side.checksums for side in (here, there))


def _moving(
    job: Job, here: RsyncProgram | None, there: RsyncProgram | None, into: Location, *, tree: str | None = None
) -> list[str]:
    """Return the flags for the transfer: link, speed, timeout and reports. `tree`: the far rsync is started in that tree."""
    rate = [f"--bwlimit={max(1, job.pipe.rate_limit // 1024)}"] if job.pipe.rate_limit else []
    argv = [
        *_reporting(digests=both_support_xxh128(here, there)),
        f"--timeout={max(1, int(job.pipe.stall_after))}",
        *rate,
        *_choices(job, here, there),
    ]
    argv += _pairing(job, there, job.source, into)
    if into.host and not (there is not None and there.gated):
        # A receiver that outlives a broken link holds the lock until it ends, so a new run cannot run beside it.
        root = into.path.split(f"/{OURS}/")[0]
        lock = ("flock", "-s", "-w", "60", "-E", str(BUSY))
        if tree is None:
            argv += [f"--rsync-path={' '.join(lock)} {shlex.quote(root + '/' + LOCK)} rsync"]
        else:
            words = (*lock, "../lock" if tree else LOCK, "rsync")
            inside = in_tree_command(Location(path=root, host=into.host), tree, *words)
            argv += [f"--rsync-path={shlex.join(pack_script(inside))}"]
    return argv


def _choices(job: Job, here: RsyncProgram | None, there: RsyncProgram | None) -> list[str]:
    """Return the digest and compression that both sides understand; an older side negotiates by itself."""
    flags = ["--checksum-choice=xxh128"] if both_support_xxh128(here, there) else []
    if here is None or there is None:
        return flags
    return flags + choose_compression(options_of(job).compress, here, there)


def choose_compression(preference: str, here: RsyncProgram, there: RsyncProgram) -> list[str]:
    """Return the flags for the first requested compression that both sides have; none when they share none.

    Source: -z with 3.1.1's external zlib against 3.0.6, and -zz or --new-compress towards 3.0.6, end with code 12.
    """
    if preference == "none":
        return []
    requests = (
        ("lz4", "zstd", "zlibx") if preference == "auto" else ("zlibx",) if preference == "zlib" else (preference,)
    )
    if min(here.version, there.version) >= (3, 2):
        chosen = next((name for name in requests if name in here.compressions and name in there.compressions), None)
        return (
            []
            if chosen is None
            else ["--compress", f"--compress-choice={chosen}", *(["--compress-level=1"] if chosen == "zstd" else [])]
        )
    if preference in ("auto", "zlib") and min(here.version, there.version) >= (3, 1, 2):
        return ["--new-compress"]
    return []


def _pairing(job: Job, there: RsyncProgram | None, one: Location, other: Location) -> list[str]:
    """Return the flags for the remote shell, and for passing its arguments unchanged."""
    host = one.host or other.host
    if host is None:
        return []
    argv = ["-e", " ".join(rsync_shell(host, job.pipe.ssh_options))]
    argv += ["--remote-option=--fake-super"] if options_of(job).fake_super else []
    far = one if one.host else other
    paths = (far.path, *(job.parts if one.host and one == job.source else ()))
    plain = _AT_GATE if there is not None and there.gated else _PLAIN
    if not all(re.fullmatch(plain, path) for path in paths) or (there is not None and not there.at_least(3, 2, 4)):
        argv += ["--protect-args"]  # the only way for a newline in a path; before 3.2.4 also for a space
    return argv


def _sources(tree: SourceTree, *, folder: bool = True) -> list[str]:
    """Return the end of the options, and rsync's arguments for a source.

    Why --relative for several folders: each is copied by its whole path, stays on its own filesystem, and one that is gone is a
    failure, and no reason to delete its copy; and a gate sees their names, which it does not of rules.
    """
    if not tree.parts:
        return ["--", _argument(tree.root, wild=True, folder=folder)]
    places = (Location(path=f"/./{part}", host=tree.root.host) for part in tree.parts)
    return ["--relative", "--", *(_argument(place, wild=True, folder=False) for place in places)]


def _argument(place: Location, *, wild: bool = False, folder: bool = True) -> str:
    """Return a path as rsync's argument: the folder's contents; a remote source has wildcards escaped."""
    path = place.path if not folder or place.path == "/" else place.path + "/"
    if place.host is None:
        return path
    shown = "/".join(map(_escaped, path.split("/"))) if wild else path
    return f"{place.host.login(bracket=True)}:{shown}"


def _escaped(part: str) -> str:
    """Escape one part of a remote source's path. Why not always: rsync keeps a backslash in a part without a wildcard."""
    return re.sub(_WILD, r"\\\1", part) if set(part) & set("*?[") else part
