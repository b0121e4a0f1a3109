"""Every command line of the rsync engine, each flag with its reason beside it. Pure."""

import re
import shlex

from orchestrator.domain.command import Command, Effect
from orchestrator.domain.job import Job
from orchestrator.domain.place import Host, Location
from orchestrator.engines.rsync.options import RsyncOptions
from orchestrator.engines.rsync.words import LOCK, PARTIAL, Program
from orchestrator.process.ssh import rsync_shell

_PLAIN = re.compile(r"[A-Za-z0-9/_.,+@%=:-]*")
_WILD = re.compile(r"([\\*?\[\]])")
_BUSY = "75"  # flock's exit when the lock stays busy; failures.py reads it

# Constant scripts with their values as arguments; `sh` is every Debian's, and one call is one round trip over ssh.
_LOOK_AT_TARGET = """
r=$1
if [ ! -d "$r" ]; then [ -e "$r" ] && printf 'n' || printf 'a'; [ -d "${r%/*}/" ] && printf 'p'; printf '\\0'; exit 0; fi
printf 'd\\0'
stat -c '%d' -- "$r" "$r/.." | tr '\\n' ' '; printf '\\0'
stat -f -c '%a %S' -- "$r"; printf '\\0'
cat -- "$r/.poolferry/target.json" 2>/dev/null; printf '\\0'
readlink -- "$r/latest" 2>/dev/null; printf '\\0'
find "$r/" -mindepth 1 -maxdepth 1 -printf 'r %y %P\\0'
[ -d "$r/points" ] && find "$r/points/" -mindepth 1 -maxdepth 1 -printf 'p %y %P\\0'
[ -d "$r/.poolferry" ] && find "$r/.poolferry/" -mindepth 1 -maxdepth 2 ! -path '*/work/*' -printf 'o %y %P\\0'
true
"""
_LOOK_AT_SOURCE = """
s=$1
if [ ! -e "$s" ]; then printf 'a\\0'; exit 0; fi
if [ ! -d "$s" ]; then printf 'f\\0'; exit 0; fi
printf 'd %s\\0' "$(stat -c '%d' -- "$s" "$s/.." | tr '\\n' ' ')"
find "$s/" -mindepth 1 -maxdepth 1 -printf 'x' -quit; printf '\\0'
"""
_HALF_COPIED = """
find "$1/" -type f -size +0 -regextype posix-extended \\( -path '*/.~poolferry-partial~/*' -o -regex '.*/\\..+\\.[A-Za-z0-9]{6}' \\) -printf '%s %P\\0'
"""
_SIZES = """
cd -- "$1" && shift && for f in "$@"; do [ -f "$f" ] && [ ! -L "$f" ] && stat -c '%s' -- "$f" || echo -; done
"""
_PREPARE = """
set -e
mkdir -p -- "$1/points" "$1/.poolferry"
if [ ! -e "$1/.poolferry/target.json" ]; then
  p=$1/.poolferry/probe; touch -d '@1.123456789' -- "$p"; m=$(stat -c '%.9Y' -- "$p"); rm -f -- "$p"
  case $m in *.123456789) c=false;; *) c=true;; esac
  printf '{"format": 1, "job": "%s", "coarse": %s}\\n' "$2" "$c" > "$1/.poolferry/target.json.new"
  mv -T -- "$1/.poolferry/target.json.new" "$1/.poolferry/target.json"
fi
flock -x -w "$4" -E 75 "$1/.poolferry/lock" true
mkdir -p -- "$3"
"""
_SALVAGE = """
set -e
cd -- "$1"
mkdir -p -- "$3"
mv -T -- "$2" "$3/$4"
"""
_FINISH = """
set -e
cd -- "$1"
mv -T -- "$2" "$3"
rmdir --ignore-fail-on-non-empty -- "${2%/*}"
"""
_SWEEP = """
cd -- "$1" && find . -depth \\( -name '.~poolferry-partial~' -type d -exec rm -rf -- {} + \\) -o \\( -type f -path "$2" -exec rm -f -- {} + \\)
"""
_PUBLISH = """
set -e
cd -- "$1"
sync -f .poolferry/work
mv -T -- "$3" "points/$2.manifest.gz"
mv -T -n -- .poolferry/work "points/$2"
[ ! -e .poolferry/work ]
ln -s -f -n -- "points/$2" .poolferry/latest
mv -T -- .poolferry/latest latest
sync -f .
"""
_REMOVE = """
set -e
cd -- "$1"; shift
mkdir -p .poolferry/trash
for p in "$@"; do
  if [ -e "points/$p" ]; then mv -T -- "points/$p" ".poolferry/trash/$p"; fi
  rm -f -- "points/$p.manifest.gz" "points/$p.damaged"
done
rm -rf --one-file-system -- .poolferry/trash
"""
_SEE_POINT = """
cd -- "$1" && [ -d "points/$2" ] && [ -f "points/$2.manifest.gz" ] && [ "$(readlink latest)" = "points/$2" ] && echo there
"""
_SUMS = """
cd -- "$1" && xargs -0 -r -P 4 -n 64 sha256sum --
"""
_LOOK_AT_WANTED = """
if [ -d "$1" ] && [ ! -L "$1" ]; then echo folder; elif [ -e "$1" ] || [ -L "$1" ]; then echo file; else echo absent; fi
"""
_LOOK_AT_DESTINATION = """
t=$1
if [ -L "$t" ] && [ ! -e "$t" ]; then printf 'other\\0'; exit 0; fi
if [ ! -e "$t" ]; then printf 'absent\\0'; exit 0; fi
if [ ! -d "$t" ]; then printf 'other\\0'; exit 0; fi
printf 'folder\\0'
cat -- "$t/.poolferry-restoring.json" 2>/dev/null; printf '\\0'
find "$t/" -mindepth 1 -maxdepth 1 -printf 'x\\n' | wc -l; printf '\\0'
find "$t/" -mindepth 1 -maxdepth 1 -printf '%P\\0' | head -z -n 10
"""
_BEGIN_RESTORE = """
set -e
if [ -n "$2" ]; then mv -T -n -- "$1" "$2"; [ ! -e "$1" ]; fi
mkdir -p -- "$3"
if [ -n "$4" ]; then printf '%s\\n' "$4" > "$1/.poolferry-restoring.json"; fi
"""
_END_RESTORE = """
set -e
sync -f "$1"
m=$(stat -c '%.9Y' -- "$1"); rm -f -- "$1/.poolferry-restoring.json"; touch -d "@$m" -- "$1"
"""
_STORE = """
set -e
cat > "$1.new"; sync -- "$1.new"; mv -T -- "$1.new" "$1"
"""


