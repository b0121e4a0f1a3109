"""The survey of source, target and their differences in a constant number of commands."""

import os
import re
from collections.abc import Callable, Collection
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from orchestrator import __version__
from orchestrator.domain.answers import NOT_READ, text_lines, understand, unreadable
from orchestrator.domain.errors import PermissionDenied, TargetUnable, mark_copies
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.gate import (
    TELLS_OF_LINKS,
    GateHello,
    GateTooOld,
    common_protocol,
    format_hello,
    is_unknown_hello,
    who_upgrades,
)
from orchestrator.domain.job import Job
from orchestrator.domain.names import parse_name, show_name
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect, Pipeline, Refusal
from orchestrator.domain.point import MIRROR, RestorePoint
from orchestrator.domain.source_tree import SourceTree
from orchestrator.domain.units import Seconds
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync import commands, parse, script_commands
from orchestrator.engines.rsync.hole_limit import limit_holes
from orchestrator.engines.rsync.large_files import LargeFiles
from orchestrator.engines.rsync.left_out import RefusedReader, leave_out, leave_out_remainders
from orchestrator.engines.rsync.model import (
    CROWDED,
    LARGE_FILE,
    MANIFEST,
    MARKER,
    MIRROR_DAMAGED,
    MOST_DIFFERING,
    MOST_NAMED,
    MOST_NAMES,
    OURS,
    PARTIAL,
    WORK,
    DifferingPaths,
    Look,
    PartialFile,
    RsyncProgram,
    RsyncSurvey,
    SideBySide,
    SourceSurvey,
    TargetSurvey,
)
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.overlap import find_overlap
from orchestrator.engines.rsync.source_summary import (
    EarlyListing,
    all_are_small,
    begin_bare_listing,
    begin_early_listing,
    first_copy,
    survey_tree,
)
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed, pipeline_failure
from orchestrator.process.reading_beside import ReadingBeside

if TYPE_CHECKING:
    from orchestrator.engines.rsync.own_look import OwnLook
    from orchestrator.engines.rsync.parallel import TreeSplitter

_One = TypeVar("_One")
_ORPHAN = rb"(?s)(.*/)?\.([^/]+)\.[A-Za-z0-9]{6}"
_MOST_HALF_COPIED = 200
_MOST_WRITTEN = 1000  # files by their names: rsync compares each of the mirror with each of them
_WITH_CLONES = (b"btrfs", b"xfs")  # xfs of before 2018 has none, which shows when one is tried
PROGRAM = "rsync's host"
_PATIENCE = Seconds(
    3600
)  # a survey of a large tree on a busy disk; a host that does not answer must not block the run for ever
_LITTLE = 256 << 20  # bytes that one rsync copies as quickly as several


def survey(job: Job, request: RunRequest, reader: Reader) -> RsyncSurvey:
    """Return everything that the plan needs. Raises: OrchestratorError when a side cannot be read."""
    with ExitStack() as marks:
        return _survey(job, request, reader, marks)


