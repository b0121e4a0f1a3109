"""Steps: their exact commands for files that were cut, and what each must leave behind."""

from dataclasses import replace

import pytest

from orchestrator.domain.plan import Effect, ManifestRecording, Pipeline, PointPublication, Step, TargetPreparation
from orchestrator.engines.rsync import cut_copy, manifest_steps, plan
from orchestrator.engines.rsync.model import WORK, CountsEqual, PartialFile, PointVisible
from tests.engines.rsync.builders import (
    ASKED,
    MIRRORED,
    NAME,
    OLD,
    ROOT,
    THERE,
    USED,
    cut_world,
    half,
    job,
    mirror,
    point,
    world,
)

TREE = ROOT / WORK
MIB = 1 << 20


def going_on(*cut: PartialFile) -> list[Step]:
    stages = cut_copy.complete_or_drop(job(), cut_world(cut), TREE, None, ASKED)
    return [step for stage in stages for step in stage if not step.action.startswith("discard")]


def values(step: Step) -> tuple[str, ...]:
    """The arguments of a script, behind its text."""
    assert isinstance(step.work, Pipeline)
    return step.work.stages[0].argv[4:]


def test_a_partial_file_goes_on_from_its_end() -> None:
    copy, name = going_on(half("a/b\n", 10 * MIB, 40 * MIB))
    assert (copy.action, copy.why, copy.expected) == ("go on with a/b\\n", "10.0 MiB of 40.0 MiB are there", 30 * MIB)
    assert copy.needs == (("/notes/moved-on-0", b"pf:>f|0|0||\\#141\\#057\\#142\\#012\n"),)
    assert isinstance(copy.work, Pipeline)
    assert copy.work.stages[0].argv[-2:] == (
        "/srv/photos/a/b\n", "/backup/photos/.poolferry/work/a/.~poolferry-partial~/b\n",
    )  # fmt: skip
    assert "--append-verify" in copy.work.stages[0].argv
    assert values(name) == (TREE.path, "a", "b\n", str(40 * MIB), "holes")


def test_an_orphan_is_salvaged_first() -> None:
    salvage, copy, name = going_on(half("a/b", 1 * MIB, 4 * MIB, orphan=True))
    assert (salvage.action, copy.action, name.action) == ("salvage a/b", "go on with a/b", "name a/b")
    assert values(salvage) == (TREE.path, "a", "b", ".b.AbCdEf", "")
    salvage, *_ = going_on(half("top", 1, 2, orphan=True))
    assert values(salvage) == (TREE.path, "", "top", ".top.AbCdEf", "")


@pytest.mark.parametrize(
    ("have", "wanted", "left"),
    [(4 * MIB, 4 * MIB, 3 * MIB), (9 * MIB, 4 * MIB, 3 * MIB), (5, 5, 0), (MIB, MIB, 0)],
)
def test_a_remainder_that_looks_whole_is_shortened(have: int, wanted: int, left: int) -> None:
    shorten, copy, _ = going_on(half("b", have, wanted))
    assert values(shorten) == (TREE.path, "", "b", "", str(left))
    assert copy.expected == wanted - left


def test_an_orphan_that_looks_whole_is_salvaged_and_shortened_at_once() -> None:
    salvage, copy, _ = going_on(half("b", 4 * MIB, 4 * MIB, orphan=True))
    assert values(salvage) == (TREE.path, "", "b", ".b.AbCdEf", str(3 * MIB))
    assert copy.expected == MIB


def test_each_goes_on_by_itself_and_the_vanished_not_at_all() -> None:
    cut = (half("gone", 5, None), half("x", 5, 10), half("empty", 5, 0), half("y", 5, 10))
    assert [step.action for step in going_on(*cut)] == ["go on with x", "name x", "go on with y", "name y"]
    assert [step.needs[0][0] for step in going_on(*cut) if step.needs] == ["/notes/moved-on-1", "/notes/moved-on-3"]


def test_points_are_removed_for_a_reason() -> None:
    (step,) = plan.remove_points(job(), (OLD, NAME), ("older than 7 days", "too many"))
    assert (step.action, step.effect) == ("remove 2 points", Effect.DESTROYS)
    assert step.why == f"{OLD}: older than 7 days; {NAME}: too many"
    assert step.removes == f"{OLD} {NAME}"
    assert values(step) == (ROOT.path, OLD, NAME)


def test_publishing_is_proved_by_a_look() -> None:
    (step,) = plan.publish_point(job(), NAME)
    assert (step.makes, step.confirmation) == (NAME, PointVisible(root=ROOT, name=NAME))
    assert str(step.confirmation) == f"/backup/photos/points/{NAME} is there and latest"
    assert isinstance(step.work, PointPublication)
    assert (step.work.root, step.work.name, step.work.manifest) == (ROOT, NAME, ".poolferry/manifest.gz")
    (there,) = plan.publish_point(job(target=THERE), NAME)
    assert (
        values(replace(step, work=step.work.otherwise)) == values(there) == (ROOT.path, NAME, ".poolferry/manifest.gz")
    )


def test_preparing_outlasts_a_receiver_that_is_left_over() -> None:
    (step,) = plan.prepare_target(job(target=THERE), WORK)
    assert values(step)[1:] == ("photos", "330", "work")
    (step,) = plan.prepare_target(job(), WORK)
    assert isinstance(step.work, TargetPreparation)
    assert (step.work.job, step.work.folders, step.work.stored) == ("photos", ("work",), False)
    assert values(replace(step, work=step.work.otherwise)) == (
        ROOT.path,
        "photos",
        "330",
        "work",
    )  # the job's patience, and some more


def test_a_manifest_knows_what_it_may_believe() -> None:
    (step,) = manifest_steps.record_manifest(job(), world(USED), TREE, NAME, point(), ASKED)
    assert isinstance(step.work, ManifestRecording)
    assert replace(step.work, review=None, sweep=None) == ManifestRecording(
        tree=TREE, manifest=ROOT / ".poolferry/manifest.gz", point=NAME, moved="/notes", linked=point(),
        digest="xxh128",
    )  # fmt: skip
    review = step.work.review
    assert review is not None
    assert (review.source, review.parts, review.owners, review.mirror) == (job().tree, "auo", True, False)
    assert "--files-from=/notes/again --ignore-missing-args --whole-file --ignore-times" in str(review.again)
    assert step.confirmation == CountsEqual(tree=TREE)
    (first,) = manifest_steps.record_manifest(job(), world(USED), TREE, NAME, None, ASKED)
    assert isinstance(first.work, ManifestRecording)
    assert first.work.linked is None


def test_a_mirrors_manifest_stands_apart_from_its_tree() -> None:
    (step,) = manifest_steps.record_mirror(mirror(), world(MIRRORED), ASKED)
    assert isinstance(step.work, ManifestRecording)
    assert (step.work.tree, step.work.apart) == (ROOT, (b".poolferry",))
    assert step.work.linked is not None
    assert (step.work.linked.name, step.work.linked.manifest) == ("mirror", step.work.manifest)
    assert step.effect is Effect.WRITES


def test_a_mirror_whose_first_copy_was_cut_has_no_manifest_to_take_from() -> None:
    (step,) = manifest_steps.record_mirror(mirror(), world(replace(MIRRORED, mirrored=None, work=True)), ASKED)
    assert isinstance(step.work, ManifestRecording)
    assert step.work.linked is None
