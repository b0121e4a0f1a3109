"""Decisions where source and target part: a refusal with evidence and hints; with consent, a rollback or a rename.

A target diverged from its source, or the source was made anew since the last good run, and nothing may take its emptiness for news.
"""

import json
import shlex
from collections.abc import Iterable

from orchestrator.domain.command_line import quoted
from orchestrator.domain.names import set_aside_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.source_identity import (
    LAST_RESTORE,
    SOURCE_IDENTITY,
    SourceIdentity,
    is_made_anew,
    parse_identity,
    seen_restore_key,
)
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.zfs.commands.commands import hinted_zfs_command
from orchestrator.engines.zfs.model import Bookmark, ChangedEntry, Dataset, RenameAside, Rollback, SideSurvey, Snapshot
from orchestrator.engines.zfs.plan.context import PlanContext, parent_dataset
from orchestrator.engines.zfs.plan.hold_names import (
    DEEPEST,
    LONGEST_NAME,
    parse_cursor_bookmark,
    replication_target_id,
)
from orchestrator.engines.zfs.plan.increments import CommonSnapshot, find_common_snapshot

ASIDE = "aside"  # allowed: rename the obstacle, and send everything again
ROLLBACK = "rollback"  # consent in [zfs] may-destroy
BRING_BACK = "poolferry restore run"
_SHOWN = 10


def plan_rename_aside(case: PlanContext, name: str, refusal: Refusal) -> RenameAside | Refusal:
    """Return the refusal, or the rename that was requested instead."""
    if ASIDE not in case.requested.allowed or refusal.guard != ASIDE:
        return refusal
    to = set_aside_name(case.target_name(name), case.requested.now)
    why, kind = f"{refusal.why}; it keeps all it holds, under another name", case.world.target.datasets[name].kind
    return RenameAside(dataset=name, to=to, why=why, kind=kind)


def refuse_diverged(case: PlanContext, name: str, base: CommonSnapshot, target: Dataset) -> Rollback | Refusal:
    """Return a rollback with consent, else a refusal, for a target with snapshots or writes of its own after the base.

    A requested rename destroys nothing and has priority. Access times and folders in which others are mounted need no consent.
    """
    whole = case.target_name(name)
    changed = () if base.own else _changed_data(case, name)
    if changed is not None and not base.own and not changed:
        only = f"access times, and folders in which others are mounted, {show_size(target.written)}"
        return Rollback(dataset=name, to=base.there, dies=(only,), why=f"{base}; `zfs diff` shows no other change")
    dies = tuple(f"{whole}{snapshot.mark}" for snapshot in base.own)
    if target.written:
        dies += (f"{show_size(target.written)} written to {whole} since its newest snapshot",)
    cloned = tuple(told for told in dies if told in case.origins)
    restored = last_restore(case)
    if restored and base.own and ASIDE not in case.requested.allowed:
        return _refuse_newer(case, base, whole, restored)
    consent = ROLLBACK in case.options.may_destroy
    if consent and not cloned and ASIDE not in case.requested.allowed:
        why = f"{base}; [zfs] may-destroy consents to lose what the target has more"
        return Rollback(dataset=name, to=base.there, dies=dies, why=why)
    lost = is_lost_by_source(case, base)
    what = f"has {show_count(len(base.own), 'snapshot')} of its own" if base.own else "was written to"
    why = f"{whole} {what} since {base.there.mark}, the newest that both sides hold"
    if lost:
        held = show_count(len(base.own), "snapshot")
        why = f"{whole} holds {held} that the source lost since {base.there.mark}: it, or its pool, was rolled back"
    if consent and cloned:
        why = f"{why}; and a clone needs {cloned[0]}, so it cannot go back"
    return Refusal(
        why=why,
        evidence=(*_evidence(base, dies, lost=lost), *_list_changes(changed or ())),
        hint=_hint(case, base, whole, lost=lost),
        guard=ASIDE,
        own=_roll_back(case, base, whole),
    )


def _changed_data(case: PlanContext, name: str) -> tuple[ChangedEntry, ...] | None:
    """Return what changed in a copy besides the folders in which its children are mounted; None: it could not be seen.

    Why: whoever mounts and unmounts a tree removes and makes these folders, and nobody's data lie in them.
    """
    changes = case.world.changes.get(name)
    if changes is None:
        return None
    folders = _mount_folders(case, name)
    moved = {one.path for one in changes if one.folder and one.path in folders and one.how in ("+", "-")}
    holding = {parent_dataset(path) for path in moved}
    return tuple(
        one for one in changes if not (one.folder and (one.path in moved or (one.how == "M" and one.path in holding)))
    )


