"""Restores of data from a point: a survey of both ends, then the steps."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

from orchestrator.domain.answers import NOT_READ, parse_count, parse_json, split_lines
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location, MountPoint, leads_to_mount, outermost_paths
from orchestrator.domain.plan import (
    Command,
    FolderOpening,
    Pipeline,
    Plan,
    Refusal,
    Step,
    TreeVerification,
)
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.units import Bytes, show_count, show_size
from orchestrator.engines.contract.restore import DestinationSurvey, RestoreRequest
from orchestrator.engines.rsync import commands, script_commands
from orchestrator.engines.rsync.abilities import explain_consent
from orchestrator.engines.rsync.hole_limit import has_hole
from orchestrator.engines.rsync.large_files import MOST_LARGE
from orchestrator.engines.rsync.model import LARGE_FILE, RESTORE_MARKER, PartialFile
from orchestrator.engines.rsync.options import as_lane, options_of
from orchestrator.engines.rsync.parse import parse_sizes
from orchestrator.engines.rsync.source_summary import survey_tree
from orchestrator.engines.rsync.survey import (
    ask,
    command_runner,
    survey_half_copied,
    survey_partial_files,
)
from orchestrator.engines.rsync.write_ahead import (
    WHY_AHEAD,
    count_ahead_of_restore,
    large_ahead_of_restore,
    large_files_of_restore,
    left_by_name,
    write_ahead_command,
)
from orchestrator.process.background import BackgroundCall
from orchestrator.process.executor import PipelineFailed, Reader

if TYPE_CHECKING:
    from orchestrator.engines.rsync.parallel import ParallelCopy

Stage = tuple[Step, ...]
_SHOWN = 5
_SURE = 1024 * 1024  # so many bytes of a partial file that seems complete are sent again, so that the rest is verified


def survey_restore(job: Job, wanted: RestoreRequest, reader: Reader) -> DestinationSurvey:
    """Return a survey of the requested data and the destination; a file restored into a folder keeps its name."""
    with BackgroundCall(lambda: _list_large(_below(wanted), reader)) as looked:
        seen = _survey(job, wanted, reader)
        if seen.wanted == "absent":
            return seen
        holes, large = looked.result()
        new = seen.wanted == "folder" and _is_new_here(wanted, seen)
        return replace(seen, holes=holes, large=large_ahead_of_restore(job, wanted, large) if new else ())


def _survey(job: Job, wanted: RestoreRequest, reader: Reader) -> DestinationSurvey:
    run = command_runner(reader)
    kind = ask(
        run, script_commands.restore_source_command(wanted.point.tree, wanted.path), lambda text: text.decode().strip()
    )

    def look(to: Location) -> DestinationSurvey:
        parser = partial(_look, to, kind)
        return ask(run, script_commands.survey_destination_command(to), parser)

    seen = look(wanted.to)
    if kind == "file" and seen.kind == "folder":
        seen = look(wanted.to / _text(wanted.path.rpartition(b"/")[2]))
    if kind == "file":
        room = look(script_commands.file_folder(seen.to)) if seen.kind == "absent" else seen
        goes_on = room.unfinished == (job.identity, wanted.point.name, show_name(wanted.path)) and not wanted.anew
        return replace(seen, half=_survey_half_file(wanted, room.to, run)) if goes_on else seen
    if seen.unfinished and kind == "folder" and not wanted.anew:
        seen = replace(seen, half=survey_half_copied(seen.to, _below(wanted), run, own=True))
    if kind == "folder" and _is_new_here(wanted, seen):
        split = _split(job, wanted, seen, reader)
        seen = replace(seen, split=split, ahead=count_ahead_of_restore(job, wanted, split, seen.to))
    return _with_mounts(wanted, seen, run) if kind == "folder" and seen.mounts else seen


def _is_new_here(wanted: RestoreRequest, seen: DestinationSurvey) -> bool:
    """Return whether root brings a folder into a new one, all on this machine.

    Why root: another user could not write any more into a folder that another copy has given its mode.
    """
    there = seen.unfinished or seen.entries or seen.mounts or seen.to.host or wanted.point.tree.host
    return not there and os.geteuid() == 0


def _split(job: Job, wanted: RestoreRequest, seen: DestinationSurvey, reader: Reader) -> "tuple[ParallelCopy, ...]":
    """Return what each of several rsyncs brings into a new folder on this machine; empty: one copies it all."""
    from orchestrator.engines.rsync.side_by_side import choose_for_restore

    tree = _below(wanted)
    if not wanted.notes or job.pipe.rate_limit:
        return ()
    if (number := choose_for_restore(job, wanted.point, tree.path, seen.to.path)) < 2:
        return ()
    try:
        listed, _, _ = survey_tree(replace(job, source=tree, parts=()), reader)
        if listed.missed:  # one rsync names it
            return ()
        found = listed.parallel_copies(number)
    except OrchestratorError:  # such as a listing that the memory cannot hold
        return ()
    return () if isinstance(found, Refusal) or len(found.parallel_copies) < 2 else found.parallel_copies


def _list_large(tree: Location, reader: Reader) -> tuple[bool, tuple[tuple[bytes, int], ...]]:
    """Return whether some of the files to restore have holes, and large ones that have none and one name, each with its bytes.

    Of those at a host, and where it is not certain, True, and none.
    """
    if tree.host is not None:
        return True, ()
    holes, large, met = False, dict[int, tuple[bytes, int]](), set[int]()
    try:
        with reader.records(
            Pipeline(stages=(script_commands.list_large_files_command(tree),)), separator=b"\0"
        ) as records:
            for record in records:
                blocks, size, inode, path = record.split(b" ", 3)
                if has_hole(length := parse_count(size), parse_count(blocks)):
                    holes = True
                elif length >= LARGE_FILE and len(large) < MOST_LARGE:
                    if (number := parse_count(inode)) in met:
                        large.pop(number, None)
                    else:
                        met.add(number)
                        large[number] = path, length
    except (PipelineFailed, *NOT_READ):
        return True, ()
    return holes, tuple(sorted(large.values()))


def _survey_half_file(
    wanted: RestoreRequest, room: Location, run: Callable[[Command], bytes]
) -> tuple[PartialFile, ...]:
    """Return the largest part of a single file that a restore left in its folder of ours; the file may have another name there."""
    name = os.fsencode(room.path.rpartition("/")[2])
    found = survey_partial_files(room, run, own=True)
    half = max((each for each in found if each.path == name), key=lambda each: each.have, default=None)
    if half is None:
        return ()
    folder, slash, own = wanted.path.rpartition(b"/")
    tree = wanted.point.tree / _text(folder) if slash else wanted.point.tree
    (size,) = ask(run, script_commands.sizes_command(tree, (own,)), partial(parse_sizes, count=1))
    return () if size is None else (replace(half, wanted=size),)


def _look(to: Location, wanted: str, text: bytes) -> DestinationSurvey:
    kind, marker, entries, real, mounts, *examples = (*text.split(b"\0"), *(b"",) * 5)[: max(6, text.count(b"\0") + 1)]
    return DestinationSurvey(
        kind=kind.decode(),
        entries=parse_count(entries or b"0"),
        examples=tuple(name for name in examples if name),
        unfinished=_unfinished(marker),
        wanted=wanted,
        to=to,
        mounts=tuple(MountPoint(path=one, full=True, wanted=True) for one in _below_it(real[:-1], mounts)),
        filling=_filling(marker),
    )


def _below_it(folder: bytes, mounts: bytes) -> tuple[bytes, ...]:
    """Return the mounts below a folder, given by its real path, as relative paths."""
    inside = folder.rstrip(b"/") + b"/"
    places = (_plain(line) for line in split_lines(mounts))
    return tuple(
        outermost_paths([place[len(inside) :] for place in places if place.startswith(inside) and place != inside])
    )


def _plain(field: bytes) -> bytes:
    r"""Decode a path of mountinfo, in which blanks and similar characters are written as \040. Source: proc(5)."""
    for code, byte in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        field = field.replace(code, byte)
    return field


def _with_mounts(wanted: RestoreRequest, seen: DestinationSurvey, run: Callable[[Command], bytes]) -> DestinationSurvey:
    """Return the survey with the contents of mounts and the point's data for them; folders above a mount are no entries."""
    paths = tuple(one.path for one in seen.mounts)
    steps = sum(path.count(b"/") + 1 for path in paths)
    told = run(script_commands.survey_below_command(seen.to, paths, steps + 1)).split(b"\0")
    own = [each[1:] for each in told if each[:1] == b"e" and not leads_to_mount(each[1:], paths)]
    there = {each[1:]: each[:1] == b"f" for each in told if each[:1] in (b"f", b"v")}
    holds = set(run(script_commands.survey_point_command(_below(wanted), paths)).split(b"\0"))
    mounts = tuple(MountPoint(path=path, full=there[path], wanted=path in holds) for path in paths if path in there)
    return replace(seen, mounts=mounts, entries=seen.entries if own else 0)


