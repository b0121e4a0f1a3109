"""Steps that list a snapshot with digests on both sides, to compare contents; no content is transferred.

A snapshot is mounted read-only in a temporary folder, in a mount namespace of its own: the mount ends with the reader, even a
killed one, and no other process ever sees it.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect, Pipeline, Step
from orchestrator.domain.point import Finding, Verdict
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.comparison import ComparisonPlan, SnapshotPair
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.model import DatasetType, SideSurvey, ZfsSurvey
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.verify.compare import GuidComparison, MatchedSnapshot, snapshot_path

XXH128, SHA256 = "xxh128", "sha256"
_LOCKED = "it is encrypted and its key is not loaded on both sides: only a scrub and a trial receive can verify it"
_HIDDEN = "its snapshots have no device: `zfs set snapdev=visible` on both sides shows them"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksumSupport:
    """The abilities of one side. `digests`: all besides sha256; `visible`: volumes whose snapshots have a device."""

    digests: frozenset[str] = frozenset()
    visible: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonSurvey:
    """The input of a comparison. `able`: abilities of source and target; None: contents are not requested.

    `away`: why the source could not be surveyed; its side is then empty and unknown.
    """

    world: ZfsSurvey
    able: tuple[ChecksumSupport, ChecksumSupport] | None
    away: str = ""


# Arguments: the root. Prints "=can xxh128" where there is such a program, then the volumes below the root with snapdev.
_ABLE = r"""
command -v xxh128sum >/dev/null && printf "=can xxh128\n"
zfs get -Hp -r -t volume -o name,value snapdev "$1"
"""

# Arguments of the others: snapshot, algorithm, readers at once.
# A lonely newline on stderr from time to time says that digests go on; where nobody hears it any more, we end. The first one is
# for who was killed before the kernel knew that we are to end with them. It then tells us once for each thread of theirs, and what
# comes within `end` would end it half-way: a trap ignores what follows before it leaves. A child so young that it still has our
# traps forgets the first signal.
_MOUNT_NAMESPACE = r"""
export LC_ALL=C; umask 077; echo >&2 || exit; k=; t=; d=$(mktemp -d) || exit
end() {
s=$?; trap "" HUP INT TERM PIPE; cd /; [ -z "$t" ] || kill "$t"; [ -z "$k" ] || { kill 0; sleep 0.1; kill 0; wait; }
umount "$d/m" 2>/dev/null || umount -l "$d/m" 2>/dev/null; rmdir "$d/m" && rm -rf "$d"; exit "$s"
}
trap end EXIT; trap 'trap "" HUP INT TERM PIPE; k=1; exit 143' HUP INT TERM PIPE; mkdir "$d/m" || exit
tick() {
z=; trap "" PIPE; trap '[ -z "$z" ] || kill "$z"; exit' TERM; o=
while :; do
sleep 20 >/dev/null 2>&1 & z=$!; wait "$z"; i=$(for x in $(pgrep -g 0 sum); do grep rchar "/proc/$x/io"; done 2>&1)
[ "$i" = "$o" ] || echo >&2 || kill "$$"; o=$i
done
}
tick & t=$!; work "$@" & p=$!; wait "$p"; s=$?; trap "" HUP INT TERM PIPE; exit "$s"
"""
# Names with a backslash or a line end go to sha256sum, which alone can end its lines with NUL.
# xxh128sum ends at the first file that it cannot read, so then it gets them one by one.
_TREE = r"""
work() {
mount -t zfs -o ro "$1" "$d/m" && cd "$d/m" || return
n=$(printf "\nx"); o="*[${n%x}$(printf "\r")\\\\]*"
find . -xdev -printf "%P//%y\t%s\t%T@\t%m\t%U\t%G\t%n\t%i\t%l\0" -type f "(" -path "$o" -fprint0 "$d/odd" -o -fprint0 "$d/plain" ")" 2>"$d/e"
[ $? -le 1 ] || return
if [ "$2" = xxh128 ]; then
xargs -0 -r -a "$d/plain" -n 256 -P "$3" sh -c 'xxh128sum "$@" >>"$0/x.$$" 2>/dev/null || for f do xxh128sum "$f"; done >>"$0/x.$$" 2>>"$0/e"' "$d"
case $? in 0|123) ;; *) return 1;; esac
: >"$d/plain"
fi
cat "$d/odd" "$d/plain" | xargs -0 -r -n 256 -P "$3" sh -c 'sha256sum -z -- "$@" >>"$0/z.$$" 2>>"$0/e"' "$d"
case $? in 0|123) ;; *) return 1;; esac
! grep -m 1 -e "rite error" -e "No space left" "$d/e" >&2 || return
find "$d" -maxdepth 1 -name "x.*" -exec cat "{}" + | sed -n 's,^\([0-9a-f]*\)  \./\(.*\)$,\2//=xxh128:\1,p' | tr "\n" "\0"
find "$d" -maxdepth 1 -name "z.*" -exec cat "{}" + | sed -z 's,^\([0-9a-f]*\)  \./\(.*\)$,\2//=sha256:\1,'
head -n 1000 "$d/e" | sed "s,^,//!," | tr "\n" "\0"; printf "//~\0"
}
"""
# A volume looks like a tree of one file.
_VOLUME = r"""
work() {
v=/dev/zvol/$1; n=$(blockdev --getsize64 "$v") || return
printf "//f\t%s\t0.0000000000\t0\t0\t0\t1\t0\t\0" "$n"
if h=$("${2}sum" <"$v" 2>&1); then printf "//=%s:%s\0" "$2" "${h%% *}"; else printf "//!%s\0" "$h"; fi
printf "//~\0"
}
"""


def checksum_support_command(root: Location) -> Command:
    """Build the command that prints a side's abilities for a comparison."""
    return commands.script_command(_ABLE, root.path, effect=Effect.READS, where=CommandHost(host=root.host))


