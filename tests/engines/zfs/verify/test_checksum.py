"""Test which contents are compared, how they are listed, and what is honestly left unproved."""

import os
import signal
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.job import VerifyRules
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect, Pipeline, Step
from orchestrator.engines.contract.comparison import ComparisonPlan
from orchestrator.engines.zfs.model import Dataset, DatasetType
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.verify.checksum import (
    ChecksumSupport,
    ComparisonSurvey,
    checksum_list_command,
    checksum_support_command,
    parse_checksum_support,
    plan_checksums,
)
from orchestrator.engines.zfs.verify.compare import GuidComparison, compare_guids
from orchestrator.process.scripts import script
from orchestrator.verify.pipelines import listing_command
from tests.engines.zfs.sides import ASKED, COPY, HOST, SOURCE, A, B, dataset, job, side, world
from tests.whole.house import wait_until

QUICK = ChecksumSupport(digests=frozenset({"xxh128"}))


def planned(
    *source: Dataset, target: tuple[Dataset, ...] | None = None, able: tuple[ChecksumSupport, ChecksumSupport] | None = (ChecksumSupport(), ChecksumSupport()),
    place: Host | None = None, sudo: bool = False, verify: VerifyRules | None = None, **options: Any,
) -> ComparisonPlan:  # fmt: skip
    """The comparison of these datasets with copies of theirs."""
    copies = target or tuple(replace(one, written=0) for one in source)
    there = side(Location(path=COPY.path, host=place), *copies, sudo=sudo)
    seen, requested = world(side(SOURCE, *source), there), replace(job(**options), verify=verify or VerifyRules())
    judged = compare_guids(PlanContext(requested, seen, ASKED), point=None)
    assert isinstance(judged, GuidComparison)
    return plan_checksums(requested, ComparisonSurvey(world=seen, able=able), judged, ASKED)


def command(step: Step) -> Command:
    assert isinstance(step.work, Pipeline)
    (only,) = step.work.stages
    return only


def test_without_contents_there_is_nothing_to_read() -> None:
    comparison = planned(dataset("", A, B), able=None)
    assert (comparison.stages, comparison.point, comparison.checked, comparison.datasets) == ((), "b", 2, 1)


def test_both_sides_list_the_newest_common_snapshot() -> None:
    ((pair,),) = planned(dataset("", A, B)).stages
    assert pair.name == b"@b"
    source, target = command(pair.source), command(pair.target)
    assert source.argv[-3:] == ("tank/photos@b", "sha256", "4")
    assert target.argv[-3:] == ("vault/copies/photos@b", "sha256", "4")
    assert source.argv[:6] == ("unshare", "--mount", "--propagation", "slave", "sh", "-c")
    assert source.effect is Effect.WRITES
    assert isinstance(pair.source.work, Pipeline)
    assert isinstance(pair.target.work, Pipeline)
    assert (pair.source.work.keeps, pair.target.work.keeps) == ("/notes/0-source", "/notes/0-target")
    assert pair.source.worker != pair.target.worker


def test_as_many_side_by_side_as_the_job_allows() -> None:
    names = ("", "a", "b", "c", "d")
    stages = planned(*(dataset(name, A) for name in names), parallel=2).stages
    assert [[pair.name for pair in stage] for stage in stages] == [[b"@a", b"a@a"], [b"b@a", b"c@a"], [b"d@a"]]
    kept = {step.work.keeps for stage in stages for pair in stage for step in (pair.source, pair.target)}  # type: ignore[union-attr]
    assert len(kept) == 4  # what one stage has listed is gone before the next one begins


@pytest.mark.parametrize(
    ("able", "digest", "told"),
    [
        ((QUICK, QUICK), "xxh128", "xxh128"),
        ((QUICK, ChecksumSupport()), "xxh128", "sha256"),
        ((QUICK, QUICK), "sha256", "sha256"),
        ((QUICK, QUICK), "blake3", "sha256"),
    ],
)
def test_the_quick_digest_only_where_both_have_it(
    able: tuple[ChecksumSupport, ChecksumSupport], digest: str, told: str
) -> None:
    ((pair,),) = planned(dataset("", A), able=able, verify=VerifyRules(digest=digest, workers=1)).stages
    assert command(pair.source).argv[-2:] == command(pair.target).argv[-2:] == (told, "1")


def test_the_far_side_reads_its_own() -> None:
    ((pair,),) = planned(dataset("", A), place=HOST, sudo=True).stages
    assert (command(pair.source).host, command(pair.target).host) == (None, HOST)
    assert command(pair.target).argv[:3] == ("sudo", "-n", "unshare")
    assert command(pair.source).argv[0] == "unshare"