def _filling(marker: bytes) -> tuple[bytes, ...]:
    """Return the mounts that an interrupted restore copied files into."""
    try:
        return tuple(os.fsencode(name) for name in parse_json(marker)["filling"])
    except NOT_READ:
        return ()


def _unfinished(marker: bytes) -> tuple[str, str, str] | None:
    """Return job, point and path of an unfinished restore, the path as it is shown."""
    try:
        value = parse_json(marker) if marker.strip() else {}
        return (str(value["job"]), str(value["point"]), str(value.get("path", ""))) if value else None
    except NOT_READ:
        return ("(unreadable marker)", "?", "")


def plan_restore(job: Job, wanted: RestoreRequest, seen: DestinationSurvey, *, aside: str | None) -> Plan:
    """Plan a restore: prepare, copy, verify, end. The folder is marked, so the same command resumes later."""
    what = f"{show_name(wanted.path)} of point {wanted.point.name}" if wanted.path else f"point {wanted.point.name}"
    verifiable, consent = wanted.point.manifest is not None, explain_consent(options_of(job))
    bare = f"point {wanted.point.name} has no manifest, so what is restored cannot be verified"
    stages = (_folder_stages if seen.wanted == "folder" else _file_stages)(job, wanted, seen, aside or "", what)
    return Plan(
        summary=f"bring {what} back to {seen.to}",
        stages=tuple(each for each in stages if verifiable or not isinstance(each[0].work, TreeVerification)),
        resumes="an unfinished restore of the same point" if (seen.unfinished or seen.half) and not aside else None,
        warnings=(*((consent,) if consent else ()), *(() if verifiable else (bare,))),
    )