def _mount_folders(case: PlanContext, name: str) -> frozenset[str]:
    """Return the folders of a copy in which those below it are mounted, with all folders above these."""
    front = f"{name}/" if name else ""
    below = [one[len(front) :] for one in case.world.target.datasets if one != name and one.startswith(front)]
    return frozenset("/".join(one.split("/")[:depth]) for one in below for depth in range(1, one.count("/") + 2))


def _list_changes(changed: tuple[ChangedEntry, ...]) -> tuple[str, ...]:
    """Return the first changed entries, as `zfs diff` writes them."""
    lines = tuple(f"{one.how} {one.path or '.'}{'/' if one.folder else ''}" for one in changed[:_SHOWN])
    return (
        (*lines, f"and {show_count(len(changed) - _SHOWN, 'more changed entry', 'more changed entries')}")
        if len(changed) > _SHOWN
        else lines
    )


def last_restore(case: PlanContext) -> str:
    """Return what history knows of a restore of the source that no good run into this place has followed; empty: nothing."""
    told = case.requested.remembered.get(LAST_RESTORE, "")
    seen = case.requested.remembered.get(seen_restore_key(case.job.target.name), "")
    return told if case.world.returning is None and told != seen else ""


def _refuse_newer(case: PlanContext, base: CommonSnapshot, whole: str, restored: str) -> Refusal:
    """Return the refusal of a target that holds what the restored copy did not. Consent to a rollback does not count for it."""
    newest = base.own[-1]
    return Refusal(
        why=f"{whole} holds {show_count(len(base.own), 'snapshot')} that the source lost: it was restored {restored}",
        evidence=(f"{base.own[0].mark} to {newest.mark}; both sides hold {base.there.mark}",),
        hint=f"{_bring_back(case, base)}; then, to keep it and to begin again beside it: {case.command} --{ASIDE}",
        guard=ASIDE,
    )


def _bring_back(case: PlanContext, base: CommonSnapshot) -> str:
    """Return what helps before a copy loses, or is set aside with, what its source lost."""
    return (
        f"it may be the only copy of what was done after {base.there.mark}: look at it (poolferry try {case.job.name}), and bring "
        f"back what is missing (poolferry restore run {case.job.name} --path PATH --to FOLDER)"
    )


def is_lost_by_source(case: PlanContext, base: CommonSnapshot) -> bool:
    """Return whether runs brought what the copy has more than its source, as history knows: what is received follows what came before it."""
    return bool(base.own) and case.world.returning is None and base.own[-1].name in case.requested.brought()


def _evidence(base: CommonSnapshot, dies: tuple[str, ...], *, lost: bool) -> tuple[str, ...]:
    more = (f"and {len(dies) - _SHOWN} more",) if len(dies) > _SHOWN else ()
    return (str(base), *dies[:_SHOWN], *more, *(() if lost else _likely(base.own)))


def _likely(own: tuple[Snapshot, ...]) -> tuple[str, ...]:
    if not any(snapshot.name.startswith("autosnap_") for snapshot in own):
        return ()
    return ("names that begin with autosnap_ are sanoid's: it takes snapshots on the target",)


def _hint(case: PlanContext, base: CommonSnapshot, whole: str, *, lost: bool) -> str:
    if lost:
        return (
            f"{_bring_back(case, base)}; then, to keep it and to begin again beside it: {case.command} --{ASIDE}; or, to lose it: "
            f'may-destroy = ["rollback"] in [zfs], or {_roll_back(case, base, whole)}'
        )
    sanoid = "give the target a sanoid template with autosnap = no; then, " if _likely(base.own) else ""
    return (
        f"{sanoid}to keep all and start from scratch beside it: {case.command} --{ASIDE}; to lose it: "
        f'may-destroy = ["rollback"] in [zfs], or {_roll_back(case, base, whole)}'
    )


def _roll_back(case: PlanContext, base: CommonSnapshot, whole: str) -> str:
    """Return the command by which a copy loses what it has more than its source."""
    over = ("-r",) if base.own else ()
    return str(hinted_zfs_command("rollback", *over, f"{whole}{base.there.mark}", side=case.world.target))


