"""Test what a run decides that links what is unchanged into a new tree before its copy."""

from dataclasses import replace

import pytest

from orchestrator.domain.job import Job, PipeOptions
from orchestrator.domain.plan import (
    Effect,
    FileCloning,
    FolderTimes,
    ManifestRecording,
    Pipeline,
    Plan,
    SmallFileCopy,
    TreeLinking,
)
from orchestrator.domain.units import Bytes
from orchestrator.engines.rsync.linked_copy import MOST_BY_CALLS
from orchestrator.engines.rsync.model import LARGE_FILE, CountsEqual, DifferingPaths, RsyncSurvey
from orchestrator.engines.rsync.parallel import ParallelCopies, ParallelCopy
from orchestrator.engines.rsync.plan import plan
from tests.engines.rsync.builders import ASKED, MIRRORED, NEW, ROOT, THERE, USED, job, mirror, point, program, world


def planned(told: Job, seen: RsyncSurvey) -> Plan:
    decision = plan(told, seen, ASKED)
    assert isinstance(decision, Plan), decision
    return decision


DIFFERING = DifferingPaths(paths=(b"a", b"new"), joined=(b"new",))
BY_ROOT = replace(USED, by_root=True)
TWO_PARTS = ParallelCopies(
    parallel_copies=tuple(ParallelCopy(paths=(path,), size=Bytes(1), entries=1) for path in (b"a", b"b"))
)


def test_what_is_unchanged_is_linked_before_a_copy_that_passes_over_it() -> None:
    steps = planned(job(), world(BY_ROOT, differing=DIFFERING)).steps
    at = next(number for number, step in enumerate(steps) if isinstance(step.work, TreeLinking))
    assert steps[at].work == TreeLinking(
        tree=ROOT / ".poolferry/work",
        point=point(),
        source=job().tree,
        differing=(b"a", b"new"),
        joined=(b"new",),
        reserved=(".~poolferry-partial~", ".poolferry-restoring.json"),
    )
    copy, times = str(steps[at + 1].work), str(steps[at + 2].work)
    assert all(
        flag in copy for flag in (" --ignore-existing ", " --omit-dir-times ", " --delete-before ", " --link-dest=")
    )
    assert "--delete-excluded" not in copy
    assert "'--include=*/' '--exclude=*'" in times
    assert not any(flag in times for flag in ("--delete", "--omit-dir-times", "--link-dest"))
    assert max(step.effect for step in steps) is Effect.WRITES


def test_large_files_are_cloned_and_their_blocks_copied_before_the_rest() -> None:
    differing = DifferingPaths(paths=(b"a", b"gone"), joined=(), present=(b"a",))
    seen = world(BY_ROOT, differing=differing, walled=True)
    steps = planned(job(), replace(seen, clones=True)).steps
    at = next(number for number, step in enumerate(steps) if isinstance(step.work, FileCloning))
    work = ROOT / ".poolferry/work"
    assert steps[at].work == FileCloning(
        tree=work, point=point(), source=job().source, paths=(b"a",), partial=".~poolferry-partial~", least=LARGE_FILE
    )
    all_else = steps[at + 2].work
    assert isinstance(all_else, SmallFileCopy)
    large, rest = str(steps[at + 1].work), str(all_else.otherwise)
    assert f" --min-size={LARGE_FILE} --no-whole-file " in large
    assert " --ignore-existing " in large
    assert "--whole-file" not in large.replace("--no-whole-file", "")
    assert " --ignore-existing " in rest
    assert " --whole-file " in rest
    assert "--min-size" not in rest
    assert not any(isinstance(step.work, FileCloning) for step in planned(job(), seen).steps)