def _folder_stages(
    job: Job, wanted: RestoreRequest, seen: DestinationSurvey, aside: str, what: str
) -> tuple[Stage, ...]:
    """Return the stages of a folder: nobody else enters it until all is there; its own owner and mode come last."""
    tree, to = _below(wanted), seen.to
    mounts = () if aside else seen.mounts
    left_out, filled = (tuple(one.path for one in mounts if one.wanted is told) for told in (False, True))
    begin = script_commands.begin_restore_command(
        to,
        aside=aside,
        marker=_marker(job, wanted, filled),
        unfinished=bool(seen.unfinished and not aside),
        mounts=tuple(one.path for one in mounts),
    )
    why = f"requested; what is mounted there stays as it is: {_few(left_out)}" if left_out else "requested"
    cleared = commands.clear_top_command(tree, to, job, left_out)
    resumed = (
        _step(f"clear {to}", "an earlier restore left what the point does not have", cleared),
        *(_sweep(seen, place) for place in (b"", *filled)),
    )
    # Why before the copy, too: rsync goes on with a part in place, and writes only those of its blocks that differ in memory.
    before = resumed[:1] if not wanted.anew else resumed
    end = _step("end the restore", "it is whole: the marker goes", script_commands.end_restore_command(to, filled))
    whole = _copy(
        what,
        to,
        why,
        commands.restore_command(tree, to, job, folder=True, left_out=left_out, holes=seen.holes, anew=wanted.anew),
        expected=None if wanted.path or seen.unfinished else wanted.size,
    )
    return (
        (_prepare(aside, begin),),
        *_alone(() if aside else _complete(job, lambda path: tree / _text(path), to, seen.half)),
        *_alone(before if seen.unfinished and not aside else ()),
        *_copies(job, wanted, seen, what, _side_by_side(job, wanted, seen, what) or (whole,)),
        *_alone(resumed[1:] if seen.unfinished and not aside else ()),
        *_alone((
            _reread(job, wanted, to, left_out, part="below"),
            _open(job, wanted, to),
            _reread(job, wanted, to, left_out, part="root"),
            replace(end, settles=True),
        )),
    )  # fmt: skip


def _open(job: Job, wanted: RestoreRequest, to: Location) -> Step:
    """Return the step that gives the folder its own metadata: by rsync where one side is at a host, or keeps it in attributes."""
    action, why = f"open {to}", "all is back: the folder gets its own owner and mode"
    options, point = options_of(job), wanted.point
    if to.host or point.tree.host or options.fake_super:
        return _step(action, why, commands.restore_root_command(_below(wanted), to, job))
    work = FolderOpening(
        point=point, path=wanted.path, to=to, marker=RESTORE_MARKER, owners=options.owners, modes=options.modes,
        acls=options.acls, xattrs=options.xattrs,
    )  # fmt: skip
    return Step(action=action, why=why, worker="main", work=work, expected=None)


