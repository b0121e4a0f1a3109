"""Commands of the scripts that survey, prepare and publish trees, here or on a host.

Each script gets its values as arguments and runs with `sh`, which every Debian has; one call is one round trip over ssh. The
jobs/guarantees.md says what the scripts in `scripts/` may do inside a tree.
"""

import functools

from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.rsync.look_record import LISTED
from orchestrator.engines.rsync.model import LINK_UNCHANGED, PARTIAL, WORK
from orchestrator.process.link_wall import wall_functions
from orchestrator.process.scripts import end_whole_function, script, script_command

_ROOM = "engines/rsync"


def _script(name: str, *values: str, effect: Effect, host: Host | None, before: str = "") -> Command:
    """Build the command of one of our scripts. `before`: text that must come before it."""
    return script_command(_ROOM, name, *values, effect=effect, host=host, before=before)


def _inside(name: str, *values: str, host: Host | None, effect: Effect = Effect.WRITES, more: str = "") -> Command:
    """Build the command of a script that enters folders before it changes anything. `more`: functions that it needs besides."""
    return _script(name, *values, effect=effect, host=host, before=_functions() + more)


@functools.cache
def _functions() -> str:
    """Return the functions by which scripts enter folders."""
    return "".join(script(_ROOM, name) for name in ("enter-place.sh", "enter-own-folder.sh", "enter-folder.sh"))


def hello_command(host: Host, hello: str) -> Command:
    """Build the command that prints version and abilities of a far rsync, and before that what a gate says of itself."""
    return _script("hello.sh", hello, effect=Effect.READS, host=host)


def link_unchanged_command(root: Location, point: str) -> Command:
    """Build the request that a gate links into the work tree what the point has, and its input does not name as different."""
    return Command(argv=(LINK_UNCHANGED, root.path, point), effect=Effect.WRITES, host=root.host)


def link_tree_command(work: Location, point: RestorePoint) -> Command:
    """Build the command that links a point into a new work tree on a host, but for what its input names; only where no link leads on."""
    root = work.path.removesuffix(f"/{WORK}")
    return _inside("link-tree.sh", root, point.name, host=work.host, more=wall_functions())


def survey_tools_command(host: Host | None) -> Command:
    """Build the command that prints the names of programs that are missing, or are not those that the scripts need."""
    return _script("look-at-tools.sh", effect=Effect.READS, host=host)


def survey_links_command(host: Host | None) -> Command:
    """Build the command that prints whether links in trees are closed to rsync there: closed, open, or user."""
    return _script("look-at-links.sh", effect=Effect.READS, host=host, before=wall_functions())


def survey_filesystem_command(root: Location) -> Command:
    """Build the command that prints our user there, and the type of a target's filesystem."""
    return _script("look-at-filesystem.sh", root.path, effect=Effect.READS, host=root.host)


def survey_target_command(root: Location) -> Command:
    """Build the command that prints a target, NUL-separated: kind, space, marker, records of place, type, name.

    Places: u(p) and h(ere) show devices, g and k modes of the root and of our folders, l(atest) its link; r(oot), p(oints) and
    o(urs) the names in them; m(irror) a time. Why so much in one find: each program that a survey starts costs a millisecond or
    two.
    """
    return _script(
        "look-at-target.sh", root.path, effect=Effect.READS, host=root.host, before=script(_ROOM, "enter-place.sh")
    )


def survey_source_command(source: SourceTree, *, whole: bool = False, copy: bool = False) -> Command:
    """Build the command that prints each folder of a source: a(bsent), f(ile), l(ink on its way), d(irectory) with devices, x if not empty.

    Only a `whole` survey checks whether it is empty; of a single folder a run's own comparison finds it anyway. `copy`: it is a
    copy of several folders, below a place that links may lead to.
    """
    first, *more = (folder.path for folder in source.folders)
    how = "whole" if whole or copy else "parts" if source.parts else "quick"
    before = script(_ROOM, "enter-place.sh")
    return _script("look-at-source.sh", first, how, *more, effect=Effect.READS, host=source.root.host, before=before)