def refuse_name_conflict(
    case: PlanContext, name: str, base: CommonSnapshot, coming: Iterable[Snapshot], *, rolled_back: bool
) -> Refusal | None:
    """Return a refusal when the target has another snapshot with a name to be sent: zfs accepts no such stream."""
    there = case.world.target.datasets[name].snapshots
    attached_disk = there[: len(there) - len(base.own)] if rolled_back else there
    names = {one.name: one for one in attached_disk}
    taken = [(one, names[one.name]) for one in coming if one.name in names]
    if not taken:
        return None
    whole, old = case.target_name(name), taken[0][1]
    other = f"{whole}{old.mark}_{old.guid:x}"
    rename = hinted_zfs_command("rename", f"{whole}{old.mark}", other, side=case.world.target)
    return Refusal(
        why=f"{whole} has another snapshot named {old.mark}",
        evidence=tuple(f"{new.mark}: guid {new.guid} here, {old.guid} there" for new, old in taken[:_SHOWN]),
        hint=f"{rename}; poolferry goes by guid, not by name",
        own=str(rename),
    )


def refuse_long_name(case: PlanContext, name: str, coming: Iterable[Snapshot]) -> Refusal | None:
    """Return a refusal when a dataset would lie deeper on the target than zfs allows, or a snapshot's whole name be longer."""
    whole = case.target_name(name)
    longest = max((f"{whole}{one.mark}" for one in coming), key=len, default="")
    if (depth := whole.count("/") + 1) > DEEPEST:
        return Refusal(
            why=f"{whole} cannot be made: it would lie {show_count(depth, 'dataset')} deep, and zfs allows {DEEPEST}",
            evidence=(f"zfs_max_dataset_nesting is {DEEPEST}, where nobody has set it",),
            hint="a place with fewer datasets above it; or move the dataset up on the source (zfs rename)",
        )
    if len(longest.encode("utf-8", "surrogateescape")) <= LONGEST_NAME:
        return None
    return Refusal(
        why=f"{whole} cannot be made: with its snapshot the name has {len(longest)} characters, and zfs allows {LONGEST_NAME}",
        evidence=(longest,),
        hint="a place with a shorter name, or name = in [zfs]; or a shorter name for the dataset (zfs rename)",
    )


def refuse_unrelated(case: PlanContext, name: str, source: Dataset, target: Dataset) -> Refusal:
    """Return the refusal of a target whose snapshots the source does not have: another dataset, or a recreated one."""
    whole, there, here = case.target_name(name), target.snapshots[-1], source.snapshots[-1]
    evidence = [
        f"newest of {len(target.snapshots)} there: {there.mark} (guid {there.guid})",
        f"newest of {len(source.snapshots)} here: {here.mark} (guid {here.guid})",
    ]
    if same := {one.name for one in source.snapshots} & {one.name for one in target.snapshots}:
        evidence.append(f"same name, other snapshot: @{min(same)}")
    if elsewhere := next(
        (case.owners[one.guid] for one in reversed(target.snapshots) if one.guid in case.owners), None
    ):
        evidence.append(f"{case.source_name(elsewhere)} holds snapshots of it: renamed, or a clone that was promoted")
    why = f"{case.source_name(name)} and {whole} hold no snapshot in common: one of them was created again or rolled back, or belongs to another"
    if case.world.returning is not None:
        return Refusal(why=why, evidence=tuple(evidence), hint=begin_beside(case), guard=ASIDE)
    path = f" --path {shlex.quote(name)}" if name else ""
    if "/" not in case.source_name(name):
        return Refusal(why=why, evidence=tuple(evidence), hint=begin_beside(case), guard=ASIDE)
    own = f"poolferry restore run {case.job.name}{path} --to {shlex.quote(case.source_name(name))}"
    hint = f"to bring back what the copy holds: {own} --{ASIDE}; {begin_beside(case)}"
    return Refusal(why=why, evidence=tuple(evidence), hint=hint, guard=ASIDE, own=f"{own} --{ASIDE}")


def covers_all_below(case: PlanContext, refusal: Refusal) -> bool:
    """Return whether the hint of an unrelated copy covers those below it: they are brought back, or renamed away, with it."""
    return refusal.own.startswith(BRING_BACK) or refusal.hint == begin_beside(case)


