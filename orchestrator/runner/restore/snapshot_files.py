"""Restore of files from a snapshot: mount it, read its digests once, copy as from any point, verify, unmount."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.domain.dataset_restore import SnapshotView
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import ManifestRecording, Plan, Refusal, Step
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.contract.engine import Engine, implements
from orchestrator.engines.contract.restore import DatasetRestorer, RestoreRequest
from orchestrator.planners.restore import choose_point
from orchestrator.process.executor import Writer
from orchestrator.runner.context import RunContext, file_restorer
from orchestrator.runner.last_look import find_points
from orchestrator.runner.restore.request import RestoreOptions
from orchestrator.runner.run_recorder import RunRecorder
from orchestrator.runner.steps import StepExecutor


def find_snapshot_view(
    job: Job, tools: RunContext, restore_request: RestoreOptions, writer: Writer
) -> SnapshotView | Refusal:
    """Return the snapshot that holds the requested files."""
    engine = tools.engine
    point = choose_point(find_points(job, tools, writer), point=restore_request.point, at=restore_request.at)
    if isinstance(point, Refusal) or not implements(engine, DatasetRestorer):
        return point if isinstance(point, Refusal) else _no_files(engine)
    if point.tree.host is not None and restore_request.to.host is not None:
        return Refusal(
            why="the copy lies on a host, and so does the destination: nothing is carried between two hosts",
            evidence=(str(point.tree), str(restore_request.to)),
            hint=f"restore to a path of this machine, or run poolferry on {point.tree.host.name}",
        )
    shown = engine.survey_files(job, restore_request.path, point, writer)
    return shown if isinstance(shown, Refusal) else replace(shown, requested=point)


def _no_files(engine: Engine) -> Refusal:
    return Refusal(why=f"the engine {engine.name} holds no files", evidence=(), hint="name a dataset in --to")


def file_engine(tools: RunContext) -> Engine:
    """Return the engine that copies files. Raises: TypeError when compose set none, a mistake in our own code."""
    if tools.files is None:
        raise TypeError("no engine copies files here")
    return tools.files()


def plan_files(shown: SnapshotView, restore_request: RestoreOptions) -> Plan:
    """Return the plan as far as it is known without mounting: the rest depends on the snapshot's contents."""
    what = f"{show_name(restore_request.path)} of {shown.point.tree}" if restore_request.path else str(shown.point.tree)
    return Plan(
        summary=f"bring {what} back to {restore_request.to}: mount it read-only, copy with rsync, compare digests, unmount",
        stages=((shown.show,), (shown.hide,)),
        warnings=_warnings(shown),
    )


def _warnings(shown: SnapshotView) -> tuple[str, ...]:
    older: tuple[str, ...] = ()
    if shown.requested is not None and shown.requested.name != shown.point.name:
        dataset = shown.point.tree.path.partition("@")[0]
        older = (f"{dataset} does not hold {shown.requested.name}: the files come as of its {shown.point.name}",)
    if not shown.left_out:
        return older
    names = ", ".join(shown.left_out[:5]) + (" …" if len(shown.left_out) > 5 else "")
    return (
        *older,
        f"datasets that lie below it are not in it, and come by a --path of their own: {names}",
    )


@contextmanager
def mount_snapshot(journal: RunRecorder, writer: Writer, shown: SnapshotView) -> Iterator[RunContext]:
    """Mount the snapshot, and unmount it in every case; meanwhile the journal uses the engine for files."""
    tools, job = journal.tools, journal.job
    notes = f"{tools.state}/notes/restore-{job.name}-{journal.run}"
    os.makedirs(notes, mode=0o700, exist_ok=True)
    for warning in _warnings(shown):
        journal.warn(warning)
    explain = tools.engine.explain
    try:
        StepExecutor(journal, writer, notes, explain=explain).do((shown.show,))
        engine = file_engine(tools)
        journal.tools = replace(tools, engine=engine)
        journal.job = replace(job, engine=engine.name, options=engine.options())
        yield journal.tools
    finally:
        journal.tools, journal.job = tools, job
        try:
            StepExecutor(journal, writer, notes, explain=explain).do((shown.hide,))
        except OrchestratorError as error:
            journal.warn(f"{shown.tree} stays mounted: {error.why}")


def make_point(
    journal: RunRecorder, writer: Writer, shown: SnapshotView, restore_request: RestoreOptions
) -> RestoreRequest:
    """Return the request as a point with a new manifest. A single file has none: it is compared separately."""
    tools, name = journal.tools, shown.point.name
    point = RestorePoint(name=name, taken=shown.point.taken, tree=shown.tree, manifest=None)
    wanted = RestoreRequest(point=point, path=shown.rest, to=restore_request.to)
    if file_restorer(tools.engine, point).survey_restore(journal.job, wanted, writer).wanted != "folder":
        return wanted
    notes = f"{tools.state}/notes/restore-{journal.job.name}-{journal.run}"
    tree = shown.tree / os.fsdecode(shown.rest) if shown.rest else shown.tree
    manifest = Location(path=f"{notes}/shown.manifest.gz")
    recording = ManifestRecording(
        tree=tree, manifest=manifest, point=name, moved=notes, linked=None, digest=journal.job.verify.digest
    )
    step = Step(
        action=f"read {tree}", why="what comes back is compared with it", worker="main", work=recording, expected=None
    )
    StepExecutor(journal, writer, notes).do((step,))
    return replace(
        wanted, point=replace(point, name=_called(shown, restore_request), tree=tree, manifest=manifest), path=b""
    )


def _called(shown: SnapshotView, restore_request: RestoreOptions) -> str:
    """Return a name with the part in it, so that only the same request resumes an interrupted restore."""
    part = show_name(restore_request.path).replace("%", "\\x25").replace("/", "%")
    return f"{shown.point.name}%{part}" if part else shown.point.name


def asked_for(name: str, path: str) -> tuple[str, str]:
    """Return (point, path) of the request that a marker names, by a name of `_called` and the path beside it."""
    point, _, part = name.partition("%")
    return point, part.replace("%", "/") or path


def is_compared(wanted: RestoreRequest, to: Location) -> bool:
    """Return whether the engine compares what it restores byte by byte: a single file, which has no manifest, within this machine."""
    return wanted.point.manifest is None and not wanted.point.tree.host and not to.host
