"""Checks of copies: verification, restore tests, and the export of digests."""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from orchestrator.app.session import Session, open_session, open_visits
from orchestrator.app.settings import Settings, WrongRequest, unheard
from orchestrator.domain.drill import DrillResult, DrillRunResult
from orchestrator.domain.errors import NotNow
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.point import Finding, VerifyJobResult
from orchestrator.domain.run import Outcome, unrecorded_report

if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.app.disk_visits import DiskVisits
    from orchestrator.config.models import Configuration
    from orchestrator.domain.job import Job
    from orchestrator.domain.run import RunReport
    from orchestrator.runner.drill.evidence import DrillRequest
    from orchestrator.views.copies import RepairSource

Hears = Callable[["tuple[RepairSource, ...]"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyEnd:
    """Result of one verification, and where good copies of the damaged files are."""

    verified: VerifyJobResult
    hints: "tuple[RepairSource, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyEnds:
    """Results of all verifications that began. `jobs`: those that were requested; fewer have a result after a stop request."""

    jobs: tuple[str, ...]
    ends: tuple[VerifyEnd, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreTestEnd:
    """Result of one restore test, and where good copies of the damaged files are."""

    end: DrillRunResult
    hints: "tuple[RepairSource, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportEnd:
    """Result of an export. `file`: the written file."""

    report: "RunReport"
    file: str
    lines: int


def verify_jobs(
    settings: Settings,
    names: Sequence[str],
    *,
    point: str | None = None,
    source: bool = False,
    content: bool = False,
    why: str = "",
    hears: Hears = unheard,
) -> VerifyEnds:
    """Read copies of these jobs again (without a name: of all) and compare every file with its manifest.

    `why`: for the records. `hears`: receives each job's damage with the places of good copies. Raises: WrongRequest.
    """
    from orchestrator.runner.verify.verify import verify_job

    known = settings.configuration()
    named = tuple(known.job(name) for name in dict.fromkeys(names))
    jobs = named or tuple(each for each in known.jobs if each.copies)
    _require_copies(jobs, "verify")
    if point and len(jobs) != 1:
        raise WrongRequest("--point needs one job")
    done, cured = list[VerifyJobResult](), list["tuple[RepairSource, ...]"]()
    with _checking(settings, known, hears) as checks:
        for one in jobs:

            def read(placed: "Job") -> "tuple[RunReport, str | None, Sequence[Finding]]":
                found = checks.session.do(
                    placed, verify_job, point=point, against_source=source, content=content, why=why
                )
                done.append(found)
                return found.report, found.point, found.reading.findings if found.reading else ()

            hints, waits = checks.check(one, read, alone=len(jobs) == 1)
            cured.append(hints)
            if waits is not None:
                done.append(VerifyJobResult(report=waits, point=None, reading=None))
            if checks.session.stopped:
                break
    ends = tuple(VerifyEnd(verified=each, hints=hints) for each, hints in zip(done, cured, strict=True))
    return VerifyEnds(jobs=tuple(one.name for one in jobs), ends=ends)


def read_promised(settings: Settings, names: Sequence[str], *, hears: Hears = unheard) -> "tuple[RunReport, ...]":
    """Read again what [verify] read-all-within asks for by now; of jobs that are named at once, in no window and up to no `per-day`.

    Without a name: of all jobs that promise it, each once a day and in its window; those on removable disks are read by their visits.
    Raises: WrongRequest.
    """
    from orchestrator.runner.verify.read_budget import read_as_promised

    known = settings.configuration()
    named = tuple(known.job(name) for name in dict.fromkeys(names))
    if without := [each.name for each in named if each.verify.read_all_within is None]:
        raise WrongRequest(
            f"{', '.join(without)}: promises no reading",
            f'read-all-within = "90d" below [verify] in {without[0]}.toml promises it; `{settings.repeat(f"verify {without[0]}")}` reads the newest point',
        )
    turns: list[tuple[Job, datetime | None]] = [(each, None) for each in named] or list(_turns(settings, known))
    reports: list[RunReport] = []
    if not turns:
        return ()
    with _checking(settings, known, hears) as checks:
        for one, until in turns:

            def read(
                placed: "Job", until: "datetime | None" = until
            ) -> "tuple[RunReport, str | None, Sequence[Finding]]":
                done = checks.session.do(placed, read_as_promised, at_once=bool(named), until=until)
                just = "all that is due was read just now"
                report = done.report if done else unrecorded_report(placed.name, Outcome.NOTHING, just, hint="")
                reports.append(report)
                return report, None, ()

            _, waits = checks.check(one, read, alone=len(turns) == 1)
            if waits is not None:
                reports.append(waits)
            if checks.session.stopped:
                break
    return tuple(reports)


def _turns(settings: Settings, known: "Configuration") -> "Iterator[tuple[Job, datetime | None]]":
    """Yield the jobs whose turn it is, each with the end of its window; None: it has none."""
    from orchestrator import compose
    from orchestrator.app.local_clock import local_calendar
    from orchestrator.domain.answers import parse_instant
    from orchestrator.domain.job import TimeWindow
    from orchestrator.planners.read_deadline import is_turn
    from orchestrator.runner.disk.state import is_paused
    from orchestrator.runner.verify.read_budget import PROMISED_TURN

    now, calendar = compose.now(), local_calendar()
    with settings.views() as views:
        for job in known.jobs:
            if job.verify.read_all_within is None or job.target.rotates:
                continue
            if is_paused(job, views, now) or all(each.place != job.target.name for each in views.points(job.name)):
                continue  # or nothing is there yet
            last = views.fact(
                job.name, PROMISED_TURN + job.target.name, lambda text: parse_instant(text) if text else None
            )
            window = job.verify.window
            if is_turn(last, now) and (window is None or calendar.is_open(window, now)):
                yield (
                    job,
                    None if window is None else calendar.opens(TimeWindow(begin=window.end, end=window.begin), now),
                )


def drill_jobs(
    settings: Settings, names: Sequence[str], *, whole: bool, self_test: bool, seed: int | None, hears: Hears = unheard
) -> tuple[RestoreTestEnd, ...]:
    """Restore a sample of each job's newest point to scratch and compare it. `hears`: as in `verify_jobs`.

    Raises: WrongRequest.
    """
    from orchestrator.runner.drill.drill import drill_job
    from orchestrator.runner.drill.evidence import DrillRequest

    known = settings.configuration()
    jobs = tuple(known.job(name) for name in dict.fromkeys(names))
    _require_copies(jobs, "drill")
    request = DrillRequest(whole=whole, self_test=self_test, seed=seed)
    ended, cured = list[DrillRunResult](), list["tuple[RepairSource, ...]"]()
    with _checking(settings, known, hears) as checks:
        for one in jobs:

            def do(placed: "Job") -> "tuple[RunReport, str | None, Sequence[Finding]]":
                ended.append(checks.session.do(placed, drill_job, request))
                return ended[-1].report, ended[-1].drilled.point, ended[-1].findings

            hints, waits = checks.check(one, do, alone=len(jobs) == 1)
            cured.append(hints)
            if waits is not None:
                ended.append(DrillRunResult(report=waits, drilled=_undrilled(one, request, waits)))
            if checks.session.stopped:
                break
    return tuple(RestoreTestEnd(end=each, hints=hints) for each, hints in zip(ended, cured, strict=True))


def _undrilled(job: "Job", request: "DrillRequest", waits: "RunReport") -> DrillResult:
    return DrillResult(
        place=job.target.name, point=None, outcome=waits.outcome, why=waits.why, whole=request.whole, self_test=request.self_test,
        seed=request.seed or 0,
    )  # fmt: skip


def _require_copies(jobs: "Sequence[Job]", do: str) -> None:
    if alone := [each.name for each in jobs if not each.copies]:
        raise WrongRequest(f"{', '.join(alone)}: copies nothing, so there is nothing to {do}")


@contextlib.contextmanager
def _checking(settings: Settings, known: "Configuration", hears: Hears) -> "Iterator[_Checks]":
    from orchestrator.domain.run import VisitCause

    with open_session(settings) as session, open_visits(settings, session, known, cause=VisitCause.RESTORE) as visits:
        yield _Checks(settings, known, session, visits, hears)


class _Checks:
    """Checks of jobs, one after the other: each on its disk, with its report, and a search for good copies of damaged files."""

    def __init__(
        self, settings: Settings, known: "Configuration", session: Session, visits: "DiskVisits | None", hears: Hears
    ) -> None:
        from orchestrator.app.run_jobs import RunObservers

        self.session = session
        self._settings, self._visits, self._hears = settings, visits, hears
        self._around = RunObservers(settings.where, known.jobs, settings.say)

    def check(
        self, job: "Job", do: "Callable[[Job], tuple[RunReport, str | None, Sequence[Finding]]]", *, alone: bool
    ) -> "tuple[tuple[RepairSource, ...], RunReport | None]":
        """Check one job, and return where good copies of its damaged files are; and the report of a job whose disk is away.

        Raises: NotNow where its disk is away and it is checked `alone`; else the others are checked all the same.
        """
        found: list[tuple[Job, str | None, Sequence[Finding]]] = []

        def placed(at: "Job", absent: "NotNow | None") -> "RunReport":
            if absent is not None:
                raise absent
            report, point, findings = do(at)
            found.append((at, point, findings))
            return report

        try:
            report = self._visits.run(job, placed) if self._visits else placed(job, None)
        except NotNow as away:
            if alone:
                raise
            waits = unrecorded_report(job.name, Outcome.WAITING, away.why, hint=away.hint)
            self._settings.subscriber.ended(waits)
            return (), waits
        self._settings.subscriber.ended(report)
        hints = self._hints(*found[-1])
        if hints:
            self._hears(hints)
        self._around.changed()
        return hints, None

    def _hints(self, job: "Job", point: str | None, findings: Sequence[Finding]) -> "tuple[RepairSource, ...]":
        if not findings:
            return ()
        from orchestrator.app.repair_sources import find_repair_sources

        return find_repair_sources(self._settings, job, point, findings)


def export_point(settings: Settings, name: str, *, point: str | None, to: str) -> ExportEnd:
    """Write a point's digests to a file for `sha256sum -c`."""
    from orchestrator.runner.verify.export_sums import export_sums

    job, file = settings.configuration().job(name), os.path.abspath(to)
    with open_session(settings) as session:
        exported = session.do(job, export_sums, point=point, to=file)
    settings.subscriber.ended(exported.report)
    return ExportEnd(report=exported.report, file=file, lines=exported.lines)