def _alone(steps: Iterable[Step]) -> Iterator[Stage]:
    return ((step,) for step in steps)


def _side_by_side(job: Job, wanted: RestoreRequest, seen: DestinationSurvey, what: str) -> Stage:
    """Return the stage with the parallel copies of a new folder. Why "/" before each path: see `commands.restore_command`."""
    tree, steps = _below(wanted), list[Step]()
    for number, share in enumerate(seen.split, 1):
        names = f"{wanted.notes}/lane-{number}"
        step = _copy(
            f"{what}, parallel copy {number} of {len(seen.split)}",
            seen.to,
            f"{show_count(len(share.paths), 'part')}, {show_size(share.size)}: all parallel copies have about the same size",
            commands.restore_command(tree, seen.to, as_lane(job, number), folder=True, holes=seen.holes, names=names),
            expected=share.size,
        )
        listed = b"".join(b"/" + path + b"\0" for path in share.paths)
        steps.append(replace(step, worker=f"lane {number}", needs=((names, listed),)))
    return tuple(steps)


def _copies(job: Job, wanted: RestoreRequest, seen: DestinationSurvey, what: str, copies: Stage) -> tuple[Stage, ...]:
    """Return the stages that copy; where that pays, programs write small files first, and then what they leave is copied by name."""
    large = large_files_of_restore(job, wanted, seen, what) if seen.large else ()
    if not seen.ahead:
        return (large, copies) if large else (copies,)
    tree, to, left, others = _below(wanted), seen.to, f"{wanted.notes}/left", len(copies) > 1
    ahead = list[Step]()
    for number in range(1, seen.ahead + 1):
        copy = copies[number - 1 if others else 0]
        names = copy.work.reads if others and isinstance(copy.work, Pipeline) else None
        share = (0, 1) if others else (number - 1, seen.ahead)
        work = write_ahead_command(tree, to, names, left=f"{left}-{number}", share=share)
        action = f"write small files of {what} to {to}{f', {number} of {seen.ahead}' if seen.ahead > 1 else ''}"
        ahead.append(
            replace(copy, action=action, why=WHY_AHEAD, worker=f"lane {number}", work=work, expected=None, ahead=True)
        )

    def rsync(number: int) -> Command:
        of = as_lane(job, number) if others else job
        return commands.restore_command(tree, to, of, folder=True, holes=seen.holes, names="-", single=True).stages[0]

    return ((*ahead, *large), *left_by_name(copies, seen.ahead, left, rsync))


def _file_stages(job: Job, wanted: RestoreRequest, seen: DestinationSurvey, aside: str, what: str) -> tuple[Stage, ...]:
    """Return the stages of a single file: it is written in a folder of ours, and then gets its place."""
    tree, to = _below(wanted), seen.to
    room = script_commands.file_folder(to)
    placed = _step(
        f"put {to} in its place", "it is written whole, and as it was", script_commands.place_file_command(to)
    )
    steps = (
        _prepare(aside, script_commands.begin_file_command(to, aside=aside, marker=_marker(job, wanted, ()))),
        *(() if aside else _complete(job, lambda _: tree, room, seen.half)),
        *((_sweep(replace(seen, to=room, mounts=()), b""),) if wanted.anew else ()),
        _copy(
            what,
            to,
            "asked for",
            commands.restore_command(tree, room, job, folder=False, holes=seen.holes, anew=wanted.anew),
        ),
        _reread(job, wanted, room / to.path.rpartition("/")[2], (), part="all"),
        *_compare(wanted, tree, room / to.path.rpartition("/")[2]),
        replace(placed, settles=True),
    )
    return tuple(_alone(steps))


def _compare(wanted: RestoreRequest, tree: Location, made: Location) -> Stage:
    """Return the step that compares a file of a point without a manifest, such as a snapshot, with what was made of it; none over ssh."""
    if wanted.point.manifest is not None or tree.host or made.host:
        return ()
    command = script_commands.compare_entries_command(tree, made)
    return (_step(f"compare {made} with {tree}", "byte by byte, before it gets its place", command),)


