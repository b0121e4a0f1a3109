"""Plans as data: each step carries its exact commands, its reason, and its expected effect."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Literal, Protocol

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Host, Location
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.run import Outcome
from orchestrator.domain.source_tree import SourceTree
from orchestrator.domain.units import Bytes, show_count

if TYPE_CHECKING:
    import os

    from orchestrator.domain.source_state import SourceState


class Effect(IntEnum):
    """Effect level of a command. DESTROYS (rollback, destroy, receive -F, rsync --delete in a mirror) needs consent."""

    READS = 0
    WRITES = 1
    DESTROYS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One program with its arguments, on this machine or on a host. `environment` adds to a clean environment."""

    argv: tuple[str, ...]
    effect: Effect
    host: Host | None = None
    environment: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Return the command line as a person would paste it into a shell."""
        setting = "".join(f"{key}={shlex.quote(value)} " for key, value in self.environment)
        line = setting + shlex.join(self.argv)
        return f"{self.host.ssh} {shlex.quote(line)}" if self.host else line


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Commands joined by pipes. `reads`: a file for the first one's input; `keeps`: a file that collects the output.

    `counts`: the stage after which bytes are counted; the last stage: its own output reports them; None: they are not counted.
    """

    stages: tuple[Command, ...]
    reads: str | None = None
    keeps: str | None = None
    counts: int = 0

    @property
    def effect(self) -> Effect:
        """Return the strongest effect of the stages."""
        return max(stage.effect for stage in self.stages)

    def __str__(self) -> str:
        tail = f" > {shlex.quote(self.keeps)}" if self.keeps else ""
        head = f" < {shlex.quote(self.reads)}" if self.reads else ""
        return " | ".join(str(stage) for stage in self.stages) + head + tail


def single_command(*argv: str, effect: Effect, host: Host | None = None) -> Pipeline:
    """Return a pipeline of one command."""
    return Pipeline(stages=(Command(argv=argv, effect=effect, host=host),))