def _survey(job: Job, request: RunRequest, reader: Reader, marks: ExitStack) -> RsyncSurvey:
    run = command_runner(reader)
    here, there, gate = greet(job, run)
    _require_plain_store(job, gate)
    early = begin_early_listing(job, request, reader, marks)
    source_text, target_text = look_at_both(job, reader)
    target = read_target(job, run, target_text)
    early = _of_a_first_copy(early, target)
    if target.holds_copies(job.identity, points=options_of(job).points):
        marks.enter_context(mark_copies(seen=True))
    require_same_store(job, target)
    if there is not None and there.gated:  # the gate closes its folder, and clears away what a cut publishing left
        half = tuple(replace(each, wanted=None) if b"\n" in each.path else each for each in target.half)
        target = replace(target, open=(), led=False, litter=(), half=half)
    looked = script_commands.survey_source_command(job.tree)
    parts = understand(PROGRAM, looked, source_text, partial(parse.parse_sources, tree=job.tree))
    source = parse.join_surveys(parts)
    job, target = leave_out(job, request), leave_out_remainders(target, request)
    options = options_of(job)
    newest = newest_copy(job, target, mirror=not options.points)
    changes, unread, differing = None, False, None
    others, emptied, reserved = tuple[bytes, ...](), tuple[str, ...](), tuple[bytes, ...]()
    large: LargeFiles | None = None
    how, own = _look_ourselves(job, request, target, reader)
    if source.directory and newest is not None:
        if own is not None:
            changes, differing, large = own.changes, own.differing, own.large
        else:
            look, unread = _survey_changes(job, newest, reader, request.refused, there=there, coarse=target.coarse)
            changes, reserved, differing = look.changes(), tuple(look.reserved), look.differing()
            large = look.large.files()
        others, emptied = _survey_others(job, newest, parts, run) if job.parts else ((), ())
        if differing is not None and differing.joined and there is not None and there.gated:
            # A name that a pattern leaves out may be one of such a file: then rsync alone can tell what is copied.
            named = None if options.excludes else _names_of_joined(job, differing.joined, reader)
            differing = None if named is None else replace(differing, joined=named)
    elif source.directory and options.hides:  # only rsync itself knows which entries its patterns exclude
        nothing = Location(path=f"{request.notes}/empty")
        look, unread = _survey_changes(job, nothing, reader, (), there=there, coarse=False)
        changes, reserved, large = look.changes(), tuple(look.reserved), look.large.files()
    if changes is not None and newest is None:
        changes = replace(changes, entries_before=None, files_before=None)
    seen = RsyncSurvey(
        here=here, there=there, source=source, target=target, changes=changes, unread=unread,
        parts=parts if job.parts else (), others=others, reserved=reserved, differing=differing, gate=gate,
        noted=not target.work or _are_notes_there(request.notes),
        walled=_is_walled(job, target, differing, run, gate=gate),
        look=how, mixed=find_overlap(job), refused=tuple(sorted(request.refused.items())), large=large.largest if large and newest else (),
        older=frozenset(path for path, _ in large.largest if path not in large.new) if large and newest else frozenset(),
    )  # fmt: skip
    if seen.mixed:
        return seen
    seen = _with_crowded(job, replace(seen, clones=_may_clone(job, seen, run)), request, reader)
    if source.directory and (changes is None or (not seen.refused and _is_split(job, seen, newest))):
        seen = _with_listing(job, seen, request, reader, early)
    if seen.changes is not None and job.parts:
        apart = differing and replace(differing, paths=(*differing.paths, *others))
        seen = replace(seen, changes=replace(seen.changes, by_part=True, emptied=emptied), differing=apart)
    return _with_ahead(job, _limited(job, seen, large, reader), run)


def _with_ahead(job: Job, seen: RsyncSurvey, run: Callable[[Command], bytes]) -> RsyncSurvey:
    """Return the survey with how many programs write small files ahead of a first copy, and large ones ahead of any."""
    if (seen.points and not seen.large) or not seen.source.directory or seen.changes is None:
        return seen
    from orchestrator.engines.rsync.write_ahead import count_programs

    return count_programs(job, seen, run)


def _of_a_first_copy(early: EarlyListing | None, target: TargetSurvey) -> EarlyListing | None:
    """Return the listing that has begun; None, once it has ended, where the job's history is younger than its copies."""
    if early is not None and (target.points or target.work):
        early.end()
        return None
    return early


def _is_split(job: Job, seen: RsyncSurvey, newest: Location | None) -> bool:
    """Return whether a listing is worth it only to share the work out; where the job does not say how many share it, a first copy is."""
    changes, parallel = seen.changes, options_of(job).parallel
    if changes is None or changes.none:
        return False
    if parallel is None and newest is None:
        from orchestrator.engines.rsync.side_by_side import choose_side_by_side

        return choose_side_by_side(job, changes.entries_now or 0).count > 1
    return (parallel or 1) > 1 and not _is_little_by_name(job, seen)