def _script(text: str, *values: str, effect: Effect, host: Host | None) -> Command:
    return Command(argv=("sh", "-c", text.strip(), "sh", *values), effect=effect, host=host)


def look_at_target_command(root: Location) -> Command:
    """Prints what a target holds, NUL-separated: kind, devices, room, marker, latest, then the names of three folders."""
    return _script(_LOOK_AT_TARGET, root.path, effect=Effect.READS, host=root.host)


def look_at_source_command(source: Location) -> Command:
    """Prints what the source's root is: a(bsent), f(ile) or d(irectory) with devices, then x when it is not empty."""
    return _script(_LOOK_AT_SOURCE, source.path, effect=Effect.READS, host=source.host)


def half_copied_command(work: Location) -> Command:
    """Prints size and path of what interrupted copying left: in partial directories, and rsync's orphaned temporaries."""
    return _script(_HALF_COPIED, work.path, effect=Effect.READS, host=work.host)


def sizes_command(source: Location, paths: tuple[bytes, ...]) -> Command:
    """Prints the size of each file of the source, `-` where there is no such regular file."""
    names = ("./" + path.decode("utf-8", "surrogateescape") for path in paths)
    return _script(_SIZES, source.path, *names, effect=Effect.READS, host=source.host)


def prepare_command(root: Location, job: str, work: Location, *, patience: int) -> Command:
    """Makes the target ours and waits, `patience` seconds at most, until no receiver of an earlier run is alive."""
    return _script(_PREPARE, root.path, job, work.path, str(patience), effect=Effect.WRITES, host=root.host)


def salvage_command(work: Location, orphan: bytes, folder: bytes, name: bytes) -> Command:
    """Moves an orphaned temporary file to where a resumed copy looks for it."""
    values = (_text(orphan), _text(folder), _text(name))
    return _script(_SALVAGE, work.path, *values, effect=Effect.WRITES, host=work.host)