def survey_both_command(source: Location, root: Location) -> Command:
    """Build the one command that runs both `survey_source_command` and `survey_target_command`, on one machine.

    Why: starting a shell for each costs a run that finds nothing to do five milliseconds more.
    """
    look = f'set -- "$1" "$2"\n{script(_ROOM, "look-at-source.sh")}'
    first = f"{script(_ROOM, 'enter-place.sh')}(\n{look}) || exit\nshift 2\n"
    values = (source.path, "quick", root.path)
    return _script("look-at-target.sh", *values, effect=Effect.READS, host=root.host, before=first)


def partial_files_command(work: Location, *, own: bool = False) -> Command:
    """Build the command that prints size and path of partial files: in partial directories, and orphaned temporaries.

    `own`: only this user's.
    """
    return _script("half-copied.sh", work.path, "own" if own else "", effect=Effect.READS, host=work.host)


def sizes_command(source: Location, paths: tuple[bytes, ...]) -> Command:
    """Build the command that prints the size of each file of the source, `-` where there is no such regular file."""
    names = ("./" + path.decode("utf-8", "surrogateescape") for path in paths)
    return _inside("sizes.sh", source.path, *names, effect=Effect.READS, host=source.host)


BELOW_ROOT = b"/./"  # begins each path in a listing of several folders


def list_names_command(tree: SourceTree, *, one_filesystem: bool) -> Command:
    """Build the command that lists a tree, NUL-terminated: path, kind, size and time."""
    argv = _find(tree, tree.root.path.rstrip("/") + "/.", r"//%y\t%s\t%T@\0", one_filesystem=one_filesystem)
    return Command(argv=argv, effect=Effect.READS, host=tree.root.host, environment=(("LC_ALL", "C"),))


def list_sizes_command(tree: SourceTree, *, one_filesystem: bool) -> Command:
    """Build the command that lists a tree, NUL-terminated: path, kind, size, names, inode and blocks."""
    argv = _find(tree, tree.root.path + "/", r"//%y\t%s\t%n\t%i\t%b\0", one_filesystem=one_filesystem)
    return Command(argv=argv, effect=Effect.READS, host=tree.root.host)


def list_large_command(tree: SourceTree, *, one_filesystem: bool) -> Command:
    """Build the command that lists a tree's files of 1 MiB and more, NUL-terminated: path, size, blocks, owner, names, and device with inode."""
    form = r"//%s\t%b\t%U\t%n\t%D:%i\0"
    argv = _find(
        tree, tree.root.path + "/", form, one_filesystem=one_filesystem, tests=("-type", "f", "-size", "+1023k")
    )
    return Command(argv=argv, effect=Effect.READS, host=tree.root.host)


def size_limit_command(root: Location) -> Command:
    """Build the command that prints how many bytes a file may have on a target's filesystem."""
    return _inside("size-limit.sh", root.path, host=root.host, effect=Effect.READS)


def list_long_links_command(tree: SourceTree, least: int, *, one_filesystem: bool) -> Command:
    """Build the command that lists a tree's links whose text has at least so many bytes, NUL-terminated: path, bytes of the text, owner."""
    tests = ("-type", "l", "-size", f"+{least - 1}c")
    argv = _find(tree, tree.root.path + "/", r"//%s\t%U\0", one_filesystem=one_filesystem, tests=tests)
    return Command(argv=argv, effect=Effect.READS, host=tree.root.host)


def list_bare_command(root: Location) -> Command:
    """Build the command that lists a tree of one filesystem as the review of its copy does, itself first, with the blocks behind."""
    form = LISTED.removesuffix(r"\0") + r"\t%b\0"
    return Command(argv=("find", root.path + "/", "-xdev", "-printf", form), effect=Effect.READS)


