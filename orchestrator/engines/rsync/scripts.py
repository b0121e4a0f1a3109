"""The small constant scripts that look at, prepare and publish trees, here or on a host.

Each runs with its values as arguments; `sh` is every Debian's, and one call is one round trip over ssh.
"""

from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect

_LOOK_AT_TARGET = """
r=$1
if [ ! -d "$r" ]; then
  [ -e "$r" ] && printf "n" || printf "a"; [ -d "${r%/*}/" ] && printf "p"; printf "\\0"
  stat -f -c "%a %S %c %d" -- "${r%/*}/" 2>/dev/null; exit 0
fi
cd -- "$r" || exit
printf "d\\0"
stat -f -c "%a %S %c %d" .; printf "\\0"
m=; [ ! -e .poolferry/target.json ] || IFS= read -r m < .poolferry/target.json; printf "%s\\0" "$m"
set -- .. .; [ ! -d points ] || set -- "$@" points; [ ! -d .poolferry ] || set -- "$@" .poolferry
set -- "$@" -maxdepth 1 \\( -path .. -printf "u d %D\\0" -prune -o -path . -printf "h d %D\\0"
set -- "$@" -o -path points -o -path .poolferry -o -path ./latest -type l -printf "r l latest\\0l l %l\\0"
set -- "$@" -o -path "./*" -printf "r %y %P\\0" -o -path "points/*" -printf "p %y %P\\0"
LC_ALL=C find "$@" -o -printf "o %y %P\\0" \\) || exit
[ ! -d .poolferry/trash ] || find .poolferry/trash -mindepth 1 -maxdepth 1 -printf "o %y trash/%P\\0"
[ ! -f .poolferry/manifest.gz ] || find .poolferry/manifest.gz -printf "m f %T@\\0"
"""
_LOOK_AT_SOURCE = """
s=$1
if [ ! -e "$s" ]; then printf "a\\0"; exit 0; fi
if [ ! -d "$s" ]; then printf "f\\0"; exit 0; fi
printf "d %s\\0" "$(stat -c "%d" -- "$s" "$s/..")"
if [ "$2" = whole ]; then find "$s/" -mindepth 1 -maxdepth 1 -printf "x" -quit; else printf "x"; fi; printf "\\0"
"""
_HALF_COPIED = """
LC_ALL=C find "$1/" -type f -size +0 -regextype posix-extended \\( -path "*/.~poolferry-partial~/*" -o -regex ".*/\\..+\\.[A-Za-z0-9]{6}" \\) -printf "%s %P\\0"
"""
_HALF_MIRRORED = """
cd -- "$1"
set -- -type f -size +0 -regextype posix-extended
set -- "$@" \\( -path "*/.~poolferry-partial~/*" -o -newer .poolferry/work -regex ".*/\\..+\\.[A-Za-z0-9]{6}" \\)
LC_ALL=C find . -path ./.poolferry -prune -o "$@" -printf "%s %P\\0"
"""
_SIZES = """
cd -- "$1" && shift && for f in "$@"; do [ -f "$f" ] && [ ! -L "$f" ] && stat -c "%s" -- "$f" || echo -; done
"""
_PREPARE = """
set -e
mkdir -p -- "$1/.poolferry"
if [ ! -e "$1/.poolferry/target.json" ]; then
  p=$1/.poolferry/probe; touch -d "@1.123456789" -- "$p"; m=$(stat -c "%.9Y" -- "$p"); rm -f -- "$p"
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
[ "$(stat -c %s -- "$2")" = "$4" ] || exit 0
mv -T -- "$2" "$3"
rmdir --ignore-fail-on-non-empty -- "${2%/*}"
"""
_SWEEP = """
set -e
cd -- "$1"; t=$2/sweep.time
away='t=$1; shift; for d; do p=${d%/*}; touch -r "$p" -- "$t"; rm -rf -- "$d"; touch -r "$t" -- "$p"; done'
find . ${3:+-xdev} -name ".~poolferry-partial~" -type d -prune -exec sh -e -c "$away" sh "$t" {} + || true
rm -f -- "$t"
"""
_PUBLISH = """
set -e
cd -- "$1"
sync -f .poolferry/work
mkdir -p points
mv -T -- "$3" "points/$2.manifest.gz"
m=$(stat -c "%a" .poolferry/work); [ -w .poolferry/work ] || chmod u+w .poolferry/work
mv -T -n -- .poolferry/work "points/$2"
[ ! -e .poolferry/work ]
[ "$(stat -c "%a" "points/$2")" = "$m" ] || chmod "$m" "points/$2"
ln -s -f -n -- "points/$2" .poolferry/latest
mv -T -- .poolferry/latest latest
sync -f .
"""
_REMOVE = """
set -e
cd -- "$1"; shift
open() { [ "$(id -u)" = 0 ] || [ ! -d "$1" ] || find "$1" -type d ! -perm -u+rwx -exec chmod u+rwx {} ";"; }
open .poolferry/trash
rm -rf --one-file-system -- .poolferry/trash
mkdir -p .poolferry/trash
for p in "$@"; do
  if [ -e "points/$p" ]; then [ -w "points/$p" ] || chmod u+w "points/$p"; mv -T -- "points/$p" ".poolferry/trash/$p"; fi
  rm -f -- "points/$p.manifest.gz" "points/$p.damaged"
done
open .poolferry/trash
rm -rf --one-file-system -- .poolferry/trash
"""
_END_MIRROR = """
set -e
sync -f "$1"
rm -f -- "$1/.poolferry/mirror.damaged"
rm -rf -- "$1/.poolferry/work"
"""
_NAME_LATEST = """
set -e
cd -- "$1"
ln -s -f -n -- "points/$2" .poolferry/latest
mv -T -- .poolferry/latest latest
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
if [ -L "$t" ] && [ ! -e "$t" ]; then printf "other\\0"; exit 0; fi
if [ ! -e "$t" ]; then printf "absent\\0"; exit 0; fi
if [ ! -d "$t" ]; then printf "other\\0"; exit 0; fi
printf "folder\\0"
cat -- "$t/.poolferry-restoring.json" 2>/dev/null; printf "\\0"
find "$t/" -mindepth 1 -maxdepth 1 -printf "x\\n" | wc -l; printf "\\0"
(cd -- "$t" && pwd -P); printf "\\0"
cut -d " " -f 5 /proc/self/mountinfo 2>/dev/null; printf "\\0"
find "$t/" -mindepth 1 -maxdepth 1 -printf "%P\\0" | head -z -n 10
"""
# $2: so many entries are enough. What is mounted is an entry, and nothing of what lies in it; folders alone are no files.
_LOOK_BELOW = """
cd -- "$1" || exit; n=$2; shift 2
find . -xdev -mindepth 1 -printf "e%P\\0" | head -z -n "$n"
for m; do
[ ! -e "./$m" ] || if [ -n "$(find "./$m" ! -type d -print -quit)" ]; then
printf "f%s\\0" "$m"; else printf "v%s\\0" "$m"; fi
done
"""
_LOOK_IN_POINT = """
cd -- "$1" || exit; shift
for m; do
if [ -d "./$m" ] && [ ! -L "./$m" ]; then
[ -z "$(find "./$m" -mindepth 1 -print -quit)" ] || printf "%s\\0" "$m"; elif [ -e "./$m" ] || [ -L "./$m" ]; then
printf "%s\\0" "$m"; fi
done
"""
_BEGIN_RESTORE = """
set -e
if [ -n "$2" ]; then mv -T -n -- "$1" "$2"; [ ! -e "$1" ]; fi
mkdir -p -- "$3"
if [ -n "$4" ]; then printf "%s\\n" "$4" > "$1/.poolferry-restoring.json"; fi
"""
_END_RESTORE = """
set -e
for f; do
sync -f "$f"
done
m=$(stat -c "%.9Y" -- "$1"); p=$(stat -c "%a" -- "$1"); [ -w "$1" ] || chmod u+w -- "$1"
rm -f -- "$1/.poolferry-restoring.json"; touch -d "@$m" -- "$1"
[ "$(stat -c "%a" -- "$1")" = "$p" ] || chmod "$p" -- "$1"
"""
# What may name secrets is for its owner alone.
_STORE = """
set -e
case $1 in *.tar) umask 077;; esac
cat > "$1.new"; sync -- "$1.new"; mv -T -- "$1.new" "$1"
"""