def test_a_copy_over_links_names_what_differs_and_names_are_compared_then() -> None:
    differing = DifferingPaths(paths=(b"a/b/new", b"gone"), joined=(), present=(b"a/b/new",), folders=(b"c",))
    steps = planned(job(), world(BY_ROOT, differing=differing, walled=True)).steps
    at = next(number for number, step in enumerate(steps) if isinstance(step.work, TreeLinking))
    copy, times = steps[at + 1 : at + 3]
    assert isinstance(copy.work, SmallFileCopy)
    assert (copy.work.paths, copy.work.left, copy.needs) == ((b"a/b/new",), "/notes/differing", ())
    assert isinstance(times.work, FolderTimes)
    assert (times.work.paths, times.work.left) == ((b".", b"c", b"a/b/new", b"a/b", b"a"), "/notes/folders")
    told = str(copy.work.otherwise)
    assert all(
        f" {flag}" in told for flag in ("--ignore-existing ", "--omit-dir-times ", "--files-from=/notes/differing ")
    )
    assert "--delete" not in told
    assert "'--include=*/' '--exclude=*' --from0 --files-from=/notes/folders --ignore-missing-args" in str(
        times.work.otherwise
    )
    manifest = next(step for step in steps if isinstance(step.work, ManifestRecording))
    assert isinstance(manifest.work, ManifestRecording)
    assert manifest.confirmation is None
    assert manifest.work.review is not None
    assert manifest.work.review.copied is not None, "rsync's counts say nothing of what is linked"
    many = replace(differing, present=tuple(b"%d" % number for number in range(MOST_BY_CALLS + 1)))
    (named, _) = (step for step in planned(job(), world(BY_ROOT, differing=many, walled=True)).steps if step.copies)
    assert isinstance(named.work, Pipeline), "one thread would take longer"
    limited = replace(job(), pipe=PipeOptions(rate_limit=Bytes(1 << 20)))
    found = world(BY_ROOT, differing=differing, walled=True)
    (slow, _) = (step for step in planned(limited, found).steps if step.copies)
    assert isinstance(slow.work, Pipeline), "it keeps to no rate"
    (gone,) = [
        step
        for step in planned(job(), world(BY_ROOT, differing=replace(differing, present=()), walled=True)).steps
        if step.copies
    ]
    assert gone.action == "give folders their times"
    whole = (
        (job(excludes=("*.tmp",)), world(BY_ROOT, differing=differing, walled=True)),
        (replace(job(), parts=("srv",)), world(BY_ROOT, differing=differing, walled=True)),
        (job(), world(BY_ROOT, differing=replace(differing, joined=(b"a/b/new",)), walled=True)),
        (job(), world(BY_ROOT, differing=differing)),
    )
    for made, seen in whole:
        steps = planned(made, seen).steps
        assert [step.action for step in steps if step.accounts] == [f"copy {made.tree}"], (made, seen)
        assert any(isinstance(step.confirmation, CountsEqual) for step in steps)


def test_programs_of_a_host_link_where_a_copy_is_told_names() -> None:
    differing = DifferingPaths(paths=(b"a/b/new", b"a", b"x/gone"), joined=(), present=(b"a", b"a/b/new"))
    seen = world(BY_ROOT, differing=differing, here=NEW, there=NEW, walled=True)
    steps = planned(job(target=THERE), seen).steps
    at = next(number for number, step in enumerate(steps) if step.links)
    work = steps[at].work
    assert steps[at].counts_links
    assert isinstance(work, Pipeline)
    assert work.stages[0].argv[3:] == ("link-tree.sh", THERE.path, point().name)
    assert steps[at].needs == (("/notes/not-linked", b"./a\0./a/b/new\0./x/gone\0"),), "what lies above comes first"
    assert " --ignore-existing " in str(steps[at + 1].work)
    assert b"./x\0" in steps[at + 2].needs[0][1], "the folder has another time, as something was removed there"
    unusual = (
        (job(target=THERE, fake_super=True), replace(seen, target=replace(seen.target, stored=True))),
        (job(target=THERE), replace(seen, target=replace(seen.target, coarse=True))),
        (job(target=THERE), replace(seen, there=replace(NEW, gated=True))),
        (job(target=THERE), replace(seen, walled=False)),
        (job(target=THERE), replace(seen, differing=replace(differing, joined=(b"a",)))),
        (job(target=THERE), replace(seen, differing=replace(differing, paths=(b"a/../../b",)))),
    )
    for told, world_there in unusual:
        assert not any(step.links for step in planned(told, world_there).steps), (told, world_there)