def refuse_in_the_way(case: PlanContext, name: str, source: Dataset, target: Dataset, *, raw: bool) -> Refusal | None:
    """Return a refusal when a dataset without snapshots is in a new copy's way; our own placeholder usually is not."""
    whole = case.target_name(name)
    if target.kind != source.kind:
        why = f"{whole} is a {target.kind}, and {case.source_name(name)} is a {source.kind}"
    elif _lost_to_clone(case, source, target):
        return _refuse_promoted(case, whole, target)
    elif not target.placeholder:
        why = f"{whole} is there, and no copy: it has no snapshot"
    elif raw or target.encrypted:
        # dmu_recv.c: a full stream replaces no encrypted dataset, and a raw one none at all.
        why = f"{whole} holds the place of {case.source_name(name)}, and zfs puts nothing encrypted there"
    else:
        return None
    return Refusal(why=why, evidence=(f"guid {target.guid}, no snapshot",), hint=begin_beside(case), guard=ASIDE)


def _lost_to_clone(case: PlanContext, source: Dataset, target: Dataset) -> bool:
    """Return whether a copy without a snapshot may get its own back by a promotion.

    Why not for each clone: the copy of a clone comes from another dataset's copy, and would take the snapshots of that one.
    """
    if not target.origin:
        return False
    whole, at, mark = target.origin.partition("@")
    there = next((one for name, one in case.world.target.datasets.items() if case.target_name(name) == whole), None)
    if there is None:  # it lies elsewhere on the pool, and was not looked at
        return f"{at}{mark}" in {one.mark for one in source.snapshots} or bool(copy_bookmarks(case, source))
    ours = {one.guid for one in source.snapshots} | {one.guid for one in source.bookmarks}
    return any(one.mark == f"{at}{mark}" and one.guid in ours for one in there.snapshots)


def copy_bookmarks(case: PlanContext, source: Dataset) -> tuple[Bookmark, ...]:
    """Return the source's bookmarks that say that this target holds, or held, a copy."""
    side = case.world.target
    ours = replication_target_id(side.pool_guid, side.root)
    return tuple(one for one in source.bookmarks if parse_cursor_bookmark(one.name) == ours)


def _refuse_promoted(case: PlanContext, whole: str, target: Dataset) -> Refusal:
    """Return the refusal of a copy whose snapshots belong to a clone of it, which somebody promoted on the target."""
    origin = target.origin or ""
    promote = hinted_zfs_command("promote", whole, side=case.world.target)
    return Refusal(
        why=f"{whole} has no snapshot of its own: it is a clone of {origin}",
        evidence=(
            f"guid {target.guid}, origin {origin}: whoever promotes a clone of a copy moves the copy's snapshots to it",
        ),
        hint=f"to move them back, so that nothing is sent again: {promote}; then {case.command}; or, {begin_beside(case)}",
        guard=ASIDE,
        own=str(promote),
    )


def refuse_waiting(why: str, refusal: Refusal) -> Refusal:
    """Return the refusal of an action that must wait for another refused one."""
    return Refusal(why=why, evidence=(refusal.why,), hint=refusal.hint, guard=refusal.guard, own=refusal.own)


def begin_beside(case: PlanContext) -> str:
    """Return the words of a hint by which a copy is begun anew beside what is there."""
    return f"to rename it away with all below it, and start from scratch: {case.command} --{ASIDE}"


def source_identity(source: SideSurvey) -> SourceIdentity:
    """Return the identity of a surveyed source, which has its root dataset."""
    return SourceIdentity(dataset=source.datasets[""].guid, pool=source.pool_guid, root=str(source.root))


def identity_of_kit(content: str) -> SourceIdentity | None:
    """Return the identity of a source as its recovery kit records it, without the pool's guid; None: it does not."""
    from orchestrator.domain.answers import NOT_READ, parse_json
    from orchestrator.domain.place import parse_location

    try:
        kit = parse_json(content)
        source = str(kit.get("source", ""))
        told = kit.get("datasets", {}).get(parse_location(source).path, {}) if source else {}
        guid = str(told.get("guid", {}).get("value", ""))
    except NOT_READ:  # a stranger's: it is replaced by the next one
        return None
    return SourceIdentity(dataset=int(guid), pool=0, root=source) if guid.isdecimal() and len(guid) <= 20 else None


