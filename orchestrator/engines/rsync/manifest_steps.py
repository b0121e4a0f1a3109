"""The steps that write manifests: of a new point, or of a mirror, with the comparison with the source."""

from functools import partial

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import CopiedEntries, ManifestRecording, Pipeline, SourceReview, Step
from orchestrator.domain.point import MIRROR, RestorePoint
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync import commands, script_commands
from orchestrator.engines.rsync.abilities import DIFFERENCE_KEYS, ELSEWHERE
from orchestrator.engines.rsync.file_forecast import list_selected
from orchestrator.engines.rsync.model import MANIFEST, OURS, RESERVED, CountsEqual, RsyncSurvey
from orchestrator.engines.rsync.options import options_of

Stage = tuple[Step, ...]


def record_manifest(
    job: Job,
    world: RsyncSurvey,
    work: Location,
    name: str,
    base: RestorePoint | None,
    request: RunRequest,
    *,
    named: bool = False,
) -> Stage:
    """Return the stage that writes the new point's manifest; its check: the manifest matches rsync's list.

    `named`: rsync copied only what differs, so its list is none of the whole tree, and the names of both sides are compared instead.
    """
    recording = ManifestRecording(
        tree=work,
        manifest=job.target.location / MANIFEST,
        point=name,
        moved=request.notes,
        linked=base,
        digest=job.verify.digest,
        stored=options_of(job).fake_super,
        review=_review(job, world, work, request, base, named=named),
        recorder=world.look.recording if world.look else None,
        sweep=None if work.host else Pipeline(stages=(script_commands.sweep_command(work),)),
    )
    counted = not named and not world.links_at_gate(base)
    return (_manifest(recording, CountsEqual(tree=work) if counted else None),)


def _review(
    job: Job,
    world: RsyncSurvey,
    tree: Location,
    request: RunRequest,
    base: RestorePoint | None = None,
    *,
    named: bool = False,
) -> SourceReview:
    """Return the comparison of the finished copy with the source."""
    options, names = options_of(job), f"{request.notes}/again"
    command = commands.settle_command(job, tree, world, names, anew=True)
    parted: tuple[Pipeline, ...] = ()
    linked: tuple[Pipeline, ...] = ()
    # Behind a gate names are compared in each run: both sides are listed anyway, and rsync counts regular files alone.
    copied = _copied_entries(job, request) if named or world.adds else None
    # Why: no copy comes near what a point shares: it is parted from it, then linked again
    if base is not None and world.links_at_gate(base):
        parted = (Pipeline(stages=(script_commands.unshare_command(tree),)),)
        link = script_commands.link_unchanged_command(job.target.location, base.name)
        times = commands.folder_times_command(job, tree, world)  # which parting has changed
        known = replace(times, argv=(times.argv[0], "--existing", *times.argv[1:]))
        linked = (Pipeline(stages=(known,)), Pipeline(stages=(link,), reads=f"{request.notes}/differing"))
    return SourceReview(
        source=job.tree,
        one_filesystem=options.one_file_system,
        owners=options.owners and (options.numeric_ids or not (job.source.host or tree.host)),
        modes=options.modes,
        # Only the first run's own step asks a target for its times, so before that they may be in whole seconds.
        grain_ns=2 * 10**9 if world.target.coarse or world.target.owner is None else 1,
        parts=("a" if options.acls else "") + ("uo" if options.xattrs else ""),
        links=options.hard_links,
        mirror=not options.points,
        again=Pipeline(stages=(command,), keeps=f"{request.notes}/moved-again"),
        before=parted,
        after=linked,
        copied=copied,
        names=names,
        listed=partial(commands.settle_names, job),
        keys=DIFFERENCE_KEYS,
        elsewhere=ELSEWHERE,
        stored=options.fake_super,
        bare=world.bare,
    )


def _copied_entries(job: Job, request: RunRequest) -> CopiedEntries:
    """Return the entries of the source of which a copy must hold each, and no other."""
    options, tree = options_of(job), job.tree
    return CopiedEntries(
        never=frozenset() if options.devices else frozenset((b"b", b"c", b"p", b"s")),
        reserved=frozenset(name.encode() for name in RESERVED),
        above=frozenset((b"", *(path.encode("utf-8", "surrogateescape") for path in tree.above))),
        selected=partial(list_selected, job, f"{request.notes}/empty") if options.excludes else None,
    )


def _manifest(recording: ManifestRecording, confirmation: CountsEqual | None) -> Step:
    return Step(
        action="write the manifest",
        why="each entry with its digest, so that the copy can be verified by itself",
        worker="main",
        work=recording,
        expected=None,
        confirmation=confirmation,
    )


def record_mirror(job: Job, world: RsyncSurvey, request: RunRequest) -> Stage:
    """Return the stage that writes the mirror's manifest. Without consent to delete, no count can be checked."""
    root = job.target.location
    manifest = root / MANIFEST
    mirrored, linked = world.target.mirrored, None
    if (
        mirrored is not None and not world.target.all_damaged
    ):  # an interrupted first copy has its marker, and no manifest
        linked = RestorePoint(name=MIRROR, taken=mirrored, tree=root, manifest=manifest)
    recording = ManifestRecording(
        tree=root,
        manifest=manifest,
        point=MIRROR,
        moved=request.notes,
        linked=linked,
        digest=job.verify.digest,
        apart=(OURS.encode(),),
        stored=options_of(job).fake_super,
        review=_review(job, world, root, request),
    )
    counted = (
        options_of(job).delete and not world.others
    )  # what is no source any more stays, and rsync counts none of it
    confirmation = CountsEqual(tree=root) if counted else None
    return (replace(_manifest(recording, confirmation), makes=MIRROR),)