def _script(text: str, *values: str, effect: Effect, host: Host | None) -> Command:
    return Command(argv=("sh", "-c", _one_line(text), "sh", *values), effect=effect, host=host)


def _one_line(text: str) -> str:
    """The script as one line, so that a plan and a log can show it and a person can paste it."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return "".join(line + (" " if line.endswith(("then", "do")) else "; ") for line in lines).removesuffix("; ")


def look_at_target_command(root: Location) -> Command:
    """Prints what a target holds, NUL-separated: kind, room, marker, then records of where, what kind, and what.

    Where: u(p) and h(ere) tell devices, l(atest) its link; r(oot), p(oints) and o(urs) tell the names in them; m(irror) a time.
    Why so much by one find: each program that a look starts costs a millisecond or two.
    """
    return _script(_LOOK_AT_TARGET, root.path, effect=Effect.READS, host=root.host)


def look_at_source_command(source: Location, *, whole: bool = False) -> Command:
    """Prints what the source's root is: a(bsent), f(ile) or d(irectory) with devices, then x when it is not empty.

    Only a `whole` look sees whether it is; a run's own comparison sees it anyway.
    """
    words = ("whole",) if whole else ("quick",)
    return _script(_LOOK_AT_SOURCE, source.path, *words, effect=Effect.READS, host=source.host)


def look_at_both_command(source: Location, root: Location) -> Command:
    """Prints what `look_at_source_command` would, then what `look_at_target_command` would; both lie on one machine.

    Why: starting a shell for each costs a run that finds nothing to do five milliseconds more.
    """
    both = f"({_one_line(_LOOK_AT_SOURCE)}) || exit; shift 2; {_one_line(_LOOK_AT_TARGET)}"
    values = (source.path, "quick", root.path)
    return Command(argv=("sh", "-c", both, "sh", *values), effect=Effect.READS, host=root.host)


def half_copied_command(work: Location) -> Command:
    """Prints size and path of what interrupted copying left: in partial directories, and rsync's orphaned temporaries."""
    return _script(_HALF_COPIED, work.path, effect=Effect.READS, host=work.host)


