"""Files out of a snapshot, by the real rsync; what shows the snapshot is a copy of a folder in place of a mount."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator import compose
from orchestrator.domain.dataset_restore import SnapshotView
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.plan import Effect, Plan, Refusal, Step, single_command
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.run import Outcome
from orchestrator.engines.rsync.script_commands import begin_file_command, compare_entries_command
from orchestrator.engines.zfs import ZfsEngine
from orchestrator.engines.zfs.options import ZfsOptions
from orchestrator.process.executor import Reader
from orchestrator.process.stop import StopRequest
from orchestrator.runner.context import RunContext
from orchestrator.runner.restore.request import RestoreOptions
from orchestrator.runner.restore.restore import plan_restore, run_restore

JOB = Job(
    name="photos", file="", engine="zfs", source=Location(path="tank/photos"),
    target=Place(name="vault", location=Location(path="vault/photos")), options=ZfsOptions(),
)  # fmt: skip
TAKEN = datetime(2026, 1, 1, tzinfo=UTC)
POINT = RestorePoint(name="a", taken=TAKEN, tree=Location(path="vault/photos@a"), manifest=None)


class Showing(ZfsEngine):
    """The engine, but its one snapshot is a folder."""

    def __init__(self, folder: Path, left_out: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.others = left_out

    def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
        return (POINT,)

    def survey_files(self, job: Job, path: bytes, point: RestorePoint, reader: Reader) -> SnapshotView | Refusal:
        shown = self.folder / "shown"

        def step(action: str, *argv: str) -> Step:
            work = single_command(*argv, effect=Effect.WRITES)
            return Step(action=action, why="", worker="show", work=work, expected=None)

        return SnapshotView(
            point=point, tree=Location(path=str(shown)), rest=path, left_out=self.others,
            show=step("mount", "cp", "-a", str(self.folder / "snapshot"), str(shown)), hide=step("unmount", "rm", "-r", str(shown)),
        )  # fmt: skip


@pytest.fixture
def tools(tmp_path: Path) -> Iterator[RunContext]:
    (tmp_path / "snapshot" / "deep" / "er").mkdir(parents=True)
    (tmp_path / "snapshot" / "deep" / "a").write_text("one")
    (tmp_path / "snapshot" / "deep" / "er" / "b").write_text("two")
    (tmp_path / "snapshot" / "top").write_text("three")
    where = compose.Directories(config=str(tmp_path), state=str(tmp_path / "state"))
    with compose.open_history(where) as history:
        made = compose.make_run_context(
            JOB, where, history, notify=lambda _: None, log=lambda _: None, stop=StopRequest(), ssh_options=()
        )
        engine: Any = Showing(tmp_path, ("sub",))
        yield replace(made, engine=engine)


def request(to: Path, path: bytes = b"", **more: Any) -> RestoreOptions:
    return RestoreOptions(to=Location(path=str(to)), path=path, **more)


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_comes_back_and_is_proved(tools: RunContext, tmp_path: Path) -> None:
    report = run_restore(JOB, tools, request(tmp_path / "back", b"deep"))
    assert report.outcome is Outcome.DONE, report
    assert "done and verified" in report.why
    assert files(tmp_path / "back") == {"a": "one", "er/b": "two"}
    assert [step.action.partition(" ")[0] for step in report.steps] == [
        "mount", "read", "prepare", "copy", "read", "open", "compare", "end", "unmount",
    ]  # fmt: skip
    assert report.warnings == ("datasets that lie below it are not in it, and come by a --path of their own: sub",)
    assert not (tmp_path / "shown").exists()


def test_files_of_a_dataset_that_lacks_the_point_are_said_to_be_older(tools: RunContext, tmp_path: Path) -> None:
    class Behind(Showing):
        def points(self, job: Job, reader: Reader) -> tuple[RestorePoint, ...]:
            return (POINT, replace(POINT, name="c", taken=TAKEN + timedelta(days=1)))

        def survey_files(self, job: Job, path: bytes, point: RestorePoint, reader: Reader) -> SnapshotView | Refusal:
            shown = super().survey_files(job, path, POINT, reader)
            assert isinstance(shown, SnapshotView)
            return shown

    engine: Any = Behind(tmp_path)
    told = "vault/photos does not hold c: the files come as of its a"
    plan = plan_restore(JOB, replace(tools, engine=engine), request(tmp_path / "back", b"deep"))
    assert isinstance(plan, Plan)
    assert plan.warnings == (told,)
    assert run_restore(JOB, replace(tools, engine=engine), request(tmp_path / "back", b"deep")).warnings == (told,)
    plan = plan_restore(JOB, replace(tools, engine=engine), request(tmp_path / "back", b"deep", point="a"))
    assert isinstance(plan, Plan)
    assert plan.warnings == ()


def test_all_of_it_comes_back(tools: RunContext, tmp_path: Path) -> None:
    assert run_restore(JOB, tools, request(tmp_path / "back")).outcome is Outcome.DONE
    assert files(tmp_path / "back") == {"deep/a": "one", "deep/er/b": "two", "top": "three"}


def test_a_single_file_is_compared_byte_by_byte(tools: RunContext, tmp_path: Path) -> None:
    (tmp_path / "back").mkdir()
    report = run_restore(JOB, tools, request(tmp_path / "back", b"deep/er/b"))
    assert report.outcome is Outcome.DONE, report
    assert "done and verified" in report.why
    assert files(tmp_path / "back") == {"b": "two"}
    steps = [step.action.partition(" ")[0] for step in report.steps]
    assert steps.index("copy") < steps.index("compare") < steps.index("put"), (
        "nothing gets its place that was not compared"
    )


@pytest.mark.parametrize("kind", ["er/b", "nowhere", "/dev/zero", "fifo"])
def test_a_single_link_or_fifo_is_compared_as_what_it_is(tools: RunContext, tmp_path: Path, kind: str) -> None:
    """A link may lead to another file, here or there, or to one without an end."""
    odd, back = tmp_path / "snapshot/deep/odd", tmp_path / "back"
    os.mkfifo(odd) if kind == "fifo" else odd.symlink_to(kind)
    back.mkdir()
    report = run_restore(JOB, tools, request(back, b"deep/odd"))
    assert report.outcome is Outcome.DONE, report
    assert (kind == "fifo" and (back / "odd").is_fifo()) or os.readlink(back / "odd") == kind
    assert os.listdir(back) == ["odd"]


def test_entries_that_differ_are_told(tmp_path: Path) -> None:
    for name, text in (("one", "text"), ("other", "texs"), ("same", "text")):
        (tmp_path / name).write_text(text)
        (tmp_path / f"to-{name}").symlink_to(text)
    os.mkfifo(tmp_path / "fifo")

    def same(one: str, other: str) -> bool:
        command = compare_entries_command(Location(path=str(tmp_path / one)), Location(path=str(tmp_path / other)))
        return subprocess.run(command.argv, capture_output=True, check=False, timeout=20).returncode == 0

    assert [same("one", name) for name in ("same", "other", "to-one", "fifo", "missing")] == [True, *(False,) * 4]
    assert [same("to-one", name) for name in ("to-same", "to-other", "one", "fifo")] == [True, *(False,) * 3]
    assert not same("fifo", "one")


def test_a_link_of_a_cut_restore_is_brought_back_once_more(tmp_path: Path) -> None:
    to = Location(path=str(tmp_path / "odd"))
    room = tmp_path / ".~poolferry-partial~" / "odd"
    for _ in range(2):
        subprocess.run(begin_file_command(to, aside="", marker="{}").argv, check=True)
        assert not os.path.lexists(room / "odd")
        (room / "odd").symlink_to("nowhere")


def test_nothing_is_overwritten_and_nothing_stays_mounted(tools: RunContext, tmp_path: Path) -> None:
    (tmp_path / "back").mkdir()
    (tmp_path / "back" / "own").write_text("mine")
    report = run_restore(JOB, tools, request(tmp_path / "back", b"deep"))
    assert report.outcome is Outcome.REFUSED
    assert files(tmp_path / "back") == {"own": "mine"}
    assert not (tmp_path / "shown").exists()
    assert run_restore(JOB, tools, request(tmp_path / "back", b"nothing")).outcome is Outcome.REFUSED


def test_what_was_cut_is_gone_on_with_by_the_same_wish_alone(
    tools: RunContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The marker of a restore that was cut tells the part."""
    once = replace(JOB, retry=replace(JOB.retry, attempts=1))
    with monkeypatch.context() as broken:
        in_place_of_rsync(tmp_path, broken, "exit 12")
        assert run_restore(once, tools, request(tmp_path / "back", b"deep")).outcome is Outcome.FAILED
    assert not (tmp_path / "shown").exists()
    other = run_restore(once, tools, request(tmp_path / "back", b"deep/er"))
    assert (other.outcome, "holds an unfinished restore" in other.why) == (Outcome.REFUSED, True)
    assert other.hint.startswith(f"to finish that one: poolferry restore run {JOB.name} --path deep --point "), (
        other.hint
    )
    assert other.hint.index("; or give another destination, or use --aside") > 0
    again = run_restore(once, tools, request(tmp_path / "back", b"deep"))
    assert (again.outcome, again.resumed) == (Outcome.DONE, True)


def in_place_of_rsync(folder: Path, patch: pytest.MonkeyPatch, text: str) -> None:
    """A script that is found before the real one."""
    (folder / "bin").mkdir()
    (folder / "bin" / "rsync").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "bin" / "rsync").chmod(0o755)
    patch.setenv("PATH", f"{folder}/bin:/usr/bin:/bin")


def test_the_plan_mounts_nothing(tools: RunContext, tmp_path: Path) -> None:
    plan = plan_restore(JOB, tools, request(tmp_path / "back", b"deep"))
    assert isinstance(plan, Plan)
    assert [step.action for step in plan.steps] == ["mount", "unmount"]
    assert not (tmp_path / "shown").exists()


def test_damage_on_the_way_is_found(tools: RunContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file that arrives is compared with the snapshot's, so a copy that is not the same fails."""
    in_place_of_rsync(tmp_path, monkeypatch, f'/usr/bin/rsync "$@" && printf X >{tmp_path}/back/a')
    report = run_restore(replace(JOB, retry=replace(JOB.retry, attempts=1)), tools, request(tmp_path / "back", b"deep"))
    assert report.outcome is Outcome.FAILED, report
    assert "does not match its manifest" in report.why
    assert not (tmp_path / "shown").exists()