def finish_command(work: Location, partial: bytes, final: bytes) -> Command:
    """Gives a completed half-copied file its name."""
    return _script(_FINISH, work.path, _text(partial), _text(final), effect=Effect.WRITES, host=work.host)


def shorten_command(work: Location, partial: bytes, size: int) -> Command:
    """Cuts a half-copied file to `size`, as --append-verify passes over a file that is not shorter than the source's."""
    path = f"{work.path}/{_text(partial)}"
    return Command(argv=("truncate", "-s", str(size), "--", path), effect=Effect.WRITES, host=work.host)


def sweep_command(work: Location, orphans: str) -> Command:
    """Removes half-copied files that nothing will use any more."""
    return _script(_SWEEP, work.path, orphans, effect=Effect.WRITES, host=work.host)


def publish_command(root: Location, name: str, manifest: str) -> Command:
    """Everything to the disk, then manifest, tree and `latest` get their names, each by one rename."""
    return _script(_PUBLISH, root.path, name, manifest, effect=Effect.WRITES, host=root.host)


def remove_command(root: Location, names: tuple[str, ...]) -> Command:
    """Takes points out of sight by one rename each, then removes them; what a cut leaves is removed by the next."""
    return _script(_REMOVE, root.path, *names, effect=Effect.DESTROYS, host=root.host)


def see_point_command(root: Location, name: str) -> Command:
    """Prints `there` when the point, its manifest and `latest` are."""
    return _script(_SEE_POINT, root.path, name, effect=Effect.READS, host=root.host)


def look_at_wanted_command(wanted: Location) -> Command:
    """Prints what a point holds there: folder, file or absent."""
    return _script(_LOOK_AT_WANTED, wanted.path, effect=Effect.READS, host=wanted.host)


def look_at_destination_command(to: Location) -> Command:
    """Prints what lies at a destination, NUL-separated: kind, our marker, number of entries, the first names."""
    return _script(_LOOK_AT_DESTINATION, to.path, effect=Effect.READS, host=to.host)


def begin_restore_command(to: Location, *, aside: str, folder: str, marker: str) -> Command:
    """Renames away what lies there when `aside` is told, makes the folder, and marks it as being restored."""
    return _script(_BEGIN_RESTORE, to.path, aside, folder, marker, effect=Effect.WRITES, host=to.host)


def end_restore_command(to: Location) -> Command:
    """Everything to the disk, then the marker goes; the folder keeps its time."""
    return _script(_END_RESTORE, to.path, effect=Effect.WRITES, host=to.host)


def store_command(file: Location) -> Command:
    """Writes its input to a file, whole or not at all."""
    return _script(_STORE, file.path, effect=Effect.WRITES, host=file.host)


def show_file_command(file: Location) -> Command:
    """Prints a file."""
    return Command(argv=("cat", "--", file.path), effect=Effect.READS, host=file.host)


def rsync_version_command(host: Host | None) -> Command:
    """Prints version and abilities: JSON since 3.2.7, text before; `-VV` is an error before 3.2."""
    return Command(argv=("rsync", "--version", "--version"), effect=Effect.READS, host=host)


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def look_command(job: Job, newest: Location, *, here: Program | None, there: Program | None, coarse: bool) -> Command:
    """Itemizes the differences between source and newest copy; writes nothing."""
    options = _options(job)
    argv = [
        "rsync", "--dry-run", *_what(options), "--delete",
        *_comparing(options, there=there, coarse=coarse),
        "--no-human-readable", "--stats",
        "--out-format=pf:%i|%l|%n",  # the name last: everything before it is fixed in shape
        *_pairing(job, there, job.source, newest),
        "--", _source_argument(job.source), _argument(newest),
    ]  # fmt: skip
    return Command(argv=tuple(argv), effect=Effect.READS)


