"""A dataset that has another name now is found by its guid; what cannot be told for sure is not told."""

import os
import subprocess
from pathlib import Path

import pytest

from orchestrator.domain.errors import Evidence, SourceMissing, SourceRenamed, Stopped
from orchestrator.domain.job import SnapshotRules
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.renamed_dataset import NOT_RENAMED, RenamedDataset, give_name_back
from orchestrator.process.moved_dataset import explain_missing_source, find_datasets_command, find_moved_dataset
from orchestrator.process.pipeline import PipelineResult
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.sanoid.builders import job

FORMER = Location(path="tank/photos")
HOST = Host(user="root", name="nas", port=None)
MISSING = SourceMissing("it is not there", evidence=Evidence(lines=(), exits=(1,), last_output=()), hint="look")


def found(answer: bytes | PipelineResult, pool_guid: int = 7) -> RenamedDataset:
    told = scripted_result(answer) if isinstance(answer, bytes) else answer
    return find_moved_dataset(99, pool_guid, FORMER, ScriptedExecutor([(lambda _: True, told)]))


@pytest.mark.parametrize(
    ("answer", "pool", "name"),
    [
        (b"7\tlake/my photos\n=end\n", 7, "lake/my photos"),
        (b"7\tlake\n8\ttank\n=end\n", 7, "lake"),  # one half of a pool that was split has the same datasets
        (b"8\ttank\n=end\n", 0, "tank"),
        (b"8\ttank\n=end\n", 7, ""),
        (b"7\tlake\n8\ttank\n=end\n", 0, ""),
        (b"=end\n", 7, ""),
        (b"7\ttank/photos_aside_2026-03-04T050607Z\n=end\n", 7, ""),
        (b"=above\ttank\n=end\n", 7, ""),
        (b"7\ttank/in/x\n=within\ttank/in\n", 7, "tank/in/x"),
    ],
)
def test_a_dataset_is_known_by_its_guid_and_that_of_its_pool(answer: bytes, pool: int, name: str) -> None:
    assert (found(answer, pool).name, found(answer, pool).unseen) == (name, "")


@pytest.mark.parametrize(
    "answer",
    [b"", b"7\tlake\n", b"seven\tlake\n=end\n", b"7\tla\x1bke\n=end\n", b"=within\n", b"=within\t\n", b"=above\tt\x1bnk\n=end\n"],
)  # fmt: skip
def test_what_is_no_answer_finds_nothing_and_leaves_it_open(answer: bytes) -> None:
    assert (found(answer).name, bool(found(answer).unseen)) == ("", True)


def test_what_a_look_leaves_open_is_said() -> None:
    assert found(b"=end\n").doubt == "", "it saw all"
    assert found(b"7\ttank/in/x\n=within\ttank/in\n").doubt == "", "and found it"
    assert found(b"=within\ttank/in\n").doubt == (
        "the gate of our key shows tank/in alone, and nothing there has its guid: it may lie elsewhere there, under another name"
    )
    refused = scripted_result(exits=(1,), words="\npoolferry gate laptop: refused: it was asked for `find-datasets.sh`")
    assert found(refused).doubt == (
        "whether it has another name now cannot be seen: poolferry gate laptop: refused: it was asked for `find-datasets.sh`"
    )
    assert NOT_RENAMED.doubt == "", "nobody had to look"


def test_a_stop_is_no_answer() -> None:
    class Stopping(ScriptedExecutor):
        def read(self, pipeline: Pipeline, **_: object) -> PipelineResult:
            raise Stopped("the run was asked to stop")

    with pytest.raises(Stopped):
        find_moved_dataset(99, 7, FORMER, Stopping([]))


@pytest.mark.parametrize(
    ("former", "now", "above", "commands"),
    [
        ("tank/photos", "tank/my pictures", "tank", "zfs rename 'tank/my pictures' tank/photos"),
        ("tank/photos", "lake/photos", "", "zpool export lake && zpool import lake tank"),
        ("tank", "lake", "", "zpool export lake && zpool import lake tank"),
        ("tank/a", "lake/b", "", "zpool export lake && zpool import lake tank && zfs rename -p tank/b tank/a"),
        ("tank/a/p", "tank/b/p", "tank/a", "zfs rename tank/b/p tank/a/p"),
        ("tank/a/p", "tank/b/p", "tank", "zfs rename tank/b tank/a"),
        ("tank/a/x/p", "tank/b/x/p", "tank", "zfs rename tank/b tank/a"),
        ("tank/a/p", "tank/b/q", "tank", "zfs rename -p tank/b/q tank/a/p"),
        ("tank/a/p", "tank/p", "tank", "zfs rename -p tank/p tank/a/p"),
        ("tank/a/p", "tank/b/p", "", "zfs rename -p tank/b/p tank/a/p"),
    ],
)
def test_the_commands_give_the_former_name_back(former: str, now: str, above: str, commands: str) -> None:
    there = RenamedDataset(name=now, above=above)
    assert give_name_back(former, there, None) == commands
    assert give_name_back(former, there, None, sudo=True) == commands.replace("zfs", "sudo zfs").replace(
        "zpool", "sudo zpool"
    )