def test_a_locked_dataset_is_unproved_and_says_what_would_prove_it() -> None:
    target = (dataset("", A, encrypted=True, written=0), dataset("x", A, written=0))
    comparison = planned(dataset("", A, encrypted=True, key_loaded=True), dataset("x", A), target=target)
    assert [(each.path, each.verdict.value) for each in comparison.findings] == [(b"@a", "unproved")]
    (warning,) = comparison.warnings
    assert "only a scrub (zpool scrub vault) and a trial receive" in warning
    assert [pair.name for stage in comparison.stages for pair in stage] == [b"x@a"]
    open_both = dataset("", A, encrypted=True, key_loaded=True, written=0)
    assert len(planned(open_both).stages) == 1


def test_a_volume_needs_a_device_on_both_sides() -> None:
    volume = dataset("v", A, kind=DatasetType.VOLUME)
    seen = ChecksumSupport(visible=frozenset({"v"}))
    hidden = planned(dataset("", A), volume, able=(seen, ChecksumSupport()))
    assert [(each.path, each.verdict.value) for each in hidden.findings] == [(b"v@a", "unproved")]
    assert hidden.warnings == (
        (
            "the contents of 1 volume were not compared: their snapshots have no device: "
            "`zfs set snapdev=visible` on both sides shows them"
        ),
    )
    shown = planned(dataset("", A), volume, able=(seen, seen), parallel=2)
    assert shown.findings == ()
    assert "blockdev" in command(shown.stages[0][1].source).argv[6]


def test_what_a_side_can_do() -> None:
    lines = (b"=can xxh128", b"tank/photos/v\tvisible", b"tank/photos/w\thidden")
    assert parse_checksum_support(lines, SOURCE) == ChecksumSupport(
        digests=frozenset({"xxh128"}), visible=frozenset({"v"})
    )
    assert parse_checksum_support((), SOURCE) == ChecksumSupport()
    assert checksum_support_command(SOURCE).effect is Effect.READS


def test_it_lists_as_every_other_listing_does() -> None:
    """The reader of these records is the one of all listings, so the format is one."""
    listed = listing_command(Location(path="/x")).argv[-1]
    assert (
        f'-printf "{listed}"' in checksum_list_command("a@b", DatasetType.FILESYSTEM, "sha256", 1, side(SOURCE)).argv[6]
    )


@pytest.mark.parametrize("kind", list(DatasetType))
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_scripts_are_sound(kind: DatasetType, shell: str) -> None:
    text = checksum_list_command("a@b", kind, "sha256", 1, side(SOURCE)).argv[6]
    subprocess.run([shell, "-n", "-c", text], check=True)


def test_where_nobody_hears_it_nothing_begins(tmp_path: Path) -> None:
    """As after a kill -9 between the fork and the word to the kernel that the child is to end with its parent."""
    argv = checksum_list_command("tank@a", DatasetType.FILESYSTEM, "sha256", 1, side(SOURCE)).argv
    heard, told = os.pipe()
    os.close(heard)
    untouched = tmp_path.stat().st_mtime_ns
    ended = subprocess.run(
        argv[argv.index("sh") :], env={**os.environ, "TMPDIR": str(tmp_path)}, stderr=told, check=False
    )
    os.close(told)
    assert ended.returncode
    assert tmp_path.stat().st_mtime_ns == untouched


@pytest.mark.slow
def test_however_often_it_is_told_to_end_it_ends_whole(tmp_path: Path) -> None:
    """The kernel tells it once for each thread of who started it."""
    text = script("engines/zfs", "work-alone.sh") + 'work() {\nsleep 600 & sleep 600\n}\nwork_alone "$@"\n'
    for turn in range(40):
        with subprocess.Popen(
            ("sh", "-c", text), env={**os.environ, "TMPDIR": str(tmp_path)}, stderr=subprocess.DEVNULL, start_new_session=True
        ) as begun:  # fmt: skip
            wait_until(partial(sleeping, begun.pid, 3))
            for _ in range(turn * 30):
                os.kill(begun.pid, signal.SIGTERM)
            begun.terminate()
            assert begun.wait(10) == 143
            assert sleeping(begun.pid, 0)
        assert list(tmp_path.iterdir()) == []


def sleeping(session: int, count: int) -> bool:
    """So many of its sleeps are alive: what is dead waits for whoever reaps orphans here."""
    requested = ["pgrep", "-r", "S,R,D", "-x", "-s", str(session), "sleep"]
    return len(subprocess.run(requested, capture_output=True, text=True, check=False).stdout.split()) == count