def half_mirrored_command(root: Location) -> Command:
    """The same of an unfinished mirror. An older file that is merely named like a temporary one was there before."""
    return _script(_HALF_MIRRORED, root.path, effect=Effect.READS, host=root.host)


def sizes_command(source: Location, paths: tuple[bytes, ...]) -> Command:
    """Prints the size of each file of the source, `-` where there is no such regular file."""
    names = ("./" + path.decode("utf-8", "surrogateescape") for path in paths)
    return _script(_SIZES, source.path, *names, effect=Effect.READS, host=source.host)


def prepare_command(root: Location, job: str, work: Location, *, patience: int) -> Command:
    """Makes the target ours and waits, `patience` seconds at most, until no receiver of an earlier run is alive."""
    return _script(_PREPARE, root.path, job, work.path, str(patience), effect=Effect.WRITES, host=root.host)


def salvage_command(work: Location, orphan: bytes, folder: bytes, name: bytes) -> Command:
    """Moves an orphaned temporary file to where a resumed copy looks for it."""
    values = (text(orphan), text(folder), text(name))
    return _script(_SALVAGE, work.path, *values, effect=Effect.WRITES, host=work.host)


def finish_command(work: Location, partial: bytes, final: bytes, size: int) -> Command:
    """Gives a completed half-copied file its name; one that has not its size yet is left alone."""
    return _script(_FINISH, work.path, text(partial), text(final), str(size), effect=Effect.WRITES, host=work.host)


def shorten_command(work: Location, partial: bytes, size: int) -> Command:
    """Cuts a half-copied file to `size`, as --append-verify passes over a file that is not shorter than the source's."""
    path = f"{work.path}/{text(partial)}"
    return Command(argv=("truncate", "-s", str(size), "--", path), effect=Effect.WRITES, host=work.host)


def discard_command(work: Location, remainders: tuple[bytes, ...]) -> Command:
    """Removes these half-copied files."""
    paths = (f"{work.path}/{text(lies)}" for lies in remainders)
    return Command(argv=("rm", "-f", "--", *paths), effect=Effect.WRITES, host=work.host)


