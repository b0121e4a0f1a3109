"""The plan of a zfs run: decided from the survey, dataset by dataset, then put into stages."""

from orchestrator.domain.command_line import quoted
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Decision, NothingToDo, Plan, Refusal
from orchestrator.domain.source_state import SourceState, is_restore_known
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.errors.moved_copy import absent_pool, refuse_absent_gate_dataset, refuse_moved_copy
from orchestrator.engines.zfs.model import (
    ActionPlan,
    CreatePlaceholder,
    EndReceive,
    HoldBases,
    ReceiveEncryption,
    ReleaseBases,
    Send,
    ZfsSurvey,
)
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.plan import summary as telling
from orchestrator.engines.zfs.plan import transport
from orchestrator.engines.zfs.plan.context import PlanContext, parent_dataset
from orchestrator.engines.zfs.plan.dataset import decide_dataset, refuse_unfinished
from orchestrator.engines.zfs.plan.dataset_plan import DatasetPlan, EncryptionInheritance
from orchestrator.engines.zfs.plan.divergence import ASIDE, refuse_moved, refuse_remade, refuse_renamed, restore_first
from orchestrator.engines.zfs.plan.renames import find_renamed, follow_renames, refuse_parent_first
from orchestrator.engines.zfs.plan.resume import is_foreign
from orchestrator.engines.zfs.plan.stages import Stages, arrange_stages, order_datasets


def plan(job: Job, world: ZfsSurvey, request: RunRequest) -> Decision:
    """Return the steps of a run, nothing to do, or a refusal."""
    from orchestrator.engines.zfs.plan import steps  # a refusal needs no steps

    decided = decide_actions(job, world, request)
    if isinstance(decided, Refusal):
        return decided
    stages = steps.build_steps(job, world, decided, request) if decided.stages else ()
    if not _works(decided.stages):
        why = f"the target holds the newest: {decided.current or 'as far as there are snapshots'}"
        return NothingToDo(why=why, current=decided.current, stages=stages, warnings=decided.warnings)
    made = _bringing_root(decided)
    return Plan(
        summary=telling.summary_of(decided),
        stages=stages,
        resumes=decided.resumes,
        warnings=decided.warnings,
        again=decided.again,
        parallel=options_of(job).parallel,
        independent=True,
        current=decided.current,
        brings=made is not None,
        taken=world.created.get(made.snapshot.guid) if made else None,
        refusals=decided.refusals,
    )


def _bringing_root(decided: ActionPlan) -> Send | None:
    """Return the send after which the root's newest snapshot is on the target; None: it is there already."""
    sends = (
        action for stage in decided.stages for action in stage if isinstance(action, Send) and action.dataset == ""
    )
    return next((action for action in sends if action.snapshot.name == decided.current), None)


def decide_actions(job: Job, world: ZfsSurvey, request: RunRequest) -> ActionPlan | Refusal:
    """Decide the actions for every dataset of the job; refuse when nothing can be done at all."""
    case = PlanContext(job, world, request)
    refusal = _refuse_sides(case) or refuse_remade(case) or refuse_renamed(case) or _refuse_moved_copy(case)
    if refusal:
        return refusal
    ended = _end_receives(case)
    if ended:
        return ActionPlan(stages=(ended,), again=True)
    case.renamed = find_renamed(case)
    if moved := follow_renames(case, case.renamed):
        return moved
    dataset_plans = tuple(_decide_datasets(case).values())
    refusals = tuple(
        replace(one.refusal, part=case.target_name(one.name)) for one in dataset_plans if one.refusal is not None
    )
    stages = arrange_stages(case, dataset_plans)
    if not _works(stages):
        refusals += tuple(
            refuse_parent_first(case, one.name, case.renamed[one.name]) for one in dataset_plans if one.waits
        )
    if refusals and not _works(stages):
        return telling.gather_refusals(refusals, len(dataset_plans))
    if all(dataset_plan.empty for dataset_plan in dataset_plans) and not _works(stages):
        return _refuse_bare(case)
    return ActionPlan(
        stages=stages,
        refusals=refusals,
        warnings=telling.warnings_of(case, dataset_plans),
        resumes=telling.resumes_of(case, dataset_plans),
        current=_current(dataset_plans),
        again=any(dataset_plan.waits for dataset_plan in dataset_plans),
    )


def _works(stages: Stages) -> bool:
    """Return whether the stages do more than create and release bookmarks and holds."""
    return any(not isinstance(action, HoldBases | ReleaseBases) for stage in stages for action in stage)


def _refuse_sides(case: PlanContext) -> Refusal | None:
    """Return a refusal when a side is missing, its restore is not finished, or its transport is not possible."""
    source, target = case.world.source, case.world.target
    if refusal := _refuse_absent_source(case) or _refuse_unfinished(case):
        return refusal
    pool, below, _ = target.root.path.partition("/")
    if "" not in target.datasets and below and pool not in target.above:
        return absent_pool(case.job, target.root, case.world.moved_copy)
    return transport.refuse_transport(case.job, source, target)


def _refuse_moved_copy(case: PlanContext) -> Refusal | None:
    """Return the refusal of a copy that has another name now, unless all of it is to be sent again."""
    found = case.world.moved_copy
    if found.within and not (found.above or found.name or found.unseen):
        return refuse_absent_gate_dataset(case.world.target.root, found.within)
    if not found.name or ASIDE in case.requested.allowed:
        return None
    return refuse_moved_copy(case.job, case.world.target.root, found, sends=True)