def _find(
    tree: SourceTree, root: str, form: str, *, one_filesystem: bool, tests: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """Return the words of a find that lists a tree below its root. Several folders are listed with themselves, see `BELOW_ROOT`."""
    alone = ("-xdev",) * one_filesystem  # of each folder the filesystem that it lies on
    if tree.parts:
        return ("find", *(f"/./{part}" for part in tree.parts), *alone, *tests, "-printf", f"%p{form}")
    return ("find", root, *alone, "-mindepth", "1", *tests, "-printf", f"%P{form}")


def others_command(tree: Location, folders: tuple[str, ...]) -> Command:
    """Build the command that lists what a copy of several folders holds besides them, NUL-terminated."""
    before = script(_ROOM, "enter-place.sh") + script(_ROOM, "walk-others.sh")
    return _script("list-others.sh", tree.path, *folders, effect=Effect.READS, host=tree.host, before=before)


def discard_others_command(work: Location, folders: tuple[str, ...]) -> Command:
    """Build the command that removes from a work tree what is in none of several folders any more."""
    before = _functions() + script(_ROOM, "walk-others.sh")
    return _script("discard-others.sh", work.path, *folders, effect=Effect.WRITES, host=work.host, before=before)


def open_top_command(work: Location) -> Command:
    """Build the command that opens the top of a work tree for readers, which is a folder of our own above several folders."""
    return _inside("open-top.sh", work.path, host=work.host)


def close_folders_command(root: Location, rooms: tuple[str, ...], *, keeps_work: bool) -> Command:
    """Build the command that restricts these folders of ours below a target's root to their owner."""
    values = (root.path, "" if keeps_work else "work", *rooms)
    return _inside("close-folders.sh", *values, host=root.host)


def prepare_command(
    root: Location, job: str, folders: tuple[str, ...], *, patience: int, stored: bool = False
) -> Command:
    """Build the command that makes the target ours and waits for receivers of an earlier run to end.

    `patience`: the longest wait, in seconds. `folders` are made in our own folder. `stored`: its copies keep owners, modes and kinds
    in attributes.
    """
    values = (root.path, job, str(patience), *(("fake-super",) if stored else ()), *folders)
    return _inside("prepare.sh", *values, host=root.host)


def try_abilities_command(root: Location, abilities: tuple[str, ...]) -> Command:
    """Build the command that prints which of these abilities a target lacks."""
    return _inside("try-abilities.sh", root.path, *abilities, host=root.host)


def find_unheld_command(source: SourceTree, *, one_filesystem: bool, points: bool) -> Command:
    """Build the command that fails when the source has what a target, by its input, cannot hold."""
    values = (source.root.path, "one-filesystem" if one_filesystem else "", "points" if points else "")
    return _inside("find-unheld.sh", *values, *source.parts, effect=Effect.READS, host=source.root.host)


def take_up_command(
    work: Location, path: bytes, *, orphan: bytes = b"", length: int | None = None, own: bool = False
) -> Command:
    """Build the command that moves an orphaned temporary file to where a resumed copy looks for it, truncated to `length`.

    Why truncated: --append-verify skips a file that is not shorter than the source's. `own`: others may have been in the tree.
    """
    folder, _, name = path.rpartition(b"/")
    values = (
        path_argument(folder),
        path_argument(name),
        path_argument(orphan.rpartition(b"/")[2]),
        "" if length is None else str(length),
        *(("own",) if own else ()),
    )
    return _inside("take-up.sh", work.path, *values, host=work.host)


def finish_command(work: Location, path: bytes, size: int, *, holes: bool) -> Command:
    """Build the command that gives a completed partial file its name; one without its full size yet is not changed.

    `holes`: its runs of zeros become holes.
    """
    folder, _, name = path.rpartition(b"/")
    values = (path_argument(folder), path_argument(name), str(size), "holes" if holes else "")
    return _inside("finish.sh", work.path, *values, host=work.host)


def discard_command(work: Location, remainders: tuple[bytes, ...]) -> Command:
    """Build the command that removes these partial files."""
    parts = (lies.rpartition(b"/") for lies in remainders)
    values = (path_argument(part) for folder, _, name in parts for part in (folder, name))
    return _inside("discard.sh", work.path, *values, host=work.host)


def unshare_command(work: Location) -> Command:
    """Build the command that removes from a cut work tree whatever shares its inode with a point."""
    return _inside("unshare-tree.sh", work.path, host=work.host)


def separate_files_command(root: Location, *, whole: bool) -> Command:
    """Build the command that removes from a mirror what others gave a name there and is about to be changed in place.

    `whole`: it looks at the whole mirror; else at what its input names.
    """
    return _inside(
        "separate-files.sh", root.path, *(("all",) if whole else ()), host=root.host, more=end_whole_function()
    )


def dig_holes_command(point: Location, work: Location) -> Command:
    """Build the command that makes holes in files of a work tree, named on its input, that have some in the point."""
    return _inside("dig-holes.sh", point.path, work.path, host=work.host)


def sweep_command(tree: Location, *, one_filesystem: bool = False) -> Command:
    """Build the command that removes all partial files. `one_filesystem`: filesystems mounted inside are not changed."""
    alone = "one-filesystem" if one_filesystem else ""
    return _inside("sweep.sh", tree.path, alone, host=tree.host)


def resume_mirror_command(root: Location, *, anew: bool = False) -> Command:
    """Build the command that prepares an unfinished mirror for the next copy. `anew`: without its half-copied files."""
    return _inside("resume-mirror.sh", root.path, *(["anew"] if anew else []), host=root.host)


def list_written_command(root: Location, most: int) -> Command:
    """Build the command that prints the files of a mirror that changed since its unfinished run began, NUL-terminated, `most` at the most."""
    return _inside("list-written.sh", root.path, str(most), host=root.host, effect=Effect.READS)


def publish_command(root: Location, name: str, manifest: str) -> Command:
    """Build the command that syncs to disk, then names manifest, tree and `latest`, each by one rename."""
    return _inside("publish.sh", root.path, name, manifest, host=root.host, more=script(_ROOM, "sync-noted.sh"))


def remove_command(root: Location, names: tuple[str, ...]) -> Command:
    """Build the command that hides points by one rename each, then removes them; the next call removes the rest."""
    return _inside("remove.sh", root.path, *names, effect=Effect.DESTROYS, host=root.host)


def end_mirror_command(root: Location) -> Command:
    """Build the command that syncs to disk, then removes the records of damage and of the unfinished mirror."""
    return _inside("end-mirror.sh", root.path, host=root.host, more=script(_ROOM, "sync-noted.sh"))


def name_latest_command(root: Location, name: str) -> Command:
    """Build the command that makes `latest` name the point."""
    return _inside("name-latest.sh", root.path, name, host=root.host)


def confirm_point_command(root: Location, name: str) -> Command:
    """Build the command that prints `there` when the point, its manifest and `latest` exist."""
    return _script("see-point.sh", root.path, name, effect=Effect.READS, host=root.host)


def restore_source_command(tree: Location, path: bytes) -> Command:
    """Build the command that prints the kind of a path in a point: folder, file or absent."""
    return _inside("look-at-path.sh", tree.path, path_argument(path), effect=Effect.READS, host=tree.host)


def list_large_files_command(tree: Location) -> Command:
    """Build the command that prints blocks, size, inode and path of each file at or below a path that is large enough for holes, NUL-terminated."""
    words = ("-type", "f", "-size", "+127", "-printf", r"%b %s %i %P\0")
    return Command(argv=("find", tree.path, *words), effect=Effect.READS, host=tree.host)


def survey_destination_command(to: Location) -> Command:
    """Build the command that prints a destination, NUL-separated.

    Fields: kind, our marker, number of entries, its real path, this machine's mount points, the first names.
    """
    return _script("look-at-destination.sh", to.path, effect=Effect.READS, host=to.host, before=end_whole_function())


def survey_below_command(to: Location, mounts: tuple[bytes, ...], most: int) -> Command:
    """Build the command that prints the first entries of a folder's own filesystem (e), then mounts: f with files, else v."""
    return _script("look-below.sh", to.path, str(most), *map(path_argument, mounts), effect=Effect.READS, host=to.host)


def survey_point_command(tree: Location, paths: tuple[bytes, ...]) -> Command:
    """Build the command that prints the paths at which a point has entries; empty folders do not count."""
    return _script("look-in-point.sh", tree.path, *map(path_argument, paths), effect=Effect.READS, host=tree.host)


def begin_restore_command(
    to: Location, *, aside: str, marker: str, unfinished: bool, mounts: tuple[bytes, ...] = ()
) -> Command:
    """Build the command that renames existing data if `aside` is set, makes the folder, closes it and marks it.

    `unfinished`: an earlier restore is resumed. `mounts`: what is mounted below the folder.
    """
    tops = (path_argument(top) for top in sorted({path.partition(b"/")[0] for path in mounts}))
    values = (to.path, aside, marker, "unfinished" if unfinished else "", *tops)
    return _marking("begin-restore.sh", *values, host=to.host)


def begin_file_command(to: Location, *, aside: str, marker: str) -> Command:
    """Build the command that renames an existing file if `aside` is set, and makes our own folder beside it."""
    folder, _, name = to.path.rpartition("/")
    return _marking("begin-file.sh", folder or "/", name, aside, marker, host=to.host)


def place_file_command(to: Location) -> Command:
    """Build the command that gives a restored file its place, and removes our own folder."""
    return _marking("place-file.sh", file_folder(to).path, to.path.rpartition("/")[2], host=to.host)


def compare_entries_command(one: Location, other: Location) -> Command:
    """Build the command that ends well where two entries of this machine are the same."""
    return _script("compare-entries.sh", one.path, other.path, effect=Effect.READS, host=None)


def file_folder(to: Location) -> Location:
    """Return our own folder in which a single file is restored before it gets its place."""
    folder, _, name = to.path.rpartition("/")
    return Location(path=f"{folder}/{PARTIAL}/{name}", host=to.host)


def in_tree_command(root: Location, tree: str, *words: str, effect: Effect = Effect.WRITES) -> Command:
    """Build the command that runs a program in a target's tree. `tree`: "work", or nothing for a mirror's root."""
    return _inside("in-tree.sh", root.path, tree, *words, effect=effect, host=root.host)


def list_top_command(tree: Location) -> Command:
    """Build the command that lists the names in a folder, "/" before and NUL after each, see `commands.restore_command`."""
    argv = ("find", tree.path.rstrip("/") + "/.", "-mindepth", "1", "-maxdepth", "1", "-printf", "/%P\\0")
    return Command(argv=argv, effect=Effect.READS, host=tree.host)


def inside_command(folder: Location, *words: str) -> Command:
    """Build the command that runs a program in a folder that a restore has marked as its own."""
    return _marking("in-folder.sh", folder.path, *words, host=folder.host)


def below_command(folder: Location, below: str, *words: str) -> Command:
    """Build the command that runs a program in a folder below one that a restore has marked."""
    return _marking("in-subfolder.sh", folder.path, below, *words, host=folder.host)


def _marking(name: str, *values: str, host: Host | None) -> Command:
    return script_command(
        _ROOM,
        name,
        *values,
        effect=Effect.WRITES,
        host=host,
        before=_functions() + script(_ROOM, "enter-marked.sh"),
    )


def end_restore_command(to: Location, filled: tuple[bytes, ...] = ()) -> Command:
    """Build the command that syncs to disk, then removes the marker; the folder's time stays. `filled`: mounts."""
    places = (f"{to.path.rstrip('/')}/{path_argument(each)}" for each in filled)
    return _inside("end-restore.sh", to.path, *places, host=to.host)


def store_command(file: Location, size: int | None) -> Command:
    """Build the command that writes its input to a file, completely or not at all. `size`: the input's bytes; None: as far as it comes."""
    return _inside("store.sh", file.path, *(() if size is None else (str(size),)), host=file.host)


def discard_note_command(file: Location) -> Command:
    """Build the command that removes a small file of ours."""
    return _inside("discard-note.sh", file.path, host=file.host)


def mend_point_command(root: Location, sound: str, damaged: str, what: str, flags: tuple[str, ...]) -> Command:
    """Build the command that makes entries of one point, named on its input, what they are in another. `what`, `flags`: see the script."""
    before = wall_functions() + _functions()
    return _script(
        "mend-point.sh", root.path, sound, damaged, what, *flags, effect=Effect.WRITES, host=root.host, before=before
    )


def show_file_command(file: Location) -> Command:
    """Build the command that prints a file."""
    return Command(argv=("cat", "--", file.path), effect=Effect.READS, host=file.host)


def sums_command(tree: Location) -> Command:
    """Build the command that prints sha256sum's line for each file named NUL-terminated on its input."""
    return _script("sums.sh", tree.path, effect=Effect.READS, host=tree.host)


def path_argument(name: bytes) -> str:
    """Decode a name for use as an argument."""
    return name.decode("utf-8", "surrogateescape")