def copy_command(
    job: Job, into: Location, *, base: Location | None, here: Program | None, there: Program | None,
    coarse: bool, lane: bool = False, tidy: bool = False, flat: bool = False, unlinked: bool = False,
) -> Command:  # fmt: skip
    """Copies the source into a tree of ours.

    `lane`: only what its input names (NUL-separated, whole subtrees); `flat`: of what it names, the entries themselves
    without what lies below; `tidy`: also remove from the tree what the source no longer has; `unlinked`: never link to
    the base, as its files are damaged.
    """
    options = _options(job)
    argv = ["rsync", *_what(options)]
    if lane or flat:
        argv += ["--from0", "--files-from=-"]  # newline-separated lists lose names with newlines, "#" and ";"
        argv += ["--dirs", "--no-recursive"] if flat else ["--recursive"]
    if tidy:
        argv += ["--delete-delay"]  # lists while scanning, removes at the end: an early end removes nothing
    if base is not None and not unlinked:
        argv += [f"--link-dest={base.path}"]
    if options.in_place:
        argv += ["--inplace", "--no-whole-file"]  # without the second a local copy rewrites whole files
    else:
        argv += [f"--partial-dir={PARTIAL}"]  # plain --partial lets a late receiver truncate a finished file
        if into.host is None and job.source.host is None:
            argv += ["--whole-file"]  # comparing blocks of local files costs five times the copy
        if options.sparse:
            argv += ["--sparse"]
    argv += [*_comparing(options, there=there, coarse=coarse), *_moving(job, here, there, into)]
    argv += ["--", _source_argument(job.source), _argument(into)]
    effect = Effect.DESTROYS if tidy and not options.points else Effect.WRITES
    return Command(argv=tuple(argv), effect=effect)


def append_command(
    job: Job, path: bytes, into: Location, partial: bytes, *, here: Program | None, there: Program | None
) -> Command:
    """Completes one half-copied file: the bytes that are there are verified, not sent again."""
    source = Location(path=f"{job.source.path.rstrip('/')}/{_text(path)}", host=job.source.host)
    target = Location(path=f"{into.path}/{_text(partial)}", host=into.host)
    argv = ("rsync", *_what(_options(job)), "--append-verify", *_moving(job, here, there, into))
    return Command(
        argv=(*argv, "--", _argument(source, wild=True, folder=False), _argument(target, folder=False)),
        effect=Effect.WRITES,
    )


def restore_command(tree: Location, to: Location, job: Job, *, folder: bool) -> Command:
    """Brings a point, a folder of it or one file back; a folder becomes exactly what the point holds."""
    only = ["--delete-delay", f"--exclude=/{RESTORING}"] if folder else []
    local = [] if tree.host or to.host else ["--whole-file"]
    argv = ["rsync", *_what(_options(job), filters=False), *only, f"--partial-dir={PARTIAL}", *local, "--sparse", "--modify-window=-1",
            *_reporting(), f"--timeout={max(1, int(job.pipe.stall_after))}", *_pairing(job, None, tree, to),
            "--", _argument(tree, wild=True, folder=folder), _argument(to, folder=folder)]  # fmt: skip
    return Command(argv=tuple(argv), effect=Effect.WRITES)


RESTORING = ".poolferry-restoring.json"


def digests_command(tree: Location, empty: str, algorithm: str, job: Job) -> Command:
    """Prints digests of files of a tree elsewhere, named NUL-terminated on its input.

    xxh128 needs nothing but rsync there: a dry run against an empty folder compares checksums. Raises: ValueError.
    """
    if algorithm == "sha256":
        return _script(_SUMS, tree.path, effect=Effect.READS, host=tree.host)
    if algorithm != "xxh128":
        raise ValueError(f"{algorithm} cannot be made on {tree.host}: use xxh128 or sha256 in [verify] digest")
    argv = ("rsync", "--dry-run", "--times", "--checksum", "--checksum-choice=xxh128", "--from0", "--files-from=-", "--out-format=pf:%i|%l|0|%C|%n",
            *_pairing(job, None, tree, Location(path=empty)), "--", _argument(tree, wild=True), empty + "/")  # fmt: skip
    return Command(argv=argv, effect=Effect.READS)


def _options(job: Job) -> RsyncOptions:
    assert isinstance(job.options, RsyncOptions)
    return job.options


def _what(options: RsyncOptions, *, filters: bool = True) -> list[str]:
    """What belongs to a complete copy."""
    flags = ["--archive" if options.devices else "--archive --no-D"]
    flags = flags[0].split()
    flags += ["--hard-links"] if options.hard_links else []
    flags += ["--acls"] if options.acls else []
    flags += ["--xattrs"] if options.xattrs else []
    flags += ["--numeric-ids"] if options.numeric_ids else []
    flags += ["--one-file-system"] if options.one_file_system and filters else []
    flags += [f"--exclude={pattern}" for pattern in options.excludes] if filters else []
    return flags