def _with_crowded(job: Job, seen: RsyncSurvey, request: RunRequest, reader: Reader) -> RsyncSurvey:
    """Return the survey with the files that are linked to no point, once one of them could have no more names; a gate links none of them."""
    options = options_of(job)
    if not (request.crowded and seen.points and options.points and options.hard_links):
        return seen
    crowded, differing = _names_of_crowded(job, reader), seen.differing
    if seen.adds and differing is not None:
        differing = replace(differing, joined=(*differing.joined, *crowded))
    return replace(seen, crowded=crowded, differing=differing)


def _limited(job: Job, seen: RsyncSurvey, large: LargeFiles | None, reader: Reader) -> RsyncSurvey:
    """Return the survey without the files that are left out for their holes: in the split, too, as the largest weigh the most."""
    seen = limit_holes(job, seen, large, reader)
    if not seen.sparse or seen.parallel_copies is None:
        return seen
    listed, _, _ = survey_tree(job, reader, left_out=frozenset(path for each in seen.sparse for path in each.paths))
    return _split(job, seen, listed, seen.side_by_side)


def _with_listing(
    job: Job, seen: RsyncSurvey, request: RunRequest, reader: Reader, early: EarlyListing | None
) -> RsyncSurvey:
    """Return the survey with what a listing of the source says. `early`: one of a first copy that has begun already."""
    from orchestrator.engines.rsync.side_by_side import choose_side_by_side

    first = seen.changes is None and not seen.points and not seen.target.work
    with ExitStack() as end:
        begun = early or (begin_bare_listing(job, request, reader) if first else None)
        listed, holes, reserved = end.enter_context(begun).result() if begun else survey_tree(job, reader)
    seen = replace(
        seen,
        changes=seen.changes or first_copy(listed),
        holes=holes,
        reserved=reserved or seen.reserved,
        bare=begun.digests if begun else None,
        large=tuple(listed.large) if first else (),
        small=first and all_are_small(job, listed, early=begun),
    )
    return _split(job, seen, listed, choose_side_by_side(job, listed.totals()[0]))


def _split(job: Job, seen: RsyncSurvey, listed: "TreeSplitter", chosen: SideBySide) -> RsyncSurvey:
    """Return the survey with the listed tree shared out to so many rsyncs; only a number that the job says can be refused."""
    if listed.missed and chosen.count > 1:
        chosen = SideBySide(count=1, why="one rsync, which names what could not be listed: none of several would")
    split = listed.parallel_copies(chosen.count) if chosen.count > 1 else None
    if isinstance(split, Refusal) and options_of(job).parallel is None:
        chosen, split = SideBySide(count=1, why="one rsync, as names of the same files tie the tree together"), None
    return replace(seen, side_by_side=chosen, parallel_copies=split)


def _require_plain_store(job: Job, gate: GateHello | None) -> None:
    """Check that a job behind a gate keeps owners and modes as they are. Raises: TargetUnable."""
    if gate is not None and options_of(job).fake_super:
        raise TargetUnable(
            f"the gate at {job.target.location.host} lets no rsync keep owners and modes in attributes (fake-super)",
            evidence=(),
            hint=f"write fake-super = false in [rsync] of {job.file}; or use a key there that goes through no gate",
        )


def _look_ourselves(
    job: Job, request: RunRequest, target: TargetSurvey, reader: Reader
) -> "tuple[Look | None, OwnLook | None]":
    """Return how the newest point is compared, and what a look of our own found, where one is enough."""
    if job.source.host or job.target.location.host or request.refused or not request.looks:
        return None, None
    from orchestrator.engines.rsync.own_look import look_around

    return look_around(job, request, target, command_runner(reader), reader)