def test_what_is_unchanged_is_linked_here_where_a_far_source_is_asked_by_name() -> None:
    differing = DifferingPaths(paths=(b"a/b/new", b"a", b"x/gone"), joined=(), present=(b"a", b"a/b/new"))
    seen = world(BY_ROOT, differing=differing, here=NEW, there=NEW, walled=True)
    far = job(source=THERE)
    steps = planned(far, seen).steps
    at = next(number for number, step in enumerate(steps) if isinstance(step.work, TreeLinking))
    assert " --ignore-existing " in str(steps[at + 1].work)
    assert not any(isinstance(step.confirmation, CountsEqual) for step in steps), "names are compared instead"
    odd = replace(differing, paths=(*differing.paths, b"a\\[b"))
    unusual = (
        (job(source=THERE, excludes=("*.tmp",)), seen),
        (replace(far, parts=("srv",)), seen),
        (far, replace(seen, walled=False)),
        (far, replace(seen, reserved=(b"x/.poolferry",))),
        (far, replace(seen, there=program(3, 0, 9))),
        (far, replace(seen, target=replace(BY_ROOT, work=True))),
        (far, replace(seen, differing=replace(differing, joined=(b"a",)))),
        (far, replace(seen, differing=replace(differing, paths=(b"a/../../b",)))),
        (far, replace(seen, differing=odd)),
    )
    for told, world_here in unusual:
        made = planned(told, world_here).steps
        assert not any(isinstance(step.work, TreeLinking) for step in made), (told, world_here)


def test_what_was_excluded_since_the_point_is_removed_from_the_linked_tree() -> None:
    steps = planned(job(excludes=("*.tmp",)), world(BY_ROOT, differing=DIFFERING)).steps
    copy = next(str(step.work) for step in steps if step.accounts)
    assert " --delete-excluded '--filter=P_.~poolferry-partial~' " in copy
    assert copy.index("--exclude=*.tmp") < copy.index("--delete-excluded")


@pytest.mark.parametrize(
    ("told", "seen"),
    [
        (job(), world(USED, differing=DIFFERING)),
        (job(), world(BY_ROOT)),
        (job(), world(BY_ROOT, differing=DIFFERING, unread=True)),
        (job(), world(replace(BY_ROOT, work=True), differing=DIFFERING)),
        (job(), world(replace(BY_ROOT, damaged=(b"a",)), differing=DIFFERING)),
        (job(), world(replace(BY_ROOT, damaged=(b"",)), differing=DIFFERING)),
        (job(), world(replace(BY_ROOT, led=True), differing=DIFFERING)),
        (job(), world(replace(BY_ROOT, open=("points",)), differing=DIFFERING)),
        (job(), world(replace(BY_ROOT, points=(replace(point(), damaged=True),)), differing=DIFFERING)),
        (job(), world(replace(BY_ROOT, points=(replace(point(), manifest=None),)), differing=DIFFERING)),
        (job(), world(replace(BY_ROOT, points=()), differing=None)),
        (job(), world(BY_ROOT, None, differing=DIFFERING)),
        (job(parallel=2), world(BY_ROOT, differing=DIFFERING, parallel_copies=TWO_PARTS)),
        (job(target=THERE), world(BY_ROOT, differing=DIFFERING, here=NEW, there=NEW)),
        (job(source=THERE), world(BY_ROOT, differing=DIFFERING, here=NEW, there=NEW)),
        (mirror(), world(replace(MIRRORED, by_root=True), differing=DIFFERING)),
    ],
    ids=["another user", "differences unknown", "unread", "cut", "damage", "all damaged", "led", "open", "damaged point",
         "no manifest", "no point", "no counts", "parallel", "target there", "source there", "mirror"],
)  # fmt: skip
def test_where_anything_is_unusual_rsync_links_alone(told: Job, seen: RsyncSurvey) -> None:
    steps = planned(told, seen).steps
    assert not any(isinstance(step.work, TreeLinking) for step in steps)
    assert not any("--ignore-existing" in str(step.work) for step in steps)