def parse_checksum_support(lines: Iterable[bytes], root: Location) -> ChecksumSupport:
    """Parse the abilities that a side printed."""
    digests, visible = set[str](), set[str]()
    for line in lines:
        text = line.decode("utf-8", "surrogateescape")
        name, _, value = text.partition("\t")
        if text.startswith("=can "):
            digests.add(text.removeprefix("=can "))
        elif value == "visible":
            visible.add(name[len(root.path) + 1 :])
    return ChecksumSupport(digests=frozenset(digests), visible=frozenset(visible))


def checksum_list_command(snapshot: str, kind: DatasetType, algorithm: str, workers: int, side: SideSurvey) -> Command:
    """Build the command that lists one snapshot with digests."""
    return mount_namespace_command(
        _VOLUME if kind is DatasetType.VOLUME else _TREE, (snapshot, algorithm, str(workers)), side
    )


def mount_namespace_command(work: str, values: tuple[str, ...], side: SideSurvey) -> Command:
    """Build a command from a script that defines `work`, which may mount at $d/m, in its own mount namespace."""
    made = commands.script_command(
        work.rstrip() + _MOUNT_NAMESPACE, *values, effect=Effect.WRITES, where=CommandHost(host=side.root.host)
    )
    # slave: a mount that others unmount meanwhile must not stay busy here.
    alone = ("unshare", "--mount", "--propagation", "slave")
    return Command(
        argv=(*(("sudo", "-n") if side.sudo else ()), *alone, *made.argv), effect=made.effect, host=made.host
    )


def plan_checksums(job: Job, both: ComparisonSurvey, judged: GuidComparison, request: RunRequest) -> ComparisonPlan:
    """Plan the comparison, with steps that read the contents, where requested and possible."""
    unproved = () if both.able is None else tuple(_unproved(both, judged.newest))
    left_out = {finding.path for finding in unproved}
    told = [one for one in judged.newest if snapshot_path(one.dataset, one.target) not in left_out]
    return ComparisonPlan(
        point=judged.point,
        checked=judged.checked,
        datasets=len(judged.newest),
        findings=(*judged.findings, *unproved),
        stages=tuple(_stages(job, both, told, request)),
        warnings=(*judged.warnings, *_warnings(unproved, both.world)),
    )


def _unproved(both: ComparisonSurvey, newest: Iterable[MatchedSnapshot]) -> Iterator[Finding]:
    """Yield a finding for each dataset whose contents cannot be read on both sides."""
    sides = (both.world.source, both.world.target)
    for one in newest:
        datasets = [side.datasets[one.dataset] for side in sides]
        detail = None
        if any(dataset.encrypted and not dataset.key_loaded for dataset in datasets):
            detail = _LOCKED
        elif datasets[0].kind is DatasetType.VOLUME and not all(
            one.dataset in able.visible for able in both.able or ()
        ):
            detail = _HIDDEN
        if detail is not None:
            yield Finding(path=snapshot_path(one.dataset, one.target), verdict=Verdict.UNPROVED, detail=detail)


def _warnings(unproved: Iterable[Finding], world: ZfsSurvey) -> Iterator[str]:
    """Yield one warning for each reason."""
    pool = world.target.root.path.partition("/")[0]
    for detail, found in groupby(sorted(unproved, key=lambda each: each.detail), key=lambda each: each.detail):
        count = len(tuple(found))
        if detail == _LOCKED:
            yield (
                f"the contents of {show_count(count, 'encrypted dataset')} were not compared, as a key is not loaded: "
                f"only a scrub (zpool scrub {pool}) and a trial receive with the key can verify them"
            )
        else:
            yield f"the contents of {show_count(count, 'volume')} were not compared: {_HIDDEN.replace('its', 'their', 1)}"


def _stages(
    job: Job, both: ComparisonSurvey, newest: list[MatchedSnapshot], request: RunRequest
) -> Iterator[tuple[SnapshotPair, ...]]:
    """Yield stages with as many parallel datasets as the job allows; each stage is compared before the next begins."""
    if both.able is None:
        return
    share = XXH128 if all(XXH128 in able.digests for able in both.able) and job.verify.digest == XXH128 else SHA256
    wide = options_of(job).parallel
    for first in range(0, len(newest), wide):
        group = newest[first : first + wide]
        yield tuple(_pair(job, both.world, one, share, f"{request.notes}/{at}") for at, one in enumerate(group))


def _pair(job: Job, world: ZfsSurvey, one: MatchedSnapshot, algorithm: str, note: str) -> SnapshotPair:
    kind, name = world.source.datasets[one.dataset].kind, snapshot_path(one.dataset, one.target)

    def listed(side: SideSurvey, mark: str, called: str) -> Step:
        snapshot = side.full(one.dataset) + mark
        command = checksum_list_command(snapshot, kind, algorithm, job.verify.workers, side)
        return Step(
            action=f"read {snapshot} on the {called}", why="its contents are compared with the other side's",
            worker=f"{snapshot} on the {called}", work=Pipeline(stages=(command,), keeps=f"{note}-{called}"), expected=None,
        )  # fmt: skip

    return SnapshotPair(
        name=name,
        source=listed(world.source, one.source.mark, "source"),
        target=listed(world.target, one.target.mark, "target"),
    )
