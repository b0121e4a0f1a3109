"""Use cases without a command line: plain values in, plain values out, nothing printed; who subscribes hears what goes on."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator import compose
from orchestrator.app.config_check import check_config
from orchestrator.app.copy_checks import drill_jobs, export_point, verify_jobs
from orchestrator.app.dry_run import allowed_guards, plan_run
from orchestrator.app.job_status import survey_jobs
from orchestrator.app.past import list_points, list_runs, show_run
from orchestrator.app.restore import RestoreCommand, choose_copy, plan_restore, run_restore
from orchestrator.app.run_jobs import RunEnd, run_jobs
from orchestrator.app.schedule_report import pause_jobs, resume_jobs, survey_schedule
from orchestrator.app.settings import ProgressOutput, Settings, Silence, Subscriber, WrongRequest
from orchestrator.domain.errors import DeclarationError
from orchestrator.domain.events import RunEvent, RunStarted
from orchestrator.domain.plan import Plan
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.units import Seconds
from orchestrator.planners.health import JobState
from orchestrator.views.copies import RepairSource
from tests.ferry import Ferry

DONE = Outcome.DONE


class Page(Subscriber, Silence):
    """A subscriber as a page would be one."""

    def __init__(self) -> None:
        self.reports: list[RunReport] = []
        self.events: list[RunEvent] = []

    def ended(self, report: RunReport) -> None:
        self.reports.append(report)

    def progress(self) -> ProgressOutput:
        return self

    def notify(self, event: RunEvent) -> None:
        self.events.append(event)

    def log(self, line: str) -> None:
        pass


@pytest.fixture
def page() -> Page:
    return Page()


@pytest.fixture
def settings(ferry: Ferry, page: Page, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name, value in ferry.variables().items():
        monkeypatch.setenv(name, value)
    ferry.job()
    return Settings(subscriber=page)


def test_a_night_and_a_day(
    settings: Settings, page: Page, ferry: Ferry, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned = plan_run(settings, "photos")
    assert isinstance(planned.decision, Plan)
    heard: list[RunEnd] = []
    ends = run_jobs(settings, ["photos"], why="a button", hears=heard.append)
    assert [end.report.outcome for end in ends.runs] == [DONE]
    assert (heard, ends.not_begun) == ([*ends.runs], ())
    assert page.events[0] == RunStarted(run=1, job="photos")
    assert survey_jobs(settings, [], datetime.now(UTC)).well
    (run,) = list_runs(settings, None, 5)
    assert (run.begun_why, show_run(settings, "last").story.run.id) == ("a button", run.id)
    assert len(list_points(settings, ["photos"], look=True).known["photos"]) == 1
    (verified,) = verify_jobs(settings, []).ends
    assert verified.verified.reading is not None
    assert verified.verified.reading.sound
    (drilled,) = drill_jobs(settings, ["photos"], whole=True, self_test=False, seed=None)
    assert drilled.end.drilled.outcome is DONE
    request = RestoreCommand(job="photos", to=str(tmp_path / "back"))
    assert choose_copy(settings, RestoreCommand(job="photos")).choice.copy is not None
    assert isinstance(plan_restore(settings, request).decision, Plan)
    assert run_restore(settings, request).report.outcome is DONE
    assert (tmp_path / "back" / "b.bin").exists()
    assert export_point(settings, "photos", point=None, to=str(tmp_path / "sums")).lines == 2
    assert [report.outcome for report in page.reports] == [DONE] * 5
    assert capsys.readouterr() == ("", "")


def test_damage_is_told_with_where_good_bytes_are(settings: Settings, ferry: Ferry) -> None:
    run_jobs(settings, ["photos"], why="a button")
    (copy,) = ferry.target().glob("points/*/b.bin")
    before = copy.stat()
    with open(copy, "r+b") as file:
        file.write(b"other")
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    heard: list[tuple[RepairSource, ...]] = []
    (end,) = verify_jobs(settings, ["photos"], hears=heard.append).ends
    assert [(hint.path, hint.command) for hint in end.hints] == [(b"b.bin", "poolferry run photos")]
    assert heard == [end.hints]
    (state,) = [each.health.state for each in survey_jobs(settings, [], datetime.now(UTC)).jobs]
    assert state is JobState.FAILING


def test_a_pause(settings: Settings) -> None:
    now = datetime.now(UTC)
    names, until = pause_jobs(settings, [], Seconds(3600), "a fair")
    assert (names, until is not None and until > now) == (("photos",), True)
    (promise,) = survey_schedule(settings, [], now).jobs
    assert promise.pause is not None
    assert promise.pause.why == "a fair"
    assert resume_jobs(settings, ["photos"]) == {"photos": True}
    assert resume_jobs(settings, ["photos"]) == {"photos": False}


def test_the_check(settings: Settings) -> None:
    found = check_config(settings, datetime.now(UTC), system=True)
    assert ([each.job.name for each in found.jobs], found.well) == (["photos"], True)
    assert found.jobs[0].advice


def test_what_does_not_fit_together_is_said(settings: Settings) -> None:
    with pytest.raises(WrongRequest, match="no guard 'nonsense' for photos: expected one of"):
        allowed_guards(settings, ["photos"], ["nonsense"])
    with pytest.raises(WrongRequest, match="history knows no run 7"):
        show_run(settings, "7")
    with pytest.raises(WrongRequest, match="history knows no run yet"):
        show_run(settings, "last")
    with pytest.raises(WrongRequest, match="history knows no run of photos yet") as none:
        show_run(settings, "photos")
    assert "poolferry run photos" in none.value.hint
    with pytest.raises(DeclarationError, match="did you mean photos"):
        show_run(settings, "phots")
    with pytest.raises(WrongRequest, match="use either a job or --from"):
        plan_restore(settings, RestoreCommand(to="/x"))
    with pytest.raises(WrongRequest, match="use either --point or --at"):
        run_restore(settings, RestoreCommand(job="photos", to="/x", point="2", at=datetime.now(UTC)))
    with pytest.raises(WrongRequest, match="expected a path below the source's root"):
        run_restore(settings, RestoreCommand(job="photos", to="/x", path="../y"))


def test_a_run_whose_process_is_gone_is_shown_as_interrupted(settings: Settings) -> None:
    """After a kill or a power cut nobody has recorded its end; it is not said to go on."""
    with compose.open_history(settings.where) as history:
        history.begin(
            job="photos", engine="rsync", source="/a", target="/b", now=datetime.now(UTC), why="a timer", pid=1 << 22,
            process_started=1, boot="another", host="here",
        )  # fmt: skip
    (run,) = list_runs(settings, None, 5)
    shown = show_run(settings, "photos").story.run
    assert (run.outcome, shown.outcome) == (Outcome.INTERRUPTED, Outcome.INTERRUPTED)
    assert "its process is gone" in str(shown.why)
