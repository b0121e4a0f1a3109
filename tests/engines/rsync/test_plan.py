"""Test what an rsync run decides, for small worlds made by hand."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.gate import GateHello
from orchestrator.domain.job import Job, VerifyRules
from orchestrator.domain.plan import (
    Decision,
    Effect,
    ManifestRecording,
    NothingToDo,
    Pipeline,
    Plan,
    Refusal,
    TargetTrial,
)
from orchestrator.domain.point import Changes
from orchestrator.domain.units import Bytes
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync.left_out import TOO_LARGE
from orchestrator.engines.rsync.model import UNREADABLE_OWNER, DifferingPaths, RsyncSurvey
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.parallel import ParallelCopies, ParallelCopy
from orchestrator.engines.rsync.plan import plan
from tests.engines.rsync.builders import (  # fmt: skip
    ASKED,
    CHANGED,
    EMPTY,
    FIRST,
    MIRRORED,
    NAME,
    NEW,
    OLD,
    ROOT,
    SOURCE,
    THERE,
    UNCHANGED,
    USED,
    half,
    job,
    mirror,
    point,
    program,
    world,
)


def planned(told: Job, seen: RsyncSurvey, requested: RunRequest = ASKED) -> Plan:
    decision = plan(told, seen, requested)
    assert isinstance(decision, Plan), decision
    return decision


def refused(told: Job, seen: RsyncSurvey, requested: RunRequest = ASKED) -> Refusal:
    decision = plan(told, seen, requested)
    assert isinstance(decision, Refusal), decision
    return decision


def nothing(told: Job, seen: RsyncSurvey) -> NothingToDo:
    decision = plan(told, seen, ASKED)
    assert isinstance(decision, NothingToDo), decision
    return decision


def deeds(decision: Plan | NothingToDo) -> list[str]:
    return [step.action for stage in decision.stages for step in stage]


ABSENT = replace(EMPTY, exists=False)
ADDING, GATE = replace(NEW, gated=True), GateHello(poolferry="1.2", gate="laptop", rights=("adds",))
LOST = replace(ASKED, remembered={"target-used": str(ROOT)})
TIED = Refusal(why="hard links tie this tree together", evidence=("1 GiB tied",), hint="write parallel = 1")

LOST_MARK = (
    "bring it back; or, if they are copies of photos: poolferry run photos --allow target-in-use (it writes that file again, and goes on "
    "from the newest point)"
)
REFUSALS: list[tuple[str, Job, RsyncSurvey, RunRequest, str, tuple[str, ...], str]] = [
    ("no source", job(), world(source=replace(SOURCE, exists=False, directory=False)), ASKED,
     "the source /srv/photos is not there", (), "mount it, or correct `source` in the job file"),
    ("several sources with attributes", replace(job(target=THERE, fake_super=True), parts=("a", "b")), world(parts=(SOURCE, SOURCE), here=NEW, there=NEW),
     ASKED, "rsync gives the folders above several sources attributes by names of its own, which no target with fake-super may get", (),
     f"write a job for each of the `sources` in {job().file}; or fake-super = false"),
    ("a file", job(), world(source=replace(SOURCE, directory=False)), ASKED,
     "the source /srv/photos is not a folder", (), "name the folder that holds it; [rsync] excludes leaves the rest out"),
    ("lanes", job(), world(parallel_copies=TIED), ASKED, TIED.why, TIED.evidence, TIED.hint),
    ("no folder above", job(), world(replace(ABSENT, parent=False)), ASKED,
     "the target /backup/photos is not there, and neither is the folder above it", (),
     "mount it, make the folder, or correct [place.backup]"),
    ("target a file", job(), world(replace(ABSENT, foreign=("a file",))), ASKED,
     "the target /backup/photos is a file", (), "mount it, make the folder, or correct [place.backup]"),
    ("another job's", job(), world(replace(USED, owner="ma\nil")), ASKED,
     "the target /backup/photos belongs to the job ma\\nil", (".poolferry/target.json says so",),
     "give each job a place of its own in targets.toml"),
    ("a job renamed by hand", job(), world(replace(USED, owner="old")), ASKED,
     "the target /backup/photos belongs to the job old", (".poolferry/target.json says so",),
     ("give each job a place of its own in targets.toml; or, if the file of that job was renamed by hand: write "
     f'known-as = "old" before the first section of {job().file}')),
    ("unmounted", job(), world(EMPTY, FIRST), LOST,
     "the target /backup/photos held copies of this job and now shows no sign of them: is its disk mounted?",
     ("no .poolferry/target.json there",),
     "mount it; or, if it is meant to start from scratch: poolferry run photos --allow target-new"),
    ("a mount of the target in the source", job(), world(mixed="lies in the source"), ASKED,
     "the target /backup/photos lies in the source: its copies would be copied, too", ("`findmnt --target /backup/photos` shows what is mounted there",),
     "give [place.backup] in targets.toml a folder apart from the source"),
    ("a lost marker", job(), world(replace(EMPTY, points=(point(),)), FIRST), LOST,
     "the target /backup/photos has lost .poolferry/target.json, which says whose copies it holds, and still holds 1 point of earlier runs",
     (point().name,),
     LOST_MARK),
    ("a mirror without its mark", mirror(), world(replace(EMPTY, foreign=("a", "b"))), LOST,
     "the target /backup/photos has lost .poolferry/target.json, which says whose mirror it is, and holds 2 entries", ("a", "b"),
     LOST_MARK.replace("they are copies", "that is the mirror").replace("goes on from the newest point", "makes all as it is at the source")),
    ("in use", job(), world(replace(EMPTY, points=(point(),), foreign=("x\n",))), ASKED,
     "the target /backup/photos holds something that is not this job's", ("x\\n", f"points/{point().name}"),
     "name an empty folder; or, if it may be used: poolferry run photos --allow target-in-use"),
    ("a mirror over something", mirror(), world(replace(EMPTY, foreign=tuple("abcdefghijkl"))), ASKED,
     "the target /backup/photos holds something that is not this job's", tuple("abcdefghij"),
     "name an empty folder; or, if it may be used: poolferry run photos --allow target-in-use"),
    ("blake3 there", replace(job(target=THERE), verify=VerifyRules(digest="blake3")), world(EMPTY, here=NEW, there=NEW), ASKED,
     "blake3 cannot be made on root@backup, so its points could never be verified", (),
     'write digest = "xxh128" or "sha256" in [verify]'),
    ("a mirror behind a gate", mirror(target=THERE), world(EMPTY, here=NEW, there=ADDING, gate=GATE), ASKED,
     "the gate laptop at root@backup only lets restore points be added, and a mirror is none", (),
     "write points = true in [rsync] of photos.toml"),
    ("an old rsync there", job(target=THERE), world(EMPTY, here=NEW, there=program(3, 1, 3)), ASKED,
     "xxh128 cannot be made on root@backup, so its points could never be verified", (),
     'write digest = "sha256" in [verify]'),
]  # fmt: skip


@pytest.mark.parametrize("row", REFUSALS, ids=[row[0] for row in REFUSALS])
def test_refusals_say_what_they_saw_and_the_cure(
    row: tuple[str, Job, RsyncSurvey, RunRequest, str, tuple[str, ...], str],
) -> None:
    _, told, seen, requested, why, evidence, hint = row
    refusal = refused(told, seen, requested)
    assert (refusal.why, refusal.evidence, refusal.hint) == (why, evidence, hint)


@pytest.mark.parametrize(
    ("told", "rm"), [(job(), "rm -- /backup/photos/"), (job(target=THERE), "ssh root@backup 'rm -- /backup/photos/")]
)  # fmt: skip
def test_a_damaged_marker_is_no_other_jobs(told: Job, rm: str) -> None:
    there = NEW if told.target.location.host else None
    refusal = refused(told, world(replace(EMPTY, owner=UNREADABLE_OWNER), here=there, there=there))
    assert refusal.why.endswith("has a damaged .poolferry/target.json, which says whose copies it holds")
    assert refusal.evidence == ("it was read, and is not as it was written",)
    assert "poolferry run photos --allow target-in-use" in refusal.hint
    assert rm in refusal.hint, refusal.hint


@pytest.mark.parametrize(
    ("told", "seen", "requested", "guard"),
    [
        (job(), world(EMPTY, FIRST), LOST, "target-new"),
        (job(), world(replace(EMPTY, points=(point(),))), ASKED, "target-in-use"),
        (mirror(), world(replace(EMPTY, foreign=("a",))), ASKED, "target-in-use"),
    ],
)
def test_what_the_owner_may_allow(told: Job, seen: RsyncSurvey, requested: RunRequest, guard: str) -> None:
    assert refused(told, seen, requested).guard == guard
    assert f"--allow {guard}" in refused(told, seen, requested).hint
    planned(told, seen, replace(requested, allowed=frozenset({guard})))


def test_other_things_beside_points_do_not_matter() -> None:
    planned(job(), world(replace(EMPTY, foreign=("lost+found",)), FIRST))
    planned(job(), world(EMPTY, FIRST), replace(ASKED, remembered={"target-used": "/elsewhere"}))
    planned(
        replace(job(target=THERE), verify=VerifyRules(digest="sha256")),
        world(EMPTY, FIRST, here=NEW, there=program(3, 1, 3)),
    )


def test_nothing_to_do() -> None:
    found = nothing(job(), world(changes=UNCHANGED))
    assert (found.why, found.current, found.stages) == (f"nothing changed: point {OLD} is as the source", OLD, ())


def test_nothing_still_tidies() -> None:
    found = nothing(job(), world(replace(USED, litter=("trash",), latest=None), UNCHANGED))
    assert deeds(found) == ["clear away leftovers", f"make `latest` name {OLD}"]


@pytest.mark.parametrize(
    "seen",
    [
        world(changes=UNCHANGED, unread=True),  # what could not be read may differ
        world(replace(USED, damaged=(b"a",)), UNCHANGED),
        world(replace(USED, points=()), UNCHANGED),  # an empty source whose first copy was cut
        world(replace(USED, points=(), work=True), None),
        world(changes=replace(UNCHANGED, other=1)),
    ],
)
def test_what_looks_equal_and_is_not_enough(seen: RsyncSurvey) -> None:
    assert planned(job(), seen).steps[-1].makes == NAME


def test_a_new_target_is_asked_what_the_source_needs() -> None:
    (step,) = planned(job(owners=False, acls=False, hard_links=False), world(EMPTY, FIRST)).stages[0]
    assert isinstance(step.work, TargetTrial)
    tried, found = (stage.argv[3:] for stage in step.work.otherwise.stages)
    needed = ("modes", "hard-links", "symlinks", "fifos", "devices", "xattrs", "names", "times")
    assert (tried, step.work.abilities) == (("try-abilities.sh", "/backup/photos", *needed), needed)
    assert found == ("find-unheld.sh", "/srv/photos", "one-filesystem", "points")
    (step,) = planned(mirror(), world(EMPTY, FIRST)).stages[0]
    assert isinstance(step.work, TargetTrial)
    assert step.work.otherwise.stages[1].argv[-1] == ""
    assert deeds(planned(job(excludes=("x",)), world(EMPTY, FIRST)))[0] == "prepare the target"
    (step,) = planned(
        job(target=THERE, fake_super=True, excludes=("x",)), world(EMPTY, FIRST, here=NEW, there=NEW)
    ).stages[0]
    assert isinstance(step.work, Pipeline)
    assert step.work.stages[0].argv[3:] == ("try-abilities.sh", "/backup/photos", "fake-super")


def test_a_first_copy() -> None:
    found = planned(job(), world(EMPTY, FIRST))
    assert found.summary == f"first copy: make point {NAME} of 9 entries, 4.0 KiB"
    assert deeds(found) == [
        "ask what the target can hold", "prepare the target", "copy /srv/photos", "write the manifest", f"publish point {NAME}",
    ]  # fmt: skip
    assert (found.resumes, found.anew, found.steps[2].why, found.steps[2].expected) == (
        None,
        True,
        "the first copy",
        4096,
    )
    assert "--link-dest" not in str(found.steps[1].work)


def test_a_changed_source() -> None:
    found = planned(job(), world())
    assert found.summary == f"make point {NAME}: 2 new, 1 changed, 3 gone, 2.0 KiB to move"
    assert found.steps[1].why == f"unchanged files are linked to point {OLD}"
    assert f"--link-dest=/backup/photos/points/{OLD} " in str(found.steps[1].work)
    assert "--delete" not in str(found.steps[1].work)
    assert (found.steps[1].accounts, found.steps[1].copies, found.steps[-1].makes) == (True, True, NAME)


def test_a_look_that_told_nothing_is_no_hindrance() -> None:
    found = planned(job(), world(changes=None))
    assert (found.summary, found.steps[1].expected) == (f"make point {NAME}", None)


def test_leftovers_go_first() -> None:
    assert deeds(planned(job(), world(replace(USED, litter=(OLD,)))))[0] == "clear away leftovers"
    lost = replace(USED, litter=(OLD,), orphans=frozenset({OLD}))
    assert deeds(planned(job(), world(lost)))[0] == "clear away leftovers", "nobody misses it: it was never published"
    assert (
        deeds(planned(job(), world(lost), replace(ASKED, missed=lambda: frozenset({OLD}))))[0] == "prepare the target"
    )


CUT = replace(
    USED,
    work=True,
    half=(half("a/big", 10 << 20, 40 << 20), half("b", 3 << 20, 5 << 20, orphan=True), half("gone", 9, None),
          half("left", 9, None, orphan=True), half("empty", 5, 0)),
)  # fmt: skip


def test_an_interrupted_copy_goes_on() -> None:
    found = planned(job(), world(CUT))
    assert found.resumes == "an interrupted copy lies in the target, 13.0 MiB of it half-copied files"
    assert not found.anew
    done = deeds(found)
    assert done.index("salvage b") < done.index("go on with b") < done.index("name b") < done.index("copy /srv/photos")
    assert {"go on with a/big", "name a/big"} <= set(done)
    assert not {"salvage a/big", "go on with gone", "go on with left", "go on with empty"} & set(done)
    update = next(step for step in found.steps if step.action == "bring the cut copy up to date")
    assert "--delete-before --existing" in str(update.work)  # the source may have lost what the first attempt copied
    assert "--link-dest" not in str(update.work)
    assert update.work.effect is Effect.WRITES
    assert planned(job(), world(replace(USED, work=True))).resumes == "an interrupted copy lies in the target"


def test_damaged_files_are_copied_again_and_never_linked() -> None:
    found = planned(job(), world(replace(USED, damaged=(b"a", b"b/c"))))
    assert "2 damaged copied again" in found.summary
    repair = next(step for step in found.steps if step.action == "copy 2 damaged files again")
    assert "--link-dest" not in str(repair.work)
    assert repair.needs == (("/notes/damaged", b"/a\0/b/\0/b/c\0"),)
    assert deeds(found).index("copy /srv/photos") < deeds(found).index("copy 2 damaged files again")


def test_all_of_a_point_whose_manifest_was_forged_is_copied_again() -> None:
    found = planned(job(), world(replace(USED, damaged=(b"",))))
    assert "everything copied again" in found.summary
    assert "--link-dest" not in str([step.work for step in found.steps]), "nothing is linked to it"
    older = replace(point(), name="2026-11-01T000000Z", tree=ROOT / "points/2026-11-01T000000Z")
    found = planned(job(), world(replace(USED, points=(older, point()), damaged=(b"",))))
    assert f"--link-dest={older.tree.path}" in str([step.work for step in found.steps])


LANES = ParallelCopies(
    parallel_copies=(
        ParallelCopy(paths=(b"a", b"b"), size=Bytes(4096), entries=9),
        ParallelCopy(paths=(b"c",), size=Bytes(99), entries=1),
    ),
)


def test_lanes_side_by_side() -> None:
    found = planned(job(parallel=2), world(parallel_copies=LANES))
    side_by_side = found.stages[1]
    assert [step.action for step in side_by_side] == [
        "copy /srv/photos, parallel copy 1 of 2",
        "copy /srv/photos, parallel copy 2 of 2",
    ]
    assert [step.worker for step in side_by_side] == ["lane 1", "lane 2"]
    assert [step.needs for step in side_by_side] == [
        (("/notes/lane-1", b"./a\0./b\0"),),
        (("/notes/lane-2", b"./c\0"),),
    ]
    assert side_by_side[0].why == "2 parts, 4.0 KiB: all parallel copies have about the same size"
    assert all(step.accounts for step in side_by_side)
    assert found.stages[2][0].action == "write the manifest"


def test_a_far_tree_is_swept_by_a_step_and_one_here_where_its_listing_shows_remainders() -> None:
    plans = planned(job(), world(EMPTY, FIRST)), planned(job(target=THERE), world(EMPTY, FIRST, here=NEW, there=NEW))
    assert [deeds(found).count("sweep the tree") for found in plans] == [0, 1]
    works = [step.work for found in plans for step in found.steps if isinstance(step.work, ManifestRecording)]
    assert [each.sweep is not None and "sweep.sh" in str(each.sweep) for each in works] == [True, False]


def test_after_a_cut_what_is_shared_and_what_is_lost_goes_before_the_parallel_copies() -> None:
    found = planned(job(parallel=2), world(replace(USED, work=True), parallel_copies=LANES))
    assert deeds(found)[1:5] == [
        "separate the cut copy from the points",
        "bring the cut copy up to date",
        "copy /srv/photos, parallel copy 1 of 2",
        "copy /srv/photos, parallel copy 2 of 2",
    ]
    assert [step.accounts for step in found.steps[2:5]] == [False, True, True]  # each file is named once
    assert "--force" in str(found.steps[3].work)


def test_a_cut_first_copy_shares_nothing() -> None:
    found = planned(job(), world(replace(USED, work=True, points=())))
    assert deeds(found)[1:3] == ["bring the cut copy up to date", "copy /srv/photos"]


def test_files_with_other_metadata_are_looked_at_again() -> None:
    changes = replace(CHANGED, other=2, altered=(b"a", b"#b/c"))
    settle = next(step for step in planned(job(), world(changes=changes)).steps if step.action.startswith("look again"))
    assert settle.action == "look again at 2 files with other metadata"
    assert settle.needs == (("/notes/altered", b"./a\0./#b/c\0"),)
    assert "--files-from=/notes/altered --ignore-missing-args" in str(settle.work)
    assert "--link-dest" not in str(settle.work)
    assert "look again" not in str(deeds(planned(job(xattrs=False), world(changes=changes))))


def test_one_lane_is_none() -> None:
    single = replace(LANES, parallel_copies=LANES.parallel_copies[:1])
    assert deeds(planned(job(parallel=2), world(parallel_copies=single)))[1] == "copy /srv/photos"


def test_a_clock_that_was_set_back_makes_no_older_point() -> None:
    found = planned(job(), world(), replace(ASKED, now=datetime(2020, 1, 1, tzinfo=UTC)))
    assert found.steps[-1].makes == "2026-03-03T050608Z"
    same = planned(job(), world(), replace(ASKED, now=point().taken))
    assert same.steps[-1].makes == "2026-03-03T050608Z"


def test_a_mirror_with_consent() -> None:
    found = planned(mirror(delete=True), world(MIRRORED))
    assert deeds(found) == [
        "prepare the target", "mirror /srv/photos", "write the manifest", "write everything to the disk",
    ]  # fmt: skip
    assert found.summary == "make the mirror as /srv/photos"
    copy, record, _ = found.steps[1:]
    assert copy.effect is Effect.DESTROYS
    assert copy.why == "the mirror differs from the source"
    assert {"--delete-delay", "--exclude=/.poolferry"} <= set(str(copy.work).split())
    assert (record.makes, str(record.confirmation)) == ("mirror", "/backup/photos holds what the source's list names")


def test_a_mirror_without_consent_removes_nothing() -> None:
    found = planned(mirror(), world(EMPTY, FIRST))
    assert {step.effect for step in found.steps} == {Effect.WRITES}
    assert found.steps[2].why == "the first copy"
    assert "--delete" not in str(found.steps[2].work)
    assert found.steps[3].confirmation is None  # old files may stay, so numbers prove nothing


def test_a_mirror_without_consent_is_equal_whatever_stays_in_it() -> None:
    lost = replace(UNCHANGED, deleted=2)
    found = nothing(mirror(), world(MIRRORED, lost))
    assert found.why == (
        "nothing changed: the mirror is as the source; it also holds 2 entries that the source has no more"
    )
    assert found.current == "mirror"
    planned(mirror(delete=True), world(MIRRORED, lost))
    assert (
        nothing(mirror(delete=True), world(MIRRORED, UNCHANGED)).why == "nothing changed: the mirror is as the source"
    )


@pytest.mark.parametrize("target", [replace(MIRRORED, mirrored=None), replace(MIRRORED, work=True)])
def test_a_mirror_that_was_cut_before_its_manifest_is_not_equal(target: object) -> None:
    found = planned(mirror(), world(target, UNCHANGED))  # type: ignore[arg-type]
    assert "write the manifest" in deeds(found)


def test_a_damaged_mirror_is_mended() -> None:
    found = planned(mirror(), world(replace(MIRRORED, damaged=(b"a",)), UNCHANGED))
    assert deeds(found)[2] == "copy 1 damaged file again"


TARGETS = st.builds(
    replace,
    st.sampled_from([EMPTY, USED, MIRRORED, CUT, ABSENT]),
    work=st.booleans(),
    litter=st.sampled_from([(), (OLD,)]),
    damaged=st.sampled_from([(), (b"a",)]),
    latest=st.sampled_from([None, OLD]),
    owner=st.sampled_from([None, "photos", "mail"]),
)
CHANGES: st.SearchStrategy[Changes | None] = st.sampled_from([None, UNCHANGED, CHANGED, FIRST])
JOBS = st.builds(job, points=st.booleans(), delete=st.booleans(), hard_links=st.booleans())


@settings(max_examples=200, deadline=None)
@given(JOBS, TARGETS, CHANGES, st.booleans(), st.sampled_from([None, LANES, TIED]))
def test_every_decision_says_why_and_destroys_only_with_consent(
    told: Job, target: object, changes: Changes | None, unread: bool, parallel_copies: ParallelCopies | Refusal | None
) -> None:
    seen = world(target, changes, unread=unread, parallel_copies=parallel_copies)  # type: ignore[arg-type]
    decision: Decision = plan(told, seen, ASKED)
    if isinstance(decision, Refusal):
        assert decision.why
        assert decision.hint
        assert decision.guard is None or f"poolferry run photos --allow {decision.guard}" in decision.hint
        return
    steps = [step for stage in decision.stages for step in stage]
    assert all(step.action and step.why for step in steps)
    options = options_of(told)
    for step in steps:
        if step.effect is Effect.DESTROYS and step.action != "clear away leftovers":
            assert options.delete
            assert not options.points
    assert len({id(stage) for stage in decision.stages}) == len(decision.stages)
    assert sum(step.makes is not None for step in steps) == isinstance(decision, Plan)
    for stage in decision.stages:
        assert len({step.worker for step in stage}) == len(stage)


def test_a_mirror_goes_on_after_a_tidying() -> None:
    found = planned(mirror(delete=True), world(replace(MIRRORED, work=True)))
    assert deeds(found)[:3] == ["prepare the target", "tidy up after the cut", "mirror /srv/photos"]


def test_a_cut_copy_that_the_disk_may_not_have_taken_is_discarded() -> None:
    found = planned(job(), world(replace(EMPTY, owner="photos", unwritten=True), FIRST))
    assert deeds(found)[0] == "prepare the target, and discard the cut copy"
    assert "not certain that the disk took all" in found.warnings[0]
    assert found.anew


def test_files_that_can_have_no_more_names_are_copied_before_all_else() -> None:
    """And what follows passes over them, by one rsync: it would link them to the point."""
    found = planned(job(parallel=2), replace(world(replace(USED, work=True)), crowded=(b"a", b"b/a")))
    names = deeds(found)
    at = names.index("copy files of 2 names anew")
    assert names[at : at + 3] == ["copy files of 2 names anew", "copy /srv/photos", "give folders their times"]
    assert found.steps[at].needs == (("/notes/crowded", b"./a\0./b/a\0"),)
    assert "--link-dest" not in str(found.steps[at]), "they are linked to no point"
    assert "--ignore-existing" in str(found.steps[at + 1].work)


def test_our_folders_are_closed_where_an_older_version_left_them_open() -> None:
    found = planned(job(), world(replace(USED, open=(".poolferry", "points"))))
    assert deeds(found)[:2] == ["close our folders to other users", "prepare the target"]
    assert isinstance(found.steps[0].work, Pipeline)
    assert found.steps[0].work.stages[0].argv[4:] == (ROOT.path, "work", ".poolferry", "points")
    assert found.warnings == (
        ".poolferry and points in /backup/photos could be entered by other users of that machine; now only by the owner (0700), if modes are kept",
    )
    idle = nothing(job(), world(replace(USED, open=("points",), latest=OLD), UNCHANGED))
    assert [step.action for stage in idle.stages for step in stage] == ["close our folders to other users"]
    assert idle.warnings
    kept = planned(mirror(), world(replace(MIRRORED, open=(".poolferry",), work=True)))
    assert isinstance(kept.steps[0].work, Pipeline)
    assert kept.steps[0].work.stages[0].argv[4:] == (ROOT.path, "", ".poolferry")


def test_a_root_that_others_could_exchange_becomes_roots() -> None:
    found = planned(job(), world(replace(USED, open=(".",))))
    assert found.warnings == (
        "/backup/photos could be changed by other users of that machine; now it is root's, and only root writes there",
    )


def test_an_empty_first_copy_is_asked_about() -> None:
    found = planned(job(), world(EMPTY, replace(FIRST, entries_now=0)))
    assert "the source /srv/photos is empty, and so is this first copy: is it mounted?" in found.warnings
    hidden = planned(job(excludes=("[!x]*", "x*")), world(EMPTY, replace(FIRST, entries_now=0)))
    [told] = [each for each in hidden.warnings if "mounted" in each]
    assert (
        told
        == "this first copy is empty: the source /srv/photos is, or excludes in [rsync] leave all of it out: is it mounted?"
    )


def test_what_lies_in_place_of_our_folders_is_refused() -> None:
    refusal = refused(job(), world(replace(USED, swapped=(".poolferry/work",))))
    assert refusal.evidence == (".poolferry/work",)


def test_names_of_ours_in_the_source_are_named() -> None:
    found = planned(job(), replace(world(), reserved=tuple(b"%d/.~poolferry-partial~" % number for number in range(7))))
    (said,) = found.warnings
    assert said.startswith("never copied, as poolferry uses these names itself: 0/.~poolferry-partial~, 1/")
    assert said.endswith(", 4/.~poolferry-partial~ and 2 more")


AT_GATE = DifferingPaths(
    paths=(b"a", b"gone", b"new"), joined=(b"new", b"twin"), present=(b"a", b"new"), folders=(b".", b"d")
)


def behind_gate(**more: Any) -> RsyncSurvey:
    return world(
        **{
            "target": replace(USED, points=(point(root=THERE),)),
            "differing": AT_GATE,
            "here": NEW,
            "there": ADDING,
            "gate": GATE,
            **more,
        }
    )


def test_a_gate_links_the_rest_once_what_differs_is_copied_apart_from_the_points() -> None:
    steps = planned(job(target=THERE), behind_gate()).steps
    at = next(number for number, step in enumerate(steps) if step.accounts or step.copies)
    copy, link = steps[at : at + 2]
    ((names, listed),) = copy.needs
    assert copy.action == "copy /srv/photos"
    assert listed == b"./a\0./new\0./twin\0./d\0", (
        "not what has gone; and of the root, which stands for all in it, nothing"
    )
    assert f"--files-from={names} --ignore-missing-args" in str(copy.work)
    assert f"--copy-dest={THERE.path}/points/{OLD}" in str(copy.work)
    assert "--link-dest" not in str(steps)
    assert link.action == f"link unchanged entries from point {OLD}"
    assert (link.counts_links, link.links) == (True, False), (
        "it says how far it is, and what it refuses no copy makes good"
    )
    assert isinstance(link.work, Pipeline)
    assert (link.work.stages[0].argv, link.work.reads) == (("link-unchanged", THERE.path, OLD), link.needs[0][0])
    assert link.needs[0][1] == b"./a\0./gone\0./new\0./twin\0", "what has gone is not linked, either"


def test_behind_a_gate_the_metadata_of_the_root_alone_is_copied_where_nothing_else_is() -> None:
    told = behind_gate(differing=DifferingPaths(paths=(b"gone",), joined=(), folders=(b".",)))
    copy = next(step for step in planned(job(target=THERE), told).steps if step.action == "copy /srv/photos")
    assert copy.needs[0][1] == b"./.\0"


def test_behind_a_gate_a_cut_copy_damage_and_other_metadata_are_seen_to_before_anything_is_linked() -> None:
    target = replace(USED, points=(point(root=THERE),), work=True, damaged=(b"bad",))
    told = behind_gate(target=target, changes=replace(CHANGED, other=1, altered=(b"a",)))
    done = deeds(planned(job(target=THERE), told))
    begun = done.index("bring the cut copy up to date")
    assert done[begun : begun + 6] == [
        "bring the cut copy up to date", "copy /srv/photos", "look for holes in 1 file with other metadata",
        "look again at 1 file with other metadata", "copy 1 damaged file again", f"link unchanged entries from point {OLD}",
    ]  # fmt: skip
    link = next(step for step in planned(job(target=THERE), told).steps if step.action.startswith("link"))
    assert b"./bad\0" in link.needs[0][1], "a damaged file is never linked"


@pytest.mark.parametrize("more", [{"differing": None}, {"unread": True}, {"target": replace(USED, points=())}])
def test_behind_a_gate_all_is_copied_where_the_differences_are_not_known(more: dict[str, Any]) -> None:
    steps = planned(job(target=THERE), behind_gate(**more)).steps
    assert "link unchanged" not in str([step.action for step in steps])
    assert "--link-dest" not in str([str(step.work) for step in steps])


@pytest.mark.parametrize("work", [False, True])
def test_what_the_target_refuses_is_left_out_by_rules_and_an_older_state_of_it_goes_from_a_cut_copy(
    *, work: bool
) -> None:
    refused_ones = ((b"a", "a name that the target does not take"), (b"large", TOO_LARGE))
    told = planned(job(), world(replace(USED, work=work), refused=refused_ones))
    first = told.stages[0][0]
    assert any(b"/large" in rules for _, rules in first.needs)
    assert told.left_out == refused_ones
    assert ("discard older states" in deeds(told)) is work