def _is_little_by_name(job: Job, seen: RsyncSurvey) -> bool:
    """Return whether little is copied, and by name: then one rsync is quicker than a listing of the source and several of them."""
    from orchestrator.engines.rsync.linked_copy import differing_by_name

    moving, newest = seen.changes.moving if seen.changes else None, seen.points[-1] if seen.points else None
    little = moving is not None and moving < _LITTLE
    return little and differing_by_name(job, seen, job.target.location / WORK, newest) is not None


def _is_walled(
    job: Job,
    target: TargetSurvey,
    differing: DifferingPaths | None,
    run: Callable[[Command], bytes],
    *,
    gate: GateHello | None,
) -> bool:
    """Return whether the wall against links stands on both sides; it is asked only where a copy could name what differs.

    A gate to which points are added links by itself. An old gate at a source knows no such question, and one without a hello refuses it:
    then rsync is told no names.
    """
    sides = dict.fromkeys((None, job.source.host or job.target.location.host))
    if not target.by_root or differing is None or not differing.paths:
        return False
    if gate is not None and (job.source.host is None or (common_protocol(gate.protocols) or 0) < TELLS_OF_LINKS):
        return False
    try:
        return all(run(script_commands.survey_links_command(side)) == b"closed\n" for side in sides)
    except PermissionDenied:
        if job.source.host is None:
            raise
        return False


def _may_clone(job: Job, seen: RsyncSurvey, run: Callable[[Command], bytes]) -> bool:
    """Return whether large files may differ that a filesystem with clones could share; asked only where a copy names what differs."""
    moving = seen.changes.moving if seen.changes else None
    if not seen.walled or job.source.host or job.target.location.host or moving is None or moving < LARGE_FILE:
        return False
    kind = Command(argv=("stat", "-f", "-c", "%T", job.target.location.path), effect=Effect.READS)
    return run(kind).strip() in _WITH_CLONES


def _are_notes_there(folder: str) -> bool:
    """Return True when an interrupted copy left notes: else what it wrote is compared with the source by its bytes.

    Without a folder there are none: only a run makes it, a plan does not.
    """
    try:
        return any(name.startswith(("moved-", "earlier-")) for name in os.listdir(folder))
    except FileNotFoundError:
        return False


def _survey_others(
    job: Job, newest: Location, parts: tuple[SourceSurvey, ...], run: Callable[[Command], bytes]
) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
    """Return what the newest copy holds besides the folders of the job, and which of these are empty now and are not there."""
    own = () if options_of(job).points else (OURS,)
    listed = run(script_commands.others_command(newest, (*job.parts, *own)))
    bare = tuple(each.folder[1:] for each in parts if each.empty)
    if not bare:
        return tuple(filter(None, listed.split(b"\0"))), ()
    tree = SourceTree(root=newest, parts=bare)
    copies = ask(run, script_commands.survey_source_command(tree, copy=True), partial(parse.parse_sources, tree=tree))
    emptied = tuple(f"/{part}" for part, copy in zip(bare, copies, strict=True) if copy.exists and not copy.empty)
    return tuple(filter(None, listed.split(b"\0"))), emptied


def look_at_both(job: Job, reader: Reader) -> tuple[bytes, bytes]:
    """Return the survey output of source and target: one command when both are local. Raises: OrchestratorError."""
    source, root = job.source, job.target.location
    if source.host is None and root.host is None and not job.parts:
        both = reader.read(Pipeline(stages=(script_commands.survey_both_command(source, root),)))
        if both.well:
            return understand(
                PROGRAM, script_commands.survey_both_command(source, root), both.stdout, parse.split_surveys
            )
    command = script_commands.survey_target_command(root)
    with ReadingBeside(reader, lambda beside: mark_copies(seen=False)(command_runner(beside))(command)) as target:
        # Also where both failed: each alone shows its own error.
        return command_runner(target.executor)(script_commands.survey_source_command(job.tree)), target.result()


def survey_programs(job: Job, run: Callable[[Command], bytes]) -> tuple[RsyncProgram | None, RsyncProgram | None]:
    """Return the rsync of both sides when there are two; (None, None) for a copy within this machine."""
    here, there, _ = greet(job, run)
    return here, there