def sweep_command(work: Location, ours: Location, *, one_filesystem: bool = False) -> Command:
    """Removes all half-copied files. `ours`: a folder for a note of times; `one_filesystem`: what is mounted inside stays."""
    alone = ("one filesystem",) if one_filesystem else ()
    return _script(_SWEEP, work.path, ours.path, *alone, effect=Effect.WRITES, host=work.host)


def publish_command(root: Location, name: str, manifest: str) -> Command:
    """Everything to the disk, then manifest, tree and `latest` get their names, each by one rename."""
    return _script(_PUBLISH, root.path, name, manifest, effect=Effect.WRITES, host=root.host)


def remove_command(root: Location, names: tuple[str, ...]) -> Command:
    """Takes points out of sight by one rename each, then removes them; what a cut leaves is removed by the next."""
    return _script(_REMOVE, root.path, *names, effect=Effect.DESTROYS, host=root.host)


def end_mirror_command(root: Location) -> Command:
    """Everything to the disk; then what was noted as damaged, and as unfinished, holds no more."""
    return _script(_END_MIRROR, root.path, effect=Effect.WRITES, host=root.host)


def name_latest_command(root: Location, name: str) -> Command:
    """Makes `latest` name the point."""
    return _script(_NAME_LATEST, root.path, name, effect=Effect.WRITES, host=root.host)


def see_point_command(root: Location, name: str) -> Command:
    """Prints `there` when the point, its manifest and `latest` are."""
    return _script(_SEE_POINT, root.path, name, effect=Effect.READS, host=root.host)


def look_at_wanted_command(wanted: Location) -> Command:
    """Prints what a point holds there: folder, file or absent."""
    return _script(_LOOK_AT_WANTED, wanted.path, effect=Effect.READS, host=wanted.host)


def look_at_destination_command(to: Location) -> Command:
    """Prints what lies at a destination, NUL-separated: kind, our marker, number of entries, its real path, where this machine
    has something mounted, the first names.
    """
    return _script(_LOOK_AT_DESTINATION, to.path, effect=Effect.READS, host=to.host)


def look_below_command(to: Location, mounts: tuple[bytes, ...], most: int) -> Command:
    """Prints the first entries of a folder's own filesystem, e before each; then the mounts, f where files are in it, else v."""
    return _script(_LOOK_BELOW, to.path, str(most), *map(text, mounts), effect=Effect.READS, host=to.host)


def look_in_point_command(tree: Location, paths: tuple[bytes, ...]) -> Command:
    """Prints those of the paths at which a point holds something: no empty folder, and not nothing."""
    return _script(_LOOK_IN_POINT, tree.path, *map(text, paths), effect=Effect.READS, host=tree.host)


def begin_restore_command(to: Location, *, aside: str, folder: str, marker: str) -> Command:
    """Renames away what lies there when `aside` is told, makes the folder, and marks it as being restored."""
    return _script(_BEGIN_RESTORE, to.path, aside, folder, marker, effect=Effect.WRITES, host=to.host)


def end_restore_command(to: Location, filled: tuple[bytes, ...] = ()) -> Command:
    """Everything to the disk, then the marker goes; the folder keeps its time. `filled`: what is mounted below it."""
    places = (f"{to.path.rstrip('/')}/{text(each)}" for each in filled)
    return _script(_END_RESTORE, to.path, *places, effect=Effect.WRITES, host=to.host)


def store_command(file: Location) -> Command:
    """Writes its input to a file, whole or not at all."""
    return _script(_STORE, file.path, effect=Effect.WRITES, host=file.host)


def show_file_command(file: Location) -> Command:
    """Prints a file."""
    return Command(argv=("cat", "--", file.path), effect=Effect.READS, host=file.host)


def sums_command(tree: Location) -> Command:
    """Prints sha256sum's line for each file that its input names, NUL-terminated."""
    return _script(_SUMS, tree.path, effect=Effect.READS, host=tree.host)


def text(name: bytes) -> str:
    """A name as an argument carries it."""
    return name.decode("utf-8", "surrogateescape")