def _complete(
    job: Job, source_of: Callable[[bytes], Location], to: Location, half: tuple[PartialFile, ...]
) -> Iterator[Step]:
    """Yield the steps that complete the files that an interrupted restore left half-copied."""
    for each in half:
        if not each.wanted:
            continue
        shown, length = show_name(each.path), None
        if each.have >= each.wanted:
            length = max(0, each.wanted - _SURE)
        if each.orphan or length is not None:
            orphan = each.lies if each.orphan else b""
            taken = script_commands.take_up_command(to, each.path, orphan=orphan, length=length, own=True)
            yield _step(f"salvage {shown}", "rsync was killed and would not use what it wrote again", taken)
        have = each.have if length is None else length
        why = f"{show_size(have)} of {show_size(each.wanted)} are there"
        work = _single(commands.append_restored_command(source_of(each.path), to, each.path, job))
        yield Step(
            action=f"go on with {shown}", why=why, worker="main", work=work, expected=Bytes(each.wanted - have),
            copies=True,
        )  # fmt: skip
        done = script_commands.finish_command(to, each.path, each.wanted, holes=True)
        yield _step(f"name {shown}", "it is whole and verified; else it is left to the copy", done)


def _prepare(aside: str, command: Command) -> Step:
    why = f"what lies there is kept as {aside}" if aside else "a restore overwrites nothing"
    return _step("prepare the destination", why, command)


def _copy(what: str, to: Location, why: str, work: Pipeline, *, expected: Bytes | None = None) -> Step:
    return Step(action=f"copy {what} to {to}", why=why, worker="main", work=work, expected=expected, copies=True)


def _marker(job: Job, wanted: RestoreRequest, filled: tuple[bytes, ...]) -> str:
    """Return the text of the marker that stays in a folder until its restore has ended."""
    told = {"format": 1, "job": job.identity, "point": wanted.point.name, "path": show_name(wanted.path)}
    return json.dumps({**told, "filling": list(map(_text, filled))} if filled else told)


def _few(paths: tuple[bytes, ...]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(map(show_name, paths[:_SHOWN])) + more


def plan_sample(job: Job, point: RestorePoint, paths: tuple[bytes, ...], to: Location, notes: str) -> Step:
    """Return the step that restores some files of a point, each in its folder."""
    names = f"{notes}/sample"
    return Step(
        action=f"copy {show_count(len(paths), 'file')} of point {point.name} to {to}",
        why="a drill: they are compared with the manifest",
        worker="main",
        work=_single(commands.sample_command(point.tree, to, job, names)),
        expected=None,
        copies=True,
        needs=((names, commands.path_filter(paths)),),
    )


def _sweep(seen: DestinationSurvey, place: bytes) -> Step:
    """Return the cleanup step: rsync before 3.5 leaves folders of partial files. `place`: below the destination."""
    tree = seen.to / _text(place) if place else seen.to
    command = script_commands.sweep_command(tree, one_filesystem=bool(seen.mounts))
    return _step(f"sweep {tree}", "remainders that nothing needs any more", command)


def _reread(
    job: Job,
    wanted: RestoreRequest,
    to: Location,
    left_out: tuple[bytes, ...],
    *,
    part: Literal["all", "below", "root"],
) -> Step:
    work = replace(
        comparison_of(job, wanted.point, to),
        prefix=wanted.path,
        apart=(RESTORE_MARKER.encode(),),
        left_out=left_out,
        part=part,
    )
    action = f"compare the folder {to} itself" if part == "root" else f"read {to} again"
    return Step(
        action=action, why="what came back is compared with the manifest", worker="main", work=work, expected=None
    )


def comparison_of(job: Job, point: RestorePoint, tree: Location) -> TreeVerification:
    """Return the work that compares a restored tree with its point, in what the job carries."""
    options = options_of(job)
    return TreeVerification(
        point=point, tree=tree, workers=job.verify.workers, restored=True, owners=options.owners, modes=options.modes,
        ignored=("" if options.acls else "a") + ("" if options.xattrs else "uo"),
    )  # fmt: skip


def _below(wanted: RestoreRequest) -> Location:
    return wanted.point.tree / _text(wanted.path) if wanted.path else wanted.point.tree


def _step(action: str, why: str, command: Command) -> Step:
    return Step(action=action, why=why, worker="main", work=_single(command), expected=None)


def _single(command: Command) -> Pipeline:
    return Pipeline(stages=(command,))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