def test_on_a_host_they_go_by_ssh_and_behind_a_gate_they_are_for_a_person_there() -> None:
    there = RenamedDataset(name="tank/b", above="tank")
    assert give_name_back("tank/a", there, HOST) == "ssh root@nas 'zfs rename tank/b tank/a'"
    gate = RenamedDataset(name="tank/b", above="tank", within="tank")
    assert give_name_back("tank/a", gate, HOST) == "on nas: zfs rename tank/b tank/a"


# The script itself, with stand-ins for both programs.

LISTED = {
    "zpool": "7\tONLINE\ttank\n8\tSUSPENDED\tsick\n9\tDEGRADED\tlake\n",
    "tank": "5\ttank\n99\ttank/in/b c\n6\ttank/out\n",
    "lake": "99\tlake/x\n",
}


def run(folder: Path, guid: int, pool: int, former: str, within: str = "") -> list[str]:
    """The lines of the script's answer."""
    names = [line.split("\t")[1] for pool in ("tank", "lake") for line in LISTED[pool].splitlines()] + ["tank/in"]
    zpool = f"printf '{LISTED['zpool']}'"
    zfs = f"""case "$*" in
      "list -H -o name "*) case $5 in {"|".join(f"'{name}'" for name in names)}) ;; *) exit 1 ;; esac ;;
      *" tank") printf '{LISTED["tank"]}' ;; *" tank/in") printf '99\ttank/in/b c\\n' ;; *" lake") printf '{LISTED["lake"]}' ;;
      *) sleep 9 ;; esac"""
    for name, text in (("zpool", zpool), ("zfs", zfs)):
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    argv = find_datasets_command(guid, pool, former, None, within=within).argv
    done = subprocess.run(
        argv, capture_output=True, text=True, check=True, env={"PATH": f"{folder}:{os.environ['PATH']}"}
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_all_pools_are_searched_but_those_that_would_hold_zfs_up(tmp_path: Path) -> None:
    assert run(tmp_path, 99, 0, "tank/in/a") == ["=above\ttank/in", "7\ttank/in/b c", "9\tlake/x", "=end"]
    assert run(tmp_path, 99, 9, "tank/none/a") == ["=above\ttank", "9\tlake/x", "=end"]
    assert run(tmp_path, 9, 0, "gone/a") == ["=end"], "a part of a guid is none"
    assert run(tmp_path, 0, 8, "sick") == ["8\tsick", "=end"]


def test_what_a_gate_shows_is_all_that_is_told(tmp_path: Path) -> None:
    assert run(tmp_path, 99, 0, "tank/in/a", "tank/in") == ["=above\ttank/in", "7\ttank/in/b c", "=within\ttank/in"]
    assert run(tmp_path, 6, 0, "tank/in/a", "tank/in") == ["=above\ttank/in", "=within\ttank/in"]
    assert run(tmp_path, 99, 9, "tank/in/a", "tank/in") == ["=above\ttank/in", "=within\ttank/in"]
    assert run(tmp_path, 0, 0, "tank/in/a", "tank/in") == ["=above\ttank/in", "=within\ttank/in"]
    assert run(tmp_path, 99, 0, "tank/in", "tank/in") == ["7\ttank/in/b c", "=within\ttank/in"], (
        "what lies above it is not shown"
    )


# The engines that work on the source alone.


def explained(remembered: str, answer: bytes, *, source: str = "tank/photos", also: str = "") -> SourceMissing:
    reader = ScriptedExecutor([(lambda _: True, scripted_result(answer))])
    return explain_missing_source(job(source=Location(path=source)), remembered, MISSING, reader, also=also)


def test_a_source_that_is_known_by_its_guid_says_how_it_goes_on() -> None:
    told = explained("99 0 tank/photos", b"=above\ttank\n7\ttank/b c\n=end\n", also=", and there, too")
    assert (type(told), told.why) == (SourceRenamed, "the source tank/photos is called tank/b c now, by its guid")
    assert told.hint == (
        'to go on under that name: write source = "tank/b c" into photos.toml, and there, too; or give the former one back: '
        "zfs rename 'tank/b c' tank/photos"
    )
    reader = ScriptedExecutor([(lambda _: True, scripted_result(b"=above\ttank\n7\ttank/b c\n=end\n"))])
    told = explain_missing_source(job(SnapshotRules(daily=1)), "99 0 tank/photos", MISSING, reader)
    assert told.hint == (
        "sanoid finds no datasets below a name with a blank, so give the former one back: zfs rename 'tank/b c' tank/photos"
    ), "the configuration refuses that name"
    told = explained("99 7 tank/photos", b"7\tlake/photos\n=end\n")
    assert told.why == "the pool tank is imported as lake now, so the source tank/photos is not there"
    told = explained("0 7 tank", b"7\tlake\n=end\n", source="tank")
    assert told.why == "the pool tank is imported as lake now, by its guid"


@pytest.mark.parametrize("remembered", ["", "x", "99 0 tank/other", "0 0 tank/photos"])
def test_a_source_that_no_run_saw_is_only_missing(remembered: str) -> None:
    assert explained(remembered, b"7\tlake/photos\n=end\n") is MISSING


def test_one_that_is_found_nowhere_is_only_missing() -> None:
    assert explained("99 0 tank/photos", b"=end\n") is MISSING