def greeting_command(host: Host) -> Command:
    """Build the first request of a run: to whom it speaks, and in which versions."""
    return script_commands.hello_command(host, format_hello(GateHello(poolferry=__version__)))


def greet(
    job: Job, run: Callable[[Command], bytes]
) -> tuple[RsyncProgram | None, RsyncProgram | None, GateHello | None]:
    """Return the rsync of both sides when there are two, and the gate that our key goes through; all None within this machine.

    Raises: GateTooOld where the gate and we know no common version, or it lets no key add to points. OrchestratorError.
    """
    host = job.source.host or job.target.location.host
    if host is None:
        return None, None, None
    here = ask(run, commands.rsync_version_command(None), parse.parse_program)
    try:
        gate, there = ask(run, greeting_command(host), parse.parse_greeting)
    except PermissionDenied as error:
        if not is_unknown_hello(" ".join(error.evidence.last_output)):
            raise
        if job.source.host is None:
            raise GateTooOld(
                f"the gate at {host} is older than this poolferry, and lets no key add to restore points",
                hint=f"upgrade poolferry on {host}",
            ) from error
        return here, ask(run, commands.rsync_version_command(host), parse.parse_program), None
    if gate is None or there is None:
        return here, there, None
    if common_protocol(gate.protocols) is None:
        raise GateTooOld(who_upgrades(gate.protocols, here="this machine", there=str(host)))
    return here, replace(there, gated="adds" in gate.rights and job.source.host is None), gate


