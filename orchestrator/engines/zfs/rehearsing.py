"""Drills of datasets: clones of a copy's newest snapshots, or a real receive of them, and how files in them are compared.

The clones lie beside the copy, flat below one dataset that carries our mark; only what carries it is ever destroyed.

Pure.
"""

from collections.abc import Iterator, Mapping

from orchestrator.domain.command import Command, Effect, Pipeline
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal, Step
from orchestrator.domain.rehearsal import Part, Rehearsal
from orchestrator.engines.contract import Asked, Comparison, Pair
from orchestrator.engines.zfs import commands, comparing, digesting
from orchestrator.engines.zfs.case import Case
from orchestrator.engines.zfs.commands import At, at
from orchestrator.engines.zfs.comparing import Common, path_of
from orchestrator.engines.zfs.digesting import Both
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.trying import place_of
from orchestrator.engines.zfs.words import Flags, Kind, Side

PLACE, MARK = "poolferry-drill", "poolferry:drill"
# Arguments: the dataset, the mark's name. What it lies in goes too, where a drill made that, and nothing else is there.
_DROP = r"""
zfs list "$1" >/dev/null 2>&1 || exit 0
[ "$(zfs get -Ho source "$2" "$1")" = local ] || { printf "%s was made by no drill\n" "$1" >&2; exit 1; }
zfs destroy -r "$1" || exit
[ "$(zfs get -Ho source "$2" "${1%/*}")" != local ] || zfs destroy "${1%/*}" 2>/dev/null || :
"""
# Each file as size, TAB, path.
_FILES = r"""
work() { mount -t zfs -o ro "$1" "$d/m" && cd "$d/m" && find . -xdev -type f -printf "%s\t%P\0"; }
"""
# The same records as a listing of the whole, of the root and of the files whose NUL-terminated names come in.
# Why by another descriptor: what a shell runs in the background has no input.
_SOME = r"""
exec 3<&0
work() {
cat <&3 >"$d/names"; mount -t zfs -o ro "$1" "$d/m" && cd "$d/m" || return
find . -maxdepth 0 -printf "//%y\t%s\t%T@\t%m\t%U\t%G\t%n\t%i\t\0"
find -files0-from "$d/names" -maxdepth 0 -printf "%p//%y\t%s\t%T@\t%m\t%U\t%G\t%n\t%i\t%l\0" 2>>"$d/e" | sed -z "s,^\./,,"
xargs -0 -r -a "$d/names" -n 64 -P "$3" sh -c 'sha256sum -z -- "$@" >>"$0/z.$$" 2>>"$0/e"' "$d"
case $? in 0|123) ;; *) return 1;; esac
find "$d" -maxdepth 1 -name "z.*" -exec cat "{}" + | sed -z 's,^\([0-9a-f]*\)  \./\(.*\)$,\2//=sha256:\1,'
grep -v "No such file" "$d/e" | head -n 1000 | sed "s,^,//!," | tr "\n" "\0"; printf "//~\0"
}
"""
# One bit of the first file that is named, the second one gone, the third one cut short; sizes and times else as before.
_HARM = r"""
exec 3<&0
work() {
cat <&3 >"$d/names"; mount -t zfs "$1" "$d/m" && cd "$d/m" || return
n=0; tr "\0" "\n" <"$d/names" >"$d/lines"
while IFS= read -r f; do
n=$((n+1)); touch -r "$f" "$d/t"
case $n in
1) b=$(head -c 1 "$f" | od -An -tu1); printf "\\$(printf %o $((b ^ 1)))" | dd of="$f" conv=notrunc status=none;;
2) rm "$f"; continue;;
*) truncate -s -1 "$f";;
esac
touch -r "$d/t" "$f"
done <"$d/lines"
cd /; sync -f "$d/m"
}
"""


def container_of(job: Job) -> Location:
    """The dataset below which a drill's clones lie."""
    place = place_of(job)
    return Location(path=f"{place.path.rpartition('/')[0]}/{PLACE}/{job.name}", host=place.host)


def plan_rehearsal(job: Job, both: Both, asked: Asked, *, whole: bool) -> Rehearsal | Refusal:
    """The newest snapshots that both sides hold, cloned beside the copy; `whole`: received in [drill] scratch."""
    judged = comparing.judge(Case(job, both.world, asked), point=None)
    if isinstance(judged, Refusal):
        return judged
    scratch = job.drill.scratch
    if whole and (scratch is None or scratch.startswith("/")):
        why = "a drill of whole datasets receives them, and no dataset is named for that"
        return Refusal(why=why, evidence=(), cure='[drill] scratch = "tank/drill": a dataset of this machine')
    chosen = [one for one in judged.newest if not _left_out(both, one, whole=whole)]
    if not chosen:
        why = "nothing of the copy can be drilled: " + _why_left(both, judged.newest, whole=whole)
        return Refusal(why=why, evidence=(), cure=f"poolferry verify {job.name} --content tells more")
    root = Location(path=f"{scratch}/{job.name}") if whole and scratch else container_of(job)
    side = both.world.target
    where = At(sudo=options_of(job).sudo) if whole else at(side)
    parts = tuple(_part(both, one, root, number) for number, one in enumerate(chosen))
    made = [_made(job, both, one, part, where, whole=whole) for one, part in zip(chosen, parts, strict=True)]
    return Rehearsal(
        point=judged.point or chosen[0].target.name, parts=parts, of=len(judged.newest),
        make=tuple((step,) for step in (*_containers(root, where), *made)),
        drop=drop_step(root, where), where=root,
        left_out=_why_left(both, judged.newest, whole=whole) if len(chosen) < len(judged.newest) else "",
    )  # fmt: skip