def _comparing(options: RsyncOptions, *, there: Program | None, coarse: bool) -> list[str]:
    """How equal is told. Whole seconds miss an edit within the same second (19 of 20); 3.1.3 brought nanoseconds."""
    fine = not coarse and (there is None or there.at_least(3, 1, 3))
    return (["--modify-window=-1"] if fine else []) + (["--checksum"] if options.checksum else [])


def _reporting() -> list[str]:
    return [
        "--no-human-readable", "--stats", "--info=progress2",
        "--out-format=pf:%i|%l|%b|%C|%n",  # %C: the digest that rsync made on its way, for the manifest
    ]  # fmt: skip


def _moving(job: Job, here: Program | None, there: Program | None, into: Location) -> list[str]:
    """How data travels, and what is told on the way."""
    rate = [f"--bwlimit={max(1, job.pipe.rate_limit // 1024)}"] if job.pipe.rate_limit else []
    argv = [
        *_reporting(),
        f"--timeout={max(1, int(job.pipe.stall_after))}",
        *rate,
        *_choices(job, here, there, job.source, into),
    ]
    argv += _pairing(job, there, job.source, into)
    if into.host:
        # A receiver left over from a cut link holds the lock as long as it lives, so a new run cannot meet it.
        root = into.path.split(f"/{LOCK.split('/')[0]}/")[0]
        argv += [f"--rsync-path=flock -s -w 60 -E {_BUSY} {shlex.quote(root + '/' + LOCK)} rsync"]
    return argv


def _choices(job: Job, here: Program | None, there: Program | None, one: Location, other: Location) -> list[str]:
    """Digest and compression that both sides understand; an older side is left to negotiate by itself."""
    if not (one.host or other.host):
        return ["--checksum-choice=xxh128"] if here is None or "xxh128" in here.checksums else []
    if here is None or there is None:
        return []
    both = [name for name in here.checksums if name in there.checksums]
    flags = ["--checksum-choice=xxh128"] if "xxh128" in both and min(here.version, there.version) >= (3, 2) else []
    return flags + choose_compression(_options(job).compress, here, there)


def choose_compression(wish: str, here: Program, there: Program) -> list[str]:
    """The flags for the first compression of the wish that both sides have; none where they share none.

    Source: -z with 3.1.1's external zlib against 3.0.6, and -zz or --new-compress towards 3.0.6, end with code 12.
    """
    if wish == "none":
        return []
    wishes = ("lz4", "zstd", "zlibx") if wish == "auto" else ("zlibx",) if wish == "zlib" else (wish,)
    if min(here.version, there.version) >= (3, 2):
        chosen = next((name for name in wishes if name in here.compressions and name in there.compressions), None)
        return (
            []
            if chosen is None
            else ["--compress", f"--compress-choice={chosen}", *(["--compress-level=1"] if chosen == "zstd" else [])]
        )
    if wish in ("auto", "zlib") and min(here.version, there.version) >= (3, 1, 2):
        return ["--new-compress"]
    return []


def _pairing(job: Job, there: Program | None, one: Location, other: Location) -> list[str]:
    """How the far side is reached, and its arguments kept whole."""
    host = one.host or other.host
    if host is None:
        return []
    argv = ["-e", " ".join(rsync_shell(host, job.pipe.ssh_options))]
    far = one if one.host else other
    if not _PLAIN.fullmatch(far.path) or (there is not None and not there.at_least(3, 2, 4)):
        argv += ["--protect-args"]  # the only way for a newline in a path; before 3.2.4 also for a space
    return argv


def _source_argument(source: Location) -> str:
    return _argument(source, wild=True)


def _argument(place: Location, *, wild: bool = False, folder: bool = True) -> str:
    """A path as rsync's argument: contents of the folder; wildcards of a far source are escaped, or [1] means 1."""
    path = place.path if not folder or place.path == "/" else place.path + "/"
    if place.host is None:
        return path
    shown = _WILD.sub(r"\\\1", path) if wild else path
    name = f"[{place.host.name}]" if ":" in place.host.name else place.host.name
    return (f"{place.host.user}@" if place.host.user else "") + f"{name}:{shown}"