def refuse_remade(case: PlanContext) -> Refusal | None:
    """Return a refusal when the source was made anew, and holds no snapshot that its copy holds too.

    With one it was restored, by whatever tool, and its copies continue.
    """
    source, target = case.world.source, case.world.target
    remembered = case.requested.remembered.get(SOURCE_IDENTITY, "")
    known = parse_identity(remembered)
    if known is None or case.world.returning is not None or ASIDE in case.requested.allowed:
        return None
    now = source_identity(source)
    if not is_made_anew(remembered, now.root, now.dataset) or _is_restored(case):
        return None
    from orchestrator.domain.source_state import SourceState

    pool = source.root.path.partition("/")[0]
    # No other way is offered: a copy that is set aside may be the only good one. Consent that a person gives all the same counts.
    why = f"{now.root} was made anew since the last run, and is not what was copied"
    if known.pool not in (0, now.pool):
        why = f"the pool {pool} was made anew since the last run, and {now.root} is not what was copied"
    held = sum(len(dataset.snapshots) for dataset in target.datasets.values())
    evidence: tuple[str, ...] = (
        f"guid of the dataset: {known.dataset} at the last run, {now.dataset} now",
        f"guid of the pool: {known.pool} at the last run, {now.pool} now" if known.pool else "",
        f"{target.root} holds {show_count(held, 'snapshot')} of what was there" if held else "",
    )
    hint = restore_first(case)
    if now_called := case.world.moved.name:
        evidence = (*evidence, f"what was copied is called {now_called} now, by its guid")
        hint = f"to copy {now_called} on: {other_source(case, now_called)}; or, where that is not the one, {hint}"
    return Refusal(
        why=why,
        evidence=tuple(line for line in (*evidence, case.world.moved.doubt) if line),
        hint=hint,
        source=SourceState.ANEW,
    )


def refuse_moved(case: PlanContext) -> Refusal:
    """Return the refusal of a source that has another name now, as its pool was imported under one, or a person renamed it."""
    from orchestrator.domain.renamed_dataset import give_name_back, ways_on
    from orchestrator.domain.source_state import SourceState

    root, now = case.world.source.root, case.world.moved.name
    (before, _, below), (pool, _, found) = root.path.partition("/"), now.partition("/")
    known = parse_identity(case.requested.remembered.get(SOURCE_IDENTITY, ""))
    told = f", guid {known.pool}" if known and known.pool else ""
    why = f"the source {root} is called {now} now"
    if below == found:
        why = f"the pool {before} is imported as {pool} now{told}, so the source {root} is not there"
    back = give_name_back(root.path, case.world.moved, root.host, sudo=case.world.source.sudo)
    return Refusal(
        why=why,
        evidence=(f"guid of the dataset: {known.dataset}, as at the last run",) if known else (),
        hint=ways_on(case.job, now, other_source(case, now), back),
        source=SourceState.RENAMED,
    )


def refuse_renamed(case: PlanContext) -> Refusal | None:
    """Return a refusal when the job names another source than at its last run, and its copy would begin anew for that.

    A copy is called after its source's last part; under the former name it may hold all of it, as when a pool was renamed, or
    restored under another name.
    """
    known = parse_identity(case.requested.remembered.get(SOURCE_IDENTITY, ""))
    if known is None or case.world.returning is not None or case.world.target.datasets or case.options.name is not None:
        return None
    before, now = known.root.rpartition("/")[2], str(case.world.source.root).rpartition("/")[2]
    if before == now or ASIDE in case.requested.allowed:
        return None
    place = case.world.target.root.path.rpartition("/")[0]
    return Refusal(
        why=f"the job copied {known.root} and names {case.world.source.root} now: its copy would begin anew as {case.world.target.root}",
        evidence=(f"its last good run copied to {place}/{before}",),
        hint=(
            f'where it is the same data under another name: write name = "{before}" into [zfs] of {case.job.file}; '
            f"where it is another source: {case.command} --{ASIDE} (both copies are kept)"
        ),
    )


def other_source(case: PlanContext, path: str) -> str:
    """Return the lines of the job file by which another dataset is its source, and the copy keeps its name."""
    source = Location(path=path, host=case.job.source.host)
    line = f"write source = {json.dumps(str(source))} into {case.job.file}"
    before = case.world.target.root.path.rpartition("/")[2]
    if case.options.name is not None or path.rpartition("/")[2] == before:
        return line
    return f"{line}, and name = {json.dumps(before)} into its [zfs]"


def _is_restored(case: PlanContext) -> bool:
    source, target = case.world.source.datasets, case.world.target.datasets
    return any(find_common_snapshot(source[name], target[name]) is not None for name in case.names if name in target)


def restore_first(case: PlanContext) -> str:
    """Return the hint that brings the source back; a dataset that has its name by now is kept under another one."""
    source = case.world.source
    command = f"restore it first: poolferry restore run {case.job.name} --to {quoted(str(source.root))}"
    aside = "" in source.datasets and "/" in source.root.path
    return f"{command} --{ASIDE} (what is there now stays, under another name)" if aside else command