def _left_out(both: Both, one: Common, *, whole: bool) -> str:
    """Why a dataset is not drilled; empty: it is."""
    dataset = both.world.target.datasets[one.dataset]
    if dataset.kind is Kind.VOLUME:
        return "volumes have no files"
    if dataset.encrypted and (whole or not dataset.key_loaded):
        return "what is encrypted is read only in clones, with its key loaded"
    source = both.world.source.datasets[one.dataset]
    return "the source's key is not loaded" if source.encrypted and not source.key_loaded else ""


def _why_left(both: Both, newest: tuple[Common, ...], *, whole: bool) -> str:
    told = dict.fromkeys(filter(None, (_left_out(both, one, whole=whole) for one in newest)))
    return "; ".join(told)


def _containers(root: Location, where: At) -> Iterator[Step]:
    """Where `-p` finds a dataset it changes nothing of it: so only what a drill made carries the mark."""
    for path in (root.path.rpartition("/")[0], root.path):
        options = ("-p", "-u", "-o", "canmount=off", "-o", "mountpoint=none", "-o", f"{MARK}=yes")
        made = commands.zfs("create", *options, path, effect=Effect.WRITES, where=where)
        why = "what is drilled lies there, and goes with it"
        yield _step(f"make {path}, if it is not there", why, Pipeline(stages=(made,)))


def _part(both: Both, one: Common, root: Location, number: int) -> Part:
    return Part(
        name=path_of(one.dataset, one.target),
        number=number,
        source=both.world.source.full(one.dataset) + one.source.mark,
        scratch=f"{root.path}/{number}",
    )


def _made(job: Job, both: Both, one: Common, part: Part, where: At, *, whole: bool) -> Step:
    copy = both.world.target
    snapshot = copy.full(one.dataset) + one.target.mark
    if not whole:
        given = ("-o", "mountpoint=legacy", "-o", "canmount=noauto", "-o", "readonly=off")
        clone = commands.zfs("clone", *given, snapshot, part.scratch, effect=Effect.WRITES, where=where)
        return _step(f"clone {snapshot}", "a drill reads it, and writes only into the clone", Pipeline(stages=(clone,)))
    send = commands.send_command(commands.full_words(snapshot, Flags(), properties=False), copy, job.pipe)
    words = ("receive", "-u", "-o", "mountpoint=legacy", "-o", "canmount=noauto", part.scratch)
    receive = commands.zfs(*words, effect=Effect.WRITES, where=where)
    work = Pipeline(stages=(send, commands.buffer_command(job.pipe, lanes=1), receive))
    return Step(
        does=f"send {snapshot}, the whole, into {part.scratch}", why="a drill of all of it", lane="drill", work=work,
        expected=None, copies=True,
    )  # fmt: skip


def drop_step(root: Location, where: At) -> Step:
    """Destroys what a drill made, where there is something."""
    command = commands.script(_DROP, root.path, MARK, effect=Effect.DESTROYS, where=where)
    return _step(f"drop {root}, if it is there", "a drill leaves nothing", Pipeline(stages=(command,)))


def listing_step(job: Job, rehearsal: Rehearsal, part: Part, keeps: str) -> Step:
    """Lists the files of a part."""
    command = _script(_FILES, part.scratch, _scratch_side(job, rehearsal))
    return _step(f"list {part.scratch}", "a sample is chosen", Pipeline(stages=(command,), keeps=keeps))


def harming_step(job: Job, rehearsal: Rehearsal, part: Part, names: str) -> Step:
    """Damages files of a part, which only the clone then has."""
    command = _script(_HARM, part.scratch, _scratch_side(job, rehearsal))
    return _step(f"damage {part.scratch}", "a drill must find it", Pipeline(stages=(command,), reads=names))


def plan_reading(job: Job, both: Both, rehearsal: Rehearsal, names: Mapping[int, str], notes: str) -> Comparison:
    """Each part beside the source's snapshot; `names`: local files with what is read of each, none of a part: all of it."""
    scratch = _scratch_side(job, rehearsal)

    def listed(part: Part, side: Side, what: str, called: str) -> Step:
        file, keeps = names.get(part.number), f"{notes}/{part.number}-{called}"
        if file is None:
            command = digesting.list_command(what, Kind.FILESYSTEM, digesting.SHA256, job.verify.workers, side)
        else:
            command = _script(_SOME, what, side, digesting.SHA256, str(job.verify.workers))
        work = Pipeline(stages=(command,), keeps=keeps, reads=file)
        return Step(
            does=f"read {what} on the {called}", why="what came back is compared", lane=f"{what} {called}", work=work,
            expected=None,
        )  # fmt: skip

    def pairs() -> Iterator[Pair]:
        for part in rehearsal.parts:
            if part.number in names or not names:
                yield Pair(
                    name=part.name,
                    source=listed(part, both.world.source, part.source, "source"),
                    target=listed(part, scratch, part.scratch, "scratch"),
                )

    read = tuple((pair,) for pair in pairs())
    return Comparison(point=rehearsal.point, checked=0, datasets=len(read), findings=(), stages=read)


def _scratch_side(job: Job, rehearsal: Rehearsal) -> Side:
    return Side(root=rehearsal.where, pool_guid=0, version=(), sudo=options_of(job).sudo)


def _script(text: str, what: str, side: Side, *more: str) -> Command:
    """A script in a mount namespace of its own, as digesting's are."""
    return digesting.apart(text, (what, *more), side)


def _step(does: str, why: str, work: Pipeline) -> Step:
    return Step(does=does, why=why, lane="drill", work=work, expected=None)