class Confirmation(Protocol):
    """Expected effect of a step; each engine has its own values, and `confirm` checks them."""

    def __str__(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedEntries:
    """The entries of a source that a whole copy has. `never`: letters of kinds that are not copied; `reserved`: names that are not.

    `above`: folders that the copy alone has. `selected`: lists, with a reader, the paths that the job's patterns let pass; None: it has none.
    """

    never: frozenset[bytes]
    reserved: frozenset[bytes]
    above: frozenset[bytes]
    selected: Callable[[Any], Iterator[bytes]] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReview:
    """The comparison of a finished copy with its source: kinds, owners, modes, times, links, access lists, attributes.

    `again` copies those entries anew that are listed in the local file `names`, in the form that `listed` gives them. `keys`: words of a difference,
    with the key in the job that consents to it; `elsewhere`: what helps besides. `copied`: names are compared too; None: counts alone prove them.
    """

    source: SourceTree
    one_filesystem: bool
    owners: bool  # owners are copied, and are the same numbers on both sides
    modes: bool  # modes are copied
    grain_ns: int
    parts: str  # letters of the attributes that are copied
    links: bool
    mirror: bool
    again: Pipeline
    names: str
    listed: Callable[[Iterable[bytes]], bytes]
    keys: tuple[tuple[str, str], ...]
    elsewhere: str
    stored: bool = False  # the copy holds no attribute by a name of rsync's own
    before: tuple[Pipeline, ...] = ()  # run around `again`
    after: tuple[Pipeline, ...] = ()
    copied: CopiedEntries | None = None
    # Of a copy without access lists and attributes, as no entry had any: a digest for each so many entries, as they were listed then.
    bare: tuple[bytes, ...] | None = None


class ListingRecorder(Protocol):
    """A recorder of the listings by which a copy is verified, so that the next look need not read what is still as it is listed.

    `form`: find's words for an entry: path and two slashes first, as in any listing, the time of change last. `began_ns`: when the
    listings began, by the clock of the filesystems. `carries`: what the manifest before says of an entry is so, where both sides listed
    it as it was recorded then. `manifest`: takes the digest of the new point's manifest. It never fails: then nothing is recorded.
    """

    form: str
    began_ns: int
    carries: bool
    manifest: str

    def begin(self, tree: Location, point: str, *, carried: bool) -> bool:
        """Begin anew, before either side is listed; return whether it is recorded. `carried`: the source as this run's look listed it."""

    def listing(self, tree: Location) -> Command:
        """Return the command that lists a tree."""

    def entry(self, path: bytes, seen: "os.stat_result", link: bytes) -> bytes:
        """Return an entry as it would be listed. `link`: what a link says."""

    def batches(self, listed: Iterator[bytes], *, copy: bool) -> Iterator[list[bytes]]:
        """Yield the entries of a listing in its order, many at once, and record them."""

    def copy_batches(self, pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
        """Yield the entries of the copy's listing in its order, many at once, and record them. `pieces`: its text, cut anywhere."""

    def end_source(self) -> None:
        """Record what is left of the source, once all of the copy is listed."""

    def touched(self) -> frozenset[bytes]:
        """Return all paths that the run may have touched, or of which its look found either side otherwise than recorded."""

    def changed(self, now: Mapping[bytes, bytes | None]) -> set[bytes]:
        """Return those of some paths at which the source is not as recorded before. `now`: their entries; None: it is gone."""

    def older_copy(self, point: str, manifest: str) -> Iterator[list[bytes]]:
        """Yield the entries of the point before as they were recorded, many at once, but for its root. `manifest`: its digest.

        Raises: ValueError where another one was recorded; then nothing counts that was yielded · OSError.
        """

    def same_places(self) -> bool:
        """Return whether both sides lie where they lay when the point before was recorded. After `begin`, and all of `older_copy`."""

    def drop(self) -> None:
        """Give up what was written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestRecording:
    """Work that writes the manifest of a new point: every entry of `tree` with its digest.

    `moved`: the local folder whose files "moved-…" note what copying steps moved; `linked`: the point that unchanged files
    were linked from, if its manifest is authentic. A file in neither of them is read. `recorder`: keeps the listings for the next look.
    `sweep`: removes remainders of half-copied files, where the listing meets some; None: that was done before.
    """

    tree: Location
    manifest: Location
    point: str
    moved: str
    linked: RestorePoint | None
    digest: str
    apart: tuple[bytes, ...] = ()  # names in its root that are no part of it
    stored: bool = False  # it keeps owners, modes and kinds in attributes
    review: SourceReview | None = None  # None: the source is not looked at again
    recorder: ListingRecorder | None = None
    sweep: Pipeline | None = None

    effect = Effect.WRITES

    def __str__(self) -> str:
        swept = ", sweep it where remainders lie in it" if self.sweep else ""
        return f"(poolferry) list {self.tree}{swept}, write {self.manifest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeLinking:
    """Work that links into a new, empty `tree` what `point` has and the source has still the same, so that the copy passes over it.

    `differing`: paths that a comparison with the source named, or has not in the source: they, and what lies below, are left to the
    copy. `joined`: those among them that share a file with another name of the source; all names of such a file are left to the copy.
    `reserved`: names that no copy holds, in any folder.
    """

    tree: Location
    point: RestorePoint
    source: SourceTree
    differing: tuple[bytes, ...]
    joined: tuple[bytes, ...]
    reserved: tuple[str, ...] = ()

    effect = Effect.WRITES

    def __str__(self) -> str:
        return f"(poolferry) link from {self.point.tree} into {self.tree} all but what differs ({show_count(len(self.differing), 'path')})"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCloning:
    """Work that clones large files of `point` into `tree`, so that the copy writes only the blocks in them that changed.

    A clone is a file of its own that shares blocks until one of the two is written (FICLONE), so the point stays as it is. It lies in
    the folder `partial` beside the file's place, where rsync goes on with a file in place. What cannot be cloned is copied whole.
    `paths`: those that differ; of them regular files that are at least `least` bytes large at the source and in the point.
    """

    tree: Location
    point: RestorePoint
    source: Location
    paths: tuple[bytes, ...]
    partial: str
    least: Bytes

    effect = Effect.WRITES

    def __str__(self) -> str:
        return f"(poolferry) clone from {self.point.tree} into {self.tree} what differs and is large"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallFileCopy:
    """Work that copies small plain files at some `paths` of `source` into a tree that is linked to a point. `otherwise`: copies all others.

    `left`: the local file that it reads their names from; `moved`: the one that takes what was written, as rsync says it.
    """

    tree: Location
    source: Location
    paths: tuple[bytes, ...]
    moved: str
    left: str
    otherwise: Pipeline

    effect = Effect.WRITES

    def __str__(self) -> str:
        return f"(poolferry) copy the small files of {show_count(len(self.paths), 'path')} from {self.source} into {self.tree}; the others:"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderTimes:
    """Work that gives folders of `tree` the times that they have in `source`. `otherwise`: does it where more than the time differs.

    `paths`: theirs, and perhaps others, which count for nothing; `left`: the local file that it reads their names from.
    """

    tree: Location
    source: Location
    paths: tuple[bytes, ...]
    left: str
    otherwise: Pipeline

    effect = Effect.WRITES

    def __str__(self) -> str:
        return f"(poolferry) give folders of {self.tree} their times; where more differs:"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTrial:
    """Work that tries what a target on this machine can hold. `otherwise`: names what it cannot and the source has, where anything lacks.

    `abilities`: by the words of that pipeline.
    """

    root: Location
    abilities: tuple[str, ...]
    otherwise: Pipeline

    effect = Effect.WRITES

    def __str__(self) -> str:
        return f"(poolferry) try in {self.root}: {', '.join(self.abilities)}; where anything lacks:"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPreparation:
    """Work that makes a target on this machine ours. `otherwise`: does it, waits or says why not, where anything is not plain.

    `job`: the name in its marker; `folders`: those that are made in our own; `stored`: copies keep owners, modes and kinds in attributes.
    """

    root: Location
    job: str
    stored: bool
    folders: tuple[str, ...]
    otherwise: Pipeline

    effect = Effect.WRITES

    def __str__(self) -> str:
        return f"(poolferry) mark {self.root} as of {self.job}, and make {', '.join(self.folders)}; where anything is in the way:"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointPublication:
    """Work that makes a point at a target on this machine visible. `otherwise`: does it, or says why not, where anything is not plain.

    `manifest`: below the root, in our own folder.
    """

    root: Location
    name: str
    manifest: str
    otherwise: Pipeline

    effect = Effect.WRITES

    def __str__(self) -> str:
        return f"(poolferry) sync, name {self.root}/points/{self.name}, sync; where anything is in the way:"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointsRemoval:
    """Work that removes points that a gate added to a folder here: out of sight by one rename each, then entry by entry.

    `points`: the name of each, and the number of its folder's inode. What a removal left that was cut goes too.
    """

    root: Location
    points: tuple[tuple[str, str], ...]

    effect = Effect.DESTROYS

    def __str__(self) -> str:
        names = ", ".join(name for name, _ in self.points) or "nothing else"
        return f"(poolferry) empty the trash in {self.root}, and remove {names}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderOpening:
    """Work that gives a restored folder `to` the owner, mode, time, access lists and attributes that the point has at `path`.

    Until then it is closed to everybody else. `marker`: the file by which the restore knows it. The rest: what the job carries.
    Why no rsync: it waits 40 ms for its own halves to end.
    """

    point: RestorePoint
    path: bytes
    to: Location
    marker: str
    owners: bool
    modes: bool
    acls: bool
    xattrs: bool

    effect = Effect.WRITES

    def __str__(self) -> str:
        tree = self.point.tree / self.path.decode("utf-8", "surrogateescape") if self.path else self.point.tree
        return f"(poolferry) give {self.to} the metadata of {tree}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeVerification:
    """Work that reads `tree` (the point itself, or a restored copy) and compares it with the point's manifest.

    `prefix`: only the entries below it were restored, and `tree` holds them without it.
    """

    point: RestorePoint
    tree: Location
    prefix: bytes = b""
    apart: tuple[bytes, ...] = ()  # names in its root that are no part of it
    workers: int
    restored: bool = False  # `tree` is no point: owners need root, and times only what its filesystem can hold
    of_source: bool = (
        False  # `tree` is the source as it is now: what cannot be looked at there is found unreadable, no failure
    )
    owners: bool = True  # the job carries owners; else those of the copy mean nothing, and none is restored
    modes: bool = True  # the same of modes
    ignored: str = ""  # letters of the parts of attributes that the job does not carry
    left_out: tuple[bytes, ...] = ()  # paths below `tree` that are no part of it: other filesystems are mounted there
    part: Literal["all", "below", "root"] = "all"  # "below": not the folder's own metadata; "root": nothing else

    effect = Effect.READS

    def __str__(self) -> str:
        return f"(poolferry) read {self.tree} against {self.point.manifest}"


COMMON = "main"  # the worker of steps that all others need, or that need all others


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One complete step: its commands, its reason, and its expected effect."""

    action: str
    why: str
    worker: str  # steps of one worker run in order, workers in parallel; they begin in the order of first mention
    work: (
        Pipeline
        | ManifestRecording
        | TreeLinking
        | FileCloning
        | SmallFileCopy
        | FolderTimes
        | TargetTrial
        | TargetPreparation
        | PointPublication
        | PointsRemoval
        | FolderOpening
        | TreeVerification
    )
    expected: Bytes | None  # None: could not be known; never 0 for unknown
    confirmation: Confirmation | None = None
    makes: str | None = None  # the restore point that exists once this step is confirmed
    removes: str | None = None  # the restore point that is gone once this step has begun
    copies: bool = False  # its output reports progress and moved bytes
    ahead: bool = False  # it copies some of what the copying steps after it would, and those expect as much less then
    most: int | None = None  # of these: when more were moved, the source is another one than the plan was made of
    freezes: bool = (
        False  # it takes a snapshot of the source: the hooks snapshot-before and snapshot-after stand around it
    )
    settles: bool = False  # it makes a copy whole: before, the disk must have taken all of it
    accounts: bool = False  # the program's own summary counts for the verification of the tree
    links: bool = (
        False  # its programs link what is unchanged before the copy; what they cannot link is copied by another attempt
    )
    counts_links: bool = False  # its output says now and then how many entries are linked so far, one number a line
    spare: tuple[str, ...] = ()  # local files: it does not run where all of these are empty by then
    needs: tuple[tuple[str, bytes], ...] = ()  # local files that must hold these bytes before the step begins
    remembers: tuple[str, str] | None = None  # a small fact for later plans, (key, value), once it has ended well
    vain: tuple[str, str] | None = None  # and one, once it has failed for a reason of its own

    @property
    def effect(self) -> Effect:
        """Return the effect level of the step."""
        return self.work.effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Plan of a run in stages: steps of one stage may run in parallel, stages run one after the other."""

    summary: str
    stages: tuple[tuple[Step, ...], ...]
    resumes: str | None = None  # the remains of an earlier run from which this plan continues
    anew: bool = False  # nothing of an earlier run is used, so its notes are void
    warnings: tuple[str, ...] = ()
    again: bool = False  # the next steps depend on the result: the same run surveys again
    rewrites: bool = False  # it changes the only copy that there is at the place, which is none until all is done
    parallel: int | None = None  # workers in parallel at most; None: all of a stage
    current: str | None = (
        None  # of a copy of many parts: the point that is whole, and as new as the source, once all is done
    )
    brings: bool = False  # that point is new at the target
    taken: datetime | None = None  # when the source was in the state of that point, where the plan knows
    refusals: tuple["Refusal", ...] = ()  # parts that are left out: the rest is done, and then the run has failed
    # Each worker's steps need no others than those of the workers whose names lie above its own, and of COMMON.
    independent: bool = False
    compared: str = ""  # why everything was compared, where a quick look might have been enough
    left_out: tuple[tuple[bytes, str], ...] = ()  # entries of the source that are not copied, each with the reason

    @property
    def steps(self) -> tuple[Step, ...]:
        """Return all steps in the order in which they begin."""
        return tuple(step for stage in self.stages for step in stage)


@dataclass(frozen=True, slots=True, kw_only=True)
class NothingToDo:
    """A survey result without anything to copy: `current` names the point as new as the source. `stages` clean up.

    `compared`: why everything was compared, where a quick look might have been enough. `left_out`: entries of the source that are not
    copied, each with the reason; nothing else differs.
    """

    why: str
    current: str | None
    stages: tuple[tuple[Step, ...], ...] = ()
    warnings: tuple[str, ...] = ()
    compared: str = ""
    left_out: tuple[tuple[bytes, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A decision not to act: stored, shown and tested like a plan. `guard`: the name that `run --allow` takes, if any.

    `outcome`: of the run that it ends: FAILED where the surveyed data is broken already, WAITING where a later run may do it.
    `source`: the state of a source that is lost, or not restored yet. `part`: what alone is refused; empty: all. `own`: the words of
    the hint that help this part alone.
    """

    why: str
    evidence: tuple[str, ...]
    hint: str
    guard: str | None = None
    outcome: Outcome = Outcome.REFUSED
    source: "SourceState | None" = None
    part: str = ""
    own: str = ""


_MOST_COMMANDS = 20
_MOST_HINTS = 5
_MOST_PARTS = 3


def gather_hints(refusals: Iterable[Refusal]) -> str:
    """Return one hint for several refusals: hints that differ in a command alone are one, with all those commands.

    The first of many: when these are over, the next run says those of the rest.
    """
    alike = dict[tuple[str, str], list[Refusal]]()
    for one in refusals:
        before, _, after = one.hint.partition(one.own) if one.own else (one.hint, "", "")
        alike.setdefault((before, after), []).append(one)
    told = [
        (_first(", ", (one.part for one in those), _MOST_PARTS), before + _first("; ", (one.own for one in those), _MOST_COMMANDS) + after)
        for (before, after), those in alike.items()
    ]  # fmt: skip
    if len(told) == 1:
        return told[0][1]
    return _first("; ", (f"for {parts}: {hint}" if parts else hint for parts, hint in told if hint), _MOST_HINTS)


def _first(between: str, words: Iterable[str], most: int) -> str:
    """Return the first of several texts, each once, and how many more there are."""
    each = tuple(dict.fromkeys(words))
    return between.join(each[:most]) + (f"{between}and so on for {len(each) - most} more" if len(each) > most else "")


Decision = Plan | NothingToDo | Refusal
