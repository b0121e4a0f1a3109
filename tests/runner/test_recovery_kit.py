"""The recovery kit after a copy: made once a day, kept, carried with our configuration and history; never a copy's failure."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator import compose
from orchestrator.domain.errors import Evidence, OrchestratorError, PermissionDenied
from orchestrator.domain.job import Job
from orchestrator.domain.kit import KitContents
from orchestrator.domain.place import Location, Place
from orchestrator.domain.plan import Effect, Pipeline, single_command
from orchestrator.engines.zfs import ZfsEngine
from orchestrator.engines.zfs.options import ZfsOptions
from orchestrator.history.store import open_history
from orchestrator.process.executor import Reader
from orchestrator.process.stop import StopRequest
from orchestrator.runner.recovery_kit import refresh_kit
from orchestrator.runner.run_recorder import RunRecorder, begin_run

JOB = Job(
    name="photos", file="", engine="zfs", source=Location(path="tank/photos"),
    target=Place(name="vault", location=Location(path="vault/photos")), options=ZfsOptions(),
)  # fmt: skip
KIT = KitContents(content="{}", layout="zpool create tank sda", recovery="# Do this", guids="a\t1\n")


class Making(ZfsEngine):
    """The engine, but its kit is told, and goes into a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kit = KIT
        self.requested = 0
        self.failure: OrchestratorError | None = None
        self.refusal: OrchestratorError | None = None
        self.stored = 0

    def survey_kit(self, job: Job, now: datetime, reader: Reader) -> KitContents:
        self.requested += 1
        if self.failure is not None:
            raise self.failure
        return self.kit

    def store_kit(self, job: Job, archive: str) -> Pipeline:
        self.stored += 1
        if self.refusal is not None:
            raise self.refusal
        return replace(single_command("tar", "-x", "-C", str(self.folder), effect=Effect.WRITES), reads=archive)


class Days:
    """A clock that somebody turns."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[RunRecorder]:
    config = tmp_path / "config"
    (config / "jobs").mkdir(parents=True)
    (config / "targets.toml").write_text("[place.vault]\n")
    (config / "jobs" / "photos.toml").write_text('engine = "zfs"\n')
    (config / "jobs" / "notes.txt").write_text("mine")
    (tmp_path / "there").mkdir()
    where = compose.Directories(config=str(config), state=str(tmp_path / "state"))
    with compose.open_history(where) as history:
        made = compose.make_run_context(
            JOB, where, history, notify=lambda _: None, log=lambda _: None, stop=StopRequest(), ssh_options=()
        )
        engine: Any = Making(tmp_path / "there")
        begun = begin_run(JOB, replace(made, engine=engine, clock=Days()), "a test")
        begun.attempt_begun()
        yield begun


def refresh(journal: RunRecorder) -> Making:
    refresh_kit(journal, journal.tools.writer(()))
    engine: Any = journal.tools.engine
    assert isinstance(engine, Making)
    return engine


def later(journal: RunRecorder, **more: int) -> None:
    clock: Any = journal.tools.clock
    clock.now += timedelta(**more)


def test_a_kit_is_kept_and_carried_with_all_that_is_ours(journal: RunRecorder, tmp_path: Path) -> None:
    refresh(journal)
    there = tmp_path / "there"
    found = {str(path.relative_to(there)) for path in there.rglob("*") if path.is_file()}
    assert found == {
        "RECOVERY.md", "kit.json", "guids.tsv", "history.sqlite", "SHA256SUMS", "configuration/targets.toml",
        "configuration/jobs/photos.toml",
    }  # fmt: skip
    assert (there / "RECOVERY.md").read_text() == "# Do this"
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=there, check=True)
    with open_history(str(there / "history.sqlite")) as copied:
        kept = copied.kits.of("photos")
        assert kept is not None
        assert kept.kit == KIT
    assert journal.warnings == []


def test_once_a_day_and_a_change_of_layout_is_told(journal: RunRecorder) -> None:
    assert refresh(journal).requested == 1
    later(journal, hours=2)
    engine = refresh(journal)
    assert engine.requested == 1
    later(journal, days=1)
    engine.kit = replace(KIT, layout="zpool create tank mirror sda sdb")
    assert refresh(journal).requested == 2
    assert journal.warnings == [
        "the pool of tank/photos is made otherwise than on 2026-01-01: zpool create tank mirror sda sdb"
    ]


def test_each_disk_of_a_set_gets_it_once_a_day_and_it_is_made_once(journal: RunRecorder, tmp_path: Path) -> None:
    page = tmp_path / "there/RECOVERY.md"
    for name, carried in (("red", True), ("blue", True), ("red", False), ("blue", False)):
        page.unlink(missing_ok=True)
        journal.job = replace(JOB, target=replace(JOB.target, name=name, disk=name))
        assert refresh(journal).requested == 1
        assert page.exists() is carried


def test_what_fails_is_a_warning_and_what_is_not_allowed_less(journal: RunRecorder) -> None:
    engine = refresh(journal)
    later(journal, days=1)
    engine.failure = OrchestratorError("no pool")
    refresh(journal)
    assert journal.warnings == ["the recovery kit could not be renewed: no pool"]
    engine.failure = PermissionDenied("only root may", evidence=Evidence(lines=(), exits=(), last_output=(), host=None))
    refresh(journal)
    assert len(journal.warnings) == 1


def test_a_place_that_takes_no_kit_is_asked_once_a_day(journal: RunRecorder) -> None:
    engine: Any = journal.tools.engine
    engine.refusal = PermissionDenied("a gate", evidence=Evidence(lines=(), exits=(), last_output=(), host=None))
    for hours, stored in ((0, 1), (2, 1), (19, 2), (1, 2)):
        later(journal, hours=hours)
        assert refresh(journal).stored == stored
    assert journal.warnings == []
