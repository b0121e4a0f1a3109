"""How data comes back from a point: a look at both ends, then the steps. Reads."""

import json

from orchestrator.domain.command import Command, Pipeline
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Plan, Rereading, Step
from orchestrator.domain.point import Point
from orchestrator.domain.units import show_count
from orchestrator.engines.contract import DestinationSeen, Wanted
from orchestrator.engines.rsync import commands, scripts
from orchestrator.engines.rsync.survey import runner
from orchestrator.process.executor import Reader


def survey_restore(wanted: Wanted, reader: Reader) -> DestinationSeen:
    """A look at what is wanted and where it shall go; a file wanted into a folder keeps its name."""
    run = runner(reader)
    kind = run(scripts.look_at_wanted_command(_below(wanted))).decode().strip()
    seen = _look(wanted.to, kind, wanted.path, run(scripts.look_at_destination_command(wanted.to)))
    if kind == "file" and seen.kind == "folder":
        inside = wanted.to / _text(wanted.path.rpartition(b"/")[2])
        return _look(inside, kind, wanted.path, run(scripts.look_at_destination_command(inside)))
    return seen


def _look(to: Location, wanted: str, path: bytes, text: bytes) -> DestinationSeen:
    kind, marker, entries, *examples = (*text.split(b"\0"), b"", b"", b"")[: max(4, text.count(b"\0") + 1)]
    return DestinationSeen(
        kind=kind.decode(),
        entries=int(entries or 0),
        examples=tuple(name for name in examples if name),
        unfinished=_unfinished(marker, show_name(path)),
        wanted=wanted,
        to=to,
    )


def _unfinished(marker: bytes, path: str) -> tuple[str, str] | None:
    """Job and point of what was begun there; of another part of a point, the part is told with it."""
    try:
        value = json.loads(marker) if marker.strip() else {}
        part = value.get("path", "")
        return (value["job"], value["point"] + (f" --path {part!r}" if part != path else "")) if value else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return ("(unreadable marker)", "?")


def plan_restore(job: Job, wanted: Wanted, seen: DestinationSeen, *, aside: str | None) -> Plan:
    """Begin, copy, read again, end. A folder being restored is marked, so that the same command goes on after a cut."""
    folder = seen.wanted == "folder"
    marker = (
        json.dumps({"format": 1, "job": job.name, "point": wanted.point.name, "path": show_name(wanted.path)})
        if folder
        else ""
    )
    makes = seen.to.path if folder else seen.to.path.rpartition("/")[0] or "/"
    begin = scripts.begin_restore_command(seen.to, aside=aside or "", folder=makes, marker=marker)
    copy = commands.restore_command(_below(wanted), seen.to, job, folder=folder)
    what = f"{show_name(wanted.path)} of point {wanted.point.name}" if wanted.path else f"point {wanted.point.name}"
    proved = wanted.point.manifest is not None
    steps = (
        _step(
            "prepare the destination",
            f"what lies there is kept as {aside}" if aside else "a restore overwrites nothing",
            begin,
        ),
        Step(
            does=f"copy {what} to {seen.to}",
            why="asked for",
            lane="main",
            work=_alone(copy),
            expected=None,
            copies=True,
        ),
        *((_sweep(seen),) if folder and seen.unfinished else ()),
        *((_reread(job, wanted, seen),) if proved else ()),
        *(
            (_step("end the restore", "it is whole: the marker goes", scripts.end_restore_command(seen.to)),)
            if folder
            else ()
        ),
    )
    return Plan(
        summary=f"bring {what} back to {seen.to}",
        stages=tuple((step,) for step in steps),
        resumes="an unfinished restore of the same point" if seen.unfinished and not aside else None,
        warnings=() if proved else (f"point {wanted.point.name} has no manifest, so what came back cannot be proved",),
    )


def plan_sample(job: Job, point: Point, paths: tuple[bytes, ...], to: Location, notes: str) -> Step:
    """How some files of a point come back, each in its folder."""
    names = f"{notes}/sample"
    return Step(
        does=f"copy {show_count(len(paths), 'file')} of point {point.name} to {to}",
        why="a drill: they are compared with what was promised",
        lane="main",
        work=_alone(commands.sample_command(point.tree, to, job, names)),
        expected=None,
        copies=True,
        needs=((names, commands.renewing(paths)),),
    )


def _sweep(seen: DestinationSeen) -> Step:
    """After a cut: rsync before 3.5 leaves the folders of its half-copied files."""
    above = Location(path=seen.to.path.rpartition("/")[0] or "/", host=seen.to.host)
    return _step(
        "sweep the destination", "remainders that nothing needs any more", scripts.sweep_command(seen.to, above)
    )


def _reread(job: Job, wanted: Wanted, seen: DestinationSeen) -> Step:
    work = Rereading(
        point=wanted.point,
        tree=seen.to,
        prefix=wanted.path,
        workers=job.verify.workers,
        restored=True,
        apart=(commands.RESTORING.encode(),),
    )
    why = "what came back is compared with the manifest"
    return Step(does=f"read {seen.to} again", why=why, lane="main", work=work, expected=None)


def _below(wanted: Wanted) -> Location:
    return wanted.point.tree / _text(wanted.path) if wanted.path else wanted.point.tree


def _step(does: str, why: str, command: Command) -> Step:
    return Step(does=does, why=why, lane="main", work=_alone(command), expected=None)


def _alone(command: Command) -> Pipeline:
    return Pipeline(stages=(command,))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