def refuse_lost_source(case: PlanContext) -> Refusal | None:
    """Return a refusal when the source is not there, is being restored, or was made anew: its copy is as good as it was."""
    return _refuse_absent_source(case) or _refuse_unfinished(case) or refuse_remade(case)


def _refuse_absent_source(case: PlanContext) -> Refusal | None:
    if "" in case.world.source.datasets:
        return None
    if case.world.moved.name:
        return refuse_moved(case)
    hint, elsewhere = "correct `source` in the job file, or import its pool", case.world.moved_copy.name
    copied = case.world.returning is None and bool(case.world.target.datasets or elsewhere)
    if copied:
        hint = f"import its pool; or, if it is lost, {restore_first(case)}; or correct `source` in the job file"
    evidence = (
        case.world.moved.doubt,
        f"its copy {case.world.target.root} is called {elsewhere} now, by its guid" if elsewhere else "",
    )
    return Refusal(
        why=f"the source {case.world.source.root} is not there",
        evidence=tuple(filter(None, evidence)),
        hint=hint,
        source=SourceState.GONE if copied else None,
    )


def _refuse_unfinished(case: PlanContext) -> Refusal | None:
    """Return a refusal while the source is being restored. Why: the target would seem newer and be rolled back.

    The property alone, on a dataset below the root, holds up only that dataset: its owner may have set it.
    """
    if case.world.returning is not None:
        return None
    names = [name for name, one in case.world.source.datasets.items() if one.flags and one.flags.backup]
    if not names or ("" not in names and not is_restore_known(case.requested.remembered)):
        return None
    return replace(refuse_unfinished(case, min(names), sure=True), source=SourceState.RESTORING)


def _end_receives(case: PlanContext) -> tuple[EndReceive, ...]:
    """Return actions that end our old receives: the job is locked, so their run has ended and their connection is broken."""
    why = "no other run of this job can be alive: what still receives there waits for a link that is dead"
    alive = ((name, process) for name, process in sorted(case.world.receiving.items()) if process.ours)
    return tuple(EndReceive(dataset=name, pid=process.pid, why=why) for name, process in alive if _is_ours(case, name))


def _is_ours(case: PlanContext, name: str) -> bool:
    """Return whether a receive is this job's: by its token, or by its place when the token shows nothing."""
    there = case.world.target.datasets.get(name)
    token = case.world.tokens.get(there.token) if there and there.token else None
    return name in case.known if token is None else not is_foreign(case, name, token)


def _decide_datasets(case: PlanContext) -> dict[str, DatasetPlan]:
    """Decide each dataset's plan, parents and origins first; add placeholders for parents that send nothing."""
    names = case.names
    found = {name: origin for name in names if (origin := case.origin(name))}
    order, origins = order_datasets(
        names, {name: origin[0] for name, origin in found.items() if origin[0] in case.known}
    )
    dataset_plans: dict[str, DatasetPlan] = {}
    for name in order:
        dataset_plans[name] = decide_dataset(case, name, dataset_plans, origins.get(name))
    for name in order:
        if dataset_plans[name].comes:
            _place_above(name, dataset_plans)
    return dataset_plans


def _place_above(name: str, dataset_plans: dict[str, DatasetPlan]) -> None:
    """Add placeholders so that all datasets above one exist, where the source sends none."""
    while name:
        name = parent_dataset(name)
        dataset_plan = dataset_plans[name]
        if dataset_plan.comes or dataset_plan.there:
            return
        raw_above = bool(name) and dataset_plans[parent_dataset(name)].inheritance is EncryptionInheritance.RAW
        place = CreatePlaceholder(dataset=name, encryption=ReceiveEncryption.OFF if raw_above else None)
        dataset_plans[name] = replace(dataset_plan, actions=(*dataset_plan.actions, place), comes=True)


def _current(dataset_plans: tuple[DatasetPlan, ...]) -> str | None:
    """Return the newest snapshot of the copy's root, by the name that it will have on the target."""
    root = next(dataset_plan for dataset_plan in dataset_plans if not dataset_plan.name)
    if root.base and root.end and root.end.guid == root.base.there.guid:
        return root.base.there.name
    return root.end.name if root.end else None


def _refuse_bare(case: PlanContext) -> Refusal:
    """Return the refusal of a source without any snapshot that can be sent.

    Where its copy has snapshots, the source is likely new and empty, and a snapshot of it would only be in the way.
    """
    root = case.source_name("")
    if case.world.returning is None and (
        held := sum(len(one.snapshots) for one in case.world.target.datasets.values())
    ):
        why = (
            f"there is no snapshot of {root}, and its copy {case.target_name('')} holds {show_count(held, 'snapshot')}"
        )
        hint = (
            f"if it is new and empty: {restore_first(case)}; else take one: zfs snapshot -r {quoted(f'{root}@first')}"
        )
        return Refusal(why=why, evidence=(), hint=hint)
    count = sum(len(case.world.source.datasets[name].snapshots) for name in case.names)
    if count:
        why = f"the job sends none of {show_count(count, 'snapshot')} of {root}"
        return Refusal(why=why, evidence=(), hint="look at snapshots and skip-snapshots in [zfs]")
    below = " and of what lies below it" if len(case.names) > 1 else ""
    hint = f"take one: zfs snapshot {'-r ' if below else ''}{quoted(f'{root}@first')}; or let [snapshots] in the job take them"
    return Refusal(why=f"there is no snapshot of {root}{below}, so nothing to send", evidence=(), hint=hint)