def survey_points(job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
    """Return the existing restore points, oldest first; for a mirror the mirror itself. Where none of the job's kind was made yet, the other kind.

    Why: the option decides what the next run makes, not what comes back meanwhile.
    """
    root = job.target.location
    text = _look_at_target(root, reader)
    points = options_of(job).points
    seen = _parsed_target(text, root, mirror=not points)
    require_same_store(job, seen)
    _require_own_copies(job, seen)
    if points:
        if not seen.holds_old_mirror:
            return seen.points
        seen = _parsed_target(text, root, mirror=True)
    if seen.mirrored is None:
        return _parsed_target(text, root, mirror=False).points if seen.dated else ()
    found = RestorePoint(
        name=MIRROR, taken=seen.mirrored, tree=root, manifest=root / MANIFEST, damaged=_mirror_damaged(text), apart=(OURS.encode(),),
        unfinished=seen.work, stored=seen.stored,
    )  # fmt: skip
    return (found,)


def require_same_store(job: Job, target: TargetSurvey) -> None:
    """Check that copies are read as they were written: with fake-super, or without. Raises: TargetUnable."""
    if target.owner is None or target.stored == options_of(job).fake_super:
        return
    told = f"`fake-super = {str(target.stored).lower()}` in [rsync] of {job.file} reads them"
    how = "with" if target.stored else "without"
    raise TargetUnable(
        f"the copies in {job.target.location} were made {how} fake-super: read the other way, owners, modes and kinds would be false",
        evidence=(f"{MARKER} says so",),
        hint=f"{told}; for copies of the other kind, give the job another place in targets.toml",
        copies=bool(target.points) or target.mirrored is not None,
    )


def is_own_place(job: Job, reader: Reader) -> bool:
    """Return whether the marker at the target names this job."""
    root = job.target.location
    text = _look_at_target(root, reader)
    return _parsed_target(text, root, mirror=not options_of(job).points).owner == job.identity


def _look_at_target(root: Location, reader: Reader) -> bytes:
    """Return the records of a target. Raises: OrchestratorError."""
    from orchestrator.engines.rsync.target_look import look_here

    here = look_here(root.path) if root.host is None and not reader.apart else None
    return here if here is not None else command_runner(reader)(script_commands.survey_target_command(root))


def _require_own_copies(job: Job, target: TargetSurvey) -> None:
    """Check that another job's copies are not taken for those of this one. Raises: TargetUnable."""
    if target.owner is not None and target.owner != job.identity:
        from orchestrator.engines.rsync.refusals import explain_marker

        hint = "correct its path in targets.toml, or mount the right disk there"
        why, evidence, hint = explain_marker(job, target.owner, hint=hint)
        raise TargetUnable(f"the target {show_name(str(job.target.location))} {why}", evidence=evidence, hint=hint)


def _mirror_damaged(text: bytes) -> bool:
    return b"\0o f " + MIRROR_DAMAGED.removeprefix(f"{OURS}/").encode() + b"\0" in text


def read_target(job: Job, run: Callable[[Command], bytes], text: bytes) -> TargetSurvey:
    """Return the state of the target, with partial files and damaged entries when there are any."""
    root = job.target.location
    points = options_of(job).points
    seen = _parsed_target(text, root, mirror=not points)
    if OURS in seen.open and points:
        seen = replace(seen, work=False)  # the plan closes our folders and starts a new work tree
    if seen.unwritten and points:
        seen = replace(seen, work=False)  # what prepares the target discards it
    half = survey_half_copied(root / WORK, job.source, run) if seen.work and points else ()
    note = None
    if not points:
        note = root / MIRROR_DAMAGED if _mirror_damaged(text) else None
    elif seen.points and seen.points[-1].damaged:
        note = root / f"points/{seen.points[-1].name}.damaged"
    damaged = ask(run, script_commands.show_file_command(note), _parse_names) if note else ()
    if seen.unwritten and not points:
        damaged = (*damaged, *((b"",) if seen.coarse else survey_written(root, run)))
    if points and seen.points and seen.points[-1].manifest is None:
        damaged = (b"",)  # nothing in it can be verified, so nothing is linked to it
    return replace(seen, half=half, damaged=damaged)


def survey_written(root: Location, run: Callable[[Command], bytes]) -> tuple[bytes, ...]:
    """Return what a mirror's disk may not have taken: each file by its name, or the empty name, which means all of them."""
    listed = run(script_commands.list_written_command(root, _MOST_WRITTEN + 1))
    names = tuple(listed.split(b"\0")[:-1])
    return (b"",) if b"" in names or len(names) > _MOST_WRITTEN else names


def _parsed_target(text: bytes, root: Location, *, mirror: bool) -> TargetSurvey:
    parser = partial(parse.parse_target, root=root, mirror=mirror)
    return understand(PROGRAM, script_commands.survey_target_command(root), text, parser)


def _parse_names(text: bytes) -> tuple[bytes, ...]:
    return tuple(parse_name(line) for line in text_lines(text))


def survey_half_copied(
    tree: Location, source: Location, run: Callable[[Command], bytes], *, own: bool = False
) -> tuple[PartialFile, ...]:
    """Return partial files, and temporaries of a killed rsync, each with the present size of its source file.

    A temporary's name shows which file it was; a source file with a similar name is none. `own`: only this user's.
    """
    guesses = survey_partial_files(tree, run, own=own)
    if not guesses:
        return ()
    request = tuple(half.path for half in guesses) + tuple(half.lies for half in guesses)
    sizes = ask(run, script_commands.sizes_command(source, request), partial(parse.parse_sizes, count=len(request)))
    proper, alike = sizes[: len(guesses)], sizes[len(guesses) :]
    return tuple(
        PartialFile(path=half.path, lies=half.lies, orphan=half.orphan, have=half.have, wanted=size)
        for half, size, same in zip(guesses, proper, alike, strict=True)
        if same is None
    )


def survey_partial_files(tree: Location, run: Callable[[Command], bytes], *, own: bool) -> tuple[PartialFile, ...]:
    """Return partial files, and temporaries of a killed rsync, by the names of the files that they seem to be parts of."""
    found = ask(run, script_commands.partial_files_command(tree, own=own), parse.parse_partial_files)
    return tuple(guess for size, lies in found if (guess := _guess(lies, size)))[:_MOST_HALF_COPIED]


def _guess(lies: bytes, size: int) -> PartialFile | None:
    middle = f"{PARTIAL}/".encode()
    if middle in lies:
        return PartialFile(path=lies.replace(middle, b""), lies=lies, orphan=False, have=size, wanted=None)
    match = re.fullmatch(_ORPHAN, lies)
    return (
        PartialFile(path=(match[1] or b"") + match[2], lies=lies, orphan=True, have=size, wanted=None)
        if match
        else None
    )


def newest_copy(job: Job, target: TargetSurvey, *, mirror: bool) -> Location | None:
    if mirror or target.owner not in (None, job.identity):  # another job's copies would only mislead
        return job.target.location if target.owner == job.identity and not target.dated else None
    return target.points[-1].tree if target.points else None


def _names_of_joined(job: Job, joined: tuple[bytes, ...], reader: Reader) -> tuple[bytes, ...]:
    """Return all names of the source's files at these paths: a gate links none of them, so that they stay names of one file."""
    wanted = set(joined)
    return tuple(path for each in _names_by_file(job, reader) if not wanted.isdisjoint(each) for path in each)


def _names_of_crowded(job: Job, reader: Reader) -> tuple[bytes, ...]:
    """Return all names of the source's files that have so many that several points together may have more than a filesystem allows."""
    return tuple(path for each in _names_by_file(job, reader) if CROWDED <= len(each) <= MOST_NAMES for path in each)


def _names_by_file(job: Job, reader: Reader) -> list[list[bytes]]:
    """List the names of each of the source's files that has several. Raises: OrchestratorError."""
    command = script_commands.list_sizes_command(job.tree, one_filesystem=options_of(job).one_file_system)
    names: dict[bytes, list[bytes]] = {}
    try:
        with reader.records(Pipeline(stages=(command,)), separator=b"\0") as records:
            for record in records:
                path, _, rest = record.partition(b"//")
                kind, _, links, inode, _ = rest.split(b"\t")
                if kind != b"d" and links != b"1":
                    names.setdefault(inode, []).append(path.removeprefix(script_commands.BELOW_ROOT))
    except PipelineFailed as failed:
        from orchestrator.engines.rsync.errors import explain

        raise explain(failed) from failed
    return list(names.values())


def _survey_changes(
    job: Job, newest: Location, reader: Reader, refused: Collection[bytes], *, there: RsyncProgram | None, coarse: bool
) -> tuple[parse.DryRunReader, bool]:
    """Return the reader of an itemized dry run, and whether some entries were unreadable.

    None of it ends the survey.
    """
    gated = there is not None and there.gated
    look = RefusedReader(job.tree, refused, most_differing=MOST_NAMED if gated else MOST_DIFFERING)
    command = commands.dry_run_command(job, newest, there=there, coarse=coarse)
    try:
        with reader.records(Pipeline(stages=(command,)), separator=b"\n") as lines:
            for line in lines:
                look.feed(line)
    except NOT_READ as error:
        raise unreadable(PROGRAM, command, line, error) from error
    except PipelineFailed as failed:
        from orchestrator.engines.rsync.errors import EXIT_PARTIAL, exit_code, explain, is_partial

        if not is_partial(failed):
            raise explain(failed) from failed
        return look, exit_code(failed) == EXIT_PARTIAL
    return look, False


def ask(run: Callable[[Command], bytes], command: Command, parser: Callable[[bytes], _One]) -> _One:
    """Return the parsed output of a command. Raises: OrchestratorError."""
    return understand(PROGRAM, command, run(command), parser)


def command_runner(reader: Reader) -> Callable[[Command], bytes]:
    def run(command: Command) -> bytes:
        pipeline = Pipeline(stages=(command,))
        result = reader.read(pipeline, timeout=_PATIENCE)
        if not result.well:
            from orchestrator.engines.rsync.errors import explain

            raise explain(pipeline_failure(pipeline, result, reader.ssh_options))
        return result.stdout

    return run
